package origin

import (
	"testing"
	"time"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// Every line of a stream is rejected or decoded to a valid event: no heartbeat is in the
// future, and the first event is a start.
func FuzzDecode(f *testing.F) {
	for _, line := range []string{
		`{"epoch":"e","revision":7,"start":true,"stream":"s"}`, `{"epoch":"e","revision":8,"keys":["name:steve","tid:1"]}`, `{"epoch":"e","revision":8,"as_of":1000000}`,
		`{"as_of":9223372036854775807}`, `{"as_of":-9223372036854775808}`, `{"revision":1e3}`, `{"keys":null}`, `null`, `[]`, `{`, ``, `{"keys":["\ud800"]}`,
	} {
		f.Add([]byte(line), true)
		f.Add([]byte(line), false)
	}
	sentAt := time.Date(2031, 2, 3, 12, 0, 0, 0, time.UTC)
	now := sentAt.Add(time.Second)
	f.Fuzz(func(t *testing.T, line []byte, first bool) {
		event, asOf, err := decodeEvent(line, first, sentAt, now)
		if err != nil {
			return
		}
		testenv.Check(t, !first || event.Start, "a stream may start with %q", line)
		testenv.Check(t, !asOf.After(now), "%q is of %s; now it is %s", line, asOf, now)
		if event.IsHeartbeat() && (event.Start || len(event.Keys) > 0) {
			t.Errorf("%q is a heartbeat: %+v", line, event)
		}
	})
}
