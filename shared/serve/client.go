package serve

import (
	"bytes"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// ProxyConfig says whose word about clients' addresses is believed.
type ProxyConfig struct {
	TrustedProxies []netip.Prefix `env:"TRUSTED_PROXIES" example:"10.0.0.0/8" help:"networks of proxies whose X-Forwarded-For is believed, as in 10.0.0.0/8,192.0.2.7/32"`
}

// Proxies knows which peers only forward what clients ask. A nil one knows
// none: every peer is a client.
type Proxies struct {
	trusted []netip.Prefix
	log     *slog.Logger
	warned  atomic.Int64 // when a forged header was last logged, in Unix seconds
}

// NewProxies returns the proxies that are trusted.
func NewProxies(config ProxyConfig, log *slog.Logger) *Proxies {
	return &Proxies{trusted: config.TrustedProxies, log: log}
}

// Client returns the address of the client: that of the peer or, if the peer is
// a trusted proxy, the last one in X-Forwarded-For that is none. What stands
// before it could be anybody's invention. An IPv4 address is never in its IPv6
// form, and none has a zone.
func (p *Proxies) Client(rc *fasthttp.RequestCtx) netip.Addr {
	client := addressOf(rc.RemoteAddr())
	if p == nil {
		return client
	}
	lines := rc.Request.Header.PeekAll(fasthttp.HeaderXForwardedFor)
	if !p.trusts(client) {
		if len(lines) > 0 {
			p.warn(client)
		}
		return client
	}
	hops := strings.Split(string(bytes.Join(lines, []byte(","))), ",")
	for i := len(hops) - 1; i >= 0 && p.trusts(client); i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		client = plain(hop)
	}
	return client
}

func (p *Proxies) trusts(address netip.Addr) bool {
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

// warn logs, once a minute, that a peer forwards for others without being
// trusted: a forgery, or a proxy that nobody has configured.
func (p *Proxies) warn(peer netip.Addr) {
	now, last := time.Now().Unix(), p.warned.Load()
	if now-last >= 60 && p.warned.CompareAndSwap(last, now) {
		p.log.Warn("x-forwarded-for from a peer that is no trusted proxy", "peer", peer.String())
	}
}

// Network returns the network that limits count a client by. Whoever has an
// IPv6 address has the 2^64 around it, too.
func Network(client netip.Addr) netip.Prefix {
	bits := 64
	if client.Is4() {
		bits = 32
	}
	return netip.PrefixFrom(client, bits).Masked()
}

func addressOf(peer net.Addr) netip.Addr {
	if tcp, ok := peer.(*net.TCPAddr); ok {
		return plain(tcp.AddrPort().Addr())
	}
	return netip.IPv4Unspecified()
}

// plain returns an address in the one form in which it is compared.
func plain(address netip.Addr) netip.Addr { return address.Unmap().WithZone("") }
