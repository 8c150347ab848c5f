package httpserver

import (
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// ProxyConfig says which proxies are believed about the addresses of clients.
type ProxyConfig struct {
	TrustedProxies []netip.Prefix `env:"TRUSTED_PROXIES" example:"10.0.0.0/8" help:"networks of proxies whose X-Forwarded-For is believed, or whose Forwarded if there is no other, as in 10.0.0.0/8,192.0.2.7/32"`
}

// TrustedProxies knows the trusted proxies. A nil one trusts none: every peer is a client.
type TrustedProxies struct {
	trusted []netip.Prefix
	log     *slog.Logger
	// lastWarned has the Unix second of the last warning, for each header and its fault.
	lastWarned [len(forwardedHeaders)][2]atomic.Int64
}

// forwardedHeaders are the headers in which proxies tell the addresses of clients, the
// one that counts first: a proxy that sets the second adds nothing to the first, so a
// client could forge it.
var forwardedHeaders = [...]struct {
	name    string
	address func(member []byte) (netip.Addr, bool)
}{
	{fasthttp.HeaderXForwardedFor, parseNode},
	{fasthttp.HeaderForwarded, parseForwarded},
}

// The faults of a header that are logged.
const (
	untrustedPeer = iota // it comes from a peer that is no trusted proxy
	noAddress            // a trusted proxy names no address in it
)

// NewTrustedProxies returns the proxies that are trusted.
func NewTrustedProxies(config ProxyConfig, log *slog.Logger) *TrustedProxies {
	return &TrustedProxies{trusted: config.TrustedProxies, log: log}
}

// ClientIP returns the address of the client. It is that of the peer or, if the peer is a
// trusted proxy, the last one in X-Forwarded-For that is not a trusted proxy. What stands
// before that one may be forged. Forwarded counts where no X-Forwarded-For has a member.
// If a member names no address, the client is the hop behind it. An IPv4 address is never
// in its IPv6 form, and no address has a zone.
func (p *TrustedProxies) ClientIP(rc *fasthttp.RequestCtx) netip.Addr {
	return p.clientIP(rc.RemoteAddr(), &rc.Request.Header)
}

func (p *TrustedProxies) clientIP(from net.Addr, header interface{ PeekAll(name string) [][]byte }) netip.Addr {
	peer := addressOf(from)
	if p == nil {
		return peer
	}
	for i, forwarded := range forwardedHeaders {
		lines := header.PeekAll(forwarded.name)
		if len(lines) == 0 {
			continue
		}
		if !p.trusts(peer) {
			p.warn(i, untrustedPeer, peer)
			return peer
		}
		if client, found := p.clientFromHeader(i, peer, lines); found {
			return client
		}
	}
	return peer
}

// clientFromHeader returns the client that the lines of a header name; found reports whether they
// have a member.
func (p *TrustedProxies) clientFromHeader(header int, peer netip.Addr, lines [][]byte) (client netip.Addr, found bool) {
	client = peer
	for _, line := range slices.Backward(lines) {
		for rest := line; len(rest) > 0; {
			var member []byte
			if rest, member = cutLast(rest, ','); len(member) == 0 {
				continue // as behind a trailing comma (RFC 9110, section 5.6.1.2)
			}
			found = true
			hop, ok := forwardedHeaders[header].address(member)
			if !ok {
				p.warn(header, noAddress, peer)
				return client, true
			}
			if client = hop; !p.trusts(client) {
				return client, true
			}
		}
	}
	return client, found
}

func (p *TrustedProxies) trusts(address netip.Addr) bool {
	if p == nil {
		return false
	}
	for _, network := range p.trusted {
		if network.Contains(address) {
			return true
		}
	}
	return false
}

// warn logs a fault of a header, once a minute. The peer is a proxy, or a client that
// forges.
func (p *TrustedProxies) warn(header, fault int, peer netip.Addr) {
	last := &p.lastWarned[header][fault]
	now, before := time.Now().Unix(), last.Load()
	if now-before < 60 || !last.CompareAndSwap(before, now) {
		return
	}
	log := p.log.With("header", forwardedHeaders[header].name, "peer", peer.String())
	if fault == untrustedPeer {
		log.Warn("header from a peer that is no trusted proxy")
	} else {
		log.Warn("header of a trusted proxy names no address")
	}
}

// ClientPrefix returns the network that limits count a client by. Whoever has an
// IPv6 address has the 2^64 around it, too.
func ClientPrefix(client netip.Addr) netip.Prefix {
	bits := 64
	if client.Is4() {
		bits = 32
	}
	return netip.PrefixFrom(client, bits).Masked()
}

func addressOf(peer net.Addr) netip.Addr {
	if tcp, ok := peer.(*net.TCPAddr); ok {
		return unmapped(tcp.AddrPort().Addr())
	}
	return netip.IPv4Unspecified()
}

// unmapped returns an address in the one form in which it is compared.
func unmapped(address netip.Addr) netip.Addr { return address.Unmap().WithZone("") }
