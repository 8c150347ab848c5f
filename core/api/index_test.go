package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// raw returns a response that is not checked against the document.
func (c client) raw(t *testing.T, method, path string, headers ...string) *fasthttp.Response {
	t.Helper()
	request, resp := new(fasthttp.Request), new(fasthttp.Response)
	request.Header.SetMethod(method)
	request.SetRequestURI("http://veneer.test" + path)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	if err := c.http.Do(request, resp); err != nil {
		t.Fatal(err)
	}
	return resp
}

func TestIndex(t *testing.T) {
	t.Parallel()

	c := start(t)
	const index = `{"code":0,"message":"<text>","data":{"name":"Veneer","version":"devel","docs":"/api/docs","openapi":"/api/openapi.yaml","status":"ok"}}`
	c.get(t, "/api").is(t, 200, index)
	c.db.Close()
	c.get(t, "/api").is(t, 200, index) // from the cached health check
	c.site.advance(time.Second)
	c.get(t, "/api").is(t, 200, strings.Replace(index, "ok", "unavailable", 1))
	want := string(c.raw(t, "GET", "/api").Body())
	for _, path := range []string{"/api", "/api/", "/"} {
		if got := c.raw(t, "GET", path); got.StatusCode() != 200 || string(got.Body()) != want {
			t.Errorf("GET %s: %d %s; want %s", path, got.StatusCode(), got.Body(), want)
		}
		if got := c.raw(t, "HEAD", path); got.StatusCode() != 200 || len(got.Body()) != 0 || got.Header.ContentLength() != len(want) {
			t.Errorf("HEAD %s: %d %q, of %d bytes; want %d", path, got.StatusCode(), got.Body(), got.Header.ContentLength(), len(want))
		}
		if got := c.raw(t, "POST", path); got.StatusCode() != 405 || string(got.Header.Peek("Allow")) != "GET, HEAD, OPTIONS" {
			t.Errorf("POST %s: %d, Allow %s", path, got.StatusCode(), got.Header.Peek("Allow"))
		}
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
			if got.StatusCode() != status || string(got.Header.ContentType()) != kind || method == "GET" && !strings.Contains(string(got.Body()), content) {
				t.Errorf("%s %s for %q: %d, %s:\n%s\nwant %d, %s, with %q", method, path, accept, got.StatusCode(), got.Header.ContentType(), got.Body(), status, kind, content)
			}
			if got := string(got.Header.Peek("Vary")) == "Accept"; got != varies {
				t.Errorf("%s %s for %q: Vary has Accept: %t; want %t", method, path, accept, got, varies)
			}
			for name, want := range map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Request-Id": "abc-123"} {
				if got := string(got.Header.Peek(name)); got != want {
					t.Errorf("%s %s for %q: %s is %q; want %q", method, path, accept, name, got, want)
				}
			}
			if policy := string(got.Header.Peek("Content-Security-Policy")); !strings.HasPrefix(policy, "default-src 'none'; ") ||
				strings.Contains(policy, "style-src 'sha256-") != strings.HasPrefix(kind, "text/html") {
				t.Errorf("%s %s for %q: Content-Security-Policy is %q", method, path, accept, policy)
			}
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
	if got := c.raw(t, "GET", "/api/nothing", "Accept", browser); got.StatusCode() != 404 || string(got.Header.ContentType()) != data {
		t.Errorf("/api/nothing: %d, %s", got.StatusCode(), got.Header.ContentType())
	}
}
