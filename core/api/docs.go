package api

import (
	"context"
	"embed"
	"fmt"
	"strings"
	"sync"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/httpserver"
)

// embedded holds the document and the page that shows it, with the licences of
// the viewer, which must go wherever it goes.
//
//go:embed openapi.yaml docs/index.html docs/policy.js docs/start.js docs/page.css
//go:embed docs/swagger-ui.css docs/swagger-ui-bundle.js docs/swagger-ui-bundle.js.LICENSE.txt docs/LICENSE docs/NOTICE
var embedded embed.FS

const (
	documentPath = "/api/openapi.yaml"
	pagePath     = "/api/docs"

	typeHTML       = "text/html; charset=utf-8"
	typeYAML       = "application/yaml; charset=utf-8"
	typeStylesheet = "text/css; charset=utf-8"
	typeScript     = "text/javascript; charset=utf-8"
	typeText       = "text/plain; charset=utf-8"
	typeJSON       = "application/json; charset=utf-8"
)

// pageFiles are the embedded files of the page. Each is served at /api/docs/{digest}/{name}, where
// its content never changes, so browsers cache it.
var pageFiles = []struct{ name, source, contentType string }{
	{"openapi.yaml", "openapi.yaml", typeYAML},
	{"policy.js", "docs/policy.js", typeScript},
	{"start.js", "docs/start.js", typeScript},
	{"page.css", "docs/page.css", typeStylesheet},
	{"swagger-ui.css", "docs/swagger-ui.css", typeStylesheet},
	{"swagger-ui-bundle.js", "docs/swagger-ui-bundle.js", typeScript},
	{"swagger-ui-bundle.js.LICENSE.txt", "docs/swagger-ui-bundle.js.LICENSE.txt", typeText},
	{"LICENSE", "docs/LICENSE", typeText},
	{"NOTICE", "docs/NOTICE", typeText},
}

// pagePolicy allows the page its own site only. Swagger UI sets inline styles, has icons in data
// URLs, and shows fetched pictures by blob URLs. It sets markup that its own DOMPurify has cleaned as a string, which
// policy.js passes.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types default dompurify"

// assets returns the served files by path.
var assets = sync.OnceValue(func() map[string]*httpserver.Asset {
	read := func(source string) []byte {
		content, err := embedded.ReadFile(source)
		if err != nil {
			panic(fmt.Sprintf("BUG: %v", err))
		}
		return content
	}
	all := make(map[string]*httpserver.Asset, len(pageFiles)+2)
	page := string(read("docs/index.html"))
	for _, file := range pageFiles {
		content := read(file.source)
		path := pagePath + "/" + httpserver.Digest(content) + "/" + file.name
		all[path] = httpserver.NewAsset(content, file.contentType, httpserver.CacheForever)
		page = strings.ReplaceAll(page, `"`+pagePath+"/"+file.name+`"`, `"`+path+`"`)
	}
	all[pagePath] = httpserver.NewAsset([]byte(page), typeHTML, "")
	all[documentPath] = httpserver.NewAsset(read("openapi.yaml"), typeYAML, "")
	return all
})

// serveAsset returns the handler of a file.
func serveAsset(asset *httpserver.Asset) httpserver.Handler {
	return func(_ context.Context, rc *fasthttp.RequestCtx) error {
		asset.Serve(rc)
		return nil
	}
}

// handleDocs handles GET and HEAD of /api/openapi.yaml, /api/docs and
// /api/docs/{digest}/{file}.
func (s *Server) handleDocs(_ context.Context, rc *fasthttp.RequestCtx) error {
	asset, ok := assets()[string(rc.Path())]
	if !ok {
		return notFound()
	}
	rc.Response.Header.Set(fasthttp.HeaderContentSecurityPolicy, pagePolicy)
	asset.Serve(rc)
	return nil
}
