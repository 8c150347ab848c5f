package httpserver

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// newFastConn returns a connection that waits for a request, and the client's end.
func newFastConn(t *testing.T, answer func(*FastContext) bool) (*conn, net.Conn) {
	t.Helper()
	ln := testenv.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	client := testenv.Must(net.Dial("tcp", ln.Addr().String()))(t)
	server := &fasthttp.Server{ReadTimeout: time.Minute, WriteTimeout: time.Minute, IdleTimeout: time.Minute}
	listener := Listener{Server: server, FastPath: Options{}.FastPath(nil, answer)}.Wrap(ln)
	accepted := testenv.Must(listener.Accept())(t)
	t.Cleanup(func() {
		_ = client.Close()
		_ = accepted.Close()
		_ = listener.Close()
	})
	c := connOf(accepted)
	c.setState(fasthttp.StateIdle)
	return c, client
}

const plainGet = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n"

// A server that stops closes idle connections. A response that has begun is still sent.
func TestCloseWaitsForResponse(t *testing.T) {
	t.Parallel()
	begun, closed := make(chan struct{}), make(chan struct{})
	route := Options{Listener: "closing"}.Route("short")
	c, client := newFastConn(t, func(p *FastContext) bool {
		close(begun)
		<-closed
		p.SetRoute(route)
		p.SetBody([]byte("all of it"))
		return true
	})
	ended := make(chan error, 1)
	go func() {
		_, err := c.Read(make([]byte, 4096))
		ended <- err
		_ = c.Close()
	}()
	testenv.Must(io.WriteString(client, plainGet))(t)
	<-begun
	testenv.Do(t, c.Close())
	close(closed)
	testenv.Is(t, <-ended, net.ErrClosed, "the read")
	answer, err := io.ReadAll(client)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 200 OK\r\n") || !strings.HasSuffix(string(answer), "\r\n\r\nall of it") {
		t.Errorf("the answer is %q, %v", answer, err)
	}
}

// A connection that is closed while it waits answers nothing more.
func TestCloseWhileIdle(t *testing.T) {
	t.Parallel()
	c, client := newFastConn(t, func(*FastContext) bool {
		t.Error("a request is answered")
		return false
	})
	ended := make(chan error, 1)
	go func() {
		_, err := c.Read(make([]byte, 4096))
		ended <- err
	}()
	testenv.Do(t, c.Close())
	testenv.Is(t, <-ended, net.ErrClosed, "the read")
	answer, err := io.ReadAll(client)
	testenv.Check(t, err == nil && len(answer) == 0, "the client receives %q, %v", answer, err)
}

// While the program drains, all requests are left to the server.
func TestNoFastPathWhileDraining(t *testing.T) {
	t.Parallel()
	c, client := newFastConn(t, func(*FastContext) bool {
		t.Error("a request is answered")
		return true
	})
	c.listener.draining.Store(true)
	testenv.Must(io.WriteString(client, plainGet))(t)
	got := make([]byte, len(plainGet))
	_, err := io.ReadFull(c, got)
	testenv.Check(t, err == nil && string(got) == plainGet, "the server reads %q, %v; want %q", got, err, plainGet)
}

// A request that waited until an earlier response was read is answered with the time after
// that: cached state may have expired meanwhile.
func TestRequestTimeAfterSlowWrite(t *testing.T) {
	t.Parallel()
	route := Options{Listener: "time"}.Route("short")
	body := make([]byte, 64<<20) // more than the socket buffers hold
	begun, second := make(chan struct{}), make(chan time.Time, 1)
	var answered int
	c, client := newFastConn(t, func(p *FastContext) bool {
		p.SetRoute(route)
		if answered++; answered == 1 {
			close(begun)
			p.SetBodyRaw(body)
		} else {
			second <- p.At
		}
		return true
	})
	go func() { _, _ = c.Read(make([]byte, 4096)) }()
	testenv.Must(io.WriteString(client, plainGet+plainGet))(t)
	<-begun
	begins := time.Now()
	testenv.Must(io.CopyN(io.Discard, client, int64(len(body))))(t)
	if at := <-second; at.Before(begins) {
		t.Errorf("the second request is answered with a time %v before the first response was read", begins.Sub(at))
	}
}
