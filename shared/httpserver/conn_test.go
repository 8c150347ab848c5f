package httpserver_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/testenv"
)

const get = "GET / HTTP/1.1\r\nHost: veneer.test\r\n\r\n"

// limitsWith returns limits with a change.
func limitsWith(change func(*httpserver.Limits)) httpserver.Limits {
	bounds := limits()
	change(&bounds)
	return bounds
}

// A client that sends a byte at a time gets no extra time.
func TestTricklingRequestTimesOut(t *testing.T) {
	t.Parallel()
	f := func(head, byteAtATime string) {
		t.Helper()
		bounds := limitsWith(func(l *httpserver.Limits) { l.ReadTimeout = 100 * time.Millisecond })
		opts := httpserver.Options{Log: silent(), Limits: bounds}
		conn := send(t, serveTCP(t, opts.NewServer(bodyHandler(opts, 1<<20, 0, func(*fasthttp.RequestCtx) {}))), head)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		var answer string
		var reader sync.WaitGroup
		reader.Go(func() {
			all, _ := io.ReadAll(conn) // a byte too many resets the connection
			answer = string(all)
		})
		for range 2000 { // ten seconds, if the server does not end it
			if _, err := io.WriteString(conn, byteAtATime); err != nil {
				break
			}
			<-tick.C
		}
		reader.Wait()
		expect(t, answer, "HTTP/1.1 408 ")
	}

	f("GET / HTTP/1.1\r\nHost: veneer.test\r\nX-Slow: ", "x")
	f("POST / HTTP/1.1\r\nHost: veneer.test\r\nContent-Length: 1000000\r\n\r\n", "x")
	f("POST / HTTP/1.1\r\nHost: veneer.test\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n")
}

// A client that sends an endless header gets the response.
func TestHugeHeaderGetsResponse(t *testing.T) {
	t.Parallel()
	opts := httpserver.Options{Log: silent(), Limits: limits()}
	address := serveTCP(t, opts.NewServer(func(*fasthttp.RequestCtx) { t.Error("the handler is called") }))
	for range 5 {
		conn := send(t, address, "GET / HTTP/1.1\r\nHost: veneer.test\r\nX-Long: "+strings.Repeat("x", 1<<20))
		expect(t, receive(t, conn), "HTTP/1.1 431 ", `"code":4`, "Connection: close\r\n")
	}
}

// A connection without requests is closed, whether it had one or not.
func TestIdleConnectionsAreClosed(t *testing.T) {
	t.Parallel()
	opts := httpserver.Options{Log: silent(), Limits: limitsWith(func(l *httpserver.Limits) { l.IdleTimeout = 50 * time.Millisecond })}
	answer := receive(t, send(t, serveTCP(t, opts.NewServer(func(*fasthttp.RequestCtx) {})), get+get))
	testenv.Check(t, strings.Count(answer, "HTTP/1.1 200 ") == 2 && !strings.Contains(answer, "HTTP/1.1 4"),
		"two requests and a pause are answered with:\n%s", answer)

	opts = httpserver.Options{Log: silent(), Limits: limitsWith(func(l *httpserver.Limits) { l.ReadTimeout = 50 * time.Millisecond })}
	expect(t, receive(t, send(t, serveTCP(t, opts.NewServer(func(*fasthttp.RequestCtx) {})), "")), "HTTP/1.1 408 ")
}

// A client that breaks off a body gets 400, after the responses to earlier requests.
func TestResponsesBeforeBrokenBody(t *testing.T) {
	t.Parallel()
	opts := httpserver.Options{Log: silent(), Limits: limits()}
	address := serveTCP(t, opts.NewServer(bodyHandler(opts, 1024, 0, func(rc *fasthttp.RequestCtx) { rc.SetBodyString("well") })))
	for _, broken := range []string{"Content-Length: 5\r\n\r\n", "Content-Length: 5\r\n\r\nhell", "Transfer-Encoding: chunked\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "A: b"} {
		if got := sendAll(t, address, get+get+"POST / HTTP/1.1\r\nHost: a\r\n"+broken); strings.Count(got, "HTTP/1.1 200 ") != 2 || strings.Count(got, "HTTP/1.1 400 ") != 1 {
			t.Errorf("the answers before %q are %q", broken, got)
		}
	}
	got := sendAll(t, address, get)
	testenv.Check(t, strings.Count(got, "HTTP/1.1 ") == 1, "the answers before the end are %q", got)
	testenv.Equal(t, sendAll(t, address, ""), "", "the answer to the end alone")
}

// Timeouts apply under TLS as well, also to the handshake.
func TestLimitsUnderTLS(t *testing.T) {
	t.Parallel()
	config := serverTLS(t)
	dial := func(change func(*httpserver.Limits), handler fasthttp.RequestHandler) net.Conn {
		t.Helper()
		server := httpserver.Options{Log: silent(), Limits: limitsWith(change)}.NewServer(handler)
		return send(t, serveOn(t, httpserver.Listener{Server: server, TLS: config}).Addr().String(), "")
	}

	testenv.Equal(t, receive(t, dial(func(l *httpserver.Limits) { l.ReadTimeout = 50 * time.Millisecond }, nil)), "",
		"a client that sends nothing receives")

	short := func(l *httpserver.Limits) { l.IdleTimeout = 50 * time.Millisecond }
	conn := tlsClient(dial(short, func(*fasthttp.RequestCtx) {}))
	testenv.Must(io.WriteString(conn, get))(t)
	expect(t, receive(t, conn), "HTTP/1.1 200 ")

	// The timeout includes the handshake, which takes a while on a busy machine.
	conn = tlsClient(dial(func(l *httpserver.Limits) { l.ReadTimeout = time.Second }, nil))
	testenv.Must(io.WriteString(conn, "GET / HT"))(t)
	expect(t, receive(t, conn), "HTTP/1.1 408 ")
}

// Pipelined requests are answered in order.
func TestPipelineOrder(t *testing.T) {
	t.Parallel()
	opts := httpserver.Options{Log: silent(), Limits: limits()}
	conn := send(t, serveTCP(t, opts.NewServer(func(rc *fasthttp.RequestCtx) { rc.SetBody(rc.Path()) })), "")
	const requests = 5000
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := range requests {
			if _, err := fmt.Fprintf(conn, "GET /%d HTTP/1.1\r\nHost: veneer.test\r\n\r\n", i); err != nil {
				t.Error(err)
				return
			}
		}
	})
	reader := bufio.NewReader(conn)
	var response fasthttp.Response
	for i := range requests {
		testenv.Do(t, response.Read(reader))
		if want := fmt.Sprintf("/%d", i); string(response.Body()) != want {
			t.Fatalf("answer %d is %q; want %q", i, response.Body(), want)
		}
	}
	writer.Wait()
}

// Responses of all sizes arrive complete, alone and in a pipeline.
func TestResponseSizes(t *testing.T) {
	t.Parallel()
	body := make([]byte, 100_000)
	for i := range body {
		body[i] = byte(i * 31 >> 3)
	}
	opts := httpserver.Options{Log: silent(), Limits: limits()}
	address := serveTCP(t, opts.NewServer(func(rc *fasthttp.RequestCtx) {
		rc.Response.SetBodyRaw(body[:rc.QueryArgs().GetUintOrZero("size")])
	}))
	var sizes []int
	for size := 3900; size < 4200; size++ { // around the size of the write buffer
		sizes = append(sizes, size)
	}
	for size := 1; size < len(body); size += size/3 + 1 {
		sizes = append(sizes, size, len(body)-size)
	}
	f := func(together int) {
		t.Helper()
		conn := send(t, address, "")
		reader := bufio.NewReader(conn)
		for batch := range slices.Chunk(sizes, together) {
			var requests, methods strings.Builder
			for i, size := range batch {
				method := "GET"
				if i%5 == 3 {
					method = "HEAD"
				}
				fmt.Fprintf(&requests, "%s /?size=%d HTTP/1.1\r\nHost: veneer.test\r\n\r\n", method, size)
				methods.WriteByte(method[0])
			}
			testenv.Must(io.WriteString(conn, requests.String()))(t)
			for i, size := range batch {
				var response fasthttp.Response
				response.SkipBody = methods.String()[i] == 'H'
				if err := response.Read(reader); err != nil {
					t.Fatalf("%d of %d: %v", size, together, err)
				}
				want := body[:size]
				if response.SkipBody {
					want = nil
				}
				if !bytes.Equal(response.Body(), want) {
					t.Fatalf("%d bytes among %d requests arrive as %d others", size, together, len(response.Body()))
				}
			}
		}
	}

	f(1)
	f(7)
	f(100)
}

// A client that pipelines requests and reads no response is not read any further, takes no
// memory beyond its connection's, and delays no other.
func TestPipelineWithoutReaderIsClosed(t *testing.T) {
	t.Parallel()
	var answered atomic.Int64
	body := make([]byte, 64<<10)
	opts := httpserver.Options{Log: silent(), Limits: limitsWith(func(l *httpserver.Limits) { l.WriteTimeout = 300 * time.Millisecond })}
	server := opts.NewServer(func(rc *fasthttp.RequestCtx) {
		if string(rc.Path()) == "/" {
			answered.Add(1)
			rc.Response.SetBodyRaw(body)
		}
	})
	address := serveTCP(t, server)
	client := send(t, address, "")
	cut := make(chan struct{})
	go func() {
		defer close(cut)
		for err := error(nil); err == nil; {
			_, err = io.WriteString(client, strings.Repeat(get, 1000))
		}
	}()
	for open := true; open; {
		expect(t, receive(t, send(t, address, "GET /other HTTP/1.1\r\nHost: veneer.test\r\nConnection: close\r\n\r\n")), "HTTP/1.1 200 ")
		select {
		case <-cut:
			open = false
		default:
		}
	}
	if n := answered.Load(); n > 1000 { // 64 MB: more than the socket buffers hold
		t.Errorf("%d requests are answered, though no response is read", n)
	}
}

// TCP keep-alive finds peers that are gone without a FIN.
func TestTCPKeepAlive(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	testenv.Do(t, err)
	t.Cleanup(func() { _ = ln.Close() })
	send(t, ln.Addr().String(), "")
	conn := testenv.Must(httpserver.Accept(httpserver.Listener{Server: &fasthttp.Server{}}.Wrap(ln)))(t)
	t.Cleanup(func() { _ = conn.Close() })
	socket, ok := conn.(syscall.Conn)
	if !ok {
		t.Fatalf("the accepted connection is a %T", conn)
	}
	raw := testenv.Must(socket.SyscallConn())(t)
	var on int
	if controlErr := raw.Control(func(fd uintptr) { on, err = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_KEEPALIVE) }); controlErr != nil || err != nil {
		t.Fatal(controlErr, err)
	}
	testenv.Check(t, on != 0, "keep-alive is off")
}

// Responses of about the size of the write buffer arrive whole, on one connection.
func TestResponsesAroundTheWriteBuffer(t *testing.T) {
	t.Parallel()
	opts := httpserver.Options{Listener: t.Name(), Log: silent(), Limits: limits()}
	address := serveTCP(t, opts.NewServer(func(rc *fasthttp.RequestCtx) {
		rc.Response.SetBodyRaw(make([]byte, rc.QueryArgs().GetUintOrZero("n")))
	}))
	client := fasthttp.HostClient{Addr: address}
	for n := 3500; n < 4200; n++ {
		status, body, err := client.Get(nil, fmt.Sprintf("http://%s/?n=%d", address, n))
		testenv.Check(t, err == nil && status == fasthttp.StatusOK && len(body) == n, "a body of %d bytes: %d, %d bytes, %v", n, status, len(body), err)
	}
}
