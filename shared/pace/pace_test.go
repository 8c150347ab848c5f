package pace_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/veneer-skins/veneer/shared/pace"
)

func TestPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := pace.New(100, 2*time.Second)
		f := func(want int) {
			t.Helper()
			got := 0
			for range 1000 {
				allows, allowed := p.Allows(), p.Allow()
				if allowed {
					got++
				}
				if allows != allowed {
					t.Errorf("Allows() = %t, and then Allow() = %t", allows, allowed)
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

		// Whoever comes too often is refused, not punished.
		for range 50 {
			<-time.After(2 * time.Millisecond)
			p.Allow()
		}
		<-time.After(10 * time.Millisecond)
		f(1)

		unlimited := pace.New(0, time.Second)
		for range 1000 {
			if !unlimited.Allow() {
				t.Fatal("a pace without a limit refuses")
			}
		}
	})
}
