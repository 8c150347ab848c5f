package origin

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

// One network has the whole rate while no other needs it, and a share of it while others
// do, who all have theirs.
func TestUnknownLimitIsShared(t *testing.T) {
	t.Parallel()
	const rate = 100
	u, now := newUnknownLimiter(rate), time.Now()
	flooding, normal := netip.MustParsePrefix("203.0.113.0/24"), func(i int) netip.Prefix { return netip.MustParsePrefix(fmt.Sprintf("198.51.%d.0/24", i)) }
	// flood returns how many look-ups a network is allowed that asks a hundred times as
	// often as the rate allows, and meanwhile does other things, in each millisecond.
	flood := func(d time.Duration, meanwhile func()) (allowed int) {
		for end := now.Add(d); now.Before(end); now = now.Add(time.Millisecond) {
			for range rate / 10 {
				if _, ok := u.take(flooding, now); ok {
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
	refused := 0
	asked := 0
	got := flood(100*time.Second, func() {
		// Nine more networks need nine tenths of the rate.
		if asked++; asked%(1000/(9*rate/10)) == 0 {
			if _, ok := u.take(normal(asked%9), now); !ok {
				refused++
			}
		}
	})
	if refused > 0 {
		t.Errorf("%d look-ups of other networks are refused meanwhile", refused)
	}
	if want := 100 * rate / unknownShares; got < want || got > 2*want {
		t.Errorf("a network that makes names up is allowed %d look-ups in 100 s beside others; want its share, %d, or a little more", got, want)
	}
	if !u.wouldReject(flooding, now) || u.wouldReject(normal(0), now) || u.wouldReject(netip.Prefix{}, now) {
		t.Error("not the network that makes names up is refused, and no other")
	}
}

// What led somewhere, or was not asked about after all, counts neither for all nor for
// its network.
func TestUnknownLimitRefunds(t *testing.T) {
	t.Parallel()
	const rate = 10
	u, now := newUnknownLimiter(rate), time.Now()
	network := netip.MustParsePrefix("203.0.113.0/24")
	for range 100 * unknownBurstSeconds * rate {
		c, ok := u.take(network, now)
		if !ok {
			t.Fatal("what was given back counts")
		}
		c.refund()
	}
	for _, ok := u.take(network, now); ok; _, ok = u.take(network, now) {
	}
	other, ok := u.take(netip.MustParsePrefix("198.51.100.0/24"), now)
	if !ok || !other.fromShare {
		t.Fatalf("take for another network = %+v, %t; want it from the share", other, ok)
	}
	before := u.total.Peek(struct{}{}, now).Left
	other.refund()
	if left := u.total.Peek(struct{}{}, now).Left; left != before+1 {
		t.Errorf("%d are left for all after one of %d was given back", left, before)
	}
}

// A look-up that is refused uses nothing up of its network's share: networks that together
// empty the bucket take no share from one that asks meanwhile.
func TestUnknownLimitDoesNotChargeRejections(t *testing.T) {
	t.Parallel()
	const rate = 100
	u, now := newUnknownLimiter(rate), time.Now()
	for i := 0; !u.wouldReject(netip.Prefix{}, now); i++ {
		flooding := netip.MustParsePrefix(fmt.Sprintf("203.0.%d.0/24", i))
		for _, ok := u.take(flooding, now); ok; _, ok = u.take(flooding, now) {
		}
	}
	normal := netip.MustParsePrefix("198.51.100.0/24")
	for range rate {
		if _, ok := u.take(normal, now); ok {
			t.Fatal("a look-up is allowed when the bucket is empty")
		}
	}
	now = now.Add(time.Second)
	for i := range rate {
		if _, ok := u.take(normal, now); !ok {
			t.Fatalf("look-up %d of the network's share is refused a second later", i+1)
		}
	}
}
