package deploytest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/httpserver/httpservertest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Unusual spellings of paths, entity tags and bodies get the same status from core, from an edge, and through each balancer.
func TestUnusualRequests(t *testing.T) {
	t.Parallel()
	s := site.Start(t, blobstoretest.Directory(t).Config, "CORE_LIMIT_REQUESTS=0")
	const picture = "/avatar/user/0?png"
	tag := strings.TrimSuffix(httpservertest.Get(t, s.EdgeURL+picture).Header.Get("ETag"), `"`)
	const login = `{"email":"nobody@example.com","password":"wrong"}`
	bearer := http.Header{"Authorization": {"Bearer " + site.SignIn(t, s.Core, 1)[0].Bearer}}
	json := func(coding string) http.Header {
		return http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {coding}}
	}
	type request struct {
		method, path string
		header       http.Header
		body         string
		status       int
	}
	requests := []request{
		{http.MethodPost, "/api/auth/login", json("identity"), login, http.StatusUnauthorized},
		{http.MethodPost, "/api//auth//login", json("identity"), login, http.StatusUnauthorized},
		{http.MethodPost, "/api/auth/login", json("gzip"), "x", http.StatusUnsupportedMediaType},
		{http.MethodPost, "/api//auth//login", json("br"), "x", http.StatusUnsupportedMediaType},
	}
	for path, status := range map[string]int{
		"/api/user": 200, "/api//user": 200, "/api/%75ser": 200, "/api/u%73e%72": 200, "/api///user?x=//": 200,
		"/api%2Fuser": 404, "/%61pi/user": 404, "/api/%2Fuser": 404, "/api/./user": 404, "/api/x/%2e%2e/user": 404, "//api/user": 404,
	} {
		requests = append(requests, request{http.MethodGet, path, bearer, "", status})
	}
	var pictures []request
	for sent, status := range map[string]int{tag + `"`: 304, tag + `-gzip"`: 304, tag + `;gzip"`: 304, "W/" + tag + `-br"`: 304, tag + `x"`: 200} {
		pictures = append(pictures, request{http.MethodGet, picture, http.Header{"If-None-Match": {sent}}, "", status})
	}
	check := func(t *testing.T, url string, requests []request) {
		t.Helper()
		for _, r := range requests {
			got := httpservertest.Call(t, nil, r.method, url+r.path, r.header, r.body)
			testenv.Equal(t, got.Status, r.status, "%s %s with %v", r.method, r.path, r.header)
			testenv.Equal(t, got.Status == http.StatusUnsupportedMediaType, got.Header.Get("Accept-Encoding") != "", "415 has Accept-Encoding")
		}
	}
	check(t, "http://"+s.Core.Address(t, "public"), requests)
	requests = append(requests, pictures...)
	check(t, s.EdgeURL, requests)
	for _, b := range balancers {
		t.Run(b.program, func(t *testing.T) {
			t.Parallel()
			edge := addressesOf(t, s.Edge)
			check(t, b.startSite(t, addressesOf(t, s.Core), edge, edge), requests)
		})
	}
}
