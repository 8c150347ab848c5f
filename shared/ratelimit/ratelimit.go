// Package limit lets each client do a thing so often, and no oftener.
package ratelimit

import (
	"hash/maphash"
	"sync"
	"time"
)

// Limiter lets each client do a thing so often: burst times at once, and then
// once in every interval. It is a token bucket, kept as the one time at which the
// bucket is full again (the generic cell rate algorithm of ITU-T I.371). It forgets
// clients who are as good as new, and bounds the memory that it takes for others.
type Limiter[C comparable] struct {
	interval time.Duration
	burst    int
	seed     maphash.Seed
	shards   [16]shard[C]
}

type shard[C comparable] struct {
	mu      sync.Mutex
	fullAt  map[C]time.Time
	sweepAt int // the size at which those whose bucket is full are forgotten
}

// minSweep keeps small maps from being swept all the time, maxClients bounds the
// memory of a shard to about a megabyte.
const (
	minSweep   = 1024
	maxClients = 1 << 13
)

// New returns a limiter to so many times in a period, and to burst times at once.
func New[C comparable](times int, period time.Duration, burst int) *Limiter[C] {
	l := &Limiter[C]{interval: period / time.Duration(times), burst: burst, seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i].fullAt, l.shards[i].sweepAt = map[C]time.Time{}, minSweep
	}
	return l
}

// State is where a client stands.
type State struct {
	Left int           // how many times are possible at once
	Full time.Duration // until all are again
	Wait time.Duration // until one is; 0: the client need not wait
}

// Take counts one more time, unless the client has to wait.
func (l *Limiter[C]) Take(client C, now time.Time) State { return l.check(client, now, true) }

// Peek returns what Take would return, and counts nothing.
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

// Refund takes back one time that should not have counted.
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

// put remembers a client. Once in a while it forgets those whose bucket is full:
// they are as good as new. Should too many be left, half of them get a new bucket
// at once, so that even then few calls look through all.
func (s *shard[C]) put(client C, full, now time.Time) {
	s.fullAt[client] = full
	if len(s.fullAt) < s.sweepAt {
		return
	}
	live := map[C]time.Time{} // deleting would not give the old one's memory back
	for other, at := range s.fullAt {
		if at.After(now) && len(live) < maxClients/2 {
			live[other] = at
		}
	}
	s.fullAt, s.sweepAt = live, min(max(minSweep, 2*len(live)), maxClients)
}
