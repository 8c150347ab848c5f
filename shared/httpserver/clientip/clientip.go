// Package clientip finds the address of the client of a request, behind trusted proxies that
// set X-Forwarded-For or Forwarded (RFC 7239), and the networks by which limits count clients.
package clientip

import (
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/logging"
)

// Config says which proxies are trusted to forward the addresses of clients.
type Config struct {
	TrustedProxies []netip.Prefix `env:"TRUSTED_PROXIES" example:"10.0.0.0/8" help:"networks of proxies that are trusted to set X-Forwarded-For, or Forwarded if there is no X-Forwarded-For, as in 10.0.0.0/8,192.0.2.7/32"`
}

// Proxies finds the addresses of clients behind trusted proxies. A nil one trusts none: every
// peer is a client.
type Proxies struct {
	trusted []netip.Prefix
	log     *slog.Logger
	// warnings are by header and problem.
	warnings [len(forwardedHeaders)][2]logging.OncePerMinute
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

// New returns the proxies of a configuration.
func New(config Config, log *slog.Logger) *Proxies {
	return &Proxies{trusted: config.TrustedProxies, log: log}
}

// ClientIP returns the address of the client: the peer, or, if the peer is a trusted proxy,
// the last address in X-Forwarded-For that is not a trusted proxy. Addresses before that may
// be forged. Forwarded is used if X-Forwarded-For has no member. If a member is not an
// address, the client is the hop after it. The address is never IPv4-mapped IPv6, and has no
// zone.
func (p *Proxies) ClientIP(rc *fasthttp.RequestCtx) netip.Addr {
	return p.ClientIPFrom(rc.RemoteAddr(), &rc.Request.Header)
}

// ClientIPFrom returns what ClientIP does, from the address of the peer and the header.
func (p *Proxies) ClientIPFrom(from net.Addr, header interface{ PeekAll(name string) [][]byte }) netip.Addr {
	peer := PeerIP(from)
	if p == nil {
		return peer
	}
	for i, forwarded := range forwardedHeaders {
		lines := header.PeekAll(forwarded.name)
		if len(lines) == 0 {
			continue
		}
		if !p.Trusts(peer) {
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
func (p *Proxies) clientFromHeader(header int, peer netip.Addr, lines [][]byte) (client netip.Addr, found bool) {
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
			if client = hop; !p.Trusts(client) {
				return client, true
			}
		}
	}
	return client, found
}

// HeaderForwardedHost has the host of the client's request, which a proxy sends to a server by
// another name.
const HeaderForwardedHost = "X-Forwarded-Host"

// RequestedHost returns the host that the client requested, with the port if it is not the scheme's
// own: the Host header, or, if the peer is a trusted proxy, the first in X-Forwarded-Host.
// Unlike the address of the client, a proxy may forward it as the client sent it.
func (p *Proxies) RequestedHost(rc *fasthttp.RequestCtx) string {
	if p.Trusts(PeerIP(rc.RemoteAddr())) {
		first, _, _ := strings.Cut(string(rc.Request.Header.Peek(HeaderForwardedHost)), ",")
		if first = strings.TrimSpace(first); first != "" {
			return first
		}
	}
	return string(rc.Request.Header.Host())
}

// Trusts reports whether an address belongs to a trusted proxy.
func (p *Proxies) Trusts(address netip.Addr) bool {
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

// ignored counts how often a header is ignored, by header and problem.
var ignored = func() (counters [len(forwardedHeaders)][2]prometheus.Counter) {
	all := promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "veneer_forwarded_headers_ignored_total",
		Help: "How often a client's address was not taken from X-Forwarded-For or Forwarded: of an untrusted peer, or without an address. A request may count several times.",
	}, []string{"header", "reason"})
	for i, header := range forwardedHeaders {
		for fault, reason := range []string{untrustedPeer: "untrusted", noAddress: "unread"} {
			counters[i][fault] = all.WithLabelValues(header.name, reason)
		}
	}
	return counters
}()

// warn counts a problem of a header, and logs it at most once a minute. The peer is a misconfigured proxy,
// or a client that forges.
func (p *Proxies) warn(header, fault int, peer netip.Addr) {
	ignored[header][fault].Inc()
	if !p.warnings[header][fault].Allow() {
		return
	}
	log := p.log.With("header", forwardedHeaders[header].name, "peer", peer.String())
	if fault == untrustedPeer {
		log.Warn("forwarded header from an untrusted peer")
	} else {
		log.Warn("forwarded header of a trusted proxy has no address")
	}
}

// PeerIP returns the IP address of a peer, 0.0.0.0 if it is not on TCP.
func PeerIP(peer net.Addr) netip.Addr {
	if tcp, ok := peer.(*net.TCPAddr); ok {
		return unmapped(tcp.AddrPort().Addr())
	}
	return netip.IPv4Unspecified()
}

// unmapped returns an address in the form in which addresses are compared.
func unmapped(address netip.Addr) netip.Addr { return address.Unmap().WithZone("") }
