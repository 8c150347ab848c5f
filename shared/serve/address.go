package serve

import (
	"net/netip"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/limit"
)

// LimitAddresses returns a handler that answers no more requests of a client
// address than its limit allows; h itself if there is none. They are counted for the
// address that proxies tell, and for the whole network of an IPv6 one.
func (d Door) LimitAddresses(h fasthttp.RequestHandler) fasthttp.RequestHandler {
	if d.Limits.AddressRequests == 0 {
		return h
	}
	limiter := limit.New[netip.Prefix](d.Limits.AddressRequests, time.Second, d.Limits.AddressBurst)
	return func(rc *fasthttp.RequestCtx) {
		state := limiter.Take(Network(d.Proxies.Client(rc)), rc.Time())
		if state.Wait == 0 {
			h(rc)
			return
		}
		if d.Mark != nil {
			d.Mark(rc)
		}
		Refuse(rc, &fault.Error{
			Kind: fault.TooMany, Message: "There were too many requests from your address. Please wait before the next one.", RetryAfter: state.Wait,
		})
	}
}

// Peers is what a listener grants its peers. Trusted proxies have any number of
// connections, which are those of all their clients. The zero value trusts no proxy.
type Peers struct {
	most    int // connections of one address; 0: any number
	proxies *Proxies
}

// Peers returns what the limits grant.
func (d Door) Peers() Peers {
	return Peers{most: d.Limits.AddressConnections, proxies: d.Proxies}
}
