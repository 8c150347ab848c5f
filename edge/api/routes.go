package api

import (
	"errors"
	"slices"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/edge/cache"
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/roots"
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
func (e *exchange) format() format {
	switch {
	case e.request.Kind == edge.KindProfile:
		return formatJSON
	case e.response.Variant.Format == render.WebP:
		return formatWebP
	default:
		return formatPNG
	}
}

// outcome is how a request ended, as a label of metrics.
type outcome uint8

const (
	outcomeHit         outcome = iota // mapping and picture were cached
	outcomeCoalesced                  // waited for a load that another request had started
	outcomeMiss                       // looked up, fetched or rendered
	outcomeNotModified                // 304
	outcomeNotFound                   // no such picture
	outcomeInvalid                    // invalid request
	outcomeShed                       // rejected because of too much load
	outcomeError                      // a dependency is unavailable, or an internal error
	outcomePreflight                  // OPTIONS
	outcomeCount
)

var outcomeNames = [outcomeCount]string{
	outcomeHit: "hit", outcomeCoalesced: "coalesced", outcomeMiss: "miss", outcomeNotModified: "not_modified", outcomeNotFound: "not_found",
	outcomeInvalid: "invalid", outcomeShed: "shed", outcomeError: "error", outcomePreflight: "preflight",
}

// cacheOutcomes are the outcomes of responses with content.
var cacheOutcomes = [...]outcome{cache.Hit: outcomeHit, cache.Coalesced: outcomeCoalesced, cache.Miss: outcomeMiss, cache.MissUncached: outcomeMiss}

// errorOutcome returns the outcome of a request that failed.
func errorOutcome(err error) outcome {
	switch f := fault.Of(err); {
	case errors.Is(err, edge.ErrShed):
		return outcomeShed
	case f.Kind == fault.NotFound:
		return outcomeNotFound
	case f.Kind == fault.Invalid || f.Kind == fault.MethodNotAllowed || f.Kind == fault.PreconditionFailed:
		return outcomeInvalid
	default:
		return outcomeError
	}
}

// routes are the routes of the public listener, in metrics and logs.
type routes struct {
	api, pictures *httpserver.Route
	core          map[string]*httpserver.Route                   // by the root of what is forwarded
	views         [][formatCount][outcomeCount]*httpserver.Route // by the number of the route
}

func newRoutes(opts httpserver.Options) *routes {
	r := &routes{
		pictures: opts.Route(picturesPath), core: map[string]*httpserver.Route{},
		views: make([][formatCount][outcomeCount]*httpserver.Route, len(routeNames)),
	}
	for _, root := range slices.Concat(roots.Paths, roots.Trees) {
		r.core[root] = opts.Route(root)
	}
	r.api = r.core[roots.API]
	for number, name := range routeNames {
		for i, format := range formatNames {
			for j, outcome := range outcomeNames {
				r.views[number][i][j] = opts.Route(name, httpserver.Label{Name: "format", Value: format}, httpserver.Label{Name: "outcome", Value: outcome})
			}
		}
	}
	return r
}

func (r *routes) set(rc *fasthttp.RequestCtx, number int, format format, outcome outcome) {
	r.views[number][format][outcome].AssignTo(rc)
}
