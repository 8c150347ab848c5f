package api

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/roots"
	"github.com/veneer-skins/veneer/shared/version"
)

// indexJSON describes the API. Its paths are relative to the host of the request.
type indexJSON struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Docs    string `json:"docs"`
	OpenAPI string `json:"openapi"`
	Status  string `json:"status"`
}

// pageLinks are the links of the HTML pages.
var pageLinks = []httpserver.Link{
	{Path: "/api/docs", Text: "Documentation of the API"},
	{Path: "/api/openapi.yaml", Text: "OpenAPI document"},
}

var notFoundPage = httpserver.NotFoundPage(append([]httpserver.Link{{Path: "/", Text: "Start page"}}, pageLinks...)...)

// handleIndex handles GET /api, and / on a site without pages.
func (s *Server) handleIndex(ctx context.Context, rc *fasthttp.RequestCtx) error {
	status := "ok"
	if !s.database.healthy(ctx) {
		status = "unavailable"
	}
	return writeOK(rc, "This is the API of Veneer.", indexJSON{
		Name: "Veneer", Version: version.Current().Version, Docs: "/api/docs", OpenAPI: "/api/openapi.yaml", Status: status,
	})
}

// handleRobots handles GET /robots.txt.
func (s *Server) handleRobots(_ context.Context, rc *fasthttp.RequestCtx) error {
	httpserver.Robots(rc, s.Site.IsHidden)
	return nil
}

// A result of the health check is reused for checkInterval; the check fails after checkTimeout.
const (
	checkInterval = time.Second
	checkTimeout  = 500 * time.Millisecond
)

// healthCheck checks the database at most once per checkInterval, shared by all requests.
type healthCheck struct {
	check func(context.Context) error
	now   core.Clock

	mu          sync.Mutex // held during the check
	checkedAt   time.Time
	lastHealthy bool
}

func (c *healthCheck) healthy(ctx context.Context) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now(); now.Sub(c.checkedAt) >= checkInterval {
		ctx, cancel := context.WithTimeout(ctx, checkTimeout)
		defer cancel()
		c.lastHealthy = c.check(ctx) == nil
		c.checkedAt = now
	}
	return c.lastHealthy
}

// redirectToEdges redirects a request for what core does not have to the same path at the edges, which have the pictures,
// and reports whether it did: not if their address is unknown, or was requested, and not for what they forward to core.
func (s *Server) redirectToEdges(rc *fasthttp.RequestCtx) bool {
	const longest = 2000 // of all, so that no proxy in front finds the header too long
	origin, target := s.Site.TexturesURL, httpserver.OriginForm(rc.URI())
	if origin == "" || roots.Of(string(rc.Path())) != "" || len(target) > longest || target[0] != '/' || !rc.IsGet() && !rc.IsHead() || strings.HasSuffix(origin, "//"+string(rc.Host())) {
		return false
	}
	rc.SetStatusCode(fasthttp.StatusPermanentRedirect)
	rc.Response.Header.Set(fasthttp.HeaderLocation, origin+string(target))
	rc.Response.Header.Set(fasthttp.HeaderCacheControl, "no-store")
	return true
}
