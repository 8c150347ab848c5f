// Package origintest is a fake core for tests of edges. It implements the protocol of package
// edgeproto on a real socket; tests set its mappings, history and failures.
package origintest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/skin"
)

// Secret is the secret that an edge must send.
const Secret = "the-secret-of-a-test"

// Core is a fake core.
type Core struct {
	URL string
	// Lookups, Keys and Streams count the look-ups, the keys in them, and the streams that
	// were opened. MaxStreams is the maximum number of open streams.
	Lookups, Keys, Streams, MaxStreams atomic.Int64
	// Stream, unless empty, is the name of every stream, and so requests acknowledgements.
	Stream string
	// Acknowledgements counts the accepted acknowledgements.
	Acknowledgements atomic.Int64

	mu                      sync.Mutex
	onLookup                func(keys []edgeproto.Key)
	cursor                  edgeproto.Cursor
	oldest                  int64 // the first revision of the history
	mappings                map[edgeproto.Key]edgeproto.Mapping
	changes                 []edgeproto.Event
	liked                   []skin.Hash
	changed                 chan struct{} // closed and replaced at every change of the state
	unavailable             bool
	silent                  bool
	rejectsAcknowledgements bool
	cuts                    int // incremented to end all streams
	openStreams             int64
	acknowledged            edgeproto.Cursor // last
}

// Start starts a core that is stopped when the test ends.
func Start(tb testing.TB) *Core {
	tb.Helper()
	c := &Core{
		cursor:   edgeproto.Cursor{Epoch: "first", Revision: 100},
		oldest:   100,
		mappings: map[edgeproto.Key]edgeproto.Mapping{},
		changed:  make(chan struct{}),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+edgeproto.LookupPath, c.lookup)
	mux.HandleFunc("GET "+edgeproto.ChangesPath, c.stream)
	mux.HandleFunc("POST "+edgeproto.AcknowledgePath, c.acknowledge)

	mux.HandleFunc("GET "+edgeproto.LikedPath, c.mostLiked)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+Secret {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	tb.Cleanup(func() {
		c.SetUnavailable(true)
		server.Close()
	})
	c.URL = server.URL
	return c
}

// Set changes mappings in one revision.
func (c *Core) Set(changes map[edgeproto.Key]edgeproto.Mapping) {
	c.update(func() {
		c.cursor.Revision++
		event := edgeproto.Event{Cursor: c.cursor}
		for key, value := range changes {
			c.mappings[key] = value
			event.Keys = append(event.Keys, key)
		}
		slices.Sort(event.Keys)
		c.changes = append(c.changes, event)
	})
}

// Trim deletes the history, as core does after a day.
func (c *Core) Trim() {
	c.update(func() { c.changes, c.oldest = nil, c.cursor.Revision })
}

// Restore starts a new epoch, as after the restore of a backup.
func (c *Core) Restore(epoch string) {
	c.update(func() {
		c.cursor = edgeproto.Cursor{Epoch: epoch, Revision: 1}
		c.changes, c.oldest = nil, 1
	})
}

// SetUnavailable makes core fail all requests and ends its streams, or undoes that.
func (c *Core) SetUnavailable(unavailable bool) {
	c.update(func() {
		c.unavailable = unavailable
		c.cuts++
	})
}

// SetSilent makes core send nothing on its streams, which stay open.
func (c *Core) SetSilent(silent bool) { c.update(func() { c.silent = silent }) }

// SetOnLookup sets a function that is called before each response to a look-up.
func (c *Core) SetOnLookup(onLookup func(keys []edgeproto.Key)) {
	c.update(func() { c.onLookup = onLookup })
}

// SetLiked sets the most liked textures. Before that, core does not have the endpoint.
func (c *Core) SetLiked(hashes []skin.Hash) { c.update(func() { c.liked = hashes }) }

func (c *Core) update(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *Core) lookup(w http.ResponseWriter, r *http.Request) {
	var request edgeproto.LookupRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil || len(request.Keys) > edgeproto.MaxKeys {
		w.WriteHeader(http.StatusUnprocessableEntity)
		return
	}
	c.Lookups.Add(1)
	c.Keys.Add(int64(len(request.Keys)))
	c.mu.Lock()
	onLookup := c.onLookup
	c.mu.Unlock()
	if onLookup != nil {
		onLookup(request.Keys)
	}
	c.mu.Lock()
	unavailable, response := c.unavailable, edgeproto.LookupResponse{Cursor: c.cursor}
	for _, key := range request.Keys {
		response.Mappings = append(response.Mappings, c.mappings[key])
	}
	c.mu.Unlock()
	if unavailable {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	_ = json.NewEncoder(w).Encode(response)
}

func (c *Core) mostLiked(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	liked := c.liked
	c.mu.Unlock()
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	switch {
	case liked == nil:
		w.WriteHeader(http.StatusNotFound)
	case err != nil || limit < 1 || limit > edgeproto.MaxLiked:
		w.WriteHeader(http.StatusUnprocessableEntity)
	default:
		_ = json.NewEncoder(w).Encode(edgeproto.LikedTextures{Hashes: liked[:min(limit, len(liked))]})
	}
}

func (c *Core) stream(w http.ResponseWriter, r *http.Request) {
	c.Streams.Add(1)
	opened := time.Now()
	from := edgeproto.Cursor{Epoch: r.URL.Query().Get("epoch")}
	from.Revision, _ = strconv.ParseInt(r.URL.Query().Get("revision"), 10, 64)
	from, cuts, ok := c.beginStream(from)
	if !ok {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	defer c.endStream()

	lines := json.NewEncoder(w)
	_ = lines.Encode(edgeproto.Event{Cursor: from, Start: true, Stream: c.Stream})
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		events, changed, ok := c.eventsAfter(from, cuts, opened)
		if !ok {
			return
		}
		for _, event := range events {
			_ = lines.Encode(event)
			from = event.Cursor
		}
		if http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

func (c *Core) acknowledge(w http.ResponseWriter, r *http.Request) {
	var received edgeproto.Acknowledgement
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := json.NewDecoder(r.Body).Decode(&received); err != nil || received.Stream != c.Stream || c.rejectsAcknowledgements {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	c.Acknowledgements.Add(1)
	c.acknowledged = received.Cursor
	_, _ = w.Write([]byte("{}"))
}

// Applied returns the cursor of the last acknowledgement.
func (c *Core) Applied() edgeproto.Cursor {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.acknowledged
}

// SetAcknowledgementsRejected makes core reject acknowledgements, or undoes that.
func (c *Core) SetAcknowledgementsRejected(rejected bool) {
	c.update(func() { c.rejectsAcknowledgements = rejected })
}

// beginStream returns the start of a stream: the requested cursor, or the current one if the
// history does not go back that far.
func (c *Core) beginStream(from edgeproto.Cursor) (start edgeproto.Cursor, cuts int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unavailable {
		return from, 0, false
	}
	c.openStreams++
	c.MaxStreams.Store(max(c.MaxStreams.Load(), c.openStreams))
	if from.Epoch != c.cursor.Epoch || from.Revision < c.oldest || from.Revision > c.cursor.Revision {
		from = c.cursor
	}
	return from, c.cuts, true
}

func (c *Core) endStream() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.openStreams--
}

// eventsAfter returns the changes after a cursor, followed by a heartbeat, and a channel that
// is closed at the next change. It is not ok if the stream has ended.
func (c *Core) eventsAfter(from edgeproto.Cursor, cuts int, opened time.Time) (events []edgeproto.Event, changed <-chan struct{}, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cuts != cuts || c.cursor.Epoch != from.Epoch {
		return nil, nil, false
	}
	if c.silent {
		return nil, c.changed, true
	}
	for _, change := range c.changes {
		if change.Revision > from.Revision {
			events = append(events, change)
		}
	}
	return append(events, edgeproto.Event{Cursor: c.cursor, AsOf: time.Since(opened)}), c.changed, true
}
