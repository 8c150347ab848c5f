package api

import (
	"testing"
	"time"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/shared/edgeproto"
)

// A date is used from a second after it: a response from before that may be from before a
// change with the same date.
func TestDateOf(t *testing.T) {
	t.Parallel()
	const date = 1_800_000_000
	for _, test := range []struct {
		name  string
		found response
		at    time.Time
		want  int64
	}{
		{"a file", response{want: edge.Request{File: true}}, time.Unix(date+1, 0), date},
		{"a profile", response{target: target{route: profile}}, time.Unix(date+1, 0), date},
		{"a file, later", response{want: edge.Request{File: true}}, time.Unix(date+1e6, 0), date},
		{"just looked up", response{want: edge.Request{File: true}, lookup: edge.LookupMiss}, time.Unix(date+1, 0), date},
		{"before its second", response{want: edge.Request{File: true}}, time.Unix(date-1, 999_999_999), 0},
		{"in its second", response{want: edge.Request{File: true}}, time.Unix(date, 0), 0},
		{"at the end of its second", response{want: edge.Request{File: true}}, time.Unix(date, 999_999_999), 0},
		{"core is unreachable", response{want: edge.Request{File: true}, lookup: edge.LookupStale}, time.Unix(date+1e6, 0), 0},
		{"a picture", response{}, time.Unix(date+1e6, 0), 0},
	} {
		test.found.mapping, test.found.at = edgeproto.Mapping{Modified: date}, test.at
		if got := test.found.lastModified(); got != test.want {
			t.Errorf("%s: %d; want %d", test.name, got, test.want)
		}
	}
}
