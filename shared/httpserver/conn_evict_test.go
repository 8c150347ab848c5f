package httpserver_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Client networks of the tests.
const (
	hostileNetwork = "127.0.66.1"
	honestNetwork  = "127.0.77.1"
	proxyNetwork   = "127.0.88.1"
)

// fullLimit is the connection limit in these tests, and mostEvicted how many evicted
// connections may be open beyond it.
const fullLimit, mostEvicted = 64, fullLimit/8 + 16

// hugeBody returns more than the buffers of sockets hold.
var hugeBody = sync.OnceValue(func() []byte { return make([]byte, 32<<20) })

// attackPause leaves the processors to the server: 80 attackers open at most 16,000 connections a second.
const attackPause = 5 * time.Millisecond

// testServer is a server with a limit of fullLimit connections.
type testServer struct {
	address  string
	listener net.Listener // for CountsOf
	secure   bool
	working  chan struct{} // gets a value for each request for /wait
	release  func()        // lets /wait respond
}

// newTestServer serves until the test ends.
func newTestServer(t *testing.T, withFastPath, secure bool, bound func(*httpserver.Limits)) *testServer {
	t.Helper()
	released, release := context.WithCancel(t.Context())
	s := &testServer{secure: secure, working: make(chan struct{}, 2*fullLimit), release: release}
	bounds := limitsWith(func(l *httpserver.Limits) { l.MaxConnections = fullLimit })
	if bound != nil {
		bound(&bounds)
	}
	trusted := clientip.Config{TrustedProxies: []netip.Prefix{netip.MustParsePrefix(proxyNetwork + "/32")}}
	e := newEcho(bounds)
	e.opts.Proxies = clientip.New(trusted, silent())
	small := bodyHandler(e.opts, 1<<20, 0, e.handle)
	server := e.opts.NewServer(func(rc *fasthttp.RequestCtx) {
		switch string(rc.Path()) {
		case "/wait":
			s.working <- struct{}{}
			<-released.Done()
			rc.Response.SetBodyRaw(hugeBody())
		case "/huge":
			rc.Response.SetBodyRaw(hugeBody())
		default:
			small(rc)
		}
	})
	l := httpserver.Listener{Server: server, PeerLimits: e.opts.PeerLimits()}
	if withFastPath {
		l.FastPath = e.opts.FastPath(nil, e.tryHandle)
	}
	if secure {
		l.TLS = serverTLS(t)
	}
	s.listener = serveOn(t, l)
	s.address = s.listener.Addr().String()
	return s
}

// dial opens a connection from a network.
func (s *testServer) dial(ctx context.Context, from string) (net.Conn, error) {
	dialer := net.Dialer{
		LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)},
		// A small receive buffer leaves most of an unread response with the server.
		Control: func(_, _ string, c syscall.RawConn) error {
			return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 32<<10) })
		},
	}
	conn, err := dialer.DialContext(ctx, "tcp", s.address)
	if err == nil && s.secure {
		conn = tlsClient(conn)
	}
	return conn, err
}

// connect opens a connection from a network until the test ends, and sends something.
func (s *testServer) connect(t *testing.T, from, sent string) net.Conn {
	t.Helper()
	conn := testenv.Must(s.dial(t.Context(), from))(t)
	t.Cleanup(func() { _ = conn.Close() })
	testenv.Do(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	_, _ = io.WriteString(conn, sent) // a rejected TLS connection is closed already
	return conn
}

// statusOf sends a request, and returns the response's status, 0 if the connection is closed.
func statusOf(conn net.Conn) int {
	var response fasthttp.Response
	if _, err := io.WriteString(conn, get); err != nil {
		return 0
	}
	if err := response.Read(bufio.NewReader(conn)); err != nil {
		return 0
	}
	return response.StatusCode()
}

// allServed sends a request on each of some connections, and ends the test if one is not answered with 200.
func allServed(t *testing.T, conns []net.Conn, what string) {
	t.Helper()
	for _, conn := range conns {
		if status := statusOf(conn); status != fasthttp.StatusOK {
			t.Fatalf("%s is answered %d", what, status)
		}
	}
}

// await waits until the listener's counts satisfy is.
func (s *testServer) await(t *testing.T, wanted string, is func(httpserver.Counts) bool) {
	t.Helper()
	testenv.Eventually(t, "the listener counts "+wanted, func() bool { return is(httpserver.CountsOf(s.listener)) })
}

// attack keeps more connections than the limit open from hostileNetwork until ctx ends. A
// connection that ends is opened again after attackPause, so that some are always being rejected.
func (s *testServer) attack(ctx context.Context, use func(net.Conn)) (ended *sync.WaitGroup) {
	ended = new(sync.WaitGroup)
	for range fullLimit + 16 {
		ended.Go(func() {
			for ; ctx.Err() == nil; <-time.After(attackPause) {
				conn, err := s.dial(ctx, hostileNetwork)
				if err != nil {
					continue
				}
				stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
				use(conn)
				stop()
				_ = conn.Close()
			}
		})
	}
	return ended
}

// sending returns a client that sends something and waits until the connection ends.
func sending(sent string) func(net.Conn) {
	return func(conn net.Conn) {
		_, _ = io.WriteString(conn, sent)
		_, _ = io.Copy(io.Discard, conn)
	}
}

// flooding sends requests without pause, and reads the responses.
func flooding(conn net.Conn) {
	var reader sync.WaitGroup
	reader.Go(func() {
		_, _ = io.Copy(io.Discard, conn)
		_ = conn.Close()
	})
	requests := strings.Repeat(get, 50)
	for {
		if _, err := io.WriteString(conn, requests); err != nil {
			break
		}
	}
	reader.Wait()
}

// Whatever a client network does with far more connections than the limit, other networks
// still get connections.
func TestFullListenerAdmitsOtherNetworks(t *testing.T) { //nolint:paralleltest // each attack takes all processors
	const body = "POST / HTTP/1.1\r\nHost: veneer.test\r\nContent-Length: 100000\r\n\r\n"
	for name, use := range map[string]func(net.Conn){
		"idle":         sending(""),
		"after answer": sending(get),
		"half head":    sending("GET / HTTP/1.1\r\nHost: veneer.test\r\nX-Half: "),
		"stalled body": sending(body + strings.Repeat("x", 10_000)),
		"unread answer": func(conn net.Conn) {
			_, _ = io.WriteString(conn, "GET /huge HTTP/1.1\r\nHost: veneer.test\r\n\r\n")
			if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
				return
			}
			// Only a write shows it that the connection has ended.
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for range tick.C {
				if _, err := io.WriteString(conn, "x"); err != nil {
					return
				}
			}
		},
	} {
		for listener, of := range map[string]struct{ short, secure bool }{"server": {}, "fast path": {short: true}, "TLS": {secure: true}} {
			t.Run(name+", "+listener, func(t *testing.T) {
				s := newTestServer(t, of.short, of.secure, nil)
				s.checkHonestClients(t, use)
			})
		}
	}
}

// checkHonestClients attacks a server while honest clients use it.
func (s *testServer) checkHonestClients(t *testing.T, use func(net.Conn)) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	attackers := s.attack(ctx, use)
	defer attackers.Wait()
	defer stop()
	s.await(t, "a full listener", func(c httpserver.Counts) bool { return c.Open >= fullLimit })

	const stay, most = 15, 5 * time.Second
	var open []net.Conn
	for i := range 40 {
		start := time.Now()
		conn := s.connect(t, honestNetwork, "")
		if status := statusOf(conn); status != fasthttp.StatusOK {
			t.Fatalf("request %d of an honest client is answered %d", i, status)
		}
		took := time.Since(start)
		testenv.Check(t, took <= most, "an honest client waits for %s; want at most %s", took, most)
		if i < stay {
			open = append(open, conn)
		} else {
			_ = conn.Close()
		}
		if got := httpserver.CountsOf(s.listener).Open; got > fullLimit+mostEvicted {
			t.Fatalf("%d connections are open; want at most %d", got, fullLimit+mostEvicted)
		}
	}
	for _, conn := range open {
		testenv.Equal(t, statusOf(conn), fasthttp.StatusOK, "a later request of an honest connection")
		_ = conn.Close()
	}
	stop()
	attackers.Wait()
	s.await(t, "nothing", func(c httpserver.Counts) bool { return c == httpserver.Counts{} })
}

// A connection is evicted also if its requests arrive faster than they are answered.
func TestFloodingConnectionIsEvicted(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct{ short, secure bool }{"server": {}, "fast path": {short: true}, "fast path under TLS": {short: true, secure: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestServer(t, of.short, of.secure, func(l *httpserver.Limits) { l.IdleTimeout = 20 * time.Second })
			conn := s.connect(t, hostileNetwork, "")
			var flood sync.WaitGroup
			flood.Go(func() { flooding(conn) })
			s.fill(t, hostileNetwork, fullLimit-1, fullLimit)
			allServed(t, []net.Conn{s.connect(t, honestNetwork, "")}, "another network")
			flood.Wait()
			s.await(t, "none evicted", func(c httpserver.Counts) bool { return c.Evicted == 0 && c.Open == fullLimit })
		})
	}
}

// An evicted connection ends after the complete response to its request.
func TestEvictedConnectionGetsResponse(t *testing.T) {
	t.Parallel()
	for name, secure := range map[string]bool{"plaintext": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestServer(t, false, secure, nil)
			asking := s.connect(t, hostileNetwork, "GET /wait HTTP/1.1\r\nHost: veneer.test\r\n\r\n")
			<-s.working
			s.fill(t, hostileNetwork, fullLimit-1, fullLimit)
			allServed(t, []net.Conn{s.connect(t, honestNetwork, "")}, "another network")
			s.await(t, "one evicted", func(c httpserver.Counts) bool { return c.Evicted == 1 })
			s.release()
			reader := bufio.NewReader(asking)
			var response fasthttp.Response
			if err := response.Read(reader); err != nil || len(response.Body()) != len(hugeBody()) {
				t.Fatalf("the answer has %d bytes, %v; want %d", len(response.Body()), err, len(hugeBody()))
			}
			_, err := reader.ReadByte()
			testenv.Check(t, err != nil, "more follows the response")
			s.await(t, "none evicted", func(c httpserver.Counts) bool { return c.Evicted == 0 })
		})
	}
}

// fill opens connections from a network, and waits until they are counted.
func (s *testServer) fill(t *testing.T, from string, count, total int) (conns []net.Conn) {
	t.Helper()
	for range count {
		conns = append(conns, s.connect(t, from, ""))
	}
	s.await(t, "all of them", func(c httpserver.Counts) bool { return c.Open == total })
	return conns
}

// A network is not evicted for one that would then have as many connections.
func TestNoEvictionForEqualNetworks(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, false, false, nil)
	conns := append(s.fill(t, hostileNetwork, fullLimit/2, fullLimit/2), s.fill(t, honestNetwork, fullLimit/2, fullLimit)...)
	for _, from := range []string{hostileNetwork, honestNetwork} {
		testenv.Equal(t, statusOf(s.connect(t, from, "")), fasthttp.StatusServiceUnavailable,
			"a connection from %s", from)
	}
	allServed(t, conns, "a connection of two equal networks")
}

// Connections of trusted proxies are never evicted, and do not count as one network.
func TestProxiesAreNotEvicted(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, false, false, nil)
	s.fill(t, hostileNetwork, fullLimit, fullLimit)
	var proxied []net.Conn
	for range fullLimit - 1 {
		proxied = append(proxied, s.connect(t, proxyNetwork, ""))
		allServed(t, proxied[len(proxied)-1:], "a proxy's connection")
	}
	for _, from := range []string{proxyNetwork, honestNetwork} {
		testenv.Equal(t, statusOf(s.connect(t, from, "")), fasthttp.StatusServiceUnavailable,
			"where proxies have all but one connection, one from %s", from)
	}
	allServed(t, proxied, "a later request of a proxy")
}

// The limit of an address counts an evicted connection until it has ended.
func TestAddressLimitCountsEvicted(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, false, false, func(l *httpserver.Limits) { l.AddressConnections = fullLimit })
	conns := s.fill(t, hostileNetwork, fullLimit, fullLimit)
	testenv.Equal(t, statusOf(s.connect(t, hostileNetwork, "")), 0, "a connection beyond the limit of its address")
	testenv.Equal(t, statusOf(s.connect(t, honestNetwork, "")), fasthttp.StatusOK, "another network")
	testenv.Is(t, testenv.ErrOf(io.Copy(io.Discard, conns[0])), nil, "the end of the oldest connection")
	_ = conns[0].Close()
	allServed(t, conns[1:], "a connection that is not the oldest")
	for _, conn := range conns[1:] {
		_ = conn.Close()
	}
	s.await(t, "one connection", func(c httpserver.Counts) bool { return c.Open == 1 && c.Networks == 1 && c.Addresses == 1 })
}
