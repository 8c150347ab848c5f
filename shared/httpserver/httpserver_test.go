package httpserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/cli"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// program is a run of two listeners: public and operators.
type program struct {
	addresses map[string]string // by listener, from the log
	stop      context.CancelFunc
	ended     chan error
}

// launch runs the listeners on free ports until stop is called or the test ends.
func launch(t *testing.T, health *httpserver.Health, drain httpserver.Drain, stopping func(), public fasthttp.RequestHandler) *program {
	t.Helper()
	opts := httpserver.Options{Log: silent(), Limits: limits()}
	ctx, cancel := context.WithCancel(t.Context())
	p := &program{addresses: map[string]string{}, stop: cancel, ended: make(chan error, 1)}
	lines, out := io.Pipe()
	go func() {
		listeners, err := httpserver.Open(ctx, slog.New(slog.NewJSONHandler(out, nil)), nil,
			httpserver.Listener{Name: "public", Address: "127.0.0.1:0", Server: opts.NewServer(public)},
			httpserver.Listener{Name: "operators", Address: "127.0.0.1:0", Server: httpserver.OperatorServer(opts, health, prometheus.NewRegistry(), false)},
		)
		if err == nil {
			err = listeners.Run(ctx, slog.New(slog.NewJSONHandler(out, nil)), health, drain, stopping)
		}
		p.ended <- err
		_ = out.Close()
	}()
	scanner := bufio.NewScanner(lines)
	for len(p.addresses) < 2 && scanner.Scan() {
		var line struct{ Msg, Listener, Address string }
		testenv.Do(t, json.Unmarshal(scanner.Bytes(), &line))
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
	testenv.Do(t, err)
	return status
}

// opsListener has the address of a program's operators' listener.
type opsListener struct {
	Listen httpserver.Address `env:"LISTEN,required" help:"where"`
}

// runHealth runs the command health of a program with an operators' listener at an address.
func runHealth(t *testing.T, address string) error {
	t.Helper()
	command := httpserver.HealthCommand("test", "TEST_", func(l opsListener) httpserver.Address { return l.Listen })
	return command.Run(t.Context(), cli.Invocation{Environ: []string{"TEST_LISTEN=" + address}, Stdout: io.Discard})
}

func TestReadyOnceReadyUntilItDrains(t *testing.T) {
	t.Parallel()
	var probeErr atomic.Pointer[error]
	set := func(err error) { probeErr.Store(&err) }
	health := httpserver.NewHealth(
		httpserver.Check{Name: "postgres", Probe: func(context.Context) error { return *probeErr.Load() }},
		httpserver.Check{Name: "objects", Optional: true, Probe: func(context.Context) error { return errors.New("down") }},
	)
	set(errors.New("not yet"))
	drain := httpserver.Drain{Wait: time.Minute, Timeout: time.Minute}
	p := launch(t, health, drain, nil, func(*fasthttp.RequestCtx) {})
	f := func(moment string, status int, want string) {
		t.Helper()
		got, body, err := fasthttp.Get(nil, "http://"+p.addresses["operators"]+"/readyz")
		testenv.Check(t, err == nil && got == status && string(body) == want,
			"%s, /readyz is %d %s, %v; want %d %s", moment, got, body, err, status, want)
	}

	f("at first", 503, `{"ready":false,"checks":{"objects":"down","postgres":"not yet"}}`)
	testenv.ErrorHas(t, runHealth(t, p.addresses["operators"]), "not yet", "health")
	set(nil)
	f("once the database answers", 200, `{"ready":true,"checks":{"objects":"down","postgres":"ok"}}`)
	testenv.Is(t, runHealth(t, p.addresses["operators"]), nil, "health")
	set(errors.New("lost"))
	f("when the database is lost", 200, `{"ready":true,"checks":{"objects":"down","postgres":"lost"}}`)
	set(nil)
	p.stop()
	for p.readiness(t) != 503 {
		continue
	}
	f("when it drains", 503, `{"ready":false,"draining":true,"checks":{"objects":"down","postgres":"ok"}}`)
}

// The order of a shutdown: first /readyz fails while requests are still accepted, then the
// listeners close, then requests in flight finish.
func TestRunDrains(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	stopping := make(chan struct{})
	health := httpserver.NewHealth()
	p := launch(t, health, httpserver.Drain{Wait: 2 * time.Second, Timeout: time.Minute}, func() { close(stopping) }, func(rc *fasthttp.RequestCtx) {
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
	// A connection that stays open could be closed just as its next request is sent.
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
	for { // the listeners close at the same time, but in another goroutine
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
	testenv.Is(t, <-slow, nil, "the request in flight")
	testenv.Is(t, <-p.ended, nil, "Run")
}

func TestRunNamesListenerOfCutRequests(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(release) })
	p := launch(t, httpserver.NewHealth(), httpserver.Drain{Timeout: time.Second}, nil, func(*fasthttp.RequestCtx) {
		close(arrived)
		<-release
	})
	go func() { _, _, _ = fasthttp.Get(nil, "http://"+p.addresses["public"]) }()
	<-arrived
	p.stop()
	testenv.ErrorHas(t, <-p.ended, "public", "Run")
}

// A program that is stopped while it starts ends, whether its servers serve already or not.
func TestRunEndsWhileStarting(t *testing.T) {
	t.Parallel()
	for range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		listeners := testenv.Must(httpserver.Open(ctx, silent(), nil,
			httpserver.Listener{Name: "public", Address: "127.0.0.1:0", Server: &fasthttp.Server{}},
			httpserver.Listener{Name: "operators", Address: "127.0.0.1:0", Server: &fasthttp.Server{}},
		))(t)
		cancel()
		testenv.Do(t, listeners.Run(ctx, silent(), httpserver.NewHealth(), httpserver.Drain{Timeout: time.Minute}, nil))
	}
}

func TestOpenAllOrNone(t *testing.T) {
	t.Parallel()
	busy := testenv.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = busy.Close() })
	busyPort := netip.MustParseAddrPort(busy.Addr().String()).Port()
	free := testenv.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	first := free.Addr().String()
	_ = free.Close()
	f := func(address, want string) {
		t.Helper()
		_, err := httpserver.Open(t.Context(), silent(), nil,
			httpserver.Listener{Setting: "X_LISTEN", Address: httpserver.Address(first)},
			httpserver.Listener{Setting: "X_OPS_LISTEN", Address: httpserver.Address(address)},
		)
		testenv.Check(t, err != nil && err.Error() == want, "listening at %q: %v; want %q", address, err, want)
		if conn, err := net.Dial("tcp", first); err == nil {
			_ = conn.Close()
			t.Errorf("the first listener stays open when the second cannot listen at %q", address)
		}
	}

	f(busy.Addr().String(), fmt.Sprintf("X_OPS_LISTEN is %s, which is taken by another program: stop it, or choose another address, as in X_OPS_LISTEN=127.0.0.1:%d",
		busy.Addr(), busyPort+100))
	f(first, fmt.Sprintf("X_OPS_LISTEN is %[1]s, which is taken by X_LISTEN=%[1]s: each needs an address of its own", first))
	f(strings.Replace(first, "127.0.0.1", "0.0.0.0", 1), fmt.Sprintf("X_OPS_LISTEN is %s, which is taken by X_LISTEN=%s: each needs an address of its own",
		strings.Replace(first, "127.0.0.1", "0.0.0.0", 1), first))
	f("192.0.2.1:8080", "X_OPS_LISTEN is 192.0.2.1:8080, but no interface of this machine has that address")
	f("nowhere.invalid:8080", "X_OPS_LISTEN is nowhere.invalid:8080, but that name has no address")
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for _, right := range []string{"127.0.0.1:8080", ":8080", "[::1]:8080", "[fe80::1%eth0]:8080", "localhost:0", "core.example.org:65535"} {
		var address httpserver.Address
		err := address.UnmarshalText([]byte(right))
		testenv.Check(t, err == nil && string(address) == right, "%q: %q, %v", right, address, err)
	}
	f := func(wrong, want string) {
		t.Helper()
		err := new(httpserver.Address).UnmarshalText([]byte(wrong))
		testenv.Check(t, err != nil && err.Error() == want, "%q: %v; want %q", wrong, err, want)
	}
	const form = ", but must be an address and a port, as in 127.0.0.1:8080 or [::1]:8080"
	f("", `is ""`+form)
	f("127.0.0.1", `is "127.0.0.1"`+form)
	f("8080", `is "8080"`+form)
	f("::1:8080", `is "::1:8080"`+form)
	f("http://127.0.0.1:8080", `is "http://127.0.0.1:8080"`+form)
	f("127.0.0.1:http", `is "127.0.0.1:http", but its port must be a number from 0 to 65535`)
	f("127.0.0.1:65536", `is "127.0.0.1:65536", but its port must be a number from 0 to 65535`)
	f("127.0.0.1:-1", `is "127.0.0.1:-1", but its port must be a number from 0 to 65535`)
	f("127.0.0.1:", `is "127.0.0.1:", but its port must be a number from 0 to 65535`)
	f("256.0.0.1:8080", `is "256.0.0.1:8080", but "256.0.0.1" is neither an IP address nor a name`)
	f("*:8080", `is "*:8080", but "*" is neither an IP address nor a name`)
	f("my host:8080", `is "my host:8080", but "my host" is neither an IP address nor a name`)
}

func TestHealthNamesTheAddress(t *testing.T) {
	t.Parallel()
	closed := testenv.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	address := closed.Addr().String()
	_ = closed.Close()
	testenv.ErrorHas(t, runHealth(t, address), address, "health at a closed port")
}
