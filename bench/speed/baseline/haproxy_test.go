package baseline

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/valyala/fasthttp"
)

// With the shipped configuration all edges get requests. That a picture always comes from the same
// one is tested elsewhere, without haproxy's limit of their load.
func TestHaproxy(t *testing.T) {
	t.Parallel()
	const edges = 3
	var backends []Backend
	for i := range edges {
		address := serveHandler(t, func(rc *fasthttp.RequestCtx) { rc.SetBodyString(fmt.Sprint("edge ", i)) })
		backends = append(backends, Backend{Address: address, Operators: address})
	}
	s := start(t, func(ctx context.Context, env Env) (*Server, error) {
		return StartHaproxy(ctx, env, "../../../deploy/compose/haproxy.cfg", backends)
	})
	seen := map[string]bool{}
	for i := range 100 {
		path := fmt.Sprint("/avatar/", i)
		seen[string(get(t, s.Address, path, "", http.StatusOK).Body())] = true
	}
	if len(seen) != edges {
		t.Errorf("%d of %d edges get requests", len(seen), edges)
	}
	if _, err := haproxyConfig("frontend x\n  bind :80\n", s.Address, backends); err == nil {
		t.Error("a configuration without edges is accepted")
	}
}
