package serve

import (
	"fmt"
	"strings"

	"github.com/valyala/fasthttp"
)

// Route is what a Door counts and logs requests of one kind under. Its name is
// the program's, never the client's: there are only so many.
type Route struct {
	name   string
	labels []Label
	counts *counts
}

// Label tells routes of one name apart: what a request asked for, or what became
// of it. There are only so many values, and none is a client's.
type Label struct{ Name, Value string }

// Route returns a route by its name, as in GET /api/players/{pid}. It is made
// once, at the start. One without labels stands in /metrics from then on, others
// once they have counted something: most combinations of labels never do.
func (d Door) Route(name string, labels ...Label) *Route {
	var all strings.Builder
	fmt.Fprintf(&all, "listener=%q,route=%q", d.Listener, name)
	for _, label := range labels {
		fmt.Fprintf(&all, ",%s=%q", label.Name, label.Value)
	}
	return &Route{name: name, labels: labels, counts: counted.of(all.String(), len(labels) == 0)}
}

// Claim says that a request is one of the route's; the last word counts. Requests
// that nobody claims are those of the route "other".
func (r *Route) Claim(rc *fasthttp.RequestCtx) {
	if seen := recordOf(rc); seen != nil {
		seen.route = r
	}
}
