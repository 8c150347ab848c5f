package api

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

// repeats keeps the responses of those hits that are requested most, by the request's target as it was sent. Such a
// request is not parsed, and its header is not written anew.
type repeats struct {
	seed  maphash.Seed
	slots [repeatSlots]repeatSlot
}

const (
	repeatSlots = 4096
	// maxRepeatBody is the most bytes of a body, which is kept after its picture is evicted: 24 MiB of all slots. Most
	// files of skins of 64 by 64 texels have 1 to 5 KB.
	maxRepeatBody = 6 << 10
	// maxRepeatTarget is the most bytes of a target and an entity tag, which a client may make as long as a header.
	maxRepeatTarget = 512
	// maxStrikes is how many other requests in a row take a slot from its response. A response of a tenth of the
	// slot's requests keeps it for some eight thousand of them, one of a hundredth for ninety.
	maxStrikes = 64
)

// repeatSlot is the place of all requests with a hash.
type repeatSlot struct {
	hash    atomic.Uint64 // of kept: most other requests need not read that
	kept    atomic.Pointer[repeat]
	strikes atomic.Uint32 // requests since the last one for kept
}

// repeat is a response that is sent again while Pictures would respond the same.
type repeat struct {
	target, noneMatch string
	response          edge.Response
	stored            *httpserver.Stored
}

func newRepeats() *repeats { return &repeats{seed: maphash.MakeSeed()} }

// slot returns the slot of a request, and the request's hash.
func (r *repeats) slot(c *httpserver.FastContext) (slot *repeatSlot, hash uint64) {
	hash = maphash.Bytes(r.seed, c.Target)
	if c.NoneMatch != nil {
		hash ^= maphash.Bytes(r.seed, c.NoneMatch)
	}
	return &r.slots[hash%repeatSlots], hash
}

// tryRepeat responds with what a slot keeps, and reports whether it is the response.
func (s *Server) tryRepeat(c *httpserver.FastContext, slot *repeatSlot, hash uint64) bool {
	if slot.hash.Load() != hash {
		return false
	}
	kept := slot.kept.Load()
	if kept == nil || kept.target != string(c.Target) || kept.noneMatch != string(c.NoneMatch) || (c.Conditions != nil) != (kept.noneMatch != "") {
		return false
	}
	if !s.pictures.TryAgain(&kept.response, c.At) {
		slot.kept.CompareAndSwap(kept, nil)
		return false
	}
	if slot.strikes.Load() != 0 {
		slot.strikes.Store(0)
	}
	c.SetStored(kept.stored)
	return true
}

// keep keeps a response of the fast path, unless the slot's former one is requested more. A response whose body
// or header depends on the time of the request is not kept.
func (s *repeatSlot) keep(c *httpserver.FastContext, hash uint64, x *exchange) {
	res := &x.response
	isFixed := res.Body != nil && x.request.Kind != edge.KindProfile && (x.at.Unix() > res.Mapping.Modified || !x.request.IsForGames())
	if !isFixed || len(res.Body) > maxRepeatBody || len(c.Target)+len(c.NoneMatch) > maxRepeatTarget || c.Conditions != nil && len(c.NoneMatch) == 0 {
		return
	}
	if s.kept.Load() != nil && s.strikes.Add(1) < maxStrikes {
		return
	}
	s.strikes.Store(0)
	s.hash.Store(hash)
	s.kept.Store(&repeat{
		target: string(c.Target), noneMatch: string(c.NoneMatch), response: x.response, stored: c.Store(),
	})
}
