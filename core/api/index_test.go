package api_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// raw returns a response that is not checked against the document.
func (c client) raw(t *testing.T, method, path string, headers ...string) response {
	t.Helper()
	return testenv.Must(c.Exchange(method, path, body{}, headers...))(t)
}

func TestIndex(t *testing.T) {
	t.Parallel()
	c := start(t)
	const index = `{"code":0,"message":"<text>","data":{"name":"Veneer","version":"devel","docs":"/api/docs","openapi":"/api/openapi.yaml","status":"ok"}}`
	testenv.Eventually(t, "the database answers in time", func() bool {
		c.site.Advance(time.Second) // beyond a cached failure
		return strings.Contains(string(c.Get(t, "/api").Body), `"status":"ok"`)
	})
	c.Get(t, "/api").Is(t, 200, index)
	c.Domain.DB.Close()
	c.Get(t, "/api").Is(t, 200, index) // from the cached health check
	c.site.Advance(time.Second)
	c.Get(t, "/api").Is(t, 200, strings.Replace(index, "ok", "unavailable", 1))
	want := string(c.raw(t, "GET", "/api").Body)
	for _, path := range []string{"/api", "/api/", "/"} {
		get, head, post := c.raw(t, "GET", path), c.raw(t, "HEAD", path), c.raw(t, "POST", path)
		testenv.Check(t, get.Status == 200 && string(get.Body) == want,
			"GET %s: %d %s; want %s", path, get.Status, get.Body, want)
		head.HasStatus(t, 200)
		testenv.Equal(t, string(head.Body), "", "HEAD %s: the body", path)
		testenv.Equal(t, head.Header.Get("Content-Length"), strconv.Itoa(len(want)), "HEAD %s: the length", path)
		post.HasStatus(t, 405)
		testenv.Equal(t, post.Header.Get("Allow"), "GET, HEAD, OPTIONS", "POST %s: Allow", path)
	}
}

// Outside /api, browsers get HTML and other clients JSON.
func TestPages(t *testing.T) {
	t.Parallel()
	c := start(t)
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	f := func(path, accept string, status int, kind, content string, varies bool) {
		t.Helper()
		for _, method := range []string{"GET", "HEAD"} {
			got := c.raw(t, method, path, "Accept", accept, "X-Request-ID", "abc-123")
			got.HasStatus(t, status)
			testenv.Equal(t, got.Header.Get("Content-Type"), kind, "%s %s for %q: the type", method, path, accept)
			if method == "GET" {
				testenv.Contains(t, string(got.Body), content, "GET %s for %q", path, accept)
			}
			byAccept := got.Header.Get("Vary") == "Accept"
			testenv.Equal(t, byAccept, varies, "%s %s for %q: Vary has Accept", method, path, accept)
			cache := "no-store"
			if path == "/robots.txt" {
				cache = "public, max-age=3600"
			}
			for name, want := range map[string]string{"Cache-Control": cache, "X-Content-Type-Options": "nosniff", "X-Request-Id": "abc-123"} {
				testenv.Equal(t, got.Header.Get(name), want, "%s %s for %q: %s", method, path, accept, name)
			}
			policy := got.Header.Get("Content-Security-Policy")
			testenv.Check(t, strings.HasPrefix(policy, "default-src 'none'; ") &&
				strings.Contains(policy, "style-src 'sha256-") == strings.HasPrefix(kind, "text/html"),
				"%s %s for %q: Content-Security-Policy is %q", method, path, accept, policy)
		}
	}

	const page, data = "text/html; charset=utf-8", "application/json; charset=utf-8"
	f("/", browser, 200, data, `"docs":"/api/docs"`, false)
	for _, path := range []string{"/nothing", "/apiary", "/avatar/1", "/favicon.ico"} {
		f(path, browser, 404, page, `<a href="/">Start page</a>`, true)
		f(path, "application/json, text/html", 404, data, `{"code":3,`, true)
		f(path, "", 404, data, `{"code":3,`, true)
	}
	f("/api", browser, 200, data, `"docs":"/api/docs"`, false)
	f("/robots.txt", browser, 200, "text/plain; charset=utf-8", "Disallow: /api/\n", false)
	// Under /api an unknown path gets JSON, also in a browser.
	got := c.raw(t, "GET", "/api/nothing", "Accept", browser)
	got.HasStatus(t, 404)
	testenv.Equal(t, got.Header.Get("Content-Type"), data, "/api/nothing: the type")
}
