package api

import (
	"errors"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/edge/cache"
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

// format is the format of a response, as a label of metrics.
type format uint8

const (
	noFormat format = iota // no body, or the JSON of an error
	formatPNG
	formatWebP
	formatJSON
	formatCount
)

var formatNames = [formatCount]string{noFormat: "none", formatPNG: "png", formatWebP: "webp", formatJSON: "json"}

// format returns the format of the response.
func (x *exchange) format() format {
	switch {
	case x.request.Kind == edge.KindProfile:
		return formatJSON
	case x.response.Variant.Format == render.WebP:
		return formatWebP
	default:
		return formatPNG
	}
}

// outcome is how a request ended, as a label of metrics.
type outcome uint8

const (
	hit         outcome = iota // mapping and picture were cached
	coalesced                  // waited for a load that another request had started
	miss                       // looked up, fetched or rendered
	notModified                // 304
	missing                    // no such picture
	refused                    // invalid request
	shed                       // rejected because of too much load
	failed                     // a dependency is unavailable, or an internal error
	preflight                  // OPTIONS
	outcomeCount
)

var outcomeNames = [outcomeCount]string{
	hit: "hit", coalesced: "coalesced", miss: "miss", notModified: "not-modified", missing: "not-found",
	refused: "refused", shed: "shed", failed: "error", preflight: "preflight",
}

// cacheOutcomes are the outcomes of responses with content.
var cacheOutcomes = [...]outcome{cache.Hit: hit, cache.Coalesced: coalesced, cache.Miss: miss, cache.MissUncached: miss}

// errorOutcome returns the outcome of a request that failed.
func errorOutcome(err error) outcome {
	switch f := fault.Of(err); {
	case errors.Is(err, edge.ErrShed):
		return shed
	case f.Kind == fault.NotFound:
		return missing
	case f.Kind == fault.Invalid || f.Kind == fault.MethodNotAllowed || f.Kind == fault.PreconditionFailed:
		return refused
	default:
		return failed
	}
}

// routes are the routes of the public listener, in metrics and logs.
type routes struct {
	api          *httpserver.Route // all requests that are forwarded
	root, robots *httpserver.Route
	views        [][formatCount][outcomeCount]*httpserver.Route // by the number of the route
}

func newRoutes(opts httpserver.Options) *routes {
	r := &routes{
		api: opts.Route("/api"), root: opts.Route("/"), robots: opts.Route("/robots.txt"),
		views: make([][formatCount][outcomeCount]*httpserver.Route, len(allRoutes)),
	}
	for _, route := range allRoutes {
		name := route.view.Pattern(route.Route)
		for i, format := range formatNames {
			for j, outcome := range outcomeNames {
				r.views[route.number][i][j] = opts.Route(name, httpserver.Label{Name: "format", Value: format}, httpserver.Label{Name: "outcome", Value: outcome})
			}
		}
	}
	return r
}

func (r *routes) set(rc *fasthttp.RequestCtx, route *route, format format, outcome outcome) {
	r.views[route.number][format][outcome].AssignTo(rc)
}
