package origin

import (
	"net/netip"
	"time"

	"github.com/veneer-skins/veneer/shared/limit"
)

// unknown limits look-ups of keys that lead nowhere. One client network may use the
// whole rate as long as no other needs it: half of the bucket is a reserve, from which
// each network may take no more than its share. So a network that makes names up empties
// its half, and the first look-ups of all other networks still succeed.
//
// A nil unknown limits nothing.
type unknown struct {
	all    *limit.Limiter[struct{}]
	shares *limit.Limiter[netip.Prefix] // of the reserve

	reserve int
}

const (
	// unknownBurst is for how many seconds' look-ups the bucket has room beside the
	// reserve, which is as large.
	unknownBurst = 10
	// unknownShares is the part of the rate that is one network's share of the reserve.
	unknownShares = 10
	// mostUnknown is the highest rate that can be set, far beyond any that core could
	// answer.
	mostUnknown = 1_000_000
)

// newUnknown returns a limit of so many look-ups a second; nil for 0.
func newUnknown(perSecond int) *unknown {
	if perSecond == 0 {
		return nil
	}
	reserve := unknownBurst * perSecond
	return &unknown{
		all:     limit.New[struct{}](perSecond, time.Second, 2*reserve),
		shares:  limit.New[netip.Prefix](perSecond, unknownShares*time.Second, perSecond),
		reserve: reserve,
	}
}

// charge is what a look-up has used up of the limit.
type charge struct {
	in        *unknown // nil: it was not counted
	network   netip.Prefix
	fromShare bool
}

// take counts a look-up for a network, and reports whether the limit allows it.
func (u *unknown) take(network netip.Prefix, now time.Time) (charge, bool) {
	if u == nil {
		return charge{}, true
	}
	c := charge{in: u, network: network, fromShare: u.all.Look(struct{}{}, now).Left < u.reserve}
	if c.fromShare && u.shares.Take(network, now).Wait > 0 {
		return charge{}, false
	}
	if u.all.Take(struct{}{}, now).Wait > 0 {
		if c.fromShare {
			u.shares.GiveBack(network)
		}
		return charge{}, false
	}
	return c, true
}

// refuses reports whether take would refuse a look-up for a network, or, if that is the
// zero Prefix, for all networks.
func (u *unknown) refuses(network netip.Prefix, now time.Time) bool {
	if u == nil {
		return false
	}
	state := u.all.Look(struct{}{}, now)
	return state.Wait > 0 || network.IsValid() && state.Left < u.reserve && u.shares.Look(network, now).Wait > 0
}

// giveBack takes back a look-up that should not have counted.
func (c charge) giveBack() {
	if c.in == nil {
		return
	}
	c.in.all.GiveBack(struct{}{})
	if c.fromShare {
		c.in.shares.GiveBack(c.network)
	}
}
