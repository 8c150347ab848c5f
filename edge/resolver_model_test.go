package edge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// modelCore is a model of core: every key has a texture, with a tid that grows with each change
// of the key, so that the order of two mappings is known.
type modelCore struct {
	mu          sync.Mutex
	random      *rand.Rand
	position    edgeproto.Cursor
	oldest      int64
	truth       map[edgeproto.Key]int64
	changes     []edgeproto.Event
	unreachable bool
	// past is the history of each key.
	past map[edgeproto.Key][]fact
	// applied is the tids of the changes that the edge has applied: a look-up that starts now
	// must not return a lower one.
	applied map[edgeproto.Key]int64
}

type fact struct {
	at  time.Time
	tid int64
}

// set changes the tid of a key. The caller holds mu.
func (c *modelCore) set(key edgeproto.Key, tid int64) {
	c.truth[key] = tid
	c.past[key] = append(c.past[key], fact{time.Now(), tid})
}

// trueAt returns the tid of a key at a time.
func (c *modelCore) trueAt(moment time.Time, key edgeproto.Key) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	tid := int64(0)
	for _, t := range c.past[key] {
		if !t.at.After(moment) {
			tid = t.tid
		}
	}
	return tid
}

// intN returns a random number below n, the same at every run.
func (c *modelCore) intN(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.random.IntN(n)
}

// sleep waits for a random time.
func (c *modelCore) sleep(most time.Duration) { <-time.After(time.Duration(c.intN(int(most)))) }

// StartLookups starts lookup for each key.
func (c *modelCore) StartLookups(_ context.Context, keys []edgeproto.Key, done LookupsDone) error {
	return answerAsync(c.lookup, keys, done)
}

// lookup returns the mapping of a key at some time during the call, as core does. Now and then
// it takes long.
func (c *modelCore) lookup(_ context.Context, key edgeproto.Key) (edgeproto.Mapping, edgeproto.Cursor, error) {
	c.sleep(30 * time.Millisecond)
	c.mu.Lock()
	unreachable, mapping, position := c.unreachable, texture(c.truth[key]), c.position
	c.mu.Unlock()
	c.sleep(60 * time.Millisecond)
	if c.intN(50) == 0 {
		c.sleep(3 * time.Second)
	}
	if unreachable {
		return edgeproto.Mapping{}, edgeproto.Cursor{}, fault.NewUnavailable("core", errors.New("away"))
	}
	return mapping, position, nil
}

// WouldReject returns nil: this core is never known to be unreachable.
func (*modelCore) WouldReject(edgeproto.Key, netip.Prefix) error { return nil }

// Probe succeeds or fails as a look-up does.
func (c *modelCore) Probe(done func(error)) {
	err := c.StartLookups(context.Background(), []edgeproto.Key{edgeproto.UIDKey(0)}, func(_ int, _ edgeproto.Mapping, _ edgeproto.Cursor, err error) { done(err) })
	if err != nil {
		go done(err)
	}
}

// step makes a random change in core.
func (c *modelCore) step(keys []edgeproto.Key) {
	n, key, other := c.intN(100), keys[c.intN(len(keys))], keys[c.intN(len(keys))]
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case n == 0: // a new epoch
		c.position = edgeproto.Cursor{Epoch: c.position.Epoch + "+", Revision: c.position.Revision / 2}
		c.changes, c.oldest = nil, c.position.Revision
	case n < 3: // the history is trimmed
		c.changes, c.oldest = nil, c.position.Revision
	case n < 6:
		c.unreachable = !c.unreachable
	default:
		c.position.Revision++
		c.set(key, c.truth[key]+1)
		c.set(other, c.truth[other]+1)
		c.changes = append(c.changes, edgeproto.Event{Cursor: c.position, Keys: []edgeproto.Key{key, other}})
	}
}

// stream streams to the edge, with interruptions, until ctx ends.
func (c *modelCore) stream(ctx context.Context, t *testing.T, m *Resolver) {
	t.Helper()
	for ctx.Err() == nil {
		from := m.Cursor()
		c.mu.Lock()
		unreachable := c.unreachable
		if from.Epoch != c.position.Epoch || from.Revision < c.oldest || from.Revision > c.position.Revision {
			from = c.position
		}
		start, then := edgeproto.Event{Cursor: from, Start: true}, maps.Clone(c.truth)
		c.mu.Unlock()
		if unreachable {
			c.sleep(100 * time.Millisecond)
			continue
		}
		flushed := from != m.Cursor()
		testenv.Is(t, m.Apply(start, time.Now()), nil, "Apply(%+v)", start)
		if flushed {
			c.mu.Lock()
			maps.Copy(c.applied, then)
			c.mu.Unlock()
		}
		for ctx.Err() == nil && c.intN(200) != 0 {
			event, tids, ok := c.next(from)
			if !ok {
				break
			}
			sent := time.Now()
			c.sleep(20 * time.Millisecond)
			if c.intN(100) == 0 { // delayed, with everything after it
				c.sleep(3 * time.Second)
			}
			testenv.Is(t, m.Apply(event, sent), nil, "Apply(%+v)", event)
			from = event.Cursor
			c.mu.Lock()
			for i, key := range event.Keys {
				c.applied[key] = max(c.applied[key], tids[i])
			}
			c.mu.Unlock()
		}
	}
}

// next returns the event after a position and the lowest tids that its keys may have from there
// on. It is not ok if the stream has ended.
func (c *modelCore) next(from edgeproto.Cursor) (event edgeproto.Event, tids []int64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unreachable || from.Epoch != c.position.Epoch || from.Revision < c.oldest {
		return edgeproto.Event{}, nil, false
	}
	i := slices.IndexFunc(c.changes, func(e edgeproto.Event) bool { return e.Revision > from.Revision })
	if i < 0 {
		return edgeproto.Event{Cursor: c.position}, nil, true
	}
	event = c.changes[i]
	for _, key := range event.Keys {
		// Without the later changes, which the edge need not know yet.
		least := c.truth[key]
		for _, later := range c.changes[i+1:] {
			for _, changed := range later.Keys {
				if changed == key {
					least--
				}
			}
		}
		tids = append(tids, least)
	}
	return event, tids, true
}

// TestResolverAgreesWithModel runs look-ups, changes, interruptions, slow results and a slow
// stream at random. No look-up returns a mapping from before a change that was applied when it
// started nor, unless the result is stale, one that was out of date a second before that. When
// all has ended, all cached mappings are right.
func TestResolverAgreesWithModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { runModel(t, seed) })
		})
	}
}

func runModel(t *testing.T, seed uint64) {
	t.Helper()
	w := &modelCore{
		random:   rand.New(rand.NewPCG(seed, 1)),
		position: edgeproto.Cursor{Epoch: "e", Revision: 1000},
		oldest:   1000,
		truth:    map[edgeproto.Key]int64{},
		past:     map[edgeproto.Key][]fact{},
		applied:  map[edgeproto.Key]int64{},
	}
	keys := make([]edgeproto.Key, 40)
	for i := range keys {
		keys[i] = edgeproto.TIDKey(int64(i + 1))
		w.set(keys[i], 1)
	}
	m := NewResolver(ResolverConfig{Bytes: 1 << 20, NegativeBytes: 1 << 20, MaxStale: time.Minute}, w)
	ctx, stop := context.WithCancel(t.Context())
	var stream, callers sync.WaitGroup
	stream.Go(func() { w.stream(ctx, t, m) })

	var results [3]int
	var again atomic.Int64
	for range 30 {
		callers.Go(func() {
			found := map[edgeproto.Key]*foundMapping{}
			for range 400 {
				w.sleep(50 * time.Millisecond)
				key := keys[min(w.intN(len(keys)), w.intN(len(keys)))]
				w.mu.Lock()
				least := w.applied[key]
				w.mu.Unlock()
				asked := time.Now()
				var mapping edgeproto.Mapping
				result, err := LookupHit, error(nil)
				if f := found[key]; f != nil && m.tryAgain(f, asked) {
					mapping = f.Value.mapping
					again.Add(1)
				} else if mapping, result, err = m.Lookup(ctx, key); err == nil {
					found[key] = m.tryFind(key, time.Now())
				}
				if result != LookupStale {
					least = max(least, w.trueAt(asked.Add(-trustWindow), key))
				}
				w.mu.Lock()
				most := w.truth[key]
				w.mu.Unlock()
				if err != nil {
					testenv.Check(t, fault.KindOf(err) == fault.Unavailable, "Lookup(%s): %v", key, err)
					continue
				}
				if tid := mapping.Texture.TID; tid < least || tid > most {
					t.Errorf("Lookup(%s) = %d from result %d; want %d to %d", key, tid, result, least, most)
				}
				w.mu.Lock()
				results[result]++
				w.mu.Unlock()
			}
		})
	}
	for range 400 {
		w.sleep(40 * time.Millisecond)
		w.step(keys)
	}
	w.mu.Lock()
	w.unreachable = false
	w.mu.Unlock()
	callers.Wait()
	<-time.After(time.Minute) // until the stream has caught up
	stop()
	stream.Wait()
	<-time.After(time.Minute) // until all calls have ended
	cachedCount := 0
	for key, want := range w.truth {
		if cached, ok := m.shard(key).get(key); ok {
			cachedCount++
			testenv.Equal(t, cached.mapping.Texture.TID, want, "in the end %s", key)
		}
	}
	testenv.Check(t, cachedCount != 0 && results[LookupHit] != 0 && results[LookupMiss] != 0 && again.Load() != 0,
		"%d mappings are cached, look-ups by result: %v, %d again; the test tests nothing", cachedCount, results, again.Load())
	testenv.Equal(t, m.Cursor(), w.position, "the cursor is")
}
