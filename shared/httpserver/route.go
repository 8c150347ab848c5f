package httpserver

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
)

// Route is what a Door counts and logs requests of one kind under. Its name is
// the program's, never the client's: there are only so many.
type Route struct {
	name   string
	labels []Label
	counts *counts

	acceptsBody bool
	maxBody     int           // in bytes; 0: as many as the budget has
	bodyTimeout time.Duration // 0: the rest of READ_TIMEOUT
}

// Label tells routes of one name apart: what a request asked for, or what became
// of it. There are only so many values, and none is a client's.
type Label struct{ Name, Value string }

// Route returns a route by its name, as in GET /api/players/{pid}. It is made
// once, at the start. One without labels stands in /metrics from then on, others
// once they have counted something: most combinations of labels never do.
func (d Options) Route(name string, labels ...Label) *Route {
	all := prometheus.Labels{"listener": d.Listener, "route": name}
	for _, label := range labels {
		all[label.Name] = label.Value
	}
	return &Route{name: name, labels: labels, counts: requestRegistry.countsFor(all, len(labels) == 0)}
}

// AcceptBody has ReadBody read the bodies of a route's requests, of at most limit bytes, 0 for
// as many as BODIES_BYTES. They must arrive within a time, or with 0 within READ_TIMEOUT.
func (r *Route) AcceptBody(limit int, timeout time.Duration) *Route {
	r.acceptsBody, r.maxBody, r.bodyTimeout = true, limit, timeout
	return r
}

// AssignTo says that a request is one of the route's; the last word counts. Requests
// that nobody claims are those of the route "other".
func (r *Route) AssignTo(rc *fasthttp.RequestCtx) {
	if state := stateOf(rc); state != nil {
		state.route = r
	}
}
