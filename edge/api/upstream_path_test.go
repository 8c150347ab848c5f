package api_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/shared/roots"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Only the canonical form of a path is forwarded, and it reaches the upstream unchanged.
func TestNonCanonicalPathsAreNotForwarded(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 1)
	s := openForwarding(t, func(_ http.ResponseWriter, r *http.Request) {
		seen <- r.Method + " " + r.RequestURI + " of " + r.Header.Get("Authorization")
	})
	f := func(target, want string) {
		t.Helper()
		answer, err := io.ReadAll(dial(t, s.url, "").send(t, "GET "+target+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
		testenv.Do(t, err)
		got := "nothing"
		select {
		case got = <-seen:
		default:
		}
		testenv.Equal(t, got, want, "of GET %s the upstream gets", target)
		testenv.Check(t, want != "nothing" || strings.HasPrefix(string(answer), "HTTP/1.1 404 "),
			"GET %s is answered %.30q; want 404", target, answer)
	}

	for _, path := range roots.Paths {
		f(path, "GET "+path+" of ")
		f(path+"?lang=zh", "GET "+path+"?lang=zh of ")
		f(path+"x", "nothing")
	}
	for _, root := range roots.Trees { // the words are those of compatible URLs
		for _, path := range []string{"", "/head", "/body/64", "/skull.png", "/player"} {
			f(root+path, "GET "+root+path+" of ")
		}
		f(root+"x", "nothing")
	}
	for _, target := range []string{
		"/api", "/api/", "/api/x", "/api/x/", "/api/x?", "/api/x?q=//&r=/../", "/api/.x", "/api/x..", "/api/%C3%a9%20%2B",
		"/api/closet/%E2%9C%93%2Fx", "/api/..;x", `/api/..\x`, "/console", "/console/", "/console/players?pid=1", "/console/0123456789abcdef/app/main.js",
	} {
		f(target, "GET "+strings.TrimSuffix(target, "?")+" of ")
	}
	f("http://name:word@elsewhere/api/x?y", "GET /api/x?y of ")
	f("/api//x///y", "GET /api/x/y of ")
	f("/api//", "GET /api/ of ")
	f("/api/%78/%7e%2d?%78", "GET /api/x/~-?%78 of ")
	for _, target := range []string{
		"//api/metrics", "///api/x", "/./api/x", "/x/../api/x", "/%61pi/x", "/%2fapi/x", "/ap%69", "/%2e/api/x", "//api", "http://x//api/x",
		"/api/./x", "/api/a/../b", "/api/%2e/x", "/api/%2E%2e/api/x", "/api/a%2f..%2Fb", "/api/a%2f%2fb", "/api/../metrics", "/api/..%2fmetrics", "/apis", `/api\..\x`,
		"//console/", "/%63onsole/", "/console//session", "/console/./session", "/console/x/../session", "/console/%2e/session", "/consoles", "/p//Steve", "/%70/Steve", "//", "/robots.txt/",
	} {
		f(target, "nothing")
	}
}
