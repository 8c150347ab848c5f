package serve_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/serve"
)

// program is a run of serve.Run with a public and an operators' listener.
type program struct {
	addresses map[string]string // by listener, as the log tells
	stop      context.CancelFunc
	ended     chan error
}

// launch runs listeners at free ports until the test, or stop, ends it.
func launch(t *testing.T, health *serve.Health, drain serve.Drain, stopping func(), public fasthttp.RequestHandler) *program {
	t.Helper()
	door := serve.Door{Log: silent(), Limits: limits()}
	ctx, cancel := context.WithCancel(t.Context())
	p := &program{addresses: map[string]string{}, stop: cancel, ended: make(chan error, 1)}
	lines, out := io.Pipe()
	go func() {
		p.ended <- serve.Run(ctx, slog.New(slog.NewJSONHandler(out, nil)), health, drain, stopping,
			serve.Listener{Name: "public", Address: "127.0.0.1:0", Server: door.Server(public, 1024)},
			serve.Listener{Name: "operators", Address: "127.0.0.1:0", Server: serve.OperatorServer(door, health, false)},
		)
		_ = out.Close()
	}()
	scanner := bufio.NewScanner(lines)
	for len(p.addresses) < 2 && scanner.Scan() {
		var line struct{ Msg, Listener, Address string }
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if line.Msg == "listening" {
			p.addresses[line.Listener] = line.Address
		}
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	return p
}

// readiness returns the status of /readyz.
func (p *program) readiness(t *testing.T) int {
	t.Helper()
	status, _, err := fasthttp.Get(nil, "http://"+p.addresses["operators"]+"/readyz")
	if err != nil {
		t.Fatal(err)
	}
	return status
}

func TestReadyOnceReadyUntilItDrains(t *testing.T) {
	t.Parallel()

	var trouble atomic.Pointer[error]
	set := func(err error) { trouble.Store(&err) }
	health := serve.NewHealth(
		serve.Check{Name: "postgres", Probe: func(context.Context) error { return *trouble.Load() }},
		serve.Check{Name: "objects", Optional: true, Probe: func(context.Context) error { return errors.New("away") }},
	)
	set(errors.New("not yet"))
	drain := serve.Drain{Wait: time.Minute, Timeout: time.Minute}
	p := launch(t, health, drain, nil, func(*fasthttp.RequestCtx) {})
	f := func(moment string, status int, want string) {
		t.Helper()
		got, body, err := fasthttp.Get(nil, "http://"+p.addresses["operators"]+"/readyz")
		if err != nil || got != status || string(body) != want {
			t.Errorf("%s, /readyz is %d %s, %v; want %d %s", moment, got, body, err, status, want)
		}
	}

	f("at first", 503, `{"ready":false,"checks":{"objects":"away","postgres":"not yet"}}`)
	if err := serve.Probe(p.addresses["operators"]); err == nil || !strings.Contains(err.Error(), "not yet") {
		t.Errorf("Probe says %v; want it to say why", err)
	}
	set(nil)
	f("once the database answers", 200, `{"ready":true,"checks":{"objects":"away","postgres":"ok"}}`)
	if err := serve.Probe(p.addresses["operators"]); err != nil {
		t.Errorf("Probe: %v", err)
	}
	set(errors.New("lost"))
	f("when the database is lost", 200, `{"ready":true,"checks":{"objects":"away","postgres":"lost"}}`)
	set(nil)
	p.stop()
	for p.readiness(t) != 503 {
		continue
	}
	f("when it drains", 503, `{"ready":false,"draining":true,"checks":{"objects":"away","postgres":"ok"}}`)
}

// The order of an end: first /readyz fails while requests are still taken, then
// the listeners close, then what is in flight finishes.
func TestRunDrains(t *testing.T) {
	t.Parallel()

	arrived, release := make(chan struct{}), make(chan struct{})
	stopping := make(chan struct{})
	health := serve.NewHealth()
	p := launch(t, health, serve.Drain{Wait: 2 * time.Second, Timeout: time.Minute}, func() { close(stopping) }, func(rc *fasthttp.RequestCtx) {
		if string(rc.Path()) == "/slow" {
			close(arrived)
			<-release
		}
		rc.SetBodyString("done")
	})
	public := "http://" + p.addresses["public"]
	if got := p.readiness(t); got != 200 {
		t.Fatalf("/readyz is %d before the drain", got)
	}

	slow := make(chan error, 1)
	go func() {
		status, body, err := fasthttp.Get(nil, public+"/slow")
		if err == nil && (status != 200 || string(body) != "done") {
			err = errors.New(string(body))
		}
		slow <- err
	}()
	<-arrived
	p.stop()
	for p.readiness(t) != 503 {
		continue
	}
	// A connection that stays open would be closed just as a request is on its way.
	expect(t, receive(t, send(t, p.addresses["public"], get)), "HTTP/1.1 200 ", "Connection: close\r\n", "done")
	if _, body, err := fasthttp.Get(nil, public+"/"); err != nil || string(body) != "done" {
		t.Errorf("between failing /readyz and closing the listeners, a request gets %q, %v", body, err)
	}
	select {
	case <-stopping:
		t.Error("endless answers are stopped before the listeners close")
	default:
	}

	<-stopping
	for { // the listeners close at the same moment, but not in this goroutine
		conn, err := net.Dial("tcp", p.addresses["public"])
		if errors.Is(err, syscall.ECONNREFUSED) {
			break
		}
		if err == nil {
			_ = conn.Close()
		}
	}
	select {
	case err := <-p.ended:
		t.Fatalf("Run returned %v with a request in flight", err)
	case err := <-slow:
		t.Fatalf("the request in flight ended with %v", err)
	default:
	}
	close(release)
	if err := <-slow; err != nil {
		t.Errorf("the request in flight: %v", err)
	}
	if err := <-p.ended; err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestRunSaysWhoseRequestsItCutOff(t *testing.T) {
	t.Parallel()

	arrived, release := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(release) })
	p := launch(t, serve.NewHealth(), serve.Drain{Timeout: 10 * time.Millisecond}, nil, func(*fasthttp.RequestCtx) {
		close(arrived)
		<-release
	})
	go func() { _, _, _ = fasthttp.Get(nil, "http://"+p.addresses["public"]) }()
	<-arrived
	p.stop()
	if err := <-p.ended; err == nil || !strings.Contains(err.Error(), "public") {
		t.Errorf("Run: %v; want an error that names the listener", err)
	}
}

func TestRunListensEverywhereOrNowhere(t *testing.T) {
	t.Parallel()

	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	f := func(address, want string) {
		t.Helper()
		free, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		first := free.Addr().String()
		_ = free.Close()
		err = serve.Run(t.Context(), silent(), serve.NewHealth(), serve.Drain{}, nil,
			serve.Listener{Name: "public", Address: first, Server: &fasthttp.Server{}},
			serve.Listener{Name: "operators", Address: address, Server: &fasthttp.Server{}},
		)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("listening at %q: %v; want an error with %q", address, err, want)
		}
		if conn, err := net.Dial("tcp", first); err == nil {
			_ = conn.Close()
			t.Errorf("the public listener stays open when the operators' cannot listen at %q", address)
		}
	}

	f(taken.Addr().String(), "operators listener")
	f("", "the operators listener has no address")
	f("127.0.0.1:notaport", "operators listener")
}

func TestProbeNamesTheAddress(t *testing.T) {
	t.Parallel()

	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := closed.Addr().String()
	_ = closed.Close()
	if err := serve.Probe(address); err == nil || !strings.Contains(err.Error(), address) {
		t.Errorf("Probe of a closed port: %v; want an error that names it", err)
	}
}
