package origin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/edge/origin"
	"github.com/veneer-skins/veneer/edge/origin/origintest"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// recorder is a follower that records events.
type recorder struct {
	mu         sync.Mutex
	cursor     edgeproto.Cursor
	starts     []edgeproto.Cursor
	keys       []edgeproto.Key
	heartbeats int
	asOf       []time.Time // of the heartbeats
}

func (r *recorder) Cursor() edgeproto.Cursor {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cursor
}

func (r *recorder) Apply(event edgeproto.Event, asOf time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cursor = event.Cursor
	switch {
	case event.Start:
		r.starts = append(r.starts, event.Cursor)
	case event.IsHeartbeat():
		r.heartbeats++
		r.asOf = append(r.asOf, asOf)
	default:
		r.keys = append(r.keys, event.Keys...)
	}
	return nil
}

func (r *recorder) holds(ok func() bool) func() bool {
	return func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return ok()
	}
}

func TestFollow(t *testing.T) {
	t.Parallel()
	server := origintest.Start(t)
	core, r := newCore(t, origin.Config{URL: server.URL}, nil), &recorder{}
	background(t, func(ctx context.Context) { core.Follow(ctx, r) })

	testenv.Eventually(t, "a heartbeat arrives", r.holds(func() bool { return r.heartbeats > 0 }))
	server.Set(map[edgeproto.Key]edgeproto.Mapping{"name:a": texture(1), "name:b": {}})
	testenv.Eventually(t, "the change arrives", r.holds(func() bool { return len(r.keys) == 2 }))

	// After an outage the stream continues at the cursor.
	server.SetUnavailable(true)
	server.Set(map[edgeproto.Key]edgeproto.Mapping{"name:c": texture(1)})
	server.SetUnavailable(false)
	testenv.Eventually(t, "the missed change arrives", r.holds(func() bool { return len(r.keys) == 3 }))

	// Without the history since the cursor, the stream starts again.
	server.SetUnavailable(true)
	server.Set(map[edgeproto.Key]edgeproto.Mapping{"name:d": texture(1)})
	server.Trim()
	server.SetUnavailable(false)
	testenv.Eventually(t, "the trimmed stream begins", r.holds(func() bool { return len(r.starts) == 3 }))
	server.Restore("second")
	testenv.Eventually(t, "the restored stream begins", r.holds(func() bool { return len(r.starts) == 4 }))

	r.mu.Lock()
	defer r.mu.Unlock()
	wantStarts := []edgeproto.Cursor{
		{Epoch: "first", Revision: 100}, {Epoch: "first", Revision: 101}, {Epoch: "first", Revision: 103}, {Epoch: "second", Revision: 1},
	}
	cmptest.Same(t, r.starts, wantStarts, "starts")
	cmptest.Same(t, r.keys, []edgeproto.Key{"name:a", "name:b", "name:c"}, "keys")
	testenv.Equal(t, server.MaxStreams.Load(), 1, "streams were open at once")
}

// A failure of the stream may have broken the connections of look-ups as well.
func TestLostStreamClosesIdleConnections(t *testing.T) {
	t.Parallel()
	begun, end := make(chan struct{}, 2), make(chan struct{})
	var mu sync.Mutex
	var callers []string // addresses of look-ups
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == edgeproto.LookupPath {
			mu.Lock()
			callers = append(callers, r.RemoteAddr)
			mu.Unlock()
			_, _ = w.Write([]byte(`{"epoch":"e","revision":1,"mappings":[{}]}`))
			return
		}
		_ = json.NewEncoder(w).Encode(edgeproto.Event{Start: true})
		_ = http.NewResponseController(w).Flush()
		begun <- struct{}{}
		select {
		case <-end:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	core, r := startCore(t, origin.Config{URL: server.URL}, nil), &recorder{}
	background(t, func(ctx context.Context) { core.Follow(ctx, r) })
	lookUp := func() {
		if _, _, err := core.Lookup(t.Context(), "tid:1"); err != nil {
			t.Error(err)
		}
	}

	<-begun
	lookUp()
	lookUp()
	end <- struct{}{}
	<-begun // the next stream is opened when the last one is closed
	lookUp()
	mu.Lock()
	defer mu.Unlock()
	testenv.Check(t, len(callers) == 3 && callers[0] == callers[1] && callers[1] != callers[2],
		"look-ups came from %q; want the last from another connection", callers)
}

func TestSilentStreamIsReopened(t *testing.T) {
	t.Parallel()
	server := origintest.Start(t)
	core, r := newCore(t, origin.Config{URL: server.URL}, nil), &recorder{}
	background(t, func(ctx context.Context) { core.Follow(ctx, r) })
	testenv.Eventually(t, "a heartbeat arrives", r.holds(func() bool { return r.heartbeats > 0 }))
	server.SetSilent(true)
	testenv.Eventually(t, "another stream is opened", func() bool { return server.Streams.Load() > 1 })
	server.SetSilent(false)
	r.mu.Lock()
	heartbeats := r.heartbeats
	r.mu.Unlock()
	testenv.Eventually(t, "a heartbeat arrives again", r.holds(func() bool { return r.heartbeats > heartbeats }))
}

// The time of a heartbeat is never later than at core, however long it took to arrive, and
// never in the future. A heartbeat far in the future ends the stream.
func TestHeartbeatTimes(t *testing.T) {
	t.Parallel()
	const late = 300 * time.Millisecond
	var streams atomic.Int64
	sent := make(chan time.Time)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		streams.Add(1)
		opened := time.Now()
		cursor := edgeproto.Cursor{Epoch: "e", Revision: 1}
		_ = json.NewEncoder(w).Encode(edgeproto.Event{Cursor: cursor, Start: true})
		send := func(asOf time.Time) {
			select {
			case sent <- asOf:
			case <-r.Context().Done():
			}
			_ = json.NewEncoder(w).Encode(edgeproto.Event{Cursor: cursor, AsOf: asOf.Sub(opened)})
			_ = http.NewResponseController(w).Flush()
		}
		asOf := time.Now()
		<-time.After(late)
		send(asOf)
		send(time.Now().Add(50 * time.Millisecond))
		send(time.Now().Add(time.Minute))
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	core, r := newCore(t, origin.Config{URL: server.URL}, nil), &recorder{}
	sentAt := time.Now()
	background(t, func(ctx context.Context) { core.Follow(ctx, r) })

	asOf := <-sent
	testenv.Eventually(t, "the heartbeat arrives", r.holds(func() bool { return r.heartbeats == 1 }))
	if got := r.asOf[0]; got.Before(sentAt) || got.After(asOf) {
		t.Errorf("the heartbeat of %v has the time %v; want it between %v and that", asOf, got, sentAt)
	}
	<-sent
	testenv.Eventually(t, "the next heartbeat arrives", r.holds(func() bool { return r.heartbeats == 2 }))
	if got := r.asOf[1]; got.After(time.Now()) {
		t.Errorf("the heartbeat of a fast clock has the time %v", got)
	}
	<-sent
	testenv.Eventually(t, "another stream is opened", func() bool { return streams.Load() == 2 })
	testenv.Check(t, r.holds(func() bool { return r.heartbeats == 2 })(), "a heartbeat of a minute from now is applied")
}

// A stream with heartbeats that are more than a second old is reopened.
func TestLateStreamIsReopened(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		cursor := edgeproto.Cursor{Epoch: "e", Revision: 1}
		_ = json.NewEncoder(w).Encode(edgeproto.Event{Cursor: cursor, Start: true})
		// Time passes, but the heartbeats keep the time of the start.
		for tick := time.NewTicker(20 * time.Millisecond); ; {
			_ = json.NewEncoder(w).Encode(edgeproto.Event{Cursor: cursor, AsOf: 1})
			_ = http.NewResponseController(w).Flush()
			select {
			case <-tick.C:
			case <-r.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	core, r := newCore(t, origin.Config{URL: server.URL}, nil), &recorder{}
	background(t, func(ctx context.Context) { core.Follow(ctx, r) })
	testenv.Eventually(t, "another stream is opened", func() bool { return requests.Load() > 1 })
}

func TestBadStreamIsReopened(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, lines string }{
		{"no JSON", "<html>\n"},
		{"no start", `{"epoch":"e","revision":1}` + "\n"},
		{"an endless line", `{"epoch":"` + strings.Repeat("e", 17<<20)},
		{"its end", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				requests.Add(1)
				_, _ = fmt.Fprint(w, test.lines)
			}))
			t.Cleanup(server.Close)
			core, r := newCore(t, origin.Config{URL: server.URL}, nil), &recorder{}
			background(t, func(ctx context.Context) { core.Follow(ctx, r) })
			testenv.Eventually(t, "it is retried", func() bool { return requests.Load() > 2 })
			testenv.Equal(t, r.Cursor(), edgeproto.Cursor{}, "the cursor after such a stream")
		})
	}
}
