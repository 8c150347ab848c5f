package api_test

import (
	"testing"

	"github.com/veneer-skins/veneer/core/coretest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// What core does not have is at the edges, unless these are where the request came.
func TestRedirectToEdges(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	d := s.NewDomain(t)
	d.Site.TexturesURL = "https://skins.example.org"
	c := s.clientOf(t, d).from(t, "0.0.0.0")
	for _, method := range []string{"GET", "HEAD"} {
		got := c.raw(t, method, "/avatar//player/D%C3%A9mo.png?size=64&3d")
		got.HasStatus(t, 308)
		testenv.Equal(t, got.Header.Get("Location"), "https://skins.example.org/avatar//player/D%C3%A9mo.png?size=64&3d", "Location")
		testenv.Equal(t, got.Header.Get("Cache-Control"), "no-store", "Cache-Control")
	}
	c.raw(t, "POST", "/avatar/player/Demo").HasStatus(t, 404)
	c.raw(t, "GET", "/api/nothing").HasStatus(t, 404)
	c.raw(t, "GET", "/avatar/player/Demo", "Host", "skins.example.org").HasStatus(t, 404)
}

// A path below /api is routed by its canonical form, so that base URLs with a slash at the end and clients that encode
// more than they must are understood. What stays encoded, and an encoded root, is no such path.
func TestCanonicalPaths(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	for path, status := range map[string]int{
		"/api/user": 200, "/api//user": 200, "/api/%75ser": 200, "/api/u%73e%72": 200, "/api///user?x=//": 200,
		"/api%2Fuser": 404, "/%61pi/user": 404, "/api/%2Fuser": 404, "/api/./user": 404, "/api/x/%2e%2e/user": 404, "//api/user": 404,
	} {
		testenv.Equal(t, c.raw(t, "GET", path).Status, status, "GET %s", path)
	}
}

// A compressed body is refused with what is understood.
func TestCompressedBodies(t *testing.T) {
	t.Parallel()
	c := start(t)
	for coding, status := range map[string]int{"gzip": 415, "br": 415, "identity": 401, "Identity": 401} {
		got := testenv.Must(c.Exchange("POST", "/api/auth/login", coretest.JSON(map[string]string{"email": "a@example.com", "password": "12345678"}), "Content-Encoding", coding))(t)
		testenv.Equal(t, got.Status, status, "status for %s", coding)
		testenv.Equal(t, got.Header.Get("Accept-Encoding"), map[bool]string{true: "identity"}[status == 415], "Accept-Encoding for %s", coding)
	}
}
