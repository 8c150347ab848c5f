package api

import (
	"errors"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

// format is what an answer is written in, as metrics tell it.
type format uint8

const (
	noFormat format = iota // nothing, or the JSON of a refusal
	formatPNG
	formatWebP
	formatJSON
	formatCount
)

var formatNames = [formatCount]string{noFormat: "none", formatPNG: "png", formatWebP: "webp", formatJSON: "json"}

// format returns what is shown in.
func (res *response) format() format {
	switch {
	case res.target.route == profile:
		return formatJSON
	case res.view.Format == render.WebP:
		return formatWebP
	default:
		return formatPNG
	}
}

// outcome is how a request ended, as metrics tell it.
type outcome uint8

const (
	hit         outcome = iota // all was in memory
	coalesced                  // waited for what was made for another request
	rendered                   // drawn, fetched or asked for
	notModified                // the visitor has it
	missing                    // there is no such thing
	refused                    // the request makes no sense
	shed                       // too much is being asked for
	failed                     // a dependency is down, or we are wrong
	preflight                  // only the methods were asked for
	outcomeCount
)

var outcomeNames = [outcomeCount]string{
	hit: "hit", coalesced: "coalesced", rendered: "miss", notModified: "not-modified", missing: "not-found",
	refused: "refused", shed: "shed", failed: "error", preflight: "preflight",
}

// cacheOutcomes are those of answers that show something.
var cacheOutcomes = [...]outcome{edge.Hit: hit, edge.Coalesced: coalesced, edge.Miss: rendered, edge.MissUncached: rendered}

// errorOutcome returns how a request ended that failed.
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

// routes are what the public listener counts and logs requests under.
type routes struct {
	api          *httpserver.Route // all that is passed on
	root, robots *httpserver.Route
	images       [routeCount][formatCount][outcomeCount]*httpserver.Route
}

func newRoutes(httpServer httpserver.Options) *routes {
	r := &routes{api: httpServer.Route("/api"), root: httpServer.Route("/"), robots: httpServer.Route("/robots.txt")}
	for of, name := range routeNames {
		for in, format := range formatNames {
			for how, outcome := range outcomeNames {
				r.images[of][in][how] = httpServer.Route(name, httpserver.Label{Name: "format", Value: format}, httpserver.Label{Name: "outcome", Value: outcome})
			}
		}
	}
	return r
}

func (r *routes) set(rc *fasthttp.RequestCtx, of route, in format, how outcome) {
	r.images[of][in][how].AssignTo(rc)
}
