package api

import (
	"context"
	"embed"
	"fmt"
	"sync"

	"github.com/valyala/fasthttp"
)

// embedded holds the document and the page that shows it, with the licences of
// the viewer, which must go wherever it goes.
//
//go:embed openapi.yaml docs/index.html docs/start.js
//go:embed docs/swagger-ui.css docs/swagger-ui-bundle.js docs/swagger-ui-bundle.js.LICENSE.txt docs/LICENSE docs/NOTICE
var embedded embed.FS

// documentation says which embedded file is at which path, and of what type it
// is.
var documentation = map[string]struct{ file, kind string }{
	"/api/openapi.yaml":                          {"openapi.yaml", "application/yaml; charset=utf-8"},
	"/api/docs":                                  {"docs/index.html", "text/html; charset=utf-8"},
	"/api/docs/start.js":                         {"docs/start.js", "text/javascript; charset=utf-8"},
	"/api/docs/swagger-ui.css":                   {"docs/swagger-ui.css", "text/css; charset=utf-8"},
	"/api/docs/swagger-ui-bundle.js":             {"docs/swagger-ui-bundle.js", "text/javascript; charset=utf-8"},
	"/api/docs/swagger-ui-bundle.js.LICENSE.txt": {"docs/swagger-ui-bundle.js.LICENSE.txt", "text/plain; charset=utf-8"},
	"/api/docs/LICENSE":                          {"docs/LICENSE", "text/plain; charset=utf-8"},
	"/api/docs/NOTICE":                           {"docs/NOTICE", "text/plain; charset=utf-8"},
}

// pagePolicy lets the page use what this site serves and nothing else. The
// viewer sets styles on elements, has icons in data URLs, and shows pictures
// that it has fetched from blob URLs.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// leaf is an embedded file as it is sent.
type leaf struct {
	kind          string
	plain, packed []byte
}

// leaves returns the embedded files by path. They are compressed once, when the
// first is asked for: clients keep nothing of /api, so that the viewer's 1.7 MB
// are sent every time the page is opened.
var leaves = sync.OnceValue(func() map[string]leaf {
	all := make(map[string]leaf, len(documentation))
	for path, source := range documentation {
		plain, err := embedded.ReadFile(source.file)
		if err != nil {
			panic(fmt.Sprintf("BUG: %v", err))
		}
		all[path] = leaf{source.kind, plain, fasthttp.AppendGzipBytesLevel(nil, plain, fasthttp.CompressBestCompression)}
	}
	return all
})

// document handles GET /api/openapi.yaml, GET /api/docs and GET
// /api/docs/{file}.
func (s *Server) document(_ context.Context, rc *fasthttp.RequestCtx) error {
	leaf, ok := leaves()[string(rc.Path())]
	if !ok {
		return nothingHere()
	}
	header := &rc.Response.Header
	header.SetContentType(leaf.kind)
	header.Set(fasthttp.HeaderContentSecurityPolicy, pagePolicy)
	header.Add(fasthttp.HeaderVary, fasthttp.HeaderAcceptEncoding)
	// The bytes are everybody's, and never change.
	if rc.Request.Header.HasAcceptEncoding("gzip") {
		header.SetContentEncoding("gzip")
		rc.Response.SetBodyRaw(leaf.packed)
	} else {
		rc.Response.SetBodyRaw(leaf.plain)
	}
	return nil
}
