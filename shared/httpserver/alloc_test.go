//go:build !race

package httpserver_test

import (
	"log/slog"
	"net"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Under the race detector a sync.Pool drops a quarter of what it is given, so these tests run
// without it.

// A request that is not logged costs no allocation.
func TestUnloggedRequestAllocations(t *testing.T) {
	opts := httpserver.Options{Log: silent(), Limits: limits()}
	route := opts.Route("GET /")
	server := opts.NewServer(opts.HandleNoContext(func(rc *fasthttp.RequestCtx) error {
		route.AssignTo(rc)
		httpserver.AddLogAttr(rc, slog.Int64("uid", 42))
		return nil
	}))
	rc := exchange(&net.TCPAddr{IP: net.IPv4(203, 0, 113, 9)})
	testenv.Equal(t, testing.AllocsPerRun(1000, func() { server.Handler(rc) }), 0,
		"allocations of a request that is not logged")
}

func TestAddressLimiterAllocations(t *testing.T) {
	opts := httpserver.Options{Log: silent(), Limits: limits()}
	handler, rc := opts.AddressLimiter().Handler(func(*fasthttp.RequestCtx) {}), from("203.0.113.9")
	testenv.Equal(t, testing.AllocsPerRun(100, func() { handler(rc) }), 0, "allocations of a request without a limit")
	bounds := limitsWith(func(l *httpserver.Limits) { l.AddressRequests, l.AddressBurst = 1_000_000, 1_000_000 })
	limited := httpserver.Options{Log: silent(), Limits: bounds}.AddressLimiter().Handler(func(*fasthttp.RequestCtx) {})
	testenv.Equal(t, testing.AllocsPerRun(100, func() { limited(rc) }), 0, "allocations of a request with a limit")
}
