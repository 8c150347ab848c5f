// Package api is the edge's door: a URL becomes a picture that is wanted, and
// what is found becomes headers and bytes. Nothing is decided here but how to
// say it in HTTP.
package api

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/serve"
)

// MaxBody is the largest body of a request in bytes: an upload with the form
// around it. Only what is passed on to core has a body.
const MaxBody = 1<<20 + 64<<10

// Config says what the door tells caches and what it passes on.
type Config struct {
	CacheTags   Tags          `env:"CACHE_TAGS" envDefault:"both" help:"headers that tell CDNs what an answer depends on: off, surrogate-key, cache-tag or both"`
	SMaxage     time.Duration `env:"S_MAXAGE" envDefault:"0s" help:"s-maxage of pictures by player and by user, for CDNs that are purged by tag; 0s sends none"`
	APIUpstream string        `env:"API_UPSTREAM" help:"core's public listener, as in http://127.0.0.1:8080, to which /api is passed on; empty: /api is not found here"`
}

// Server answers the edge's public requests.
type Server struct {
	door     serve.Door
	pictures *edge.Pictures
	tags     Tags
	byName   string    // Cache-Control of pictures whose mapping changes often
	upstream *upstream // nil: none
	routes   routes
}

// New returns a server of pictures.
func New(door serve.Door, pictures *edge.Pictures, config Config) (*Server, error) {
	upstream, err := newUpstream(config.APIUpstream, door.Proxies)
	if err != nil {
		return nil, fmt.Errorf("API_UPSTREAM %w", err)
	}
	switch {
	case config.SMaxage < 0:
		return nil, fmt.Errorf("S_MAXAGE is %s, but must not be negative", config.SMaxage)
	case config.SMaxage%time.Second != 0:
		return nil, fmt.Errorf("S_MAXAGE is %s, but must be whole seconds", config.SMaxage)
	}
	door.Listener, door.Mark = "public", mark
	return &Server{
		door: door, pictures: pictures, tags: config.CacheTags, byName: cacheByName(config.SMaxage), upstream: upstream, routes: newRoutes(door),
	}, nil
}

// HTTP returns the server behind the public listener.
func (s *Server) HTTP() *fasthttp.Server {
	server := s.door.Server(s.door.Handle(s.answer), MaxBody)
	if s.upstream != nil {
		s.door.TakeUploads(server, "/api/textures", MaxBody)
	}
	return server
}

// answer answers a request.
func (s *Server) answer(ctx context.Context, rc *fasthttp.RequestCtx) error {
	path := string(rc.Path())
	if isAPI := path == "/api" || strings.HasPrefix(path, "/api/"); isAPI {
		s.routes.api.Claim(rc)
		if s.upstream != nil {
			return s.upstream.pass(ctx, rc)
		}
		mark(rc)
		return fault.New(fault.NotFound, "There is no API here.")
	}

	mark(rc)
	subject, isImage := subjectOf(path)
	if !isImage {
		rc.Response.Header.Set(fasthttp.HeaderCacheControl, cacheNotFound)
		return notFound()
	}
	s.routes.of(subject).Claim(rc)
	switch {
	case rc.IsGet() || rc.IsHead():
		return s.image(ctx, rc, subject)
	case rc.IsOptions():
		header := &rc.Response.Header
		header.Set(fasthttp.HeaderAllow, methods)
		header.Set(fasthttp.HeaderAccessControlAllowMethods, methods)
		header.Set(fasthttp.HeaderAccessControlAllowHeaders, "*")
		header.Set(fasthttp.HeaderAccessControlMaxAge, "86400")
		header.Set(fasthttp.HeaderCacheControl, "no-store")
		rc.SetStatusCode(fasthttp.StatusNoContent)
		return nil
	default:
		rc.Response.Header.Set(fasthttp.HeaderAllow, methods)
		return fault.New(fault.MethodNotAllowed, "A picture can only be fetched.")
	}
}

const methods = "GET, HEAD, OPTIONS"

// mark sets what every answer has.
func mark(rc *fasthttp.RequestCtx) {
	header := &rc.Response.Header
	header.Set(fasthttp.HeaderXContentTypeOptions, "nosniff")
	header.Set(fasthttp.HeaderAccessControlAllowOrigin, "*")
	header.Set(fasthttp.HeaderCrossOriginResourcePolicy, "cross-origin")
	header.Set(headerCacheStatus, statusAside)
}

func notFound() error { return fault.New(fault.NotFound, "There is nothing at this address.") }
