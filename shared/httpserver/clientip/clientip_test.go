package clientip_test

import (
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
)

// from returns a request of a peer with lines of X-Forwarded-For.
func from(peer string, forwarded ...string) *fasthttp.RequestCtx {
	return withLines(peer, "X-Forwarded-For", forwarded...)
}

// withLines returns a request of a peer with lines of a header.
func withLines(peer, header string, lines ...string) *fasthttp.RequestCtx {
	rc := new(fasthttp.RequestCtx)
	rc.Init(&fasthttp.Request{}, net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(peer), 1234)), nil)
	for _, line := range lines {
		rc.Request.Header.Add(header, line)
	}
	return rc
}

func newProxies(log *slog.Logger, networks ...string) *clientip.Proxies {
	var config clientip.Config
	for _, network := range networks {
		config.TrustedProxies = append(config.TrustedProxies, netip.MustParsePrefix(network))
	}
	return clientip.New(config, log)
}

// silent returns a logger for tests that do not look at the log.
func silent() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestClientIP(t *testing.T) {
	t.Parallel()

	proxies := newProxies(silent(), "10.0.0.0/8", "2001:db8:1::/48", "fe80::/10")
	f := func(want, peer string, forwarded ...string) {
		t.Helper()
		if got := proxies.ClientIP(from(peer, forwarded...)).String(); got != want {
			t.Errorf("the client behind %s with X-Forwarded-For %q is %s; want %s", peer, forwarded, got, want)
		}
	}

	// A peer that is no trusted proxy is the client, whatever it sends.
	f("203.0.113.9", "203.0.113.9")
	f("203.0.113.9", "203.0.113.9", "6.6.6.6")
	f("203.0.113.9", "203.0.113.9", "6.6.6.6, 10.1.2.3")
	f("2001:db8:2::1", "2001:db8:2::1", "6.6.6.6")

	// The proxy's address of the client counts, not the client's own.
	f("203.0.113.9", "10.0.0.1", "203.0.113.9")
	f("203.0.113.9", "10.0.0.1", " 203.0.113.9 ")
	f("203.0.113.9", "10.0.0.1", "6.6.6.6, 203.0.113.9")
	f("203.0.113.9", "10.0.0.1", "10.6.6.6, 203.0.113.9")
	f("203.0.113.9", "10.0.0.1", "6.6.6.6", "203.0.113.9")
	f("203.0.113.9", "10.0.0.1", "6.6.6.6,203.0.113.9,10.1.2.3")
	f("203.0.113.9", "10.0.0.1", "6.6.6.6, 203.0.113.9", "10.1.2.3", "10.1.2.4")
	f("203.0.113.9", "10.0.0.1", "unknown, 203.0.113.9")
	f("10.1.2.3", "10.0.0.1", "10.1.2.3")

	// A member that is no address ends the search.
	f("10.0.0.1", "10.0.0.1")
	f("10.0.0.1", "10.0.0.1", "")
	f("10.0.0.1", "10.0.0.1", "unknown")
	f("10.0.0.1", "10.0.0.1", "203.0.113.9, 203.0.113.9:http")
	f("10.0.0.1", "10.0.0.1", "203.0.113.9, 203.0.113.9:")
	f("10.0.0.1", "10.0.0.1", "203.0.113.9, 203.0.113.9:655360")
	f("10.0.0.1", "10.0.0.1", "203.0.113.9, [203.0.113.9]")
	f("10.0.0.1", "10.0.0.1", "203.0.113.9, [2001:db8:2::1")
	f("10.0.0.1", "10.0.0.1", "203.0.113.9, [2001:db8:2::1]80")
	f("10.0.0.1", "10.0.0.1", "203.0.113.9, 203.0.113.09")
	f("10.0.0.1", "10.0.0.1", ", ,", "")
	f("10.1.2.3", "10.0.0.1", "203.0.113.9, unknown, 10.1.2.3")
	f("10.0.0.1", "10.0.0.1", "203.0.113.9", "\"quoted\"")

	// Some gateways add the port, and brackets.
	f("203.0.113.9", "10.0.0.1", "203.0.113.9:40001")
	f("203.0.113.9", "10.0.0.1", "6.6.6.6:1, 203.0.113.9:40001, 10.1.2.3:443")
	f("2001:db8:2::1", "10.0.0.1", "[2001:db8:2::1]:4711")
	f("2001:db8:2::1", "10.0.0.1", "[2001:db8:2::1]")
	f("2001:db8:2::1", "10.0.0.1", "[2001:db8:2::1], [2001:db8:1::7]:443")
	f("203.0.113.9", "10.0.0.1", "[::ffff:203.0.113.9]:80")

	// Empty members are skipped.
	f("203.0.113.9", "10.0.0.1", "203.0.113.9,")
	f("203.0.113.9", "10.0.0.1", "203.0.113.9, ,, 10.1.2.3,\t")
	f("203.0.113.9", "10.0.0.1", "203.0.113.9", "")

	// Addresses are normalised.
	f("203.0.113.9", "10.0.0.1", "::ffff:203.0.113.9")
	f("203.0.113.9", "::ffff:10.0.0.1", "203.0.113.9")
	f("203.0.113.9", "::ffff:203.0.113.9", "6.6.6.6")
	f("2001:db8:2::1", "10.0.0.1", "2001:db8:2::1, 2001:db8:1::7")
	f("2001:db8:2::1", "2001:db8:1::7", "2001:0DB8:0002::0001")
	f("2001:db8:2::1", "fe80::1%eth0", "2001:db8:2::1")
	f("2001:db8:2::1", "10.0.0.1", "2001:db8:2::1%eth0")
}

// Forwarded (RFC 7239) is used where there is no X-Forwarded-For.
func TestClientIPByForwarded(t *testing.T) {
	t.Parallel()

	proxies := newProxies(silent(), "10.0.0.0/8", "2001:db8:1::/48")
	f := func(want, peer string, lines ...string) {
		t.Helper()
		if got := proxies.ClientIP(withLines(peer, "Forwarded", lines...)).String(); got != want {
			t.Errorf("the client behind %s with Forwarded %q is %s; want %s", peer, lines, got, want)
		}
	}

	f("203.0.113.9", "203.0.113.9", "for=6.6.6.6")
	f("203.0.113.9", "10.0.0.1", "for=203.0.113.9")
	f("203.0.113.9", "10.0.0.1", `for="203.0.113.9:40001"`)
	f("203.0.113.9", "10.0.0.1", "for=203.0.113.9:40001")
	f("203.0.113.9", "10.0.0.1", `for="203.0.113.9:_port-1"`)
	f("203.0.113.9", "10.0.0.1", `For="20\3.0.113.9"`)
	f("2001:db8:2::1", "10.0.0.1", `for="[2001:db8:2::1]:4711"`)
	f("2001:db8:2::1", "10.0.0.1", `by=_a;proto=https ; FOR="[2001:db8:2::1]";host="a;b,c"`)
	f("203.0.113.9", "10.0.0.1", `for=6.6.6.6, for=203.0.113.9;proto=http;by="[2001:db8:1::7]", , for="10.1.2.3:443",`)
	f("203.0.113.9", "10.0.0.1", "for=6.6.6.6", "for=203.0.113.9", "for=10.1.2.3")
	f("203.0.113.9", "10.0.0.1", `for="[::ffff:203.0.113.9]"`)

	// What a client sends cannot hide what a proxy adds after it.
	f("203.0.113.9", "10.0.0.1", `for=", for=203.0.113.9`)
	f("203.0.113.9", "10.0.0.1", `for="\", for="203.0.113.9"`)
	f("203.0.113.9", "10.0.0.1", `"`, `for=203.0.113.9;host="x\"y\\"`)

	// A hop without an address ends the search.
	f("10.0.0.1", "10.0.0.1", "for=203.0.113.9, for=unknown")
	f("10.1.2.3", "10.0.0.1", "for=203.0.113.9, for=_hidden, for=10.1.2.3")
	f("10.0.0.1", "10.0.0.1", "for=203.0.113.9, proto=https")
	f("10.0.0.1", "10.0.0.1", "for=203.0.113.9;for=203.0.113.8")
	f("10.0.0.1", "10.0.0.1", `for=203.0.113.9, for="`)
	f("10.0.0.1", "10.0.0.1", `for=203.0.113.9, for="203.0.113.8\"`)
	f("10.0.0.1", "10.0.0.1", "203.0.113.9")

	// X-Forwarded-For has precedence if it has a member: a proxy that sets it does not check
	// Forwarded.
	both := withLines("10.0.0.1", "Forwarded", "for=6.6.6.6")
	both.Request.Header.Set("X-Forwarded-For", "203.0.113.9")
	if got := proxies.ClientIP(both).String(); got != "203.0.113.9" {
		t.Errorf("of both headers the client is %s; want that of X-Forwarded-For", got)
	}
	both.Request.Header.Set("X-Forwarded-For", "unknown")
	if got := proxies.ClientIP(both).String(); got != "10.0.0.1" {
		t.Errorf("beside X-Forwarded-For: unknown the client is %s; want the proxy", got)
	}
	both.Request.Header.Set("X-Forwarded-For", ",")
	if got := proxies.ClientIP(both).String(); got != "6.6.6.6" {
		t.Errorf("beside an empty X-Forwarded-For the client is %s; want that of Forwarded", got)
	}
}

// The host comes from X-Forwarded-Host of trusted proxies only.
func TestRequestedHost(t *testing.T) {
	t.Parallel()

	proxies := newProxies(silent(), "10.0.0.0/8")
	f := func(want, peer string, lines ...string) {
		t.Helper()
		rc := withLines(peer, "X-Forwarded-Host", lines...)
		rc.Request.Header.SetHost("core.test:8080")
		if got := proxies.RequestedHost(rc); got != want {
			t.Errorf("of %s with X-Forwarded-Host %q the host is %s; want %s", peer, lines, got, want)
		}
	}

	f("core.test:8080", "203.0.113.9")
	f("core.test:8080", "203.0.113.9", "skins.test")
	f("core.test:8080", "10.0.0.1")
	f("core.test:8080", "10.0.0.1", "")
	f("skins.test", "10.0.0.1", "skins.test")
	f("skins.test:8443", "10.0.0.1", " skins.test:8443 , edge.test")
}

func TestClientIPWithoutProxies(t *testing.T) {
	t.Parallel()

	var none *clientip.Proxies
	if got := none.ClientIP(from("203.0.113.9", "6.6.6.6")).String(); got != "203.0.113.9" {
		t.Errorf("the client is %s; want the peer", got)
	}
}

// Whatever a client sends, the client is the address that the proxy adds.
func FuzzClientIP(f *testing.F) {
	for _, sent := range []string{"", "6.6.6.6", "unknown", "[2001:db8::1]:80", `for="`, `for="\`, `for=6.6.6.6;host="a,b"`, ",", " \t,", `"`, "[", "10.0.0.2"} {
		f.Add(sent)
	}
	proxies := newProxies(silent(), "10.0.0.0/8")
	f.Fuzz(func(t *testing.T, sent string) {
		for _, test := range []struct{ header, added, want string }{
			{"X-Forwarded-For", "203.0.113.9", "203.0.113.9"},
			{"X-Forwarded-For", "203.0.113.9:40001, 10.0.0.7", "203.0.113.9"},
			{"X-Forwarded-For", "[2001:db8::9]:443,", "2001:db8::9"},
			{"Forwarded", "for=203.0.113.9", "203.0.113.9"},
			{"Forwarded", `proto=https;for="[2001:db8::9]:443";host="x,\"y;"`, "2001:db8::9"},
			{"Forwarded", `for="203.0.113.9:_x", for=10.0.0.7;by=_y`, "203.0.113.9"},
		} {
			for _, lines := range [][]string{{sent + ", " + test.added}, {sent, test.added}} {
				if got := proxies.ClientIP(withLines("10.0.0.1", test.header, lines...)).String(); got != test.want {
					t.Errorf("%s: %q: the client is %s; want %s", test.header, lines, got, test.want)
				}
			}
			// Alone it may be any address, but always in the normalised form, or limits would
			// count it twice.
			if got := proxies.ClientIP(withLines("10.0.0.1", test.header, sent)); !got.IsValid() || got.Is4In6() || got.Zone() != "" {
				t.Errorf("%s: %q: the client is %s", test.header, sent, got)
			}
		}
	})
}

// A header of a peer that is no trusted proxy, and one of a trusted proxy without an address,
// is logged once a minute by its name.
func TestForwardedHeaderWarnings(t *testing.T) {
	t.Parallel()

	// Time is synthetic.
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		proxies := newProxies(slog.New(slog.NewTextHandler(&out, nil)), "10.0.0.0/8")
		proxies.ClientIP(from("203.0.113.9"))
		for _, value := range []string{"6.6.6.6", "[2001:db8::1]:80", "6.6.6.6, ", "", "unknown, 6.6.6.6"} {
			proxies.ClientIP(from("10.0.0.1", value))
		}
		proxies.ClientIP(withLines("10.0.0.1", "Forwarded", `for="6.6.6.6:_x"`))
		if out.Len() > 0 {
			t.Errorf("valid headers are logged: %s", out.String())
		}
		f := func(after time.Duration, peer, header, value, want string) {
			t.Helper()
			<-time.After(after)
			out.Reset()
			for range 3 {
				proxies.ClientIP(withLines(peer, header, value))
			}
			got := out.String()
			if want == "" && got != "" || want != "" && (strings.Count(got, "\n") != 1 || !strings.Contains(got, "level=WARN")) ||
				!strings.Contains(got, want) || strings.Contains(got, "6.6.6.6") {
				t.Errorf("%s later the log is %q; want one line with %q, or none", after, got, want)
			}
		}

		const forged = `msg="forwarded header from an untrusted peer" header=`
		f(0, "203.0.113.9", "X-Forwarded-For", "6.6.6.6", forged+"X-Forwarded-For peer=203.0.113.9")
		f(0, "203.0.113.10", "X-Forwarded-For", "6.6.6.6", "")
		f(0, "203.0.113.10", "Forwarded", "for=6.6.6.6", forged+"Forwarded peer=203.0.113.10")
		f(59*time.Second, "203.0.113.9", "X-Forwarded-For", "6.6.6.6", "")
		f(time.Second, "203.0.113.10", "X-Forwarded-For", "6.6.6.6", forged+"X-Forwarded-For peer=203.0.113.10")
		f(time.Hour, "203.0.113.9", "X-Forwarded-For", "6.6.6.6", forged+"X-Forwarded-For peer=203.0.113.9")

		const unread = `msg="forwarded header of a trusted proxy has no address" header=`
		f(0, "10.0.0.1", "X-Forwarded-For", "6.6.6.6, 6.6.6.6:http", unread+"X-Forwarded-For peer=10.0.0.1")
		f(0, "10.0.0.2", "X-Forwarded-For", "unknown", "")
		f(0, "10.0.0.2", "Forwarded", "for=_hidden", unread+"Forwarded peer=10.0.0.2")
		f(59*time.Second, "10.0.0.1", "X-Forwarded-For", "unknown", "")
		f(time.Second, "10.0.0.1", "X-Forwarded-For", "unknown", unread+"X-Forwarded-For peer=10.0.0.1")
	})
}

func TestPrefix(t *testing.T) {
	t.Parallel()

	f := func(client, want string) {
		t.Helper()
		if got := clientip.Prefix(netip.MustParseAddr(client)).String(); got != want {
			t.Errorf("%s is counted by %s; want %s", client, got, want)
		}
	}

	f("203.0.113.9", "203.0.113.9/32")
	f("2001:db8:2:3:4:5:6:7", "2001:db8:2:3::/64")
	f("2001:db8:2:3:ffff::", "2001:db8:2:3::/64")
	f("2001:db8:2:4::", "2001:db8:2:4::/64")
}

func TestNetwork(t *testing.T) {
	t.Parallel()

	f := func(client, want string) {
		t.Helper()
		if got := clientip.Network(netip.MustParseAddr(client)).String(); got != want {
			t.Errorf("%s belongs to %s; want %s", client, got, want)
		}
	}

	f("203.0.113.9", "203.0.113.0/24")
	f("203.0.113.255", "203.0.113.0/24")
	f("203.0.114.0", "203.0.114.0/24")
	f("2001:db8:2:3:4:5:6:7", "2001:db8:2::/56")
	f("2001:db8:2:ff:ffff::", "2001:db8:2::/56")
	f("2001:db8:2:100::", "2001:db8:2:100::/56")
}
