// Package ratelimit limits the rate and the concurrency of each client's calls.
package ratelimit

import (
	"hash/maphash"
	"sync"
	"time"
)

// Limiter allows each client burst calls at once, and then one in every interval. It is a
// token bucket, stored as the time at which the bucket is full again (the generic cell rate
// algorithm of ITU-T I.371). Clients with a full bucket are dropped, and the memory for all
// others is bounded.
type Limiter[C comparable] struct {
	interval time.Duration
	burst    int
	seed     maphash.Seed
	shards   [16]shard[C]
}

type shard[C comparable] struct {
	mu      sync.Mutex
	fullAt  map[C]time.Time
	sweepAt int // the size at which clients with full buckets are dropped
}

// minSweep keeps small maps from being swept often, and maxClients bounds the memory of a
// shard to about a megabyte.
const (
	minSweep   = 1024
	maxClients = 1 << 13
)

// New returns a limiter of n calls in a period, with bursts of up to burst.
func New[C comparable](n int, period time.Duration, burst int) *Limiter[C] {
	l := &Limiter[C]{interval: period / time.Duration(n), burst: burst, seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i].fullAt, l.shards[i].sweepAt = map[C]time.Time{}, minSweep
	}
	return l
}

// State is the state of a client's bucket.
type State struct {
	Left int           // calls that are allowed now
	Full time.Duration // until the bucket is full
	Wait time.Duration // until the next call is allowed; 0: it is allowed now
}

// Take counts a call, unless the client has to wait.
func (l *Limiter[C]) Take(client C, now time.Time) State { return l.check(client, now, true) }

// Peek returns what Take would return, without counting.
func (l *Limiter[C]) Peek(client C, now time.Time) State { return l.check(client, now, false) }

func (l *Limiter[C]) check(client C, now time.Time, count bool) State {
	s := l.shard(client)
	s.mu.Lock()
	defer s.mu.Unlock()
	full := s.fullAt[client]
	if full.Before(now) {
		full = now
	}
	next := full.Add(l.interval)
	remaining := time.Duration(l.burst)*l.interval - next.Sub(now)
	if remaining < 0 {
		return State{Full: full.Sub(now), Wait: -remaining}
	}
	if count {
		s.put(client, next, now)
	}
	return State{Left: int(remaining / l.interval), Full: next.Sub(now)}
}

// Refund takes back a call that should not have counted.
func (l *Limiter[C]) Refund(client C) {
	s := l.shard(client)
	s.mu.Lock()
	defer s.mu.Unlock()
	if full, ok := s.fullAt[client]; ok {
		s.fullAt[client] = full.Add(-l.interval)
	}
}

func (l *Limiter[C]) shard(client C) *shard[C] {
	return &l.shards[maphash.Comparable(l.seed, client)%uint64(len(l.shards))]
}

// put stores the state of a client. Once in a while it drops clients with full buckets, which
// changes nothing for them. If too many are left, half of them get a full bucket, so that
// even then few calls go through all clients.
func (s *shard[C]) put(client C, full, now time.Time) {
	s.fullAt[client] = full
	if len(s.fullAt) < s.sweepAt {
		return
	}
	live := map[C]time.Time{} // deleting from the old map would not free its memory
	for other, at := range s.fullAt {
		if at.After(now) && len(live) < maxClients/2 {
			live[other] = at
		}
	}
	s.fullAt, s.sweepAt = live, min(max(minSweep, 2*len(live)), maxClients)
}
