package e2e

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
)

// The API documentation passes through an edge unchanged, with its caching headers and entity tags.
func TestDocumentationThroughAnEdge(t *testing.T) {
	t.Parallel()
	s := stack.Start(t, blobstoretest.Directory(t).Config)

	do := func(method, address, tag string) (int, http.Header, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, address, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept-Encoding", "gzip") // set by hand, so the transport does not decompress
		if tag != "" {
			request.Header.Set("If-None-Match", tag)
		}
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		content, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, response.Header, string(content)
	}
	check := func(path, cacheControl string) {
		t.Helper()
		_, direct, want := do("GET", s.CoreURL+path, "")
		if got := direct.Get("Cache-Control"); got != cacheControl {
			t.Errorf("%s has the Cache-Control %q; want %q", path, got, cacheControl)
		}
		tag := direct.Get("Etag")
		for _, passed := range []struct {
			method, tag string
			status      int
		}{{"GET", "", 200}, {"HEAD", "", 200}, {"GET", tag, 304}, {"HEAD", tag, 304}} {
			status, header, content := do(passed.method, s.EdgeURL+path, passed.tag)
			names := []string{"Cache-Control", "Content-Security-Policy", "Etag", "Vary", "Content-Type", "Content-Encoding", "Content-Length"}
			if passed.status == 304 {
				names = names[:4] // the rest describes the body
			}
			for _, name := range names {
				if got := header.Get(name); got != direct.Get(name) {
					t.Errorf("%s %s through an edge: %s is %q; want %q", passed.method, path, name, got, direct.Get(name))
				}
			}
			if isWhole := passed.method == "GET" && passed.status == 200; status != passed.status || (content != "") != isWhole || (isWhole && content != want) {
				t.Errorf("%s %s through an edge: %d with %d bytes; want %d", passed.method, path, status, len(content), passed.status)
			}
		}
	}

	check("/api/docs", "no-store")
	check("/api/openapi.yaml", "no-store")
	response, err := http.Get(s.EdgeURL + "/api/docs")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	page, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	files := regexp.MustCompile(`"(/api/docs/[^"]+)"`).FindAllStringSubmatch(string(page), -1)
	if len(files) < 5 || !strings.Contains(string(page), "openapi.yaml") {
		t.Fatalf("the page names only %q", files)
	}
	for _, file := range files {
		check(file[1], "public, max-age=31536000, immutable")
	}
}
