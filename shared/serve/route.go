package serve

import "github.com/valyala/fasthttp"

// Route is what a Door calls requests of one kind. Its name is the program's,
// never the client's: there are only so many.
type Route struct{ name string }

// Route returns a route by its name, as in GET /api/players/{pid}. It is made
// once, at the start.
func (d Door) Route(name string) *Route { return &Route{name: name} }

// Claim says that a request is one of the route's. Requests that nobody claims
// are those of the route "other".
func (r *Route) Claim(rc *fasthttp.RequestCtx) {
	if seen := recordOf(rc); seen != nil {
		seen.route = r
	}
}
