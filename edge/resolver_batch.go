package edge

import (
	"context"
	"errors"
	"time"

	"github.com/veneer-skins/veneer/shared/edgeproto"
)

// MaxBatch is the most keys that are looked up together.
const MaxBatch = 100

// LookupAll looks up to MaxBatch keys up as Lookup does. Those that are not cached are asked of core
// together. The result is the last one of the constants that any of them has.
func (r *Resolver) LookupAll(ctx context.Context, keys []edgeproto.Key) (mappings []edgeproto.Mapping, result LookupResult, err error) {
	mappings = make([]edgeproto.Mapping, len(keys))
	at := time.Now()
	var missing []int // indices of keys
	for i, key := range keys {
		var ok bool
		if mappings[i], ok = r.TryLookup(key, at); !ok {
			missing = append(missing, i)
		}
	}
	if len(missing) == 0 {
		return mappings, LookupHit, nil
	}
	calls, err := r.startCalls(ctx, keys, missing)
	if err != nil {
		lookupsFailed.Inc()
		return nil, LookupMiss, err
	}
	for n, i := range missing {
		c, from := calls[n], LookupMiss
		if c != nil {
			// The result counts even if it is not cached, since the caller came before it.
			mappings[i], err = c.wait(ctx)
		}
		switch {
		case c == nil || errors.Is(err, ErrShed): // it was refused for the network that started it
			mappings[i], from, err = r.Lookup(ctx, keys[i])
		case err != nil:
			lookupsFailed.Inc()
		default:
			lookups[LookupMiss].Inc()
		}
		if err != nil {
			return nil, LookupMiss, err
		}
		result = max(result, from)
	}
	return mappings, result, nil
}

// startCalls starts or joins calls for the keys with the given indices. It returns the calls of keys without a
// cached mapping, and nil for others: Lookup waits less for them. It returns the fault of too many look-ups
// if a key needs one.
func (r *Resolver) startCalls(ctx context.Context, keys []edgeproto.Key, missing []int) ([]*call, error) {
	calls := make([]*call, len(missing))
	var started []edgeproto.Key
	var startedCalls []*call
	isNeeded := false
	r.mu.RLock()
	for n, i := range missing {
		c, isNew, hasStale := r.callOf(keys[i])
		if isNew {
			started, startedCalls = append(started, keys[i]), append(startedCalls, c)
		}
		if !hasStale {
			calls[n], isNeeded = c, true
		}
	}
	r.mu.RUnlock()
	if len(started) == 0 {
		return calls, nil
	}
	err := r.core.StartLookups(ctx, started, func(i int, mapping edgeproto.Mapping, cursor edgeproto.Cursor, err error) {
		r.finishCall(started[i], startedCalls[i], mapping, cursor, err)
	})
	if err != nil {
		for i, key := range started {
			r.finishCall(key, startedCalls[i], edgeproto.Mapping{}, edgeproto.Cursor{}, err)
		}
	}
	if isNeeded && errors.Is(err, ErrShed) {
		return nil, err
	}
	return calls, nil
}

// callOf returns the call that looks a key up, a new one if there is none, and whether a mapping is cached.
// There is no call if that is valid, or if core is unreachable. The caller holds mu for reading.
func (r *Resolver) callOf(key edgeproto.Key) (c *call, isNew, hasStale bool) {
	s := r.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	cached, isCached := s.getLocked(key)
	isCached = isCached && r.now()-cached.lastValid(r.validAsOf.Load()) <= r.maxStale
	if isCached && r.retryAt.Load() != 0 {
		return nil, false, true
	}
	if _, c, ok := r.current(s, key); ok {
		return c, false, isCached
	}
	c = r.newCall()
	s.calls[key] = c
	return c, true, isCached
}
