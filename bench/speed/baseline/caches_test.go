package baseline

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"testing"

	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// upstream counts its requests.
type upstream struct{ requests atomic.Int64 }

// handle answers with the headers of an edge. Under /never nothing may be cached.
func (u *upstream) handle(rc *fasthttp.RequestCtx) {
	u.requests.Add(1)
	control := "public, max-age=86400, stale-while-revalidate=86400, stale-if-error=604800"
	if bytes.HasPrefix(rc.Path(), []byte("/never")) {
		control = "no-store"
	}
	rc.Response.Header.Set(fasthttp.HeaderCacheControl, control)
	rc.Response.Header.Set(fasthttp.HeaderETag, `"of this picture"`)
	rc.SetContentType("image/webp")
	rc.SetBodyString("picture of " + string(rc.RequestURI()))
}

// A cache requests everything once from its upstream, and answers the rest itself.
func TestCaches(t *testing.T) {
	t.Parallel()
	f := func(program Program, start func(tb testing.TB, upstream string, bytes int64) *Server) {
		t.Run(program.Name, func(t *testing.T) {
			t.Parallel()
			requireProgram(t, program)
			var origin upstream
			s := start(t, serveHandler(t, origin.handle), 64<<20)
			wantRequests := func(target, tag string, status int, want int64) {
				t.Helper()
				before := origin.requests.Load()
				got := get(t, s.Address, target, tag, status)
				if body := "picture of " + target; status == http.StatusOK && string(got.Body()) != body {
					t.Errorf("%s: %q; want %q", target, got.Body(), body)
				}
				testenv.Equal(t, origin.requests.Load()-before, want, "%s with tag %s: requests to the edge", target, tag)
			}

			taken := s.ProcessorTime(t)
			wantRequests("/avatar/1?size=64", "", http.StatusOK, 1)
			wantRequests("/avatar/1?size=64", "", http.StatusOK, 0)
			wantRequests("/avatar/1?size=64", `"of this picture"`, http.StatusNotModified, 0)
			wantRequests("/avatar/1?size=64", `"of another"`, http.StatusOK, 0)
			wantRequests("/avatar/1?size=128", "", http.StatusOK, 1)
			wantRequests("/never/1", "", http.StatusOK, 1)
			wantRequests("/never/1", "", http.StatusOK, 1)

			before := origin.requests.Load()
			var requests errgroup.Group
			for range 32 {
				requests.Go(func() error {
					_, body, err := fasthttp.Get(nil, "http://"+s.Address+"/avatar/new")
					if err == nil && string(body) != "picture of /avatar/new" {
						err = fmt.Errorf("it answers %q", body)
					}
					return err
				})
			}
			testenv.Do(t, requests.Wait())
			testenv.Equal(t, origin.requests.Load()-before, 1, "of 32 concurrent requests reach the edge")
			// The CPU time includes that of child processes, which do the work.
			if after := s.ProcessorTime(t); after <= taken {
				t.Errorf("processor time: %v before and %v after", taken, after)
			}
		})
	}

	f(Nginx, StartNginxCache)
	f(Varnish, StartVarnish)
}

// With the shipped configuration all edges get requests. That a picture always comes from the same
// one is tested elsewhere, without haproxy's limit of their load.
func TestHaproxy(t *testing.T) {
	t.Parallel()
	requireProgram(t, Haproxy)
	var edges []*Server
	for i := range 3 {
		address := serveHandler(t, func(rc *fasthttp.RequestCtx) { rc.SetBodyString(fmt.Sprint("edge ", i)) })
		edges = append(edges, &Server{Address: address, Operators: address})
	}
	s := StartHaproxy(t, "../../..", edges)
	seen := map[string]bool{}
	for i := range 100 {
		seen[string(get(t, s.Address, fmt.Sprint("/avatar/", i), "", http.StatusOK).Body())] = true
	}
	testenv.Equal(t, len(seen), len(edges), "edges that get requests")
	other := t.TempDir()
	testenv.Do(t, os.MkdirAll(other+"/deploy/compose", 0o700))
	testenv.Do(t, os.WriteFile(other+"/deploy/compose/haproxy.cfg", nil, 0o600))
	err := stack.RunWithTB(t.Context(), func(tb testing.TB) { tb.Helper(); StartHaproxy(tb, other, edges) })
	testenv.Check(t, err != nil, "a configuration without edges is accepted")
}
