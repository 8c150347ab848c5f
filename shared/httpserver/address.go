package httpserver

import (
	"net/netip"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/ratelimit"
)

// AddressLimiter bounds the requests of each client address, those of a server and of its
// fast path together. They are counted for the address that proxies tell, and for the whole
// network of an IPv6 one. A nil one bounds none.
type AddressLimiter struct {
	opts    Options
	limiter *ratelimit.Limiter[netip.Prefix]
}

// AddressLimiter returns what the limits allow each address; nil if that is any number.
func (d Options) AddressLimiter() *AddressLimiter {
	if d.Limits.AddressRequests == 0 {
		return nil
	}
	return &AddressLimiter{d, ratelimit.New[netip.Prefix](d.Limits.AddressRequests, time.Second, d.Limits.AddressBurst)}
}

// Handler returns a handler that answers no more requests than are allowed.
func (l *AddressLimiter) Handler(h fasthttp.RequestHandler) fasthttp.RequestHandler {
	if l == nil {
		return h
	}
	return func(rc *fasthttp.RequestCtx) {
		state := l.limiter.Take(ClientPrefix(l.opts.Proxies.ClientIP(rc)), rc.Time())
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

// allow counts a request on the fast path, and reports whether it is allowed. Otherwise the
// server refuses it.
func (l *AddressLimiter) allow(c *FastContext) bool {
	if l == nil {
		return true
	}
	c.network = ClientPrefix(c.ClientIP())
	return l.limiter.Take(c.network, c.At).Wait == 0
}

// refund takes back a request that is left to the server, which counts it.
func (l *AddressLimiter) refund(c *FastContext) {
	if l != nil {
		l.limiter.Refund(c.network)
	}
}

// PeerLimits is what a listener grants its peers. Trusted proxies have any number of
// connections, which are those of all their clients. The zero value trusts no proxy.
type PeerLimits struct {
	maxConns int // connections of one address; 0: any number
	proxies  *TrustedProxies
}

// PeerLimits returns what the limits grant.
func (d Options) PeerLimits() PeerLimits {
	return PeerLimits{maxConns: d.Limits.AddressConnections, proxies: d.Proxies}
}
