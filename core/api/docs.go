package api

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/httpserver"
)

// embedded holds the document and the page that shows it, with the licences of
// the viewer, which must go wherever it goes.
//
//go:embed openapi.yaml docs/index.html docs/start.js docs/page.css
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
	{"start.js", "docs/start.js", typeScript},
	{"page.css", "docs/page.css", typeStylesheet},
	{"swagger-ui.css", "docs/swagger-ui.css", typeStylesheet},
	{"swagger-ui-bundle.js", "docs/swagger-ui-bundle.js", typeScript},
	{"swagger-ui-bundle.js.LICENSE.txt", "docs/swagger-ui-bundle.js.LICENSE.txt", typeText},
	{"LICENSE", "docs/LICENSE", typeText},
	{"NOTICE", "docs/NOTICE", typeText},
}

// pagePolicy allows the page its own site only. Swagger UI sets inline styles, has icons in data
// URLs, and shows fetched pictures by blob URLs.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// cacheForever is the Cache-Control of files that are addressed by their digest.
const cacheForever = "public, max-age=31536000, immutable"

// asset is a file in both content codings.
type asset struct {
	contentType, cacheControl string // cacheControl is empty for no-store
	identity, gzip            coding
}

// coding is a file in one content coding. Each coding has its own entity tag, since the bytes
// differ (RFC 9110, section 8.8.3.3).
type coding struct {
	body []byte
	etag string // with quotes
}

func newAsset(content []byte, contentType, cacheControl string) asset {
	tag := digest(content)
	return asset{
		contentType, cacheControl,
		coding{content, `"` + tag + `"`},
		coding{fasthttp.AppendGzipBytesLevel(nil, content, fasthttp.CompressBestCompression), `"` + tag + `-gzip"`},
	}
}

// digest returns the first 64 bits of the SHA-256 as 16 hexadecimal digits.
func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8])
}

// assets returns the served files by path. They are compressed once, at the first request.
var assets = sync.OnceValue(func() map[string]asset {
	read := func(source string) []byte {
		content, err := embedded.ReadFile(source)
		if err != nil {
			panic(fmt.Sprintf("BUG: %v", err))
		}
		return content
	}
	all := make(map[string]asset, len(pageFiles)+2)
	page := string(read("docs/index.html"))
	for _, file := range pageFiles {
		content := read(file.source)
		path := pagePath + "/" + digest(content) + "/" + file.name
		all[path] = newAsset(content, file.contentType, cacheForever)
		page = strings.ReplaceAll(page, `"`+pagePath+"/"+file.name+`"`, `"`+path+`"`)
	}
	all[pagePath] = newAsset([]byte(page), typeHTML, "")
	all[documentPath] = newAsset(read("openapi.yaml"), typeYAML, "")
	return all
})

// handleDocs handles GET and HEAD of /api/openapi.yaml, /api/docs and
// /api/docs/{digest}/{file}.
func (s *Server) handleDocs(_ context.Context, rc *fasthttp.RequestCtx) error {
	asset, ok := assets()[string(rc.Path())]
	if !ok {
		return notFound()
	}
	header := &rc.Response.Header
	coding := asset.identity
	acceptsGzip := rc.Request.Header.HasAcceptEncoding("gzip")
	if acceptsGzip {
		coding = asset.gzip
	}
	header.Set(fasthttp.HeaderContentSecurityPolicy, pagePolicy)
	header.Add(fasthttp.HeaderVary, fasthttp.HeaderAcceptEncoding)
	header.Set(fasthttp.HeaderETag, coding.etag)
	if asset.cacheControl != "" {
		header.Set(fasthttp.HeaderCacheControl, asset.cacheControl)
	}
	if httpserver.MatchETag(rc.Request.Header.Peek(fasthttp.HeaderIfNoneMatch), []byte(coding.etag), true) {
		rc.SetStatusCode(fasthttp.StatusNotModified)
		return nil
	}
	header.SetContentType(asset.contentType)
	if acceptsGzip {
		header.SetContentEncoding("gzip")
	}
	rc.Response.SetBodyRaw(coding.body) // the bytes are shared and never change
	return nil
}
