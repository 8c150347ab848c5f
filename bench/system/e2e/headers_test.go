package e2e

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/roots"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// audience is the set of origins that may read an answer.
type audience string

const (
	crossOrigin audience = "cross-origin" // pictures, which other sites embed
	sameOrigin  audience = "same-origin"  // everything else
)

// wantHeaders are the headers of all answers to an audience, once each.
var wantHeaders = map[audience]map[string]string{
	crossOrigin: {
		"X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "cross-origin", "Access-Control-Allow-Origin": "*",
		"Access-Control-Expose-Headers": "Age, Cache-Status, Content-Length, ETag, Last-Modified, Retry-After, X-Request-ID",
	},
	sameOrigin: {
		"X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin",
		"Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
	},
}

// inspector sends requests to real programs and checks the response headers.
type inspector struct {
	statuses map[audience]map[int]bool // seen
}

func (i inspector) check(t *testing.T, request string, to audience, status int, header http.Header) {
	t.Helper()
	i.statuses[to][status] = true
	for name, want := range wantHeaders[to] {
		isContent := name == "Cache-Control" && (status == http.StatusOK || status == http.StatusNotModified)
		if isContent && strings.HasSuffix(request, "/robots.txt") {
			want = "public, max-age=3600"
		} else if isContent && strings.HasSuffix(request, "/") && strings.Count(request, "/") == len("///") { // the front page, as in http://host/
			want = "public, max-age=60, stale-while-revalidate=600"
		}
		if got := header.Values(name); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %d with %s %q; want %q", request, status, name, got, want)
		}
	}
	if ids := header.Values("X-Request-Id"); len(ids) != 1 || ids[0] == "" {
		t.Errorf("%s: %d with X-Request-ID %q; want one", request, status, ids)
	}
	policy := header.Get("Content-Security-Policy")
	if to == sameOrigin && (len(header.Values("Content-Security-Policy")) != 1 || !strings.HasPrefix(policy, "default-src 'none'; ") || !strings.Contains(policy, "frame-ancestors 'none'")) {
		t.Errorf("%s: %d with the policy %q", request, status, policy)
	}
	for _, name := range []string{"Server", "X-Powered-By"} {
		testenv.Equal(t, header.Get(name), "", "%s: %d reveals that %s is", request, status, name)
	}
}

func (i inspector) send(t *testing.T, to audience, method, address string, header http.Header, body string) http.Header {
	t.Helper()
	request := testenv.Must(http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body)))(t)
	maps.Copy(request.Header, header)
	response, err := http.DefaultTransport.RoundTrip(request)
	testenv.Do(t, err)
	defer func() { _ = response.Body.Close() }()
	i.check(t, method+" "+address, to, response.StatusCode, response.Header)
	if !strings.HasSuffix(address, edgeproto.ChangesPath) { // which never ends
		testenv.Is(t, testenv.ErrOf(io.Copy(io.Discard, response.Body)), nil, "%s %s", method, address)
	}
	return response.Header
}

// raw sends bytes that are no valid request, or one that is not read to its end.
func (i inspector) raw(t *testing.T, to audience, base, sent string) {
	t.Helper()
	conn := testenv.Must((&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(base, "http://")))(t)
	defer func() { _ = conn.Close() }()
	testenv.Must(io.WriteString(conn, sent))(t)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	testenv.Do(t, err)
	defer func() { _ = response.Body.Close() }()
	i.check(t, fmt.Sprintf("%.40q at %s", sent, base), to, response.StatusCode, response.Header)
}

// sendUnreadable sends malformed and oversized requests to a listener.
func (i inspector) sendUnreadable(t *testing.T, to audience, base string) {
	t.Helper()
	i.raw(t, to, base, "nonsense\r\n\r\n")
	i.raw(t, to, base, "GET / HTTP/1.1\r\nHost: veneer.test\r\nX-Long: "+strings.Repeat("x", 20<<10)+"\r\n\r\n")
	i.raw(t, sameOrigin, base, "POST /api/auth/login HTTP/1.1\r\nHost: veneer.test\r\nContent-Length: 3000000\r\n\r\n{")
}

// paths returns the paths of the document, with values for the parameters in braces.
func paths(t *testing.T, hash string) []string {
	t.Helper()
	var document struct{ Paths map[string]any }
	testenv.Do(t, yaml.Unmarshal([]byte(read(t, "core/api/openapi.yaml")), &document))
	const uuid = "1f7f3f0e-6d3c-4c64-9a52-6f0a3a1f2b7c"
	concrete := strings.NewReplacer("{pid}", "1", "{uid}", "1", "{rid}", "1", "{tid}", "1", "{digest}/{file}", "0000000000000000/start.js", "{id}", uuid, "{uuid}", uuid, "{name}", "Ann_1", "{hash}", hash)
	var all []string
	for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
		all = append(all, concrete.Replace(path))
	}
	if len(all) < 50 {
		t.Fatalf("the document has only %d paths", len(all))
	}
	return all
}

// isCorePath reports whether an edge sends a path to core.
func isCorePath(path string) bool {
	return roots.Of(path) != "" && !strings.HasPrefix(path, roots.Files)
}

// Every answer of every listener, errors included, has its security and caching headers.
func TestEveryAnswerHasItsHeaders(t *testing.T) {
	t.Parallel()
	s := site.Start(t, blobstoretest.Directory(t).Config,
		"CORE_LIMIT_REQUESTS=0", "CORE_LIMIT_CHANGES=0", "CORE_LIMIT_REGISTRATIONS=1")
	ann := signUp(t, s.CoreURL)
	uploaded := upload(t, ann, "first", drawSheet(10))
	ann.SetSkin(t, ann.AddPlayer(t, "Ann_1"), uploaded.TID)

	w := inspector{statuses: map[audience]map[int]bool{crossOrigin: {}, sameOrigin: {}}}
	signedIn := http.Header{"Authorization": {"Bearer " + ann.Token}}
	api, others := []string{"/api"}, []string{"/api/nothing", "/nothing", "/", "/robots.txt", "/avatar/user/x", "/avatar/1?size=x", "/avatar/9", "/avatar/player/Unknown"}
	for _, path := range paths(t, uploaded.Hash) {
		if isCorePath(path) {
			api = append(api, path)
		} else {
			others = append(others, path)
		}
	}
	checkPaths := func(paths ...string) {
		t.Helper()
		for _, path := range paths {
			isAPI := isCorePath(path)
			to := crossOrigin
			if isAPI {
				to = sameOrigin
			}
			for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"} {
				w.send(t, to, method, s.EdgeURL+path, nil, "")
			}
			etag := w.send(t, to, "GET", s.EdgeURL+path, signedIn, "").Get("Etag")
			w.send(t, to, "GET", s.EdgeURL+path, http.Header{"If-None-Match": {etag}}, "")
			w.send(t, to, "GET", s.EdgeURL+path, http.Header{"If-Match": {`"another"`}}, "")
		}
	}
	checkPaths(append(api, others...)...)
	for _, path := range []string{"/console/session", "/console/session/token", "/console/nothing.js"} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"} {
			w.send(t, sameOrigin, method, s.EdgeURL+path, http.Header{"Origin": {s.EdgeURL}, "Content-Type": {"application/json"}}, "")
		}
	}
	for kind, body := range map[string]string{"application/json": "{", "text/plain": "x", "application/x-www-form-urlencoded": "email=x"} {
		w.send(t, sameOrigin, "POST", s.CoreURL+"/api/auth/login", http.Header{"Content-Type": {kind}}, body)
	}
	w.send(t, sameOrigin, "POST", s.CoreURL+"/api/auth/register", http.Header{"Content-Type": {"application/json"}}, `{"email":"bob@example.com","password":"correct horse","nickname":"Bob"}`)
	browser := http.Header{"Accept": {"text/html,*/*;q=0.8"}}
	for path, fromEdge := range map[string]audience{"/nothing": crossOrigin, "/pictures": crossOrigin, "/": sameOrigin, "/robots.txt": sameOrigin} {
		for _, header := range []http.Header{nil, browser} {
			w.send(t, sameOrigin, "GET", s.CoreURL+path, header, "")
			w.send(t, fromEdge, "GET", s.EdgeURL+path, header, "")
		}
	}
	w.sendUnreadable(t, sameOrigin, s.CoreURL)
	w.sendUnreadable(t, crossOrigin, s.EdgeURL)

	edges := s.Core.BaseURL(t, "edges")
	for _, path := range []string{edgeproto.LookupPath, edgeproto.ChangesPath, edgeproto.AcknowledgePath, edgeproto.LikedPath, "/"} {
		for _, header := range []http.Header{nil, {"Authorization": {"Bearer " + s.Core.Setting("CORE_EDGE_SECRETS")}}} {
			w.send(t, sameOrigin, "GET", edges+path, header, "")
			w.send(t, sameOrigin, "POST", edges+path, header, `{"keys":[]}`)
		}
	}
	w.sendUnreadable(t, sameOrigin, edges)
	for _, program := range []*stack.Process{s.Core, s.Edge} {
		operators := program.BaseURL(t, "operators")
		for _, path := range []string{"/livez", "/readyz", "/metrics", "/debug/pprof/", "/debug/pprof", "/debug/pprof/cmdline", "/debug/pprof/heap", "/debug/pprof/nothing", "/"} {
			w.send(t, sameOrigin, "GET", operators+path, nil, "")
		}
		w.sendUnreadable(t, sameOrigin, operators)
	}

	s.Core.Kill(t)
	checkPaths(append(others, "/avatar/player/Unheard_of", "/api/user")...)

	for to, want := range map[audience][]int{
		crossOrigin: {200, 204, 304, 400, 404, 405, 412, 422, 431, 503},
		sameOrigin:  {200, 204, 304, 400, 401, 403, 404, 405, 408, 413, 415, 422, 429, 431, 503},
	} {
		cmptest.Same(t, slices.Sorted(maps.Keys(w.statuses[to])), want, "the statuses of answers to %s", to)
	}
}
