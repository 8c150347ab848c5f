package ratelimit

import (
	"net/netip"
	"time"
)

// Unknown limits look-ups of keys that do not exist, such as made-up names. One client
// network may use the whole rate while no other needs it. Half of the bucket is a reserve,
// from which each network may take its share only. So a network that floods a program with
// made-up names empties one half, and look-ups of all other networks still succeed.
//
// A nil Unknown limits nothing.
type Unknown struct {
	total     *Limiter[struct{}]
	byNetwork *Limiter[netip.Prefix] // shares of the reserve

	reserve int
}

const (
	// unknownBurstSeconds is the size of each half of the bucket, in seconds of the rate.
	unknownBurstSeconds = 10
	// unknownShares is the divisor of the rate for one network's share of the reserve.
	unknownShares = 10
)

// NewUnknown returns a limiter for a rate, nil for 0.
func NewUnknown(perSecond int) *Unknown {
	if perSecond == 0 {
		return nil
	}
	reserve := unknownBurstSeconds * perSecond
	return &Unknown{
		total:     New[struct{}](perSecond, time.Second, 2*reserve),
		byNetwork: New[netip.Prefix](perSecond, unknownShares*time.Second, perSecond),
		reserve:   reserve,
	}
}

// Charge is the part of the limit that a look-up has used.
type Charge struct {
	limiter   *Unknown // nil: nothing was charged
	network   netip.Prefix
	fromShare bool
}

// Take charges a look-up to a network. It reports whether the limit allows it.
func (u *Unknown) Take(network netip.Prefix, now time.Time) (Charge, bool) {
	if u == nil {
		return Charge{}, true
	}
	c := Charge{limiter: u, network: network, fromShare: u.total.Peek(struct{}{}, now).Left < u.reserve}
	if c.fromShare && u.byNetwork.Take(network, now).Wait > 0 {
		return Charge{}, false
	}
	if u.total.Take(struct{}{}, now).Wait > 0 {
		if c.fromShare {
			u.byNetwork.Refund(network)
		}
		return Charge{}, false
	}
	return c, true
}

// WouldReject reports whether Take would reject a look-up of a network or, for the zero
// Prefix, of every network.
func (u *Unknown) WouldReject(network netip.Prefix, now time.Time) bool {
	if u == nil {
		return false
	}
	state := u.total.Peek(struct{}{}, now)
	return state.Wait > 0 || network.IsValid() && state.Left < u.reserve && u.byNetwork.Peek(network, now).Wait > 0
}

// Refund returns the charge of a look-up that should not count.
func (c Charge) Refund() {
	if c.limiter == nil {
		return
	}
	c.limiter.total.Refund(struct{}{})
	if c.fromShare {
		c.limiter.byNetwork.Refund(c.network)
	}
}
