package api

import (
	"testing"
	"time"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// A date is used from a second after it: a response from before that may be from before a
// change with the same date.
func TestLastModifiedOf(t *testing.T) {
	t.Parallel()
	const date = 1_800_000_000
	for _, test := range []struct {
		name   string
		kind   edge.Kind
		lookup edge.LookupResult
		at     time.Time
		want   int64
	}{
		{"a file", edge.KindFile, edge.LookupHit, time.Unix(date+1, 0), date},
		{"a profile", edge.KindProfile, edge.LookupHit, time.Unix(date+1, 0), date},
		{"a file, later", edge.KindFile, edge.LookupHit, time.Unix(date+1e6, 0), date},
		{"just looked up", edge.KindFile, edge.LookupMiss, time.Unix(date+1, 0), date},
		{"before its second", edge.KindFile, edge.LookupHit, time.Unix(date-1, 999_999_999), 0},
		{"in its second", edge.KindFile, edge.LookupHit, time.Unix(date, 0), 0},
		{"at the end of its second", edge.KindFile, edge.LookupHit, time.Unix(date, 999_999_999), 0},
		{"core is unreachable", edge.KindFile, edge.LookupStale, time.Unix(date+1e6, 0), 0},
		{"a picture", edge.KindPicture, edge.LookupHit, time.Unix(date+1e6, 0), 0},
	} {
		x := exchange{at: test.at, request: edge.Request{Kind: test.kind}}
		x.response = edge.Response{Lookup: test.lookup, Mapping: edgeproto.Mapping{Modified: date}}
		testenv.Equal(t, x.lastModified(), test.want, "%s", test.name)
	}
}
