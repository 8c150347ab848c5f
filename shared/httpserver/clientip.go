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

// ProxyConfig says which proxies are trusted to forward the addresses of clients.
type ProxyConfig struct {
	TrustedProxies []netip.Prefix `env:"TRUSTED_PROXIES" example:"10.0.0.0/8" help:"networks of proxies that are trusted to set X-Forwarded-For, or Forwarded if there is no X-Forwarded-For, as in 10.0.0.0/8,192.0.2.7/32"`
}

// TrustedProxies finds the addresses of clients behind trusted proxies. A nil one trusts
// none: every peer is a client.
type TrustedProxies struct {
	trusted []netip.Prefix
	log     *slog.Logger
	// lastWarned has the Unix second of the last warning, by header and problem.
	lastWarned [len(forwardedHeaders)][2]atomic.Int64
}

// forwardedHeaders are the headers with the addresses of clients, in the order of precedence.
// A proxy that sets the second leaves the first as it came, so a client could forge it.
var forwardedHeaders = [...]struct {
	name    string
	address func(member []byte) (netip.Addr, bool)
}{
	{fasthttp.HeaderXForwardedFor, parseNode},
	{fasthttp.HeaderForwarded, parseForwarded},
}

// Problems of a header that are logged.
const (
	untrustedPeer = iota // the peer is no trusted proxy
	noAddress            // the header of a trusted proxy has no address
)

// NewTrustedProxies returns the proxies of a configuration.
func NewTrustedProxies(config ProxyConfig, log *slog.Logger) *TrustedProxies {
	return &TrustedProxies{trusted: config.TrustedProxies, log: log}
}

// ClientIP returns the address of the client: the peer, or, if the peer is a trusted proxy,
// the last address in X-Forwarded-For that is not a trusted proxy. Addresses before that may
// be forged. Forwarded is used if X-Forwarded-For has no member. If a member is not an
// address, the client is the hop after it. The address is never IPv4-mapped IPv6, and has no
// zone.
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

// clientFromHeader returns the client that the lines of a header name; found reports whether
// they have a member.
func (p *TrustedProxies) clientFromHeader(header int, peer netip.Addr, lines [][]byte) (client netip.Addr, found bool) {
	client = peer
	for _, line := range slices.Backward(lines) {
		for rest := line; len(rest) > 0; {
			var member []byte
			if rest, member = cutLast(rest, ','); len(member) == 0 {
				continue // after a trailing comma for example (RFC 9110, section 5.6.1.2)
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

// warn logs a problem of a header, at most once a minute. The peer is a misconfigured proxy,
// or a client that forges.
func (p *TrustedProxies) warn(header, fault int, peer netip.Addr) {
	last := &p.lastWarned[header][fault]
	now, before := time.Now().Unix(), last.Load()
	if now-before < 60 || !last.CompareAndSwap(before, now) {
		return
	}
	log := p.log.With("header", forwardedHeaders[header].name, "peer", peer.String())
	if fault == untrustedPeer {
		log.Warn("forwarded header from an untrusted peer")
	} else {
		log.Warn("forwarded header of a trusted proxy has no address")
	}
}

// ClientPrefix returns the prefix by which rate limits count a client: the address itself for
// IPv4, and the /64 for IPv6, since every IPv6 host has a whole /64.
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

// unmapped returns an address in the form in which addresses are compared.
func unmapped(address netip.Addr) netip.Addr { return address.Unmap().WithZone("") }
