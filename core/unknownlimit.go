package core

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/veneer-skins/veneer/shared/bloom"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/ratelimit"
)

var unknownRejected = promauto.NewCounter(prometheus.CounterOpts{
	Name: "veneer_core_unknown_rejected_total", Help: "Look-ups by launchers and game servers that were rejected, since too many others of the network, or in all, found nothing.",
})

// UnknownLimits bounds the look-ups that find nothing.
// Its setting is CORE_YGGDRASIL_UNKNOWN_PER_SECOND.
type UnknownLimits struct {
	PerSecond int `env:"UNKNOWN_PER_SECOND" envDefault:"1000" min:"0" max:"1000000" help:"maximum number of look-ups a second of joins, names, UUIDs and tokens that do not exist, by launchers and game servers, with bursts of ten times as many; beyond that, what is not known to exist gets 429; one client network gets at most a tenth of it while others need it; 0: no limit"`
}

// UnknownLimit limits look-ups that find nothing: each costs a query. A look-up that finds its key does not
// count, and none is refused for the last million keys that were found. A nil UnknownLimit limits nothing.
type UnknownLimit struct {
	limiter *ratelimit.Unknown
	known   *bloom.Filter
}

// NewUnknownLimit returns a limit.
func NewUnknownLimit(limits UnknownLimits) *UnknownLimit {
	return &UnknownLimit{ratelimit.NewUnknown(limits.PerSecond), bloom.New()}
}

// do looks keys up. find returns the error of the look-up, and which keys exist. The client of ctx is
// charged before for keys that are not known to exist, and gets back what is found. A TooMany fault
// means that nothing was looked up.
func (u *UnknownLimit) do(ctx context.Context, keys []string, find func() (exists func(key string) bool, err error)) error {
	if u == nil {
		_, err := find()
		return err
	}
	now, network := time.Now(), ClientOf(ctx).Network
	charges := make([]ratelimit.Charge, len(keys))
	for i, key := range keys {
		if u.known.Has(key) {
			continue
		}
		var ok bool
		if charges[i], ok = u.limiter.Take(network, now); !ok {
			for _, charge := range charges[:i] {
				charge.Refund()
			}
			unknownRejected.Inc()
			return &fault.Error{Kind: fault.TooMany, Message: "Too many look-ups have found nothing. Please try again.", RetryAfter: time.Second}
		}
	}
	exists, err := find()
	kind := fault.KindOf(err)
	failed := err != nil && kind != fault.NotFound && kind != fault.Unauthenticated
	for i, key := range keys {
		found := err == nil && exists(key)
		if found {
			u.known.Add(key)
		}
		if found || failed {
			charges[i].Refund()
		}
	}
	return err
}

// add says that a key exists.
func (u *UnknownLimit) add(key string) {
	if u != nil {
		u.known.Add(key)
	}
}

// doOne looks one key up.
func (u *UnknownLimit) doOne(ctx context.Context, key string, find func() error) error {
	return u.do(ctx, []string{key}, func() (func(string) bool, error) {
		return func(string) bool { return true }, find()
	})
}
