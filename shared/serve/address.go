package serve

import (
	"net"
	"net/netip"
	"sync"
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

// Peers bounds how many connections of one peer are open at once. Proxies that are
// trusted have any number, since theirs are everybody's. A nil one bounds nothing.
type Peers struct {
	most    int
	proxies *Proxies

	mu   sync.Mutex
	open map[netip.Prefix]int
}

// Peers returns the bound of connections, nil for none.
func (d Door) Peers() *Peers {
	if d.Limits.AddressConnections == 0 {
		return nil
	}
	return &Peers{most: d.Limits.AddressConnections, proxies: d.Proxies, open: map[netip.Prefix]int{}}
}

// admit counts a connection from an address in, and returns what counts it out each time
// it is called; nil if it is one too many.
func (p *Peers) admit(from net.Addr) (leave func()) {
	address := addressOf(from)
	if p == nil || p.proxies != nil && p.proxies.trusts(address) {
		return func() {}
	}
	peer := Network(address)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[peer] >= p.most {
		return nil
	}
	p.open[peer]++
	return func() { p.leave(peer) }
}

func (p *Peers) leave(peer netip.Prefix) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[peer]--; p.open[peer] == 0 {
		delete(p.open, peer)
	}
}
