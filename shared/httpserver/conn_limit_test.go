package httpserver_test

import (
	"bufio"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// fullServer returns the address of a server with a limit of two connections, both of which
// are open and have had a response.
func fullServer(t *testing.T, mark func(*fasthttp.RequestCtx)) (address string, first net.Conn) {
	t.Helper()
	bounds := limitsWith(func(l *httpserver.Limits) { l.MaxConnections = 2 })
	opts := httpserver.Options{Log: silent(), Limits: bounds, DefaultHeaders: mark}
	address = serveTCP(t, opts.NewServer(func(rc *fasthttp.RequestCtx) { rc.SetBodyString("done") }))
	first = send(t, address, get)
	for _, conn := range []net.Conn{first, send(t, address, get)} {
		var response fasthttp.Response
		testenv.Do(t, response.Read(bufio.NewReader(conn)))
	}
	return address, first
}

func TestConnectionLimit(t *testing.T) {
	t.Parallel()
	address, first := fullServer(t, func(rc *fasthttp.RequestCtx) { rc.Response.Header.Set("X-Content-Type-Options", "nosniff") })
	const tooMany = `{"code":9,"message":"There are too many connections at the moment. Please try again."}`
	for _, request := range []string{get, "", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 30000\r\n\r\n" + strings.Repeat("x", 30000)} {
		expect(t, receive(t, send(t, address, request)),
			"HTTP/1.1 503 ", "Retry-After: 1\r\n", "Cache-Control: no-store\r\n", "Connection: close\r\n",
			"Content-Type: application/json; charset=utf-8\r\n", "X-Content-Type-Options: nosniff\r\n", tooMany)
	}

	// Closing a connection frees its place.
	_ = first.Close()
	testenv.Eventually(t, "a connection is accepted after one is closed", func() bool {
		answer := receive(t, send(t, address, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
		isAccepted := strings.HasPrefix(answer, "HTTP/1.1 200 ")
		if !isAccepted {
			expect(t, answer, tooMany)
		}
		return isAccepted
	})
}

// Rejected connections that send nothing and stay open do not block others.
func TestConnectionLimitUnderFlood(t *testing.T) {
	t.Parallel()
	address, first := fullServer(t, nil)
	var silent sync.WaitGroup
	for range 600 {
		conn := testenv.Must(net.Dial("tcp", address))(t)
		silent.Go(func() {
			_, _ = io.Copy(io.Discard, conn) // a reset, or a response
			_ = conn.Close()
		})
	}
	testenv.Must(io.WriteString(first, get))(t)
	var response fasthttp.Response
	if err := response.Read(bufio.NewReader(first)); err != nil || string(response.Body()) != "done" {
		t.Errorf("the first connection gets %q, %v", response.Body(), err)
	}
	silent.Wait()
}
