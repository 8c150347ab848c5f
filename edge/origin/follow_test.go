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

	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/edge/origin"
	"github.com/veneer-skins/veneer/edge/origin/origintest"
	"github.com/veneer-skins/veneer/shared/edgeproto"
)

// recorder is a follower that writes down what it hears.
type recorder struct {
	mu         sync.Mutex
	position   edgeproto.Cursor
	starts     []edgeproto.Cursor
	keys       []edgeproto.Key
	heartbeats int
	asOf       []time.Time // as of which the beats were true
}

func (r *recorder) Cursor() edgeproto.Cursor {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.position
}

func (r *recorder) Apply(event edgeproto.Event, asOf time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.position = event.Cursor
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

	eventually(t, "a beat is heard", r.holds(func() bool { return r.heartbeats > 0 }))
	server.Set(map[edgeproto.Key]edgeproto.Mapping{"name:a": texture(1), "name:b": {}})
	eventually(t, "the change is heard", r.holds(func() bool { return len(r.keys) == 2 }))

	// Away for a while: the stream goes on from where it was.
	server.SetUnavailable(true)
	server.Set(map[edgeproto.Key]edgeproto.Mapping{"name:c": texture(1)})
	server.SetUnavailable(false)
	eventually(t, "the missed change is heard", r.holds(func() bool { return len(r.keys) == 3 }))

	// A history that is lost: the stream begins anew.
	server.SetUnavailable(true)
	server.Set(map[edgeproto.Key]edgeproto.Mapping{"name:d": texture(1)})
	server.Trim()
	server.SetUnavailable(false)
	eventually(t, "the trimmed stream begins", r.holds(func() bool { return len(r.starts) == 3 }))
	server.Restore("second")
	eventually(t, "the restored stream begins", r.holds(func() bool { return len(r.starts) == 4 }))

	r.mu.Lock()
	defer r.mu.Unlock()
	wantStarts := []edgeproto.Cursor{
		{Epoch: "first", Revision: 100}, {Epoch: "first", Revision: 101}, {Epoch: "first", Revision: 103}, {Epoch: "second", Revision: 1},
	}
	if diff := cmp.Diff(wantStarts, r.starts); diff != "" {
		t.Errorf("starts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]edgeproto.Key{"name:a", "name:b", "name:c"}, r.keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	if got := server.MaxStreams.Load(); got != 1 {
		t.Errorf("%d streams were open at once; want 1", got)
	}
}

// What broke the stream may have broken the connections of look-ups too.
func TestLostStreamClosesIdleConnections(t *testing.T) {
	t.Parallel()
	begun, end := make(chan struct{}, 2), make(chan struct{})
	var mu sync.Mutex
	var callers []string // of look-ups
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
	ask := func() {
		if _, _, err := core.Lookup(t.Context(), "tid:1"); err != nil {
			t.Error(err)
		}
	}

	<-begun
	ask()
	ask()
	end <- struct{}{}
	<-begun // the next one is opened when all is done about the last one
	ask()
	mu.Lock()
	defer mu.Unlock()
	if len(callers) != 3 || callers[0] != callers[1] || callers[1] == callers[2] {
		t.Errorf("look-ups came from %q; want the last from another connection", callers)
	}
}

func TestSilentStreamIsReopened(t *testing.T) {
	t.Parallel()
	server := origintest.Start(t)
	core, r := newCore(t, origin.Config{URL: server.URL}, nil), &recorder{}
	background(t, func(ctx context.Context) { core.Follow(ctx, r) })
	eventually(t, "a beat is heard", r.holds(func() bool { return r.heartbeats > 0 }))
	server.SetSilent(true)
	eventually(t, "another stream is opened", func() bool { return server.Streams.Load() > 1 })
	server.SetSilent(false)
	r.mu.Lock()
	heartbeats := r.heartbeats
	r.mu.Unlock()
	eventually(t, "a beat is heard again", r.holds(func() bool { return r.heartbeats > heartbeats }))
}

// The moment of a beat is never later than core meant it, whatever its way here
// was like, and never in the future. A beat from far in the future vouches for
// nothing, and ends the stream.
func TestHeartbeatTimes(t *testing.T) {
	t.Parallel()
	const late = 300 * time.Millisecond
	var streams atomic.Int64
	sent := make(chan time.Time)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		streams.Add(1)
		opened := time.Now()
		position := edgeproto.Cursor{Epoch: "e", Revision: 1}
		_ = json.NewEncoder(w).Encode(edgeproto.Event{Cursor: position, Start: true})
		send := func(moment time.Time) {
			select {
			case sent <- moment:
			case <-r.Context().Done():
			}
			_ = json.NewEncoder(w).Encode(edgeproto.Event{Cursor: position, AsOf: moment.Sub(opened)})
			_ = http.NewResponseController(w).Flush()
		}
		moment := time.Now()
		<-time.After(late)
		send(moment)
		send(time.Now().Add(50 * time.Millisecond))
		send(time.Now().Add(time.Minute))
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	core, r := newCore(t, origin.Config{URL: server.URL}, nil), &recorder{}
	asked := time.Now()
	background(t, func(ctx context.Context) { core.Follow(ctx, r) })

	moment := <-sent
	eventually(t, "the beat is heard", r.holds(func() bool { return r.heartbeats == 1 }))
	if got := r.asOf[0]; got.Before(asked) || got.After(moment) {
		t.Errorf("the beat of %v is taken for one of %v; want it between %v and that", moment, got, asked)
	}
	<-sent
	eventually(t, "the next beat is heard", r.holds(func() bool { return r.heartbeats == 2 }))
	if got := r.asOf[1]; got.After(time.Now()) {
		t.Errorf("the beat of a clock that runs fast is taken for one of %v", got)
	}
	<-sent
	eventually(t, "another stream is opened", func() bool { return streams.Load() == 2 })
	if !r.holds(func() bool { return r.heartbeats == 2 })() {
		t.Error("a beat of a minute from now is believed")
	}
}

// A stream whose beats are always a second old is as good as none.
func TestLateStreamIsReopened(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		position := edgeproto.Cursor{Epoch: "e", Revision: 1}
		_ = json.NewEncoder(w).Encode(edgeproto.Event{Cursor: position, Start: true})
		// Time passes, but the beats say what was true in the beginning.
		for tick := time.NewTicker(20 * time.Millisecond); ; {
			_ = json.NewEncoder(w).Encode(edgeproto.Event{Cursor: position, AsOf: 1})
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
	eventually(t, "another stream is opened", func() bool { return asked.Load() > 1 })
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
			var asked atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked.Add(1)
				_, _ = fmt.Fprint(w, test.lines)
			}))
			t.Cleanup(server.Close)
			core, r := newCore(t, origin.Config{URL: server.URL}, nil), &recorder{}
			background(t, func(ctx context.Context) { core.Follow(ctx, r) })
			eventually(t, "it is tried again", func() bool { return asked.Load() > 2 })
			if r.Cursor() != (edgeproto.Cursor{}) {
				t.Errorf("such a stream moved the position to %+v", r.Cursor())
			}
		})
	}
}
