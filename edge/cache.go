package edge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/VictoriaMetrics/metrics"
	"github.com/dgraph-io/ristretto/v2"
	"golang.org/x/sync/singleflight"
)

// entryBytes is about what a value costs in memory beside its own bytes: its
// places in the two maps of the store, with the room that maps leave free, and
// the slice header.
const entryBytes = 256

// cache is values that never change, by name, bounded in bytes. A value that is
// not there is loaded once, however many ask for it.
type cache[V any] struct {
	kind    string
	store   *ristretto.Cache[[]byte, V]
	size    func(V) int
	flights singleflight.Group
}

// newCache returns a cache that may take so many bytes. typical is the usual size
// of a value, and size returns that of one.
func newCache[V any](kind string, bytes, typical int64, size func(V) int) (*cache[V], error) {
	if bytes < 1<<20 {
		return nil, fmt.Errorf("%d bytes are too few; at least %d are needed", bytes, 1<<20)
	}
	store, err := ristretto.NewCache(&ristretto.Config[[]byte, V]{
		NumCounters: 10 * bytes / (typical + entryBytes), // ten for every value, as the library advises
		MaxCost:     bytes,
		BufferItems: 64,
		Metrics:     true,
		// The library's own idea of the cost of an entry leaves out most of it;
		// entryBytes stands for all.
		IgnoreInternalCost: true,
	})
	if err != nil {
		return nil, fmt.Errorf("make the %s cache: %w", kind, err)
	}
	return &cache[V]{kind: kind, store: store, size: size}, nil
}

// get returns the value if it is in memory.
func (c *cache[V]) get(name []byte) (V, bool) { return c.store.Get(name) }

// load returns the value, from memory or from fetch. Everybody who asks while
// fetch runs waits for the same outcome, each as long as their own ctx lets
// them; fetch itself gets a context of its own that outlives any of them. Only
// success is remembered.
func (c *cache[V]) load(ctx context.Context, name []byte, fetch func(ctx context.Context) (V, error)) (V, error) {
	var none V
	name = bytes.Clone(name) // the flight outlives the caller
	landed := c.flights.DoChan(string(name), func() (value any, err error) {
		defer func() {
			// A panic in a flight would otherwise end the program.
			if caught := recover(); caught != nil {
				value, err = nil, fmt.Errorf("panic: %v\n%s", caught, debug.Stack())
			}
		}()
		// Another flight may have landed since the caller looked.
		if kept, ok := c.store.Get(name); ok {
			return kept, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		fetched, err := fetch(ctx)
		if err != nil {
			return nil, err
		}
		c.store.Set(name, fetched, int64(c.size(fetched)+len(name)+entryBytes))
		// The store takes values in its own time. Whoever asks once this flight is
		// over must find the value there, or it would be fetched again.
		c.store.Wait()
		return fetched, nil
	})
	select {
	case <-ctx.Done():
		return none, ctx.Err()
	case outcome := <-landed:
		if outcome.Err != nil {
			return none, outcome.Err
		}
		value, ok := outcome.Val.(V)
		if !ok {
			return none, errors.New("BUG: a flight brought something of another type")
		}
		return value, nil
	}
}

// expose adds what is known about the cache to a set of metrics.
func (c *cache[V]) expose(set *metrics.Set) {
	known := c.store.Metrics
	for name, value := range map[string]func() uint64{
		"hits_total":          known.Hits,
		"misses_total":        known.Misses,
		"added_total":         known.KeysAdded,
		"evicted_total":       known.KeysEvicted,
		"updated_total":       known.KeysUpdated,
		"sets_dropped_total":  known.SetsDropped,
		"sets_rejected_total": known.SetsRejected,
		"gets_dropped_total":  known.GetsDropped,
		"bytes":               func() uint64 { return known.CostAdded() - known.CostEvicted() },
	} {
		set.NewGauge(fmt.Sprintf("veneer_edge_%s_cache_%s", c.kind, name), func() float64 { return float64(value()) })
	}
	set.NewGauge(fmt.Sprintf("veneer_edge_%s_cache_budget_bytes", c.kind), func() float64 { return float64(c.store.MaxCost()) })
}

// Expose adds what is known about the memory behind the pictures to a set of
// metrics.
func (p *Pictures) Expose(set *metrics.Set) {
	p.finished.expose(set)
	p.decoded.expose(set)
}
