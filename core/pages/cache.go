package pages

import (
	"context"
	"fmt"
	"slices"
	"strings"
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
	// maxChanged bounds the keys of changes that are known, some 5 MB. They are forgotten together.
	maxChanged = 1 << 16
	// maxCacheBytes bounds the memory for pages: a thousand, or several with their compressed forms.
	maxCacheBytes = 32 << 20
)

// shownKinds are the kinds of keys that pages have.
var shownKinds = []string{edgeproto.NamePrefix, edgeproto.PIDPrefix, edgeproto.TIDPrefix}

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

	mu      sync.Mutex
	entries *sieve.Cache[string, *entry]
	loading map[string]*loading     // by key
	applied int64                   // number of the last apply
	changed map[edgeproto.Key]int64 // the apply that named a key last, since missed
	missed  int64                   // the last apply that did not name all keys, or was forgotten
}

type entry struct {
	*page
	loadedAt time.Time // when the load began
	applied  int64     // by then
}

func newCache(now core.Clock) *cache {
	return &cache{now: now, entries: sieve.New[string, *entry](maxCacheBytes), loading: map[string]*loading{}, changed: map[edgeproto.Key]int64{}}
}

// apply makes the pages obsolete that show what has changed.
func (c *cache) apply(keys []edgeproto.Key, isComplete bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.applied++
	for _, key := range keys {
		if slices.ContainsFunc(shownKinds, func(kind string) bool { return strings.HasPrefix(string(key), kind) }) {
			c.changed[key] = c.applied
		}
	}
	if !isComplete || len(c.changed) > maxChanged {
		c.missed = c.applied
		clear(c.changed)
	}
}

// isFresh reports whether a page may be sent without a query. The caller holds mu.
func (c *cache) isFresh(e *entry) bool {
	return c.now().Sub(e.loadedAt) < lifetime && !c.isObsolete(e)
}

// isObsolete reports whether a page shows what has changed, or may have. The caller holds mu.
func (c *cache) isObsolete(e *entry) bool {
	return c.missed > e.applied ||
		slices.ContainsFunc(e.shows, func(key edgeproto.Key) bool { return c.changed[key] > e.applied })
}

// get returns a page, which load returns if the cache has no fresh one. If that fails, but for a page
// that does not exist, the former page is returned unless it is obsolete.
func (c *cache) get(ctx context.Context, key string, load func(context.Context) (*page, error)) (*page, error) {
	for hasWaited := false; ; hasWaited = true {
		c.mu.Lock()
		cached := c.entries.Get(key)
		if cached != nil && c.isFresh(*cached) {
			c.mu.Unlock()
			return (*cached).page, nil
		}
		running, isLoading := c.loading[key]
		if !isLoading {
			running = &loading{done: make(chan struct{})}
			c.loading[key] = running
		}
		next := &entry{loadedAt: c.now(), applied: c.applied}
		c.mu.Unlock()
		if !isLoading {
			defer c.end(key, running) // also if it panics
			loaded, err := load(ctx)
			loaded, err = c.put(key, loaded, err, next)
			if ctx.Err() == nil {
				running.err = err
			}
			return loaded, err
		}
		select {
		case <-running.done:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for a page: %w", ctx.Err())
		}
		// A page may have been made after a load began that this request found under way.
		if running.err != nil && (hasWaited || fault.KindOf(running.err) != fault.NotFound) {
			return nil, running.err
		}
	}
}

// loading is a call of load that other requests wait for.
type loading struct {
	done chan struct{}
	err  error // of the call, when it is done, unless its request has ended
}

// end ends a call of load.
func (c *cache) end(key string, running *loading) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.loading, key)
	close(running.done)
}

// put puts a loaded page into the cache. It returns the page for the request.
func (c *cache) put(key string, loaded *page, err error, next *entry) (*page, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var former *entry
	if cached := c.entries.Peek(key); cached != nil {
		former = *cached
	}
	switch {
	case err == nil && former != nil && former.asset.HasContentOf(loaded.asset):
		loaded.asset = former.asset // with its compressed forms
	case err == nil:
	case former == nil || fault.KindOf(err) == fault.NotFound || c.isObsolete(former):
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
