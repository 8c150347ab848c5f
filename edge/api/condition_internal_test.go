package api

import (
	"testing"
	"time"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/shared/mapping"
)

// A date counts from a second after it: what was answered before that may be from before
// a change of the same date.
func TestDateOf(t *testing.T) {
	t.Parallel()
	const date = 1_800_000_000
	for _, test := range []struct {
		name  string
		found shown
		at    time.Time
		want  int64
	}{
		{"a file", shown{want: edge.Want{File: true}}, time.Unix(date+1, 0), date},
		{"a profile", shown{about: subject{route: profile}}, time.Unix(date+1, 0), date},
		{"a file, later", shown{want: edge.Want{File: true}}, time.Unix(date+1e6, 0), date},
		{"just asked for", shown{want: edge.Want{File: true}, source: edge.Asked}, time.Unix(date+1, 0), date},
		{"before its second", shown{want: edge.Want{File: true}}, time.Unix(date-1, 999_999_999), 0},
		{"in its second", shown{want: edge.Want{File: true}}, time.Unix(date, 0), 0},
		{"at the end of its second", shown{want: edge.Want{File: true}}, time.Unix(date, 999_999_999), 0},
		{"core is away", shown{want: edge.Want{File: true}, source: edge.Stale}, time.Unix(date+1e6, 0), 0},
		{"a picture", shown{}, time.Unix(date+1e6, 0), 0},
	} {
		test.found.led, test.found.at = mapping.Mapping{Modified: date}, test.at
		if got := test.found.dateOf(); got != test.want {
			t.Errorf("%s: %d; want %d", test.name, got, test.want)
		}
	}
}
