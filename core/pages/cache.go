package pages

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/sieve"
)

const (
	// lifetime is how long a page is sent again before the database is asked. Reports, likes and names of textures change without an event.
	lifetime = 5 * time.Second
	// maxCacheBytes bounds the memory for pages: a thousand, or several with their compressed forms.
	maxCacheBytes = 32 << 20
)

// page is a rendered page.
type page struct {
	asset  *httpserver.Asset
	bytes  int             // of the asset, without its compressed forms
	policy string          // Content-Security-Policy
	shows  []edgeproto.Key // a change of one makes the page obsolete
	tags   string          // of caches, with commas
}

// cache keeps pages in memory. Concurrent requests for a page share a load. A page is obsolete when a
// change that names one of its keys was applied after its load began.
type cache struct {
	now core.Clock

	mu       sync.Mutex
	entries  *sieve.Cache[string, *entry]
	loading  map[string]chan struct{} // closed at the end of a load
	applied  int64                    // number of the last apply
	changed  map[edgeproto.Key]int64  // the apply that named a key last, for a lifetime at least
	missed   int64                    // the last apply that did not name all keys
	pruned   int64                    // the last apply of the lifetime before
	prunedAt time.Time
}

type entry struct {
	*page
	loadedAt time.Time // when the load began
	applied  int64     // by then
}

func newCache(now core.Clock) *cache {
	return &cache{now: now, entries: sieve.New[string, *entry](maxCacheBytes), loading: map[string]chan struct{}{}, changed: map[edgeproto.Key]int64{}}
}

// apply makes the pages obsolete that show what has changed.
func (c *cache) apply(keys []edgeproto.Key, isComplete bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now(); now.Sub(c.prunedAt) >= lifetime {
		maps.DeleteFunc(c.changed, func(_ edgeproto.Key, number int64) bool { return number <= c.pruned })
		c.pruned, c.prunedAt = c.applied, now
	}
	c.applied++
	for _, key := range keys {
		c.changed[key] = c.applied
	}
	if !isComplete {
		c.missed = c.applied
	}
}

// isFresh reports whether a page may be sent. The caller holds mu.
func (c *cache) isFresh(e *entry) bool {
	return c.now().Sub(e.loadedAt) < lifetime && c.missed <= e.applied &&
		!slices.ContainsFunc(e.shows, func(key edgeproto.Key) bool { return c.changed[key] > e.applied })
}

// get returns a page, which load returns if the cache has no fresh one. While that fails, but for a
// page that does not exist, the former page is returned.
func (c *cache) get(ctx context.Context, key string, load func(context.Context) (*page, error)) (*page, error) {
	for {
		c.mu.Lock()
		cached := c.entries.Get(key)
		if cached != nil && c.isFresh(*cached) {
			c.mu.Unlock()
			return (*cached).page, nil
		}
		done, isLoading := c.loading[key]
		if !isLoading {
			done = make(chan struct{})
			c.loading[key] = done
		}
		next := &entry{loadedAt: c.now(), applied: c.applied}
		c.mu.Unlock()
		if !isLoading {
			loaded, err := load(ctx)
			defer close(done)
			return c.end(key, loaded, err, next)
		}
		select {
		case <-done:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for a page: %w", ctx.Err())
		}
	}
}

// end ends a load.
func (c *cache) end(key string, loaded *page, err error, next *entry) (*page, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.loading, key)
	var former *entry
	if cached := c.entries.Peek(key); cached != nil {
		former = *cached
	}
	switch {
	case err == nil && former != nil && former.asset.HasContentOf(loaded.asset):
		loaded.asset = former.asset // with its compressed forms
	case err == nil:
	case former == nil || fault.KindOf(err) == fault.NotFound:
		c.entries.Delete(key)
		return nil, err
	default:
		loaded = former.page
	}
	const codings = 2 // take no more than the page itself
	next.page = loaded
	c.entries.Put(key, next, int64(codings*loaded.bytes)+1<<10)
	return loaded, nil
}
