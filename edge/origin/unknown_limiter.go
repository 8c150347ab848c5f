package origin

import (
	"net/netip"
	"time"

	"github.com/veneer-skins/veneer/shared/ratelimit"
)

// unknownLimiter limits look-ups of keys that lead nowhere. One client network may use the
// whole rate as long as no other needs it: half of the bucket is a reserve, from which
// each network may take no more than its share. So a network that makes names up empties
// its half, and the first look-ups of all other networks still succeed.
//
// A nil unknown limits nothing.
type unknownLimiter struct {
	total     *ratelimit.Limiter[struct{}]
	byNetwork *ratelimit.Limiter[netip.Prefix] // of the reserve

	reserve int
}

const (
	// unknownBurstSeconds is for how many seconds' look-ups the bucket has room beside the
	// reserve, which is as large.
	unknownBurstSeconds = 10
	// unknownShares is the part of the rate that is one network's share of the reserve.
	unknownShares = 10
	// maxUnknownPerSecond is the highest rate that can be set, far beyond any that core could
	// answer.
	maxUnknownPerSecond = 1_000_000
)

// newUnknownLimiter returns a limit of so many look-ups a second; nil for 0.
func newUnknownLimiter(perSecond int) *unknownLimiter {
	if perSecond == 0 {
		return nil
	}
	reserve := unknownBurstSeconds * perSecond
	return &unknownLimiter{
		total:     ratelimit.New[struct{}](perSecond, time.Second, 2*reserve),
		byNetwork: ratelimit.New[netip.Prefix](perSecond, unknownShares*time.Second, perSecond),
		reserve:   reserve,
	}
}

// charge is what a look-up has used up of the limit.
type charge struct {
	limiter   *unknownLimiter // nil: it was not counted
	network   netip.Prefix
	fromShare bool
}

// take counts a look-up for a network, and reports whether the limit allows it.
func (u *unknownLimiter) take(network netip.Prefix, now time.Time) (charge, bool) {
	if u == nil {
		return charge{}, true
	}
	c := charge{limiter: u, network: network, fromShare: u.total.Peek(struct{}{}, now).Left < u.reserve}
	if c.fromShare && u.byNetwork.Take(network, now).Wait > 0 {
		return charge{}, false
	}
	if u.total.Take(struct{}{}, now).Wait > 0 {
		if c.fromShare {
			u.byNetwork.Refund(network)
		}
		return charge{}, false
	}
	return c, true
}

// wouldReject reports whether take would refuse a look-up for a network, or, if that is the
// zero Prefix, for all networks.
func (u *unknownLimiter) wouldReject(network netip.Prefix, now time.Time) bool {
	if u == nil {
		return false
	}
	state := u.total.Peek(struct{}{}, now)
	return state.Wait > 0 || network.IsValid() && state.Left < u.reserve && u.byNetwork.Peek(network, now).Wait > 0
}

// refund takes back a look-up that should not have counted.
func (c charge) refund() {
	if c.limiter == nil {
		return
	}
	c.limiter.total.Refund(struct{}{})
	if c.fromShare {
		c.limiter.byNetwork.Refund(c.network)
	}
}
