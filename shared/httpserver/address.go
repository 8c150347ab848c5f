package httpserver

import (
	"net/netip"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
	"github.com/veneer-skins/veneer/shared/ratelimit"
)

// AddressLimiter bounds the requests of each client address, on a server and its fast path
// together. Requests are counted by the address that proxies forward, and by the /64 network
// of an IPv6 one. A nil AddressLimiter bounds none.
type AddressLimiter struct {
	opts    Options
	limiter *ratelimit.Limiter[netip.Prefix]
}

// AddressLimiter returns the limiter that Limits asks for, nil if there is no limit.
func (o Options) AddressLimiter() *AddressLimiter {
	if o.Limits.AddressRequests == 0 {
		return nil
	}
	return &AddressLimiter{o, ratelimit.New[netip.Prefix](o.Limits.AddressRequests, time.Second, o.Limits.AddressBurst)}
}

// Handler returns h behind the limit; requests beyond it are answered with 429.
func (l *AddressLimiter) Handler(h fasthttp.RequestHandler) fasthttp.RequestHandler {
	if l == nil {
		return h
	}
	return func(rc *fasthttp.RequestCtx) {
		if l.opts.IsUnlimited != nil && l.opts.IsUnlimited(rc.Path()) {
			h(rc)
			return
		}
		state := l.limiter.Take(clientip.Prefix(l.opts.Proxies.ClientIP(rc)), rc.Time())
		if state.Wait == 0 {
			h(rc)
			return
		}
		if l.opts.DefaultHeaders != nil {
			l.opts.DefaultHeaders(rc)
		}
		WriteError(rc, &fault.Error{
			Kind: fault.TooMany, Message: "There were too many requests from your address. Please wait before the next one.", RetryAfter: state.Wait,
		})
	}
}

// allow counts a request on the fast path, and reports whether it is allowed. If not, the
// server rejects it.
func (l *AddressLimiter) allow(c *FastContext) bool {
	if l == nil {
		return true
	}
	c.network = clientip.Prefix(c.ClientIP())
	return l.limiter.Take(c.network, c.At).Wait == 0
}

// refund takes back a request that the fast path leaves to the server, which counts it.
func (l *AddressLimiter) refund(c *FastContext) {
	if l != nil {
		l.limiter.Refund(c.network)
	}
}

// PeerLimits bounds the connections of each peer address. Trusted proxies may have any
// number, since theirs carry many clients. The zero value trusts no proxy.
type PeerLimits struct {
	maxConns int // per address; 0: any number
	proxies  *clientip.Proxies
}

// PeerLimits returns the bounds that Limits asks for.
func (o Options) PeerLimits() PeerLimits {
	return PeerLimits{maxConns: o.Limits.AddressConnections, proxies: o.Proxies}
}
