package ratelimit

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// One network gets the whole rate while no other needs it, and only its share while others
// do, which all get theirs.
func TestUnknownLimitIsShared(t *testing.T) {
	t.Parallel()
	const rate = 100
	u, now := NewUnknown(rate), time.Now()
	flooding, normal := netip.MustParsePrefix("203.0.113.0/24"), func(i int) netip.Prefix { return netip.MustParsePrefix(fmt.Sprintf("198.51.%d.0/24", i)) }
	// flood returns how many look-ups a network is allowed at a hundred times the rate. It
	// calls meanwhile in each millisecond.
	flood := func(d time.Duration, meanwhile func()) (allowed int) {
		for end := now.Add(d); now.Before(end); now = now.Add(time.Millisecond) {
			for range rate / 10 {
				if _, ok := u.Take(flooding, now); ok {
					allowed++
				}
			}
			meanwhile()
		}
		return allowed
	}

	const burst = unknownBurstSeconds*rate + rate // with the share of the reserve
	if got, want := flood(100*time.Second, func() {}), burst+100*rate; got < want-2*rate || got > want {
		t.Errorf("alone a network is allowed %d look-ups in 100 s; want %d", got, want)
	}
	rejected := 0
	calls := 0
	got := flood(100*time.Second, func() {
		// Nine more networks need nine tenths of the rate.
		if calls++; calls%(1000/(9*rate/10)) == 0 {
			if _, ok := u.Take(normal(calls%9), now); !ok {
				rejected++
			}
		}
	})
	testenv.Check(t, rejected == 0, "%d look-ups of other networks are rejected meanwhile", rejected)
	if want := 100 * rate / unknownShares; got < want || got > 2*want {
		t.Errorf("the flooding network is allowed %d look-ups in 100 s; want its share, %d, or a little more", got, want)
	}
	if !u.WouldReject(flooding, now) || u.WouldReject(normal(0), now) || u.WouldReject(netip.Prefix{}, now) {
		t.Error("want only the flooding network to be rejected")
	}
}

// A refunded look-up counts neither for the total nor for its network.
func TestUnknownLimitRefunds(t *testing.T) {
	t.Parallel()
	const rate = 10
	u, now := NewUnknown(rate), time.Now()
	network := netip.MustParsePrefix("203.0.113.0/24")
	for range 100 * unknownBurstSeconds * rate {
		c, ok := u.Take(network, now)
		if !ok {
			t.Fatal("a refunded look-up counts")
		}
		c.Refund()
	}
	for _, ok := u.Take(network, now); ok; _, ok = u.Take(network, now) {
	}
	other, ok := u.Take(netip.MustParsePrefix("198.51.100.0/24"), now)
	if !ok || !other.fromShare {
		t.Fatalf("take for another network = %+v, %t; want it from the share", other, ok)
	}
	before := u.total.Peek(struct{}{}, now).Left
	other.Refund()
	testenv.Equal(t, u.total.Peek(struct{}{}, now).Left, before+1, "left in total after one of %d was refunded", before)
}

// A rejected look-up is not charged to its network's share: networks that together empty the
// bucket do not use up the share of another network meanwhile.
func TestUnknownLimitDoesNotChargeRejections(t *testing.T) {
	t.Parallel()
	const rate = 100
	u, now := NewUnknown(rate), time.Now()
	for i := 0; !u.WouldReject(netip.Prefix{}, now); i++ {
		flooding := netip.MustParsePrefix(fmt.Sprintf("203.0.%d.0/24", i))
		for _, ok := u.Take(flooding, now); ok; _, ok = u.Take(flooding, now) {
		}
	}
	normal := netip.MustParsePrefix("198.51.100.0/24")
	for range rate {
		if _, ok := u.Take(normal, now); ok {
			t.Fatal("a look-up is allowed when the bucket is empty")
		}
	}
	now = now.Add(time.Second)
	for i := range rate {
		if _, ok := u.Take(normal, now); !ok {
			t.Fatalf("look-up %d of the network's share is rejected a second later", i+1)
		}
	}
}
