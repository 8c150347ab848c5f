package httpserver_test

import (
	"bufio"
	"io"
	"net"
	"net/netip"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// dialFrom starts a server, and returns a function that connects from an address and sends a
// request. The connection is nil if the server closes it without a response, else it stays
// open.
func dialFrom(t *testing.T, maxConns int, proxies ...netip.Prefix) (connect func(from string) net.Conn) {
	t.Helper()
	bounds := limitsWith(func(l *httpserver.Limits) { l.AddressConnections = maxConns })
	opts := httpserver.Options{Log: silent(), Limits: bounds, Proxies: clientip.New(clientip.Config{TrustedProxies: proxies}, silent())}
	server := opts.NewServer(func(*fasthttp.RequestCtx) {})
	ln := serveOn(t, httpserver.Listener{Server: server, PeerLimits: opts.PeerLimits()})
	return func(from string) net.Conn {
		t.Helper()
		conn := sendFrom(t, from, ln.Addr().String(), "")
		var response fasthttp.Response
		if _, err := io.WriteString(conn, get); err != nil {
			return nil
		}
		if err := response.Read(bufio.NewReader(conn)); err != nil {
			return nil
		}
		return conn
	}
}

func TestAddressConnectionLimit(t *testing.T) {
	t.Parallel()
	connect := dialFrom(t, 2)
	first := connect("127.0.0.1")
	if first == nil || connect("127.0.0.1") == nil {
		t.Fatal("two connections are rejected")
	}
	testenv.Check(t, connect("127.0.0.1") == nil, "a third connection is served")
	testenv.Check(t, connect("127.0.0.2") != nil, "a connection of another address is rejected")
	_ = first.Close()
	for connect("127.0.0.1") == nil { // until the server has seen the close
		continue
	}
	testenv.Check(t, connect("127.0.0.1") == nil, "a closed connection frees two places")
}

// Connections of a trusted proxy carry many clients.
func TestAddressConnectionLimitExemptsProxies(t *testing.T) {
	t.Parallel()
	connect := dialFrom(t, 1, netip.MustParsePrefix("127.0.0.1/32"))
	for range 3 {
		testenv.Check(t, connect("127.0.0.1") != nil, "a connection of a trusted proxy is rejected")
	}
	testenv.Check(t, connect("127.0.0.2") != nil && connect("127.0.0.2") == nil,
		"a peer that is no trusted proxy does not get exactly one connection")
	connect = dialFrom(t, 0)
	for range 3 {
		testenv.Check(t, connect("127.0.0.1") != nil, "a connection is rejected without a limit")
	}
}

func TestAddressRequestLimit(t *testing.T) {
	t.Parallel()
	opts := httpserver.Options{
		Log: silent(), Limits: limitsWith(func(l *httpserver.Limits) { l.AddressRequests, l.AddressBurst = 1, 2 }),
		Proxies:        clientip.New(clientip.Config{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, silent()),
		DefaultHeaders: func(rc *fasthttp.RequestCtx) { rc.Response.Header.Set("X-Content-Type-Options", "nosniff") },
	}
	handler := opts.AddressLimiter().Handler(func(rc *fasthttp.RequestCtx) { rc.SetStatusCode(fasthttp.StatusNoContent) })
	f := func(want int, peer string, forwarded ...string) {
		t.Helper()
		rc := from(peer, forwarded...)
		handler(rc)
		testenv.Equal(t, rc.Response.StatusCode(), want,
			"a request of %s, forwarded for %q, is answered", peer, forwarded)
		if want == fasthttp.StatusTooManyRequests {
			expect(t, rc.Response.String(), `"code":8`, "Retry-After: 1\r\n", "Cache-Control: no-store\r\n", "X-Content-Type-Options: nosniff\r\n")
		}
	}

	f(204, "203.0.113.9")
	f(204, "203.0.113.9", "6.6.6.6")
	f(429, "203.0.113.9")
	f(429, "10.0.0.1", "203.0.113.9") // through a proxy, but of the same address
	f(204, "10.0.0.1", "203.0.113.10")
	f(204, "2001:db8::1")
	f(204, "2001:db8::ffff:1")
	f(429, "2001:db8::2") // in the same /64
	f(204, "2001:db8:0:1::1")
}

// Requests for paths without a limit are answered and do not count.
func TestUnlimitedPaths(t *testing.T) {
	t.Parallel()
	bounds := limitsWith(func(l *httpserver.Limits) { l.AddressRequests, l.AddressBurst = 1, 1 })
	opts := httpserver.Options{Log: silent(), Limits: bounds, IsUnlimited: func(path []byte) bool { return string(path) == "/unlimited" }}
	handler := opts.AddressLimiter().Handler(func(rc *fasthttp.RequestCtx) { rc.SetStatusCode(fasthttp.StatusNoContent) })
	f := func(want int, path string) {
		t.Helper()
		rc := from("203.0.113.9")
		rc.Request.SetRequestURI(path)
		handler(rc)
		testenv.Equal(t, rc.Response.StatusCode(), want, "%s", path)
	}
	for range 3 {
		f(204, "/unlimited")
	}
	f(204, "/limited")
	f(429, "/limited")
	f(204, "/unlimited")
}

// The limiter refills with time.
func TestAddressRequestLimitRefills(t *testing.T) {
	t.Parallel()
	bounds := limitsWith(func(l *httpserver.Limits) { l.AddressRequests, l.AddressBurst = 2, 1 })
	opts := httpserver.Options{Log: silent(), Limits: bounds}
	address := serveTCP(t, opts.NewServer(opts.AddressLimiter().Handler(func(*fasthttp.RequestCtx) {})))
	expect(t, receive(t, send(t, address, get+get+"GET / HTTP/1.1\r\nHost: veneer.test\r\nConnection: close\r\n\r\n")), "HTTP/1.1 429 ")
	for {
		status, _, err := fasthttp.Get(nil, "http://"+address)
		testenv.Do(t, err)
		if status == fasthttp.StatusOK {
			break
		}
	}
}

// from returns a request of a peer with lines of X-Forwarded-For.
func from(peer string, forwarded ...string) *fasthttp.RequestCtx {
	rc := exchange(net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(peer), 1234)))
	for _, line := range forwarded {
		rc.Request.Header.Add("X-Forwarded-For", line)
	}
	return rc
}
