package ratelimit

import (
	"encoding/binary"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// epoch is when the tests begin.
var epoch = time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)

// testClient returns the i-th client.
func testClient(i uint64) netip.Prefix {
	var address [16]byte
	binary.BigEndian.PutUint64(address[:], 0x2001_0db8<<32+i)
	return netip.PrefixFrom(netip.AddrFrom16(address), 64)
}

func TestStates(t *testing.T) {
	t.Parallel()
	const s = time.Second
	l := New[string](2, 10*s, 3)
	f := func(ask func(string, time.Time) State, at time.Duration, want State) {
		t.Helper()
		cmptest.Same(t, ask("a client", epoch.Add(at)), want, "after %v", at)
	}

	f(l.Peek, 0, State{Left: 2, Full: 5 * s})
	f(l.Take, 0, State{Left: 2, Full: 5 * s})
	f(l.Take, 0, State{Left: 1, Full: 10 * s})
	f(l.Take, s, State{Left: 0, Full: 14 * s})
	f(l.Peek, s, State{Full: 14 * s, Wait: 4 * s})
	f(l.Take, s, State{Full: 14 * s, Wait: 4 * s})
	f(l.Take, 4*s, State{Full: 11 * s, Wait: s})
	f(l.Take, 5*s, State{Left: 0, Full: 15 * s})
	f(l.Take, time.Hour, State{Left: 2, Full: 5 * s})
	got := l.Take("another", epoch.Add(time.Hour))
	testenv.Check(t, got.Left == 2, "another client has %+v", got)
}

// A shard stores a bounded number of clients, and few calls go through all of them.
func TestLimiterMemory(t *testing.T) {
	t.Parallel()
	l := New[netip.Prefix](20, time.Hour, 20)
	shard := &l.shards[0]
	sweeps := 0
	for i := range uint64(10 * maxClients) {
		before := len(shard.fullAt)
		shard.put(testClient(i), epoch.Add(time.Hour), epoch)
		switch after := len(shard.fullAt); {
		case after > maxClients:
			t.Fatalf("%d clients are stored; want at most %d", after, maxClients)
		case after > before:
		case after == maxClients/2:
			sweeps++
		default:
			t.Fatalf("a sweep leaves %d clients of %d; want half of the most", after, before)
		}
	}
	testenv.Check(t, sweeps >= 10 && sweeps <= 20, "%d sweeps; want 10 to 20", sweeps)
}

// Clients are spread evenly over the shards.
func TestLimiterShards(t *testing.T) {
	t.Parallel()
	l := New[netip.Prefix](20, time.Hour, 20)
	clients := map[*shard[netip.Prefix]]int{}
	for i := range uint64(16_000) {
		clients[l.shard(testClient(i))]++
	}
	for i := range l.shards {
		// By chance alone it would be more than ten standard deviations.
		n := clients[&l.shards[i]]
		testenv.Check(t, n >= 650 && n <= 1350, "shard %d has %d clients; want about 1000", i, n)
	}
}

// Only clients with full buckets are dropped, so no client gains a call by it.
func TestLimiterDropsFullBuckets(t *testing.T) {
	t.Parallel()
	now := epoch
	l := New[netip.Prefix](1, time.Second, 5)
	passes := func(client netip.Prefix) bool { return l.Take(client, now).Wait == 0 }

	const busy = 100
	for i := range uint64(busy) {
		for range 5 {
			if !passes(testClient(i)) {
				t.Fatalf("busy client %d has to wait", i)
			}
		}
	}
	// Many clients call once, and have a full bucket a second later.
	next := uint64(busy)
	for range 4 {
		for range 10_000 {
			if !passes(testClient(next)) {
				t.Fatalf("client %d has to wait", next)
			}
			next++
		}
		now = now.Add(time.Second)
	}
	stored := 0
	for i := range l.shards {
		stored += len(l.shards[i].fullAt)
	}
	testenv.Check(t, stored <= 30_000, "%d clients are stored; want most of those with full buckets dropped", stored)
	// Four of the five calls have been refilled, and no more.
	for i := range uint64(busy) {
		for n := range 5 {
			if got, want := passes(testClient(i)), n < 4; got != want {
				t.Fatalf("request %d of busy client %d passes: %t; want %t", n+1, i, got, want)
			}
		}
	}
}

// Concurrent calls pass up to the burst exactly.
func TestLimiterInParallel(t *testing.T) {
	t.Parallel()
	l := New[int](50, time.Second, 200)
	var mu sync.Mutex
	passed := map[int]int{}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for i := range 100 {
				for client := range 4 {
					if l.Take(client, epoch).Wait > 0 {
						continue
					}
					if i%10 == 0 {
						l.Refund(client)
						continue
					}
					mu.Lock()
					passed[client]++
					mu.Unlock()
				}
				l.Take(1000+i, epoch)
			}
		})
	}
	group.Wait()
	cmptest.Same(t, passed, map[int]int{0: 200, 1: 200, 2: 200, 3: 200}, "so many pass")
}

// A refunded call can be taken again, and a full bucket takes no refund.
func TestLimiterRefund(t *testing.T) {
	t.Parallel()
	now := epoch
	l := New[int](1, time.Second, 2)
	f := func(want bool) {
		t.Helper()
		testenv.Equal(t, l.Take(7, now).Wait == 0, want, "the client passes")
	}

	l.Refund(7)
	f(true)
	f(true)
	f(false)
	l.Refund(7)
	f(true)
	f(false)

	now = now.Add(time.Hour)
	l.Refund(7) // the bucket is full
	f(true)
	f(true)
	f(false)
}

func TestLimiterAllocations(t *testing.T) {
	l := New[netip.Prefix](1_000_000, time.Second, 1_000_000)
	client := testClient(1)
	l.Take(client, epoch)
	testenv.Equal(t, testing.AllocsPerRun(1000, func() { l.Take(client, epoch) }), 0, "allocations of a stored client")
}
