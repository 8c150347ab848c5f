// Package limit lets each client do a thing so often, and no oftener.
package limit

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
	full    map[C]time.Time
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
		l.shards[i].full, l.shards[i].sweepAt = map[C]time.Time{}, minSweep
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
func (l *Limiter[C]) Take(client C, now time.Time) State { return l.ask(client, now, true) }

// Look returns what Take would return, and counts nothing.
func (l *Limiter[C]) Look(client C, now time.Time) State { return l.ask(client, now, false) }

func (l *Limiter[C]) ask(client C, now time.Time, count bool) State {
	s := l.shard(client)
	s.mu.Lock()
	defer s.mu.Unlock()
	full := s.full[client]
	if full.Before(now) {
		full = now
	}
	next := full.Add(l.interval)
	room := time.Duration(l.burst)*l.interval - next.Sub(now)
	if room < 0 {
		return State{Full: full.Sub(now), Wait: -room}
	}
	if count {
		s.put(client, next, now)
	}
	return State{Left: int(room / l.interval), Full: next.Sub(now)}
}

// GiveBack takes back one time that should not have counted.
func (l *Limiter[C]) GiveBack(client C) {
	s := l.shard(client)
	s.mu.Lock()
	defer s.mu.Unlock()
	if full, ok := s.full[client]; ok {
		s.full[client] = full.Add(-l.interval)
	}
}

func (l *Limiter[C]) shard(client C) *shard[C] {
	return &l.shards[maphash.Comparable(l.seed, client)%uint64(len(l.shards))]
}

// put remembers a client. Once in a while it forgets those whose bucket is full:
// they are as good as new. Should too many be left, half of them get a new bucket
// at once, so that even then few calls look through all.
func (s *shard[C]) put(client C, full, now time.Time) {
	s.full[client] = full
	if len(s.full) < s.sweepAt {
		return
	}
	kept := map[C]time.Time{} // deleting would not give the old one's memory back
	for other, at := range s.full {
		if at.After(now) && len(kept) < maxClients/2 {
			kept[other] = at
		}
	}
	s.full, s.sweepAt = kept, min(max(minSweep, 2*len(kept)), maxClients)
}
