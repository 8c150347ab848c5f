package httpserver

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
)

// Route is the name under which requests are counted and logged. The set of routes is fixed
// by the program; clients cannot add to it.
type Route struct {
	name   string
	labels []Label
	counts *counts

	acceptsBody bool
	maxBody     int           // in bytes; 0: the whole budget
	bodyTimeout time.Duration // 0: the rest of READ_TIMEOUT
}

// Label distinguishes routes of one name: by what was requested, or by the outcome. Its
// values are a fixed set, and never the client's.
type Label struct{ Name, Value string }

// Route returns a route by its name, such as GET /api/players/{pid}. It is made once, at
// start. A route without labels is in /metrics from then on; one with labels once it has
// counted a request, as most combinations never occur.
func (o Options) Route(name string, labels ...Label) *Route {
	all := prometheus.Labels{"listener": o.Listener, "route": name}
	for _, label := range labels {
		all[label.Name] = label.Value
	}
	return &Route{name: name, labels: labels, counts: requestRegistry.countsFor(all, len(labels) == 0)}
}

// AcceptBody makes ReadBody read the bodies of the route's requests, of at most limit bytes;
// 0 stands for all of BODIES_BYTES. A body must arrive within timeout; 0 stands for
// READ_TIMEOUT.
func (r *Route) AcceptBody(limit int, timeout time.Duration) *Route {
	r.acceptsBody, r.maxBody, r.bodyTimeout = true, limit, timeout
	return r
}

// AssignTo counts a request under the route; the last call wins. Requests without a route are
// counted under "other".
func (r *Route) AssignTo(rc *fasthttp.RequestCtx) {
	if state := stateOf(rc); state != nil {
		state.route = r
	}
}
