package origin_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/veneer-skins/veneer/edge/origin"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// pipeListener is a listener of in-process connections, which work in a synctest bubble.
type pipeListener struct {
	dialed chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{dialed: make(chan net.Conn), closed: make(chan struct{})}
}

func (p *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.dialed <- far:
		return near, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-p.dialed:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipeListener) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

// A stream is reopened every ten minutes. Its request has the name of the last stream that
// had one, also after a failure and after streams without a name.
func TestStreamIsReopened(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type stream struct {
			After  time.Duration // since the test began, in whole seconds
			Former string
		}
		var mu sync.Mutex
		var streams []stream
		began, cursor := time.Now(), edgeproto.Cursor{Epoch: "e", Revision: 1}
		mux := http.NewServeMux()
		mux.HandleFunc("POST "+edgeproto.AcknowledgePath, func(http.ResponseWriter, *http.Request) {})
		mux.HandleFunc("GET "+edgeproto.ChangesPath, func(w http.ResponseWriter, r *http.Request) {
			opened := time.Now()
			mu.Lock()
			streams = append(streams, stream{opened.Sub(began).Truncate(time.Second), r.URL.Query().Get("former")})
			n := len(streams)
			mu.Unlock()
			start := edgeproto.Event{Cursor: cursor, Start: true}
			if n < 3 {
				start.Stream = "stream-" + strconv.Itoa(n)
			}
			lines := json.NewEncoder(w)
			_ = lines.Encode(start)
			for tick := time.NewTicker(200 * time.Millisecond); ; {
				if n == 3 && time.Since(opened) > time.Minute {
					return // the stream breaks
				}
				_ = lines.Encode(edgeproto.Event{Cursor: cursor, AsOf: time.Since(opened)})
				_ = http.NewResponseController(w).Flush()
				select {
				case <-tick.C:
				case <-r.Context().Done():
					return
				}
			}
		})
		listener := newPipeListener()
		server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
		go func() { _ = server.Serve(listener) }()
		defer func() { _ = server.Close() }()

		core := newCore(t, origin.Config{URL: "http://core"}, nil)
		core.SetDial(listener.dial)
		ctx, stop := context.WithCancel(t.Context())
		var following sync.WaitGroup
		following.Go(func() { core.Follow(ctx, &recorder{}) })
		<-time.After(25 * time.Minute)
		stop()
		following.Wait()

		mu.Lock()
		defer mu.Unlock()
		want := []stream{
			{0, ""}, {10 * time.Minute, "stream-1"}, {20 * time.Minute, "stream-2"}, {21 * time.Minute, "stream-2"},
		}
		cmptest.Same(t, streams, want, "streams")
	})
}

// probingFollower is a follower that checks at each event whether a look-up would be rejected.
type probingFollower struct {
	recorder

	core       *origin.Core
	rejections chan error
}

func (f *probingFollower) Apply(event edgeproto.Event, asOf time.Time) error {
	f.rejections <- f.core.WouldReject(edgeproto.UIDKey(1), netip.Prefix{})
	return f.recorder.Apply(event, asOf)
}

// A stream closes the circuit breaker before its first line is applied, as that may flush all
// cached mappings.
func TestStreamClosesBreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mux := http.NewServeMux()
		mux.HandleFunc("GET "+edgeproto.ChangesPath, func(w http.ResponseWriter, r *http.Request) {
			_ = json.NewEncoder(w).Encode(edgeproto.Event{Cursor: edgeproto.Cursor{Epoch: "e", Revision: 1}, Start: true})
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
		mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
		listener := newPipeListener()
		server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
		go func() { _ = server.Serve(listener) }()
		defer func() { _ = server.Close() }()

		follower := &probingFollower{core: newCore(t, origin.Config{URL: "http://core"}, nil), rejections: make(chan error, 1)}
		follower.core.SetDial(listener.dial)
		for tries := 0; follower.core.WouldReject(edgeproto.UIDKey(1), netip.Prefix{}) == nil; tries++ {
			if tries == 10 {
				t.Fatal("look-ups are not rejected, though core is unavailable")
			}
			done := make(chan error)
			follower.core.Probe(func(err error) { done <- err })
			if err := <-done; err == nil {
				t.Fatal("core is available")
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		var following sync.WaitGroup
		following.Go(func() { follower.core.Follow(ctx, follower) })
		testenv.Is(t, <-follower.rejections, nil, "at the stream's first line a look-up is rejected")
		stop()
		following.Wait()
	})
}
