package api_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// documentation are the paths of the document and of its page, and where their
// content comes from.
var documentation = []struct{ path, file, kind string }{
	{"/api/openapi.yaml", "openapi.yaml", "application/yaml; charset=utf-8"},
	{"/api/docs", "docs/index.html", "text/html; charset=utf-8"},
	{"/api/docs/start.js", "docs/start.js", "text/javascript; charset=utf-8"},
	{"/api/docs/swagger-ui.css", "docs/swagger-ui.css", "text/css; charset=utf-8"},
	{"/api/docs/swagger-ui-bundle.js", "docs/swagger-ui-bundle.js", "text/javascript; charset=utf-8"},
	{"/api/docs/swagger-ui-bundle.js.LICENSE.txt", "docs/swagger-ui-bundle.js.LICENSE.txt", "text/plain; charset=utf-8"},
	{"/api/docs/LICENSE", "docs/LICENSE", "text/plain; charset=utf-8"},
	{"/api/docs/NOTICE", "docs/NOTICE", "text/plain; charset=utf-8"},
}

func TestDocumentation(t *testing.T) {
	t.Parallel()

	c := start(t)
	for _, d := range documentation {
		want, err := os.ReadFile(d.file)
		if err != nil {
			t.Fatal(err)
		}
		f := func(accepted string, packed bool) {
			t.Helper()
			a := c.send(t, "GET", d.path, body{}, "Accept-Encoding", accepted)
			if a.status != 200 || a.head("Content-Type") != d.kind {
				t.Errorf("%s: %d, of type %s; want %s", a.request, a.status, a.head("Content-Type"), d.kind)
			}
			if a.head("Vary") != "Accept-Encoding" || (a.head("Content-Encoding") == "gzip") != packed {
				t.Errorf("%s for those who accept %q: Content-Encoding %q, Vary %q", a.request, accepted, a.head("Content-Encoding"), a.head("Vary"))
			}
			got := a.body
			if packed {
				got = unpack(t, a.body)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s is not %s", a.request, d.file)
			}
		}

		f("", false)
		f("br", false)
		f("gzip;q=0", false)
		f("gzip", true)
		f("gzip, deflate, br, zstd", true)
	}
}

func unpack(t *testing.T, packed []byte) []byte {
	t.Helper()
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

func TestDocumentationThatIsNotThere(t *testing.T) {
	t.Parallel()

	c := start(t)
	for _, path := range []string{
		"/api/docs/", "/api/docs/index.html", "/api/docs/README.md", "/api/docs/nothing", "/api/docs/docs/start.js",
		"/api/docs/openapi.yaml", "/api/openapi.json",
	} {
		c.get(t, path).refuses(t, 404, 3)
	}
	c.post(t, "/api/docs", `{}`).refuses(t, 405, 3)
}

// The page asks for nothing but what this site serves: what it names is there,
// and its policy forbids the rest, scripts within the page included.
func TestThePageKeepsToItself(t *testing.T) {
	t.Parallel()

	c := start(t)
	a := c.get(t, "/api/docs")
	policy := strings.Split(a.head("Content-Security-Policy"), "; ")
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

	named := regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllSubmatch(a.body, -1)
	if len(named) < 4 {
		t.Errorf("the page names only %q", named)
	}
	for _, name := range named {
		// As the page is /api/docs, its neighbours are under /api.
		if path := string(name[1]); path != "data:," {
			if got := c.get(t, "/api/"+path); got.status != 200 {
				t.Errorf("the page names %s, which is answered with %d", path, got.status)
			}
		}
	}
	if regexp.MustCompile(`<script[^>]*>[^<]|\son\w+=`).Match(a.body) {
		t.Error("the page has a script within it, which its policy forbids")
	}
}
