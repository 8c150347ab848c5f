package httpserver_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
	"github.com/veneer-skins/veneer/shared/metrics/metricstest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

const post = "POST / HTTP/1.1\r\nHost: veneer.test\r\nConnection: close\r\n"

// chunked returns a body in chunks of a size.
func chunked(body string, size int) string {
	var sent strings.Builder
	for len(body) > 0 {
		n := min(size, len(body))
		fmt.Fprintf(&sent, "%x\r\n%s\r\n", n, body[:n])
		body = body[n:]
	}
	return sent.String() + "0\r\n\r\n"
}

func withContentLength(body string) string {
	return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
}

// echoServer serves a handler that answers with the body, of at most limit bytes.
func echoServer(t *testing.T, limit int) (address string) {
	t.Helper()
	opts := httpserver.Options{Listener: t.Name(), Log: silent(), Limits: limits()}
	return serveTCP(t, opts.NewServer(bodyHandler(opts, limit, 0, func(rc *fasthttp.RequestCtx) { rc.SetBody(rc.PostBody()) })))
}

// Bodies of up to the limit are read byte for byte, larger ones are rejected.
func TestBodyLimit(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&text, "%d,", i)
	}
	f := func(size, limit, status int) {
		t.Helper()
		address, body := echoServer(t, limit), text.String()[:size]
		for _, sent := range []string{
			withContentLength(body),
			"Expect: 100-continue\r\n" + withContentLength(body),
			"Transfer-Encoding: chunked\r\n\r\n" + chunked(body, 1000),
			"Transfer-Encoding: chunked\r\n\r\n" + chunked(body, 1<<20),
		} {
			answer := receive(t, send(t, address, post+sent))
			expect(t, answer, fmt.Sprintf("HTTP/1.1 %d ", status))
			testenv.Check(t, status != 200 || strings.HasSuffix(answer, "\r\n\r\n"+body),
				"a body of %d bytes is not read as it was sent: %.100s", size, sent)
			if status == 413 {
				expect(t, answer, fmt.Sprintf(`{"code":4,"message":"The body is larger than the %d bytes that are accepted here."}`, limit))
			}
		}
	}

	f(0, 1024, 200)
	f(1, 1024, 200)
	f(1024, 1024, 200)
	f(1025, 1024, 413)
	for _, size := range []int{8191, 8192, 8193, 16384, 16385, 100_000} {
		f(size, size, 200)
		f(size, size-1, 413)
		f(size, 108_000, 200)
	}
}

// Without a limit the budget bounds a body, whatever Content-Length says.
func TestBodyWithoutLimit(t *testing.T) {
	t.Parallel()
	address := echoServer(t, 0)
	large := strings.Repeat("x", 5<<20)
	expect(t, receive(t, send(t, address, post+withContentLength(large))), "HTTP/1.1 200 ", "\r\n\r\n"+large[:100])
	expect(t, receive(t, send(t, address, post+"Content-Length: 1099511627776\r\n\r\nx")), "HTTP/1.1 413 ", "larger than the 67108864 bytes")
}

// A body may take the whole budget, with Content-Length and chunked.
func TestBodyOfWholeBudget(t *testing.T) {
	t.Parallel()
	bounds := limitsWith(func(l *httpserver.Limits) { l.BodiesBytes = 4 << 20 })
	opts := httpserver.Options{Listener: t.Name(), Log: silent(), Limits: bounds}
	address := serveTCP(t, opts.NewServer(bodyHandler(opts, 0, 0, func(rc *fasthttp.RequestCtx) { _, _ = fmt.Fprint(rc, len(rc.PostBody())) })))
	for size, want := range map[int]string{3 << 20: "HTTP/1.1 200 ", 4 << 20: "HTTP/1.1 200 ", 4<<20 + 1: "HTTP/1.1 413 "} {
		body := strings.Repeat("x", size)
		for _, sent := range []string{withContentLength(body), "Transfer-Encoding: chunked\r\n\r\n" + chunked(body, 100_000)} {
			answer := receive(t, send(t, address, post+sent))
			expect(t, answer, want)
			if strings.HasPrefix(answer, "HTTP/1.1 200 ") && !strings.HasSuffix(answer, fmt.Sprint("\r\n\r\n", size)) {
				t.Errorf("a body of %d bytes is answered %q", size, answer)
			}
		}
		awaitBytes(t, t.Name(), 0)
	}
}

// A body that ends before its Content-Length is an error.
func TestIncompleteBody(t *testing.T) {
	t.Parallel()
	address := echoServer(t, 1<<20)
	for _, sent := range []string{
		"Content-Length: 10\r\n\r\nhalf", "Content-Length: 100000\r\n\r\n" + strings.Repeat("x", 50_000),
		"Transfer-Encoding: chunked\r\n\r\n5\r\nhalf", "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", "Transfer-Encoding: chunked\r\n\r\nnonsense\r\n",
	} {
		expect(t, sendAll(t, address, post+sent), "HTTP/1.1 400 ", `"code":4`)
	}
}

// A client that sends its whole body before it reads gets the response, although the body is
// too large or not wanted: unread data would reset the connection.
func TestOversizedBodyGetsResponse(t *testing.T) {
	t.Parallel()
	opts := httpserver.Options{Log: silent(), Limits: limits()}
	unread := serveTCP(t, opts.NewServer(func(rc *fasthttp.RequestCtx) { rc.SetStatusCode(http.StatusTeapot) }))

	for address, want := range map[string]int{echoServer(t, 1000): http.StatusRequestEntityTooLarge, unread: http.StatusTeapot} {
		for range 20 {
			conn := send(t, address, post+withContentLength(strings.Repeat("x", 4<<20)))
			expect(t, receive(t, conn), fmt.Sprintf("HTTP/1.1 %d ", want))
			response, err := http.Post("http://"+address, "application/octet-stream", bytes.NewReader(make([]byte, 4<<20))) //nolint:noctx // short
			testenv.Do(t, err)
			_ = response.Body.Close()
			testenv.Equal(t, response.StatusCode, want, "the status")
		}
	}
}

// A body is read only if the route accepts one: a client that sends a head and one byte has
// its response at once. A request behind a small unread body is answered.
func TestUnreadBodies(t *testing.T) {
	t.Parallel()
	opts := httpserver.Options{Log: silent(), Limits: limits()}
	address := serveTCP(t, opts.NewServer(func(rc *fasthttp.RequestCtx) { rc.SetBody(rc.Path()) }))

	for _, sent := range []string{"Content-Length: 1114111\r\n\r\nx", "Transfer-Encoding: chunked\r\n\r\n"} {
		conn := send(t, address, "POST /unread HTTP/1.1\r\nHost: veneer.test\r\n"+sent)
		head := make([]byte, len("HTTP/1.1 200 "))
		_, err := io.ReadFull(conn, head)
		testenv.Check(t, err == nil && string(head) == "HTTP/1.1 200 ", "%q is answered %q, %v", sent, head, err)
	}
	for _, sent := range []string{withContentLength("body"), "Transfer-Encoding: chunked\r\n\r\n" + chunked("body", 2)} {
		conn := send(t, address, "POST /first HTTP/1.1\r\nHost: veneer.test\r\n"+sent+"GET /next HTTP/1.1\r\nHost: veneer.test\r\nConnection: close\r\n\r\n")
		expect(t, receive(t, conn), "\r\n\r\n/first", "\r\n\r\n/next")
	}
	large := receive(t, send(t, echoServer(t, 1000), "POST / HTTP/1.1\r\nHost: veneer.test\r\nContent-Length: 1001\r\n\r\nx"))
	expect(t, large, "HTTP/1.1 413 ", "Connection: close\r\n")
}

// metric returns what /metrics has of a listener.
func metric(tb testing.TB, name, listener string) float64 {
	tb.Helper()
	return metricstest.Value(tb, metricstest.Text(tb, prometheus.DefaultGatherer), fmt.Sprintf("%s{listener=%q}", name, listener))
}

// awaitBytes waits until the bodies of a listener take so many bytes.
func awaitBytes(t *testing.T, listener string, want float64) {
	t.Helper()
	testenv.Eventually(t, fmt.Sprintf("bodies of %s take %v bytes", listener, want), func() bool {
		return metric(t, "veneer_body_bytes", listener) == want
	})
}

// sendUntilAccepted repeats a request until its body is accepted; before that it gets 503.
func sendUntilAccepted(t *testing.T, address, sent string) {
	t.Helper()
	testenv.Eventually(t, "a stalled body is aborted", func() bool {
		conn := send(t, address, post+sent)
		answer := receive(t, conn)
		_ = conn.Close()
		isAccepted := strings.HasPrefix(answer, "HTTP/1.1 200 ")
		if !isAccepted {
			expect(t, answer, "HTTP/1.1 503 ")
		}
		return isAccepted
	})
}

// When the budget is full, stalled bodies are aborted, the slowest first, and small ones need
// none of it. If no body is stalled, the new one is rejected.
func TestBodiesBudget(t *testing.T) {
	t.Parallel()
	const size = 1 << 20 // half of the budget
	bounds := limitsWith(func(l *httpserver.Limits) { l.BodiesBytes = 2 << 20 })
	opts := httpserver.Options{Listener: t.Name(), Log: silent(), Limits: bounds}
	address := serveTCP(t, opts.NewServer(bodyHandler(opts, size, 0, func(*fasthttp.RequestCtx) {})))
	begin := func(from string, part int) net.Conn {
		return sendFrom(t, from, address, post+fmt.Sprintf("Content-Length: %d\r\n\r\n%s", size, strings.Repeat("x", part)))
	}

	// More than half of each has arrived, so each has reserved its whole size. Neither is stalled for a second.
	var slower, slow net.Conn
	for tries, inTime := 0, false; !inTime; tries++ {
		if tries == 100 {
			t.Fatal("no try took less than a second")
		}
		began := time.Now()
		slower = begin("127.0.1.1", size*2/3)
		awaitBytes(t, t.Name(), float64(size))
		slow = begin("127.0.2.1", size*3/4)
		awaitBytes(t, t.Name(), float64(2*size))
		expect(t, receive(t, send(t, address, post+withContentLength("small"))), "HTTP/1.1 200 ")
		expect(t, receive(t, send(t, address, post+withContentLength(strings.Repeat("x", 8<<10)))), "HTTP/1.1 200 ")
		before := metric(t, "veneer_bodies_rejected_total", t.Name())
		rejected := receive(t, send(t, address, post+withContentLength(strings.Repeat("x", 20_000))))
		if inTime = time.Since(began) < time.Second; !inTime { // on a busy machine
			_, _ = slower.Close(), slow.Close()
			awaitBytes(t, t.Name(), 0)
			continue
		}
		expect(t, rejected, "HTTP/1.1 503 ", `"code":9`, "Retry-After: 1\r\n")
		testenv.Equal(t, metric(t, "veneer_bodies_rejected_total", t.Name())-before, 1, "bodies are rejected")
	}

	// Both stop. The one that stopped first is aborted for the next.
	before := metric(t, "veneer_bodies_ended_total", t.Name())
	sendUntilAccepted(t, address, withContentLength(strings.Repeat("x", size)))
	expect(t, receive(t, slower), "HTTP/1.1 408 ", `"code":4`, "Connection: close\r\n")
	testenv.Equal(t, metric(t, "veneer_bodies_ended_total", t.Name())-before, 1, "bodies are aborted")
	testenv.Must(io.WriteString(slow, strings.Repeat("x", size/4)))(t)
	expect(t, receive(t, slow), "HTTP/1.1 200 ")
	awaitBytes(t, t.Name(), 0)
}

// Bodies of one client network leave a quarter of the budget to others, also after they have
// arrived. For another body of that network, only a stalled one of that network is aborted.
func TestBodiesBudgetPerNetwork(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	bounds := limitsWith(func(l *httpserver.Limits) { l.BodiesBytes = 4 << 20 })
	proxies := clientip.Config{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
	opts := httpserver.Options{Listener: t.Name(), Log: silent(), Limits: bounds, Proxies: clientip.New(proxies, silent())}
	holding, answer := make(chan struct{}, 8), make(chan struct{})
	address := serveTCP(t, opts.NewServer(bodyHandler(opts, size, 0, func(*fasthttp.RequestCtx) {
		holding <- struct{}{}
		<-answer
	})))
	body := strings.Repeat("x", size)
	from := func(client string) string { return "X-Forwarded-For: " + client + "\r\n" }
	begin := func(client string) net.Conn {
		return send(t, address, post+from(client)+fmt.Sprintf("Content-Length: %d\r\n\r\n%s", size, body[:size*3/4]))
	}

	var conns []net.Conn
	for _, client := range []string{"203.0.113.1", "203.0.113.2", "203.0.113.3", "198.51.100.1"} {
		if len(conns) == 3 {
			expect(t, receive(t, send(t, address, post+from("203.0.113.200")+withContentLength(body))), "HTTP/1.1 503 ")
		}
		conns = append(conns, send(t, address, post+from(client)+withContentLength(body)))
		<-holding
	}
	close(answer)
	for _, conn := range conns {
		expect(t, receive(t, conn), "HTTP/1.1 200 ")
	}
	awaitBytes(t, t.Name(), 0)

	other := begin("198.51.100.1")
	awaitBytes(t, t.Name(), float64(size))
	first := begin("203.0.113.1")
	awaitBytes(t, t.Name(), float64(2*size))
	begin("203.0.113.2")
	awaitBytes(t, t.Name(), float64(3*size))
	begin("203.0.113.3")
	awaitBytes(t, t.Name(), float64(4*size))
	sendUntilAccepted(t, address, from("203.0.113.200")+withContentLength(body))
	expect(t, receive(t, first), "HTTP/1.1 408 ")
	testenv.Must(io.WriteString(other, body[size*3/4:]))(t)
	expect(t, receive(t, other), "HTTP/1.1 200 ")
}

// A reservation is released however its request ends.
func TestBodiesBudgetIsReleased(t *testing.T) {
	t.Parallel()
	const size = 100_000
	bounds := limitsWith(func(l *httpserver.Limits) { l.ReadTimeout = 500 * time.Millisecond })
	opts := httpserver.Options{Listener: t.Name(), Log: silent(), Limits: bounds}
	address := serveTCP(t, opts.NewServer(bodyHandler(opts, size, 0, func(rc *fasthttp.RequestCtx) {
		if len(rc.PostBody()) == 20_000 {
			panic("a handler's")
		}
		got := metric(t, "veneer_body_bytes", opts.Listener)
		testenv.Check(t, got != 0, "a body that the handler holds is not counted")
	})))
	var clients sync.WaitGroup
	f := func(status int, sent string) {
		t.Helper()
		expect(t, receive(t, send(t, address, post+sent)), fmt.Sprintf("HTTP/1.1 %d ", status))
	}
	f(200, withContentLength(strings.Repeat("x", size)))
	f(500, withContentLength(strings.Repeat("x", 20_000)))
	f(413, "Transfer-Encoding: chunked\r\n\r\n"+chunked(strings.Repeat("x", size+1), 1000))
	f(400, "Transfer-Encoding: chunked\r\n\r\n"+strings.TrimSuffix(chunked(strings.Repeat("x", 50_000), 1000), "0\r\n\r\n")+"nonsense\r\n")
	f(408, "Content-Length: 100000\r\n\r\n"+strings.Repeat("x", 50_000))
	for range 20 {
		clients.Go(func() {
			conn := send(t, address, post+"Content-Length: 100000\r\n\r\n"+strings.Repeat("x", 50_000))
			_ = conn.Close()
		})
	}
	clients.Wait()
	awaitBytes(t, opts.Listener, 0)
}

// A streamed body is passed on while it arrives, and reserves its share of the budget.
func TestStreamedBodies(t *testing.T) {
	t.Parallel()
	const share = 1 << 20
	bounds := limitsWith(func(l *httpserver.Limits) { l.BodiesBytes = 2 << 20 })
	opts := httpserver.Options{Listener: t.Name(), Log: silent(), Limits: bounds}
	address := serveTCP(t, opts.NewServer(opts.HandleNoContext(func(rc *fasthttp.RequestCtx) error {
		body, err := httpserver.OpenBody(rc, 0)
		if err != nil {
			return err
		}
		whole, err := body.ReadSmall(rc)
		if whole || err != nil {
			_, _ = fmt.Fprint(rc, len(rc.PostBody()), " at once")
			return err
		}
		if err := body.Stream(share, bounds.UploadTimeout); err != nil {
			return err
		}
		n, err := io.Copy(io.Discard, struct{ io.Reader }{body})
		_, _ = fmt.Fprint(rc, n, " in parts")
		return err
	})))
	for _, size := range []int{1, 8191, 8192, 8193, 5 << 20} {
		want := fmt.Sprint(size, " at once")
		if size > 8192 {
			want = fmt.Sprint(size, " in parts")
		}
		body := strings.Repeat("x", size)
		expect(t, receive(t, send(t, address, post+withContentLength(body))), "HTTP/1.1 200 ", want)
		expect(t, receive(t, send(t, address, post+"Transfer-Encoding: chunked\r\n\r\n"+chunked(body, 5000))), "HTTP/1.1 200 ", want)
	}
	half := "Content-Length: 20000\r\n\r\n" + strings.Repeat("x", 10_000)
	stalled := []net.Conn{sendFrom(t, "127.0.1.1", address, post+half), sendFrom(t, "127.0.2.1", address, post+half)}
	awaitBytes(t, t.Name(), float64(2*share))
	sendUntilAccepted(t, address, withContentLength(strings.Repeat("x", 20_000)))
	_ = stalled[0].Close()
	_ = stalled[1].Close()
	awaitBytes(t, t.Name(), 0)
}
