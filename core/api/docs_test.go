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

	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// pageFiles are the sources of the files that the documentation page uses.
var pageFiles = []string{
	"openapi.yaml", "docs/policy.js", "docs/start.js", "docs/page.css", "docs/swagger-ui.css", "docs/swagger-ui-bundle.js",
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
		want := testenv.Must(os.ReadFile(source))(t)
		tags := map[string]bool{}
		for accepted, coding := range map[string]string{"": "", "zstd": "", "gzip;q=0": "", "gzip": "gzip", "br;q=0, gzip": "gzip", "gzip, deflate, br, zstd": "br"} {
			a := c.Send(t, "GET", path, body{}, "Accept-Encoding", accepted)
			a.HasStatus(t, 200)
			testenv.Equal(t, a.Header.Get("Content-Type"), kind, "%s: Content-Type", a.Request())
			testenv.Equal(t, a.Header.Get("Content-Encoding"), coding, "%s with %q: Content-Encoding", a.Request(), accepted)
			testenv.Equal(t, a.Header.Get("Vary"), "Accept-Encoding", "%s with %q: Vary", a.Request(), accepted)
			got := unpack(t, coding, a.Body)
			testenv.Check(t, path == "/api/docs" || bytes.Equal(got, want), "%s is not %s", a.Request(), source)

			etag := a.Header.Get("ETag")
			tags[etag] = true
			for _, condition := range []string{etag, "W/" + etag, `"x", ` + etag} {
				unchanged := c.Send(t, "GET", path, body{}, "Accept-Encoding", accepted, "If-None-Match", condition)
				unchanged.HasStatus(t, 304)
				sent := [3]string{string(unchanged.Body), unchanged.Header.Get("ETag"), unchanged.Header.Get("Vary")}
				testenv.Equal(t, sent, [3]string{"", etag, "Accept-Encoding"}, "%s with If-None-Match %s", a.Request(), condition)
			}
			c.Send(t, "GET", path, body{}, "Accept-Encoding", accepted, "If-None-Match", `"x"`).HasStatus(t, 200)

			head := c.Send(t, "HEAD", path, body{}, "Accept-Encoding", accepted)
			for _, name := range []string{"Content-Type", "Content-Encoding", "Content-Length", "Cache-Control", "ETag", "Vary", "Content-Security-Policy"} {
				testenv.Equal(t, head.Header.Get(name), a.Header.Get(name), "HEAD %s: %s, which GET has", path, name)
			}
			head.HasStatus(t, 200)
			testenv.Equal(t, len(head.Body), 0, "HEAD %s: bytes", path)
		}
		testenv.Check(t, len(tags) == 3 && !tags[""],
			"%s has the entity tags %v; want one for each of three codings", path, tags)
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
	testenv.Do(t, err)
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
		c.Get(t, path).IsError(t, 404, 3)
	}
	c.Post(t, "/api/docs", `{}`).IsError(t, 405, 3)
}

// The page needs its own site only: the files that it names exist, and its policy forbids other
// hosts and inline scripts. All files but the page itself are cached, so that a second visit
// fetches none of them.
func TestPageUsesEmbeddedFiles(t *testing.T) {
	t.Parallel()
	c := start(t)
	a := c.Get(t, "/api/docs")
	policy := strings.Split(a.Header.Get("Content-Security-Policy"), "; ")
	for _, want := range []string{
		"default-src 'none'", "script-src 'self'", "connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
		"require-trusted-types-for 'script'", "trusted-types default dompurify",
	} {
		testenv.Equal(t, slices.Contains(policy, want), true, "the policy %q has %s", policy, want)
	}
	testenv.Equal(t, strings.Contains(strings.Join(policy, ";"), "http"), false, "the policy %q names others", policy)

	var files []string
	for _, found := range regexp.MustCompile(`(?:src|href|data-document)="([^"]*)"`).FindAllSubmatch(a.Body, -1) {
		switch path := string(found[1]); path {
		case "data:,", "/", "#about":
		case "/api/openapi.yaml": // a link
		default:
			files = append(files, strings.TrimPrefix(path, "/api/docs/"))
			got := c.Get(t, path)
			testenv.Check(t, got.Status == 200 && isAsset(got), "the page names %s, which is answered with %d", path, got.Status)
		}
	}
	var want []string
	for _, source := range pageFiles {
		want = append(want, assetOf(source))
	}
	slices.Sort(files)
	slices.Sort(want)
	cmptest.Same(t, files, want, "the files that the page names")
	inline := regexp.MustCompile(`<script[^>]*>[^<]|\son\w+=`)
	testenv.Equal(t, inline.FindString(string(a.Body)), "", "the script within the page, which its policy forbids")
}

// Path parameters have examples, which Swagger UI fills in. They are declared at the operations:
// Swagger UI ignores those of a path when the address opens an operation directly.
func TestPathParametersHaveExamples(t *testing.T) {
	t.Parallel()
	for path, item := range mustLoadContract(t).Paths.Map() {
		testenv.Equal(t, len(item.Parameters), 0, "parameters of %s that are not at its operations", path)
		for method, operation := range item.Operations() {
			for _, parameter := range operation.Parameters {
				p := parameter.Value
				testenv.Equal(t, p.In == "path" && p.Example == nil, false, "%s %s: %s has no example", method, path, p.Name)
			}
		}
	}
}
