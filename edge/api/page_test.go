package api_test

import (
	"net/http"
	"strings"
	"testing"
)

// Browsers get HTML pages at / and at unknown paths, all other clients JSON.
func TestPages(t *testing.T) {
	t.Parallel()
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	const page, data, text = "text/html; charset=utf-8", "application/json; charset=utf-8", "text/plain; charset=utf-8"
	const docs, console = `<a href="/api/docs">`, `<a href="/console/">`
	for _, passes := range []bool{false, true} {
		w := openSeeded(t, func(s *setup) {
			if passes {
				s.api.APIUpstream = "http://127.0.0.1:1" // which no request here is forwarded to
			}
		})
		f := func(path, accept string, status int, kind, content, cache, vary string) {
			t.Helper()
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				got := w.do(t, method, path, http.Header{"Accept": {accept}}, "")
				if got.status != status || got.header.Get("Content-Type") != kind || method == http.MethodGet && !strings.Contains(got.body, content) || method == http.MethodHead && got.body != "" {
					t.Errorf("%s %s for %q: %d, %s:\n%s\nwant %d, %s, with %q", method, path, accept, got.status, got.header.Get("Content-Type"), got.body, status, kind, content)
				}
				if got.header.Get("Cache-Control") != cache || strings.Join(got.header.Values("Vary"), ", ") != vary || got.header.Get("Cache-Status") != "veneer; fwd=bypass" {
					t.Errorf("%s %s for %q: header %v; want Cache-Control %s and Vary %q", method, path, accept, got.header, cache, vary)
				}
				if got := strings.Contains(got.header.Get("Content-Security-Policy"), "default-src 'none'; style-src 'sha256-"); got != (kind == page) {
					t.Errorf("%s %s for %q: it has the policy of pages: %t", method, path, accept, got)
				}
				for _, link := range []string{docs, console} {
					if strings.Contains(got.body, link) != (passes && kind == page && method == http.MethodGet) {
						t.Errorf("%s %s, forwarding: %t, %s:\n%s", method, path, passes, link, got.body)
					}
				}
			}
		}
		const notFound, never = "public, max-age=15", "no-store"
		f("/", browser, 200, page, "<h1>Veneer</h1>", never, "")
		f("/", "*/*", 200, page, "<h1>Veneer</h1>", never, "")
		f("/robots.txt", browser, 200, text, "Disallow: /api/\n", never, "")
		for _, path := range []string{"/nothing", "/favicon.ico", "/avatar/", "/preview/user/1", "/apiary"} {
			f(path, browser, 404, page, `<a href="/">Start page</a>`, notFound, "Accept")
			f(path, "*/*", 404, data, `{"code":3,`, notFound, "Accept")
		}
		// The path of a picture that does not exist is known, so this is JSON.
		if got := w.do(t, http.MethodGet, "/avatar/99", http.Header{"Accept": {browser}}, ""); got.status != 404 || got.header.Get("Content-Type") != data || got.header.Get("Vary") != "" {
			t.Errorf("/avatar/99: %d, header %v", got.status, got.header)
		}

		for _, path := range []string{"/", "/robots.txt"} {
			if got := w.do(t, http.MethodPost, path, nil, ""); got.status != http.StatusMethodNotAllowed || got.header.Get("Allow") != "GET, HEAD, OPTIONS" || got.header.Get("Cache-Control") != never {
				t.Errorf("POST %s: %d, header %v", path, got.status, got.header)
			}
			if got := w.do(t, http.MethodOptions, path, nil, ""); got.status != http.StatusNoContent || got.header.Get("Access-Control-Allow-Methods") != "GET, HEAD, OPTIONS" {
				t.Errorf("OPTIONS %s: %d, header %v", path, got.status, got.header)
			}
		}
		if !passes {
			f("/console/", browser, 404, page, `<a href="/">Start page</a>`, notFound, "Accept")
			if got := w.do(t, http.MethodGet, "/api/nothing", http.Header{"Accept": {browser}}, ""); got.status != 404 || got.header.Get("Content-Type") != data {
				t.Errorf("/api/nothing: %d, header %v", got.status, got.header)
			}
		}
	}
}

// Launchers are told at / where core's API is, and nowhere else.
func TestLaunchersURL(t *testing.T) {
	t.Parallel()
	const header = "X-Authlib-Injector-Api-Location"
	for _, location := range []string{"", "/api/yggdrasil/", "https://api.example.org/api/yggdrasil/"} {
		w := openSeeded(t, func(s *setup) { s.api.LaunchersURL = location })
		for path, want := range map[string]string{"/": location, "/avatar/1": "", "/nothing": ""} {
			if got := w.do(t, http.MethodGet, path, nil, "").header.Get(header); got != want {
				t.Errorf("%q: %s has the header %q; want %q", location, path, got, want)
			}
		}
	}
}
