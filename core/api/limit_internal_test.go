package api

import (
	"encoding/binary"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
)

// epoch is when the tests of limiters begin.
var epoch = time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)

// stranger returns the i-th client who is not signed in.
func stranger(i uint64) client {
	var address [16]byte
	binary.BigEndian.PutUint64(address[:], 0x2001_0db8<<32+i)
	return client{network: netip.PrefixFrom(netip.AddrFrom16(address), 64)}
}

// However many clients come, a shard remembers only so many, and few calls look
// through all of them.
func TestLimitersAreBounded(t *testing.T) {
	t.Parallel()

	l := newLimiter("requests", 20, time.Hour, 20, time.Now)
	shard := &l.shards[0]
	sweeps := 0
	for i := range uint64(10 * maxClients) {
		before := len(shard.full)
		shard.put(stranger(i), epoch.Add(time.Hour), epoch)
		switch after := len(shard.full); {
		case after > maxClients:
			t.Fatalf("%d clients are remembered; want at most %d", after, maxClients)
		case after > before:
		case after == maxClients/2:
			sweeps++
		default:
			t.Fatalf("a sweep leaves %d clients of %d; want half of the most", after, before)
		}
	}
	if sweeps < 10 || sweeps > 20 {
		t.Errorf("all were looked through %d times; want 10 to 20", sweeps)
	}
}

// Neither users nor strangers crowd in a few shards.
func TestLimitersSpreadClients(t *testing.T) {
	t.Parallel()

	l := newLimiter("requests", 20, time.Hour, 20, time.Now)
	users, strangers, hosts := map[*limiterShard]int{}, map[*limiterShard]int{}, map[*limiterShard]int{}
	for i := range uint64(16_000) {
		users[l.shard(client{user: core.UserID(i + 1)})]++
		strangers[l.shard(stranger(i))]++
		hosts[l.shard(client{network: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 32)})]++
	}
	for i := range l.shards {
		shard := &l.shards[i]
		for _, n := range []int{users[shard], strangers[shard], hosts[shard]} {
			if n < 500 || n > 2000 {
				t.Errorf("shard %d has %d users, %d IPv6 and %d IPv4 clients; want about 1000 each", i, users[shard], strangers[shard], hosts[shard])
				break
			}
		}
	}
}

// Who is forgotten is as good as new: nobody gains by it.
func TestLimitersForgetOnlyFullBuckets(t *testing.T) {
	t.Parallel()

	now := epoch
	l := newLimiter("requests", 1, time.Second, 5, func() time.Time { return now })
	var rc fasthttp.RequestCtx
	take := func(c client) error {
		t.Helper()
		return l.take(&rc, c)
	}

	const busy = 100
	for i := range uint64(busy) {
		for range 5 {
			if err := take(stranger(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Many ask once, and are as good as new a second later.
	next := uint64(busy)
	for range 4 {
		for range 10_000 {
			if err := take(stranger(next)); err != nil {
				t.Fatal(err)
			}
			next++
		}
		now = now.Add(time.Second)
	}
	remembered := 0
	for i := range l.shards {
		remembered += len(l.shards[i].full)
	}
	if remembered > 30_000 {
		t.Errorf("%d clients are remembered; want most of those with full buckets forgotten", remembered)
	}
	// Four of the five times have come back to the busy, and no more.
	for i := range uint64(busy) {
		for n := range 5 {
			if err := take(stranger(i)); (err == nil) != (n < 4) {
				t.Fatalf("request %d of busy client %d: %v", n+1, i, err)
			}
		}
	}
}

// Of requests at once, just as many pass as there is room for.
func TestLimitersCountInParallel(t *testing.T) {
	t.Parallel()

	l := newLimiter("requests", 50, time.Second, 200, func() time.Time { return epoch })
	var mu sync.Mutex
	passed := map[client]int{}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			var rc fasthttp.RequestCtx
			for i := range 100 {
				for user := range core.UserID(4) {
					c := client{user: user + 1}
					if l.take(&rc, c) != nil {
						continue
					}
					if i%10 == 0 {
						l.giveBack(c)
						continue
					}
					mu.Lock()
					passed[c]++
					mu.Unlock()
				}
				_ = l.take(&rc, stranger(uint64(i)))
			}
		})
	}
	group.Wait()
	for c, n := range passed {
		if n != 200 {
			t.Errorf("%d requests of user %d pass; want 200", n, c.user)
		}
	}
}

// What is given back can be taken again, and what was never taken cannot be given
// back.
func TestLimitersGiveBack(t *testing.T) {
	t.Parallel()

	now := epoch
	l := newLimiter("requests", 1, time.Second, 2, func() time.Time { return now })
	var rc fasthttp.RequestCtx
	c := client{user: 7}
	f := func(want bool) {
		t.Helper()
		if err := l.take(&rc, c); (err == nil) != want {
			t.Errorf("the request passes: %v; want %t", err, want)
		}
	}

	l.giveBack(c)
	f(true)
	f(true)
	f(false)
	l.giveBack(c)
	f(true)
	f(false)

	now = now.Add(time.Hour)
	l.giveBack(c) // the bucket is full
	f(true)
	f(true)
	f(false)

	var none *limiter
	none.giveBack(c)
	if err := none.take(&rc, c); err != nil {
		t.Errorf("without a limit: %v", err)
	}
}
