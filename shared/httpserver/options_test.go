package httpserver_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/tlsreload/tlsreloadtest"
)

// limits returns generous limits, for tests that set only one of them.
func limits() httpserver.Limits {
	return httpserver.Limits{
		ReadTimeout: time.Minute, UploadTimeout: time.Minute, WriteTimeout: time.Minute, IdleTimeout: time.Minute, WorkTimeout: time.Minute,
		HeaderBytes: 4096, MaxConnections: 100, BodiesBytes: 64 << 20,
	}
}

// bodyHandler returns a handler that reads a body of at most limit bytes within timeout, and
// then calls h.
func bodyHandler(opts httpserver.Options, limit int, timeout time.Duration, h fasthttp.RequestHandler) fasthttp.RequestHandler {
	route := opts.Route("POST /").AcceptBody(limit, timeout)
	return opts.HandleNoContext(func(rc *fasthttp.RequestCtx) error {
		route.AssignTo(rc)
		if err := httpserver.ReadBody(rc); err != nil {
			return err
		}
		h(rc)
		return nil
	})
}

// start serves in memory until the test ends, and returns the listener to dial.
func start(t *testing.T, server *fasthttp.Server) *fasthttputil.InmemoryListener {
	t.Helper()
	listener := fasthttputil.NewInmemoryListener()
	run(t, server, listener)
	return listener
}

// exchangeRaw sends bytes and returns all that is received until the server closes the
// connection.
func exchangeRaw(t *testing.T, listener *fasthttputil.InmemoryListener, sent string) string {
	t.Helper()
	conn := testenv.Must(listener.Dial())(t)
	defer func() { _ = conn.Close() }()
	var writer sync.WaitGroup
	writer.Go(func() { _, _ = io.WriteString(conn, sent) }) // the server may close before it has read all
	got := testenv.Must(io.ReadAll(conn))(t)
	_ = conn.Close()
	writer.Wait()
	return string(got)
}

// getPath sends a GET request and closes the connection after it.
func getPath(t *testing.T, listener *fasthttputil.InmemoryListener, path, headers string) string {
	t.Helper()
	return exchangeRaw(t, listener, "GET "+path+" HTTP/1.1\r\nHost: veneer.test\r\nConnection: close\r\n"+headers+"\r\n")
}

func expect(t *testing.T, answer string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		testenv.Check(t, strings.Contains(answer, part), "the answer lacks %q:\n%s", part, answer)
	}
}

func TestPanicEndsOneRequest(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	opts := httpserver.Options{Log: slog.New(slog.NewTextHandler(&out, nil)), Limits: limits()}
	listener := start(t, opts.NewServer(opts.Handle(func(_ context.Context, rc *fasthttp.RequestCtx) error {
		if string(rc.Path()) == "/panic" {
			rc.Response.Header.Set("Cache-Control", "public, max-age=60")
			rc.SetBodyString("half an answer")
			panic("the secret is out")
		}
		return httpserver.WriteJSON(rc, fasthttp.StatusOK, "well")
	})))

	answer := getPath(t, listener, "/panic", "X-Request-ID: abc-123\r\n")
	expect(t, answer, "HTTP/1.1 500 ", `{"code":10,"message":"Something went wrong on our side."}`, "X-Request-Id: abc-123\r\n", "Cache-Control: no-store\r\n")
	testenv.Check(t, !strings.Contains(answer, "secret") && !strings.Contains(answer, "half"),
		"the answer reveals too much:\n%s", answer)
	expect(t, out.String(), "request_id=abc-123", "the secret is out", "options_test.go")

	expect(t, getPath(t, listener, "/", ""), "HTTP/1.1 200 ", `"well"`)
}

// A listener can have its own format of errors for some paths: also for a panic, and for what the
// server rejects, if the path is known by then.
func TestErrorFormat(t *testing.T) {
	t.Parallel()
	opts := httpserver.Options{Log: silent(), Limits: limits()}
	opts.ErrorFormat = func(path []byte, f *fault.Error) (int, any) {
		if bytes.HasPrefix(path, []byte("/standard")) {
			return 0, nil
		}
		return 400 + httpserver.StatusOf(f)%100, map[string]string{"error": f.Message}
	}
	listener := start(t, opts.NewServer(opts.Handle(func(_ context.Context, rc *fasthttp.RequestCtx) error {
		if string(rc.Path()) == "/panic" {
			panic("the secret is out")
		}
		return fault.New(fault.Unauthenticated, "No.")
	})))

	const head = " HTTP/1.1\r\nHost: veneer.test\r\n"
	answer := exchangeRaw(t, listener, "GET /own"+head+"\r\nGET /standard"+head+"Connection: close\r\n\r\n")
	own, standard, _ := strings.Cut(answer, `{"error":"No."}`)
	expect(t, own, "HTTP/1.1 401 ", "Cache-Control: no-store\r\n", "application/json")
	expect(t, standard, "HTTP/1.1 401 ", `{"code":5,"message":"No."}`)
	expect(t, getPath(t, listener, "/panic", ""), "HTTP/1.1 400 ", `{"error":"Something went wrong on our side."}`)

	const rejected = head + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
	expect(t, exchangeRaw(t, listener, "POST /own"+rejected), "HTTP/1.1 400 ", `{"error":"`)
	expect(t, exchangeRaw(t, listener, "POST /standard"+rejected), "HTTP/1.1 400 ", `{"code":4,`)
}

func TestBadRequestResponses(t *testing.T) {
	t.Parallel()
	f := func(sent string, parts ...string) {
		t.Helper()
		opts := httpserver.Options{Log: silent(), Limits: limits()}
		listener := start(t, opts.NewServer(bodyHandler(opts, 1024, 0, func(rc *fasthttp.RequestCtx) {
			t.Errorf("the handler is called with %d bytes", len(rc.PostBody()))
		})))
		expect(t, exchangeRaw(t, listener, sent), append(parts, `"message":"`, "Cache-Control: no-store\r\n", "Connection: close\r\n", "application/json")...)
	}

	const head = "POST / HTTP/1.1\r\nHost: veneer.test\r\n"
	f("nonsense\r\n\r\n", "HTTP/1.1 400 ", `"code":4`)
	f("GET / HTTP/1.1\r\nHost: veneer.test\r\nX-Long: "+strings.Repeat("x", 5000)+"\r\n\r\n", "HTTP/1.1 431 ", `"code":4`)
	f(head+"Transfer-Encoding: chunked\r\n\r\nnonsense\r\n", "HTTP/1.1 400 ", `"code":4`)
}

// serveTCP serves on a real socket until the test ends, and returns its address. In-memory
// connections have no kernel buffers and other timeouts.
func serveTCP(t *testing.T, server *fasthttp.Server) string {
	t.Helper()
	return serveOn(t, httpserver.Listener{Server: server}).Addr().String()
}

// serveOn serves on a real socket with a listener.
func serveOn(t *testing.T, l httpserver.Listener) net.Listener {
	t.Helper()
	wrapped := l.Wrap(testenv.Must(net.Listen("tcp", "127.0.0.1:0"))(t))
	run(t, l.Server, wrapped)
	return wrapped
}

// serverTLS returns a configuration with a certificate of its own.
func serverTLS(t *testing.T) *tls.Config {
	t.Helper()
	pair := testenv.Must(tls.LoadX509KeyPair(tlsreloadtest.NewAuthority(t).Issue(t)))(t)
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
}

// run serves a listener until the test ends.
func run(t *testing.T, server *fasthttp.Server, listener net.Listener) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = listener.Close()
		testenv.Is(t, <-ended, nil, "Serve()")
	})
}

// send connects to an address and sends something.
func send(t *testing.T, address, sent string) net.Conn {
	t.Helper()
	return sendFrom(t, "127.0.0.1", address, sent)
}

// sendFrom connects from a local address.
func sendFrom(t *testing.T, from, address, sent string) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn := testenv.Must(dialer.DialContext(t.Context(), "tcp", address))(t)
	t.Cleanup(func() { _ = conn.Close() })
	testenv.Do(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	testenv.Must(io.WriteString(conn, sent))(t)
	return conn
}

// receive returns all that is received until the server closes the connection.
func receive(t *testing.T, conn net.Conn) string {
	t.Helper()
	return string(testenv.Must(io.ReadAll(conn))(t))
}

// sendAll sends something and the end of the stream, and returns all that is received.
func sendAll(t *testing.T, address, sent string) string {
	t.Helper()
	conn := send(t, address, sent)
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.CloseWrite() // the server may have closed it
	}
	return receive(t, conn)
}

// serveUploads serves a handler for bodies of most bytes, and at /uploads of mostUploaded bytes within UPLOAD_TIMEOUT.
func serveUploads(t *testing.T, opts httpserver.Options, most, mostUploaded int, h fasthttp.RequestHandler) string {
	t.Helper()
	others, uploads := bodyHandler(opts, most, 0, h), bodyHandler(opts, mostUploaded, opts.Limits.UploadTimeout, h)
	return serveTCP(t, opts.NewServer(func(rc *fasthttp.RequestCtx) {
		if string(rc.Path()) == "/uploads" {
			uploads(rc)
		} else {
			others(rc)
		}
	}))
}

func TestSlowRequestTimesOut(t *testing.T) {
	t.Parallel()
	f := func(sent string, shorten func(*httpserver.Limits)) {
		t.Helper()
		bounds := limits()
		shorten(&bounds)
		opts := httpserver.Options{Log: silent(), Limits: bounds}
		never := func(*fasthttp.RequestCtx) { t.Error("the handler is called") }
		answer := receive(t, send(t, serveUploads(t, opts, 1024, 1024, never), sent))
		expect(t, answer, "HTTP/1.1 408 ", `"code":4`, "Cache-Control: no-store\r\n")
	}

	const rest = " HTTP/1.1\r\nHost: veneer.test\r\nContent-Length: 10\r\n\r\nhalf"
	reading := func(l *httpserver.Limits) { l.ReadTimeout = 50 * time.Millisecond }
	f("GET / HTTP/1.1\r\nHost: ven", reading)
	f("POST /"+rest, reading)
	f("POST / HTTP/1.1\r\nHost: veneer.test\r\nContent-Length: 10\r\n\r\n", reading)
	f("POST / HTTP/1.1\r\nHost: veneer.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhalf", reading)
	f("POST /uploads"+rest, func(l *httpserver.Limits) { l.UploadTimeout = 50 * time.Millisecond })
	f("POST http://veneer.test/uploads?x=1"+rest, func(l *httpserver.Limits) { l.UploadTimeout = 50 * time.Millisecond })
}

// A large upload may take longer than other requests, and its work timeout starts when it has
// arrived.
func TestUploadTimeout(t *testing.T) {
	t.Parallel()
	bounds := limitsWith(func(l *httpserver.Limits) { l.ReadTimeout = 250 * time.Millisecond })
	opts := httpserver.Options{Log: silent(), Limits: bounds}
	deadlines := make(chan time.Time, 1)
	answer := func(rc *fasthttp.RequestCtx) {
		ctx, cancel := opts.RequestContext(rc)
		defer cancel()
		deadline, _ := ctx.Deadline()
		deadlines <- deadline
		rc.SetBody(rc.PostBody())
	}
	address := serveUploads(t, opts, 4, 10, answer)

	const rest = " HTTP/1.1\r\nHost: veneer.test\r\nConnection: close\r\nContent-Length: "
	upload := send(t, address, "POST /uploads"+rest+"10\r\n\r\nfirst")
	for range 2 { // meanwhile READ_TIMEOUT has passed for the upload, too
		expect(t, receive(t, send(t, address, "POST /"+rest+"4\r\n\r\nfi")), "HTTP/1.1 408 ")
	}
	complete := time.Now()
	testenv.Must(io.WriteString(upload, "+last"))(t)
	expect(t, receive(t, upload), "HTTP/1.1 200 ", "\r\n\r\nfirst+last")
	select {
	case deadline := <-deadlines:
		testenv.Check(t, !deadline.Before(complete.Add(bounds.WorkTimeout)),
			"the work may last until %v, less than %v from %v", deadline, bounds.WorkTimeout, complete)
	default:
		t.Error("the handler was not called")
	}
	expect(t, receive(t, send(t, address, "POST /uploads"+rest+"11\r\n\r\nfirst+last+")), "HTTP/1.1 413 ")
}

// A client that reads a response byte by byte is closed by WRITE_TIMEOUT.
func TestSlowReaderIsClosed(t *testing.T) {
	t.Parallel()
	bounds := limitsWith(func(l *httpserver.Limits) { l.WriteTimeout = 50 * time.Millisecond })
	large := make([]byte, 64<<20) // more than the socket buffers hold
	server := httpserver.Options{Log: silent(), Limits: bounds}.NewServer(func(rc *fasthttp.RequestCtx) { rc.Response.SetBodyRaw(large) })
	closed := make(chan struct{})
	server.ConnState = func(_ net.Conn, state fasthttp.ConnState) {
		if state == fasthttp.StateClosed {
			close(closed)
		}
	}
	conn := send(t, serveTCP(t, server), "GET / HTTP/1.1\r\nHost: veneer.test\r\n\r\n")

	read, byteAtATime := int64(0), make([]byte, 1)
	for open := true; open; {
		n := testenv.Must(conn.Read(byteAtATime))(t)
		read += int64(n)
		select {
		case <-closed:
			open = false
		default:
		}
	}
	rest, _ := io.Copy(io.Discard, conn) // what was in flight; it may end in a reset
	if read += rest; read >= int64(len(large)) {
		t.Errorf("the reader got all %d bytes", read)
	}
}

// A multipart body is read by the handler like any other, byte for byte.
func TestMultipartIsNotParsed(t *testing.T) {
	t.Parallel()
	opts := httpserver.Options{Log: silent(), Limits: limits()}
	listener := start(t, opts.NewServer(bodyHandler(opts, 1024, 0, func(rc *fasthttp.RequestCtx) { rc.SetBody(rc.PostBody()) })))
	const body = "no multipart at all"
	answer := exchangeRaw(t, listener, "POST / HTTP/1.1\r\nHost: veneer.test\r\nConnection: close\r\n"+
		"Content-Type: multipart/form-data; boundary=x\r\n"+fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body))+body)
	expect(t, answer, "HTTP/1.1 200 ", "\r\n\r\n"+body)
}

func TestWorkTimeout(t *testing.T) {
	t.Parallel()
	opts := httpserver.Options{Log: silent(), Limits: limitsWith(func(l *httpserver.Limits) { l.WorkTimeout = time.Millisecond })}
	work := func(ctx context.Context, _ *fasthttp.RequestCtx) error {
		<-ctx.Done()
		return fmt.Errorf("read a texture: %w", ctx.Err())
	}
	for _, handler := range []fasthttp.RequestHandler{opts.Handle(work), opts.HandleNoContext(func(rc *fasthttp.RequestCtx) error {
		ctx, cancel := opts.RequestContext(rc)
		defer cancel()
		return work(ctx, rc)
	})} {
		expect(t, getPath(t, start(t, opts.NewServer(handler)), "/", ""), "HTTP/1.1 503 ", `"code":9`, "Retry-After: 1\r\n")
	}
}

func TestFaultCausedByDeadline(t *testing.T) {
	t.Parallel()
	opts := httpserver.Options{Log: silent(), Limits: limits()}
	listener := start(t, opts.NewServer(opts.Handle(func(context.Context, *fasthttp.RequestCtx) error {
		return &fault.Error{Kind: fault.NotFound, Message: "There is no such thing.", Cause: context.DeadlineExceeded}
	})))
	expect(t, getPath(t, listener, "/", ""), "HTTP/1.1 404 ", `"code":3`)
}

func TestOperatorServer(t *testing.T) {
	t.Parallel()
	errDown := errors.New("the database is down")
	health := httpserver.NewHealth(httpserver.Check{Name: "postgres", Probe: func(context.Context) error { return errDown }})
	listener := start(t, httpserver.OperatorServer(httpserver.Options{Log: silent(), Limits: limits()}, health, prometheus.NewRegistry(), false))

	expect(t, getPath(t, listener, "/livez", ""), "HTTP/1.1 200 ", `{"live":true}`, "Cache-Control: no-store\r\n", "X-Content-Type-Options: nosniff\r\n", "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n")
	expect(t, getPath(t, listener, "/readyz", ""), "HTTP/1.1 503 ", `{"ready":false,"checks":{"postgres":"the database is down"}}`)
	expect(t, getPath(t, listener, "/metrics", ""), "HTTP/1.1 200 ", "text/plain", `veneer_error_responses_total{code="3",kind="not_found",status="404"}`,
		`veneer_requests_total{listener="operators",route="GET /livez",status="2xx"}`,
		`veneer_build_info{go_version="go1.`, `,version="`, `veneer_request_seconds_bucket{listener="operators",route="GET /livez",le="+Inf"}`)
	expect(t, getPath(t, listener, "/nothing", ""), "HTTP/1.1 404 ", `"code":3`)
}

// Balancers time out after a second. A program that was ready answers before that, though a
// dependency hangs.
func TestReadyWhileADependencyHangs(t *testing.T) {
	t.Parallel()
	var hangs atomic.Bool
	probe := func(ctx context.Context) error {
		if hangs.Load() {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}
	health := httpserver.NewHealth(httpserver.Check{Name: "postgres", Probe: probe}, httpserver.Check{Name: "objects", Probe: func(context.Context) error { return nil }})
	listener := start(t, httpserver.OperatorServer(httpserver.Options{Log: silent(), Limits: limits()}, health, prometheus.NewRegistry(), false))

	expect(t, getPath(t, listener, "/readyz", ""), "HTTP/1.1 200 ")
	hangs.Store(true)
	expect(t, getPath(t, listener, "/readyz", ""), "HTTP/1.1 200 ", `{"ready":true,"checks":{"objects":"ok","postgres":"no answer within 500ms"}}`)
}

func TestProfilesOnLoopbackOnly(t *testing.T) {
	t.Parallel()
	f := func(peer string, forAll bool, want int) {
		t.Helper()
		rc := exchange(&net.TCPAddr{IP: net.ParseIP(peer), Port: 1})
		rc.Request.SetRequestURI("/debug/pprof/cmdline")
		httpserver.OperatorServer(httpserver.Options{Log: silent(), Limits: limits()}, httpserver.NewHealth(), prometheus.NewRegistry(), forAll).Handler(rc)
		testenv.Equal(t, rc.Response.StatusCode(), want,
			"profiles for %s, for all: %t, are answered with", peer, forAll)
	}

	f("127.0.0.1", false, 200)
	f("::1", false, 200)
	f("192.0.2.1", false, 403)
	f("192.0.2.1", true, 200)
}

// tlsClient returns the client's end of a connection with TLS. P-256 is in assembly: other curves take most of the
// time of tests with the race detector.
func tlsClient(conn net.Conn) *tls.Conn {
	return tls.Client(conn, &tls.Config{InsecureSkipVerify: true, CurvePreferences: []tls.CurveID{tls.CurveP256}})
}
