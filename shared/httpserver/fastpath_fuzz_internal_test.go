package httpserver

import (
	"bytes"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// memoryConn is a connection on which everything has arrived.
type memoryConn struct {
	net.Conn
	in  *bytes.Reader
	out bytes.Buffer
}

func (m *memoryConn) Read(p []byte) (int, error)  { return m.in.Read(p) }
func (m *memoryConn) Write(p []byte) (int, error) { return m.out.Write(p) }
func (m *memoryConn) Close() error                { return nil }
func (m *memoryConn) RemoteAddr() net.Addr        { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }
func (m *memoryConn) LocalAddr() net.Addr         { return m.RemoteAddr() }

// A request that the fast path parses is the same request to the server: the same bytes,
// target and id, without a body, and without anything that closes the connection.
func FuzzParse(f *testing.F) {
	for _, request := range []string{
		"GET /avatar/player/Steve.png?size=64&3d HTTP/1.1\r\nHost: veneer.test:8081\r\nAccept: */*\r\n\r\n",
		"GET / HTTP/1.1\r\nhost:a\r\nConnection: Keep-Alive\r\nX-Request-ID: abc\r\nIf-None-Match: \"a\", W/\"b\"\r\nX: y\r\nIf-Match: *\r\n\r\nGET",
		"GET /a HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1.2.3.4 , 5.6.7.8\r\nforwarded:for=1.2.3.4\r\nX-Forwarded-For:\r\n\r\n",
		"GET /a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", "GET /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "GET /a HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n",
		"GET /a HTTP/1.1\r\nHost: a\r\nA: b\r\n c\r\n\r\n", "GET /a HTTP/1.1\r\nHost: a\nA: b\r\n\r\n", "GET //a/./%61 HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a HTTP/1.0\r\nHost: a\r\n\r\n",
	} {
		f.Add([]byte(request))
	}
	type request struct {
		path, query, id string
		more            bool // it is more than a GET without a body
		values          map[string][]string
	}
	copied := func(header interface{ PeekAll(name string) [][]byte }) map[string][]string {
		values := map[string][]string{}
		for _, name := range []string{"If-Match", "If-None-Match", "If-Modified-Since", "X-Forwarded-For", "Forwarded"} {
			for _, value := range header.PeekAll(name) {
				values[name] = append(values[name], string(value))
			}
		}
		return values
	}
	var seen []request
	server := Options{
		Listener: "fuzz", Log: slog.New(slog.DiscardHandler), Limits: Limits{HeaderBytes: 16 << 10, BodiesBytes: 1 << 20},
	}.NewServer(func(rc *fasthttp.RequestCtx) {
		header := &rc.Request.Header
		seen = append(seen, request{
			path: string(rc.Path()), query: string(rc.URI().QueryString()), id: string(header.Peek("X-Request-Id")),
			more:   !rc.IsGet() || !header.IsHTTP11() || header.ConnectionClose() || rc.Request.MayContinue() || header.ContentLength() > 0,
			values: copied(header),
		})
	})
	f.Fuzz(func(t *testing.T, in []byte) {
		var c FastContext
		size := c.parse(bytes.Clone(in))
		if size == 0 || size > 16<<10 || !c.SplitTarget() { // too large for the server
			return
		}
		want := request{path: string(c.Path), query: string(c.Query), id: string(c.sentID), values: copied(&c)}
		seen = nil
		conn := &memoryConn{in: bytes.NewReader(in[:size])}
		if err := server.ServeConn(conn); err != nil {
			t.Fatalf("the fast path parses %q, but the server fails: %v", in[:size], err)
		}
		if !bytes.HasPrefix(conn.out.Bytes(), []byte("HTTP/1.1 200 ")) {
			t.Fatalf("the fast path parses %q, but the server answers %.100q", in[:size], conn.out.String())
		}
		diff := cmp.Diff([]request{want}, seen, cmp.AllowUnexported(request{}))
		testenv.Check(t, diff == "", "%q is another request to the server (-fast path +server):\n%s", in[:size], diff)
		for name, values := range want.values {
			for _, value := range values {
				testenv.Check(t, !strings.HasPrefix(name, "If-") || bytes.Contains(c.Conditions, []byte(value)),
					"%q has the conditions %q; want %q among them", in[:size], c.Conditions, value)
			}
		}
	})
}

// The fast path leaves traced requests to the server; the reference parser decides which
// those are.
func FuzzTraceparent(f *testing.F) {
	for _, value := range []string{
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
		"cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more", "00-00000000000000000000000000000000-b7ad6b7169203331-01", "",
	} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		read := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(t.Context(), propagation.MapCarrier{"traceparent": value}))
		testenv.Check(t, !read.IsSampled() || isSampled([]byte(value)),
			"%q is sampled, but the fast path would answer it", value)
	})
}
