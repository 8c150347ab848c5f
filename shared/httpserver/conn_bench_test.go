package httpserver

import (
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// endlessClient is a client on a real connection that always has another request and accepts
// every response, so that only the server's own work is measured.
type endlessClient struct {
	net.Conn
	request []byte
	more    func() bool
}

func (e *endlessClient) Read(p []byte) (int, error) {
	if !e.more() {
		return 0, net.ErrClosed
	}
	return copy(p, e.request), nil
}

func (e *endlessClient) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkServe measures a server's work for a request besides reading and writing: of bare
// fasthttp, without timeouts and with its own, and of a server of Options, with its own and
// with those of a deadlineListener.
func BenchmarkServe(b *testing.B) {
	listener := testenv.Must(net.Listen("tcp", "127.0.0.1:0"))(b)
	b.Cleanup(func() { _ = listener.Close() })
	body := make([]byte, 700)
	answer := func(rc *fasthttp.RequestCtx) { rc.Response.SetBodyRaw(body) }
	limits := Limits{ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 75 * time.Second, HeaderBytes: 4096, BodiesBytes: 2 << 20}
	behind := func() *fasthttp.Server {
		opts := Options{Listener: "bench", Log: slog.New(slog.DiscardHandler), Limits: limits}
		route := opts.Route("GET /", Label{"outcome", "hit"}).AcceptBody(1024, 0)
		return opts.NewServer(opts.HandleNoContext(func(rc *fasthttp.RequestCtx) error {
			route.AssignTo(rc)
			if err := ReadBody(rc); err != nil {
				return err
			}
			answer(rc)
			return nil
		}))
	}
	for _, bench := range []struct {
		name   string
		server *fasthttp.Server
		listen bool
	}{
		{"bare", &fasthttp.Server{Handler: answer, NoDefaultServerHeader: true, NoDefaultContentType: true}, false},
		{"bare with limits", &fasthttp.Server{
			Handler: answer, NoDefaultServerHeader: true, NoDefaultContentType: true,
			ReadTimeout: limits.ReadTimeout, WriteTimeout: limits.WriteTimeout, IdleTimeout: limits.IdleTimeout,
		}, false},
		{"server", behind(), false},
		{"server, deadlineListener", behind(), true},
		{"bare with a body", &fasthttp.Server{
			Handler: func(rc *fasthttp.RequestCtx) { rc.PostBody(); answer(rc) }, NoDefaultServerHeader: true, NoDefaultContentType: true,
		}, false},
		{"server with a body", behind(), false},
	} {
		b.Run("of="+bench.name, func(b *testing.B) {
			client, err := net.Dial("tcp", listener.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = client.Close() })
			request := "GET / HTTP/1.1\r\nHost: veneer.test\r\n\r\n"
			if strings.HasSuffix(bench.name, " with a body") {
				request = "POST / HTTP/1.1\r\nHost: veneer.test\r\nContent-Length: 60\r\n\r\n" + strings.Repeat("x", 60)
			}
			var served net.Conn = &endlessClient{client, []byte(request), b.Loop}
			if bench.listen {
				served = wrapConn(bench.server, listener, served)
			}
			b.ReportAllocs()
			_ = bench.server.ServeConn(served)
		})
	}
}

// BenchmarkAdmit measures the connection limit for a connection that opens and closes: on a
// listener with free places, and on a full one where 63 networks have more than their share.
func BenchmarkAdmit(b *testing.B) {
	const most = 8192
	for _, bench := range []struct {
		name string
		open int
	}{{"room", most - 1}, {"full", most}} {
		b.Run("listener="+bench.name, func(b *testing.B) {
			l := newConnLimiter(&fasthttp.Server{Concurrency: most}, PeerLimits{}, true)
			open := func(network, host int) *conn {
				c := &conn{Conn: peer{from: &net.TCPAddr{IP: net.IPv4(10, 0, byte(network), byte(host))}}}
				if err := l.admit(c); err != nil {
					b.Fatal(err)
				}
				return c
			}
			for i := range bench.open {
				open(i%63, i)
			}
			b.ReportAllocs()
			for b.Loop() {
				l.release(open(200, 1))
				if evicted := l.evicted.oldest; evicted != nil {
					l.release(evicted)
					open(int(clientip.PeerIP(evicted.RemoteAddr()).As4()[2]), 1)
				}
			}
			connectionsOpen.Add(-int64(l.open))
		})
	}
}

// peer is a connection that has only an address.
type peer struct {
	net.Conn
	from net.Addr
}

func (p peer) RemoteAddr() net.Addr            { return p.from }
func (p peer) SetReadDeadline(time.Time) error { return nil }
