package baseline

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"
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

	f := func(name string, run func(ctx context.Context, env Env, upstream string, bytes int64) (*Server, error)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var origin upstream
			address := serveHandler(t, origin.handle)
			s := start(t, func(ctx context.Context, env Env) (*Server, error) { return run(ctx, env, address, 64<<20) })
			wantRequests := func(target, tag string, status int, want int64) {
				t.Helper()
				before := origin.requests.Load()
				got := get(t, s.Address, target, tag, status)
				if body := "picture of " + target; status == http.StatusOK && string(got.Body()) != body {
					t.Errorf("%s: %q; want %q", target, got.Body(), body)
				}
				if got := origin.requests.Load() - before; got != want {
					t.Errorf("%s with tag %s: %d requests to the edge; want %d", target, tag, got, want)
				}
			}

			taken, err := s.ProcessorTime()
			if err != nil {
				t.Fatal(err)
			}
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
			if err := requests.Wait(); err != nil {
				t.Error(err)
			}
			if got := origin.requests.Load() - before; got != 1 {
				t.Errorf("of 32 concurrent requests %d reach the edge", got)
			}
			// The CPU time includes that of child processes, which do the work.
			if after, err := s.ProcessorTime(); err != nil || after <= taken {
				t.Errorf("processor time: %v before and %v after: %v", taken, after, err)
			}
		})
	}

	f("nginx", StartNginxCache)
	f("Varnish", StartVarnish)
}
