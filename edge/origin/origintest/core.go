// Package origintest is a core for the tests of edges: it speaks the protocol of
// package mapping over a real socket, and its history is what the test says.
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

// Secret is what an edge must present.
const Secret = "the-secret-of-a-test"

// Core is a small core.
type Core struct {
	URL string
	// Lookups, Keys and Streams count the look-ups, the keys in them, and the
	// streams that have begun. MaxStreams is the most that were open at once.
	Lookups, Keys, Streams, MaxStreams atomic.Int64
	// Stream, unless empty, names every stream, and so asks for acknowledgements.
	Stream string
	// Acknowledgements counts those that were taken.
	Acknowledgements atomic.Int64

	mu                      sync.Mutex
	onLookup                func(keys []edgeproto.Key)
	position                edgeproto.Cursor
	oldest                  int64 // the first revision from which the history is known
	mappings                map[edgeproto.Key]edgeproto.Mapping
	changes                 []edgeproto.Event
	liked                   []skin.Hash
	changed                 chan struct{} // closed whenever something happened that streams must know
	unavailable             bool
	silent                  bool
	rejectsAcknowledgements bool
	cuts                    int // how often all streams were cut
	openStreams             int64
	acknowledged            edgeproto.Cursor // as was acknowledged last
}

// Start starts a core that ends with the test.
func Start(tb testing.TB) *Core {
	tb.Helper()
	c := &Core{
		position: edgeproto.Cursor{Epoch: "first", Revision: 100},
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

// Set commits a change of what keys lead to, in one revision.
func (c *Core) Set(changes map[edgeproto.Key]edgeproto.Mapping) {
	c.update(func() {
		c.position.Revision++
		event := edgeproto.Event{Cursor: c.position}
		for key, value := range changes {
			c.mappings[key] = value
			event.Keys = append(event.Keys, key)
		}
		slices.Sort(event.Keys)
		c.changes = append(c.changes, event)
	})
}

// Trim loses the history, as core does with what is a day old.
func (c *Core) Trim() {
	c.update(func() { c.changes, c.oldest = nil, c.position.Revision })
}

// Restore begins a new epoch, as core does after a restore.
func (c *Core) Restore(epoch string) {
	c.update(func() {
		c.position = edgeproto.Cursor{Epoch: epoch, Revision: 1}
		c.changes, c.oldest = nil, 1
	})
}

// SetUnavailable makes core refuse everything and ends its streams, or brings it back.
func (c *Core) SetUnavailable(unavailable bool) {
	c.update(func() {
		c.unavailable = unavailable
		c.cuts++
	})
}

// SetSilent makes core say nothing more on its streams, though they stay open.
func (c *Core) SetSilent(silent bool) { c.update(func() { c.silent = silent }) }

// SetOnLookup has something called with every question before it is answered.
func (c *Core) SetOnLookup(onLookup func(keys []edgeproto.Key)) {
	c.update(func() { c.onLookup = onLookup })
}

// SetLiked sets what is liked most. Before that, core does not know the question.
func (c *Core) SetLiked(hashes []skin.Hash) { c.update(func() { c.liked = hashes }) }

func (c *Core) update(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *Core) lookup(w http.ResponseWriter, r *http.Request) {
	var question edgeproto.LookupRequest
	if err := json.NewDecoder(r.Body).Decode(&question); err != nil || len(question.Keys) > edgeproto.MaxKeys {
		w.WriteHeader(http.StatusUnprocessableEntity)
		return
	}
	c.Lookups.Add(1)
	c.Keys.Add(int64(len(question.Keys)))
	c.mu.Lock()
	onLookup := c.onLookup
	c.mu.Unlock()
	if onLookup != nil {
		onLookup(question.Keys)
	}
	c.mu.Lock()
	unavailable, answer := c.unavailable, edgeproto.LookupResponse{Cursor: c.position}
	for _, key := range question.Keys {
		answer.Mappings = append(answer.Mappings, c.mappings[key])
	}
	c.mu.Unlock()
	if unavailable {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
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

// Applied returns the position that was acknowledged last.
func (c *Core) Applied() edgeproto.Cursor {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.acknowledged
}

// SetAcknowledgementsRejected makes core refuse acknowledgements, or take them again.
func (c *Core) SetAcknowledgementsRejected(rejected bool) {
	c.update(func() { c.rejectsAcknowledgements = rejected })
}

// beginStream lets a stream begin: where it asks to, or at the head if the history from
// there is not known.
func (c *Core) beginStream(from edgeproto.Cursor) (start edgeproto.Cursor, cuts int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unavailable {
		return from, 0, false
	}
	c.openStreams++
	c.MaxStreams.Store(max(c.MaxStreams.Load(), c.openStreams))
	if from.Epoch != c.position.Epoch || from.Revision < c.oldest || from.Revision > c.position.Revision {
		from = c.position
	}
	return from, c.cuts, true
}

func (c *Core) endStream() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.openStreams--
}

// eventsAfter returns the changes after a position with a beat at their end, and what
// is closed when there are more; not ok if the stream is over.
func (c *Core) eventsAfter(from edgeproto.Cursor, cuts int, opened time.Time) (events []edgeproto.Event, changed <-chan struct{}, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cuts != cuts || c.position.Epoch != from.Epoch {
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
	return append(events, edgeproto.Event{Cursor: c.position, AsOf: time.Since(opened)}), c.changed, true
}
