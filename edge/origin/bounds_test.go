package origin

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/veneer-skins/veneer/shared/mapping"
)

func TestMet(t *testing.T) {
	t.Parallel()
	m := newMet()
	const keys = 100_000
	for i := range int64(keys) {
		m.add(mapping.TID(i))
	}
	taken := 0
	for i := range int64(keys) {
		if !m.has(mapping.TID(i)) {
			t.Fatalf("%d is forgotten", i)
		}
		if m.has(mapping.UID(i)) {
			taken++
		}
	}
	// One in seven thousand; the seed is another each time.
	if taken > keys/1000 {
		t.Errorf("of %d strangers %d are taken for acquaintances", keys, taken)
	}
}

func TestPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPace(100)
		f := func(want int) {
			t.Helper()
			got := 0
			for range 1000 {
				if p.allow() {
					got++
				}
			}
			if got != want {
				t.Errorf("%d are allowed; want %d", got, want)
			}
		}
		f(200) // two seconds' worth
		f(0)
		<-time.After(100 * time.Millisecond)
		f(10)
		<-time.After(time.Hour)
		f(200)
		f(0)

		unlimited := newPace(0)
		for range 1000 {
			if !unlimited.allow() {
				t.Fatal("a pace without a limit refuses")
			}
		}
	})
}
