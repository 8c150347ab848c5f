package api_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// pageFiles are the sources of the files that the documentation page uses.
var pageFiles = []string{
	"openapi.yaml", "docs/start.js", "docs/page.css", "docs/swagger-ui.css", "docs/swagger-ui-bundle.js",
	"docs/swagger-ui-bundle.js.LICENSE.txt", "docs/LICENSE", "docs/NOTICE",
}

// assetOf returns the digest and the name of a file, as in its path.
func assetOf(source string) string {
	content, err := os.ReadFile(source)
	if err != nil {
		panic(err)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8]) + "/" + path.Base(source)
}

func TestDocumentation(t *testing.T) {
	t.Parallel()

	c := newSite(t, "LIMIT_REQUESTS=0").serve(t)
	kinds := map[string]string{
		".yaml": "application/yaml; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
		".txt": "text/plain; charset=utf-8", "": "text/plain; charset=utf-8",
	}
	f := func(path, source, kind string) {
		t.Helper()
		want, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		tags := map[string]bool{}
		for accepted, coding := range map[string]string{"": "", "zstd": "", "gzip;q=0": "", "gzip": "gzip", "br;q=0, gzip": "gzip", "gzip, deflate, br, zstd": "br"} {
			a := c.send(t, "GET", path, body{}, "Accept-Encoding", accepted)
			if a.status != 200 || a.headerValue("Content-Type") != kind {
				t.Errorf("%s: %d, of type %s; want %s", a.request, a.status, a.headerValue("Content-Type"), kind)
			}
			if a.headerValue("Vary") != "Accept-Encoding" || a.headerValue("Content-Encoding") != coding {
				t.Errorf("%s with Accept-Encoding %q: Content-Encoding %q, Vary %q", a.request, accepted, a.headerValue("Content-Encoding"), a.headerValue("Vary"))
			}
			got := unpack(t, coding, a.body)
			if path != "/api/docs" && !bytes.Equal(got, want) {
				t.Errorf("%s is not %s", a.request, source)
			}

			etag := a.headerValue("ETag")
			tags[etag] = true
			for _, condition := range []string{etag, "W/" + etag, `"x", ` + etag} {
				unchanged := c.send(t, "GET", path, body{}, "Accept-Encoding", accepted, "If-None-Match", condition)
				if unchanged.status != 304 || len(unchanged.body) > 0 || unchanged.headerValue("ETag") != etag || unchanged.headerValue("Vary") != "Accept-Encoding" {
					t.Errorf("%s with If-None-Match %s: %d with the tag %s and %d bytes", a.request, condition, unchanged.status, unchanged.headerValue("ETag"), len(unchanged.body))
				}
			}
			if other := c.send(t, "GET", path, body{}, "Accept-Encoding", accepted, "If-None-Match", `"x"`); other.status != 200 {
				t.Errorf("%s with another tag: %d", a.request, other.status)
			}

			head := c.send(t, "HEAD", path, body{}, "Accept-Encoding", accepted)
			for _, name := range []string{"Content-Type", "Content-Encoding", "Content-Length", "Cache-Control", "ETag", "Vary", "Content-Security-Policy"} {
				if head.headerValue(name) != a.headerValue(name) {
					t.Errorf("HEAD %s: %s is %q; GET has %q", path, name, head.headerValue(name), a.headerValue(name))
				}
			}
			if head.status != 200 || len(head.body) > 0 {
				t.Errorf("HEAD %s: %d with %d bytes", path, head.status, len(head.body))
			}
		}
		if len(tags) != 3 || tags[""] {
			t.Errorf("%s has the entity tags %v; want one for each of three codings", path, tags)
		}
	}

	f("/api/openapi.yaml", "openapi.yaml", kinds[".yaml"])
	f("/api/docs", "docs/index.html", "text/html; charset=utf-8")
	for _, source := range pageFiles {
		f("/api/docs/"+assetOf(source), source, kinds[path.Ext(source)])
	}
}

// unpack decodes a content coding; an empty one stands for none.
func unpack(t *testing.T, coding string, packed []byte) []byte {
	t.Helper()
	plain, err := packed, error(nil)
	switch coding {
	case "gzip":
		plain, err = fasthttp.AppendGunzipBytes(nil, packed)
	case "br":
		plain, err = fasthttp.AppendUnbrotliBytes(nil, packed)
	}
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

func TestDocumentationNotFound(t *testing.T) {
	t.Parallel()

	c := start(t)
	digest, _, _ := strings.Cut(assetOf("docs/start.js"), "/")
	for _, path := range []string{
		"/api/docs/index.html", "/api/docs/start.js", "/api/docs/nothing", "/api/openapi.json",
		"/api/docs/" + digest, "/api/docs/" + digest + "/page.css", "/api/docs/0000000000000000/start.js", "/api/docs/" + digest + "/README.md",
	} {
		c.get(t, path).isError(t, 404, 3)
	}
	c.post(t, "/api/docs", `{}`).isError(t, 405, 3)
}

// The page needs its own site only: the files that it names exist, and its policy forbids other
// hosts and inline scripts. All files but the page itself are cached, so that a second visit
// fetches none of them.
func TestPageUsesEmbeddedFiles(t *testing.T) {
	t.Parallel()

	c := start(t)
	a := c.get(t, "/api/docs")
	policy := strings.Split(a.headerValue("Content-Security-Policy"), "; ")
	for _, want := range []string{
		"default-src 'none'", "script-src 'self'", "connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
	} {
		if !slices.Contains(policy, want) {
			t.Errorf("the policy %q lacks %s", policy, want)
		}
	}
	if strings.Contains(strings.Join(policy, ";"), "http") {
		t.Errorf("the policy %q names another host", policy)
	}

	var files []string
	for _, found := range regexp.MustCompile(`(?:src|href|data-document)="([^"]*)"`).FindAllSubmatch(a.body, -1) {
		switch path := string(found[1]); path {
		case "data:,", "/", "#about":
		case "/api/openapi.yaml": // a link
		default:
			files = append(files, strings.TrimPrefix(path, "/api/docs/"))
			if got := c.get(t, path); got.status != 200 || !got.isAsset() {
				t.Errorf("the page names %s, which is answered with %d", path, got.status)
			}
		}
	}
	var want []string
	for _, source := range pageFiles {
		want = append(want, assetOf(source))
	}
	slices.Sort(files)
	slices.Sort(want)
	if !slices.Equal(files, want) {
		t.Errorf("the page names the files %q; want %q", files, want)
	}
	if regexp.MustCompile(`<script[^>]*>[^<]|\son\w+=`).Match(a.body) {
		t.Error("the page has a script within it, which its policy forbids")
	}
}

// Path parameters have examples, which Swagger UI fills in. They are declared at the operations:
// Swagger UI ignores those of a path when the address opens an operation directly.
func TestPathParametersHaveExamples(t *testing.T) {
	t.Parallel()

	for path, item := range mustLoadContract(t).Paths.Map() {
		if len(item.Parameters) > 0 {
			t.Errorf("%s has parameters; want them at its operations", path)
		}
		for method, operation := range item.Operations() {
			for _, parameter := range operation.Parameters {
				if p := parameter.Value; p.In == "path" && p.Example == nil {
					t.Errorf("%s %s: the parameter %s has no example", method, path, p.Name)
				}
			}
		}
	}
}
