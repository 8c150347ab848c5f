package clientip_test

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
	"github.com/veneer-skins/veneer/shared/metrics/metricstest"
	"github.com/veneer-skins/veneer/shared/testenv"
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

// checkers returns a check of the client behind a peer with lines of a header, and one of the proxy 10.0.0.1 with
// each of several lines alone.
func checkers(t *testing.T, proxies *clientip.Proxies, header string) (
	f func(want, peer string, lines ...string), each func(want string, lines ...string),
) {
	t.Helper()
	f = func(want, peer string, lines ...string) {
		t.Helper()
		testenv.Equal(t, proxies.ClientIP(withLines(peer, header, lines...)).String(), want,
			"the client behind %s with %s %q", peer, header, lines)
	}
	return f, func(want string, lines ...string) {
		t.Helper()
		for _, line := range lines {
			f(want, "10.0.0.1", line)
		}
	}
}

func TestClientIP(t *testing.T) {
	t.Parallel()
	f, each := checkers(t, newProxies(silent(), "10.0.0.0/8", "2001:db8:1::/48", "fe80::/10"), "X-Forwarded-For")

	// A peer that is no trusted proxy is the client, whatever it sends.
	f("203.0.113.9", "203.0.113.9")
	f("203.0.113.9", "203.0.113.9", "6.6.6.6")
	f("203.0.113.9", "203.0.113.9", "6.6.6.6, 10.1.2.3")
	f("2001:db8:2::1", "2001:db8:2::1", "6.6.6.6")

	// The proxy's address of the client counts, not the client's own.
	each("203.0.113.9", "203.0.113.9", " 203.0.113.9 ", "6.6.6.6, 203.0.113.9", "10.6.6.6, 203.0.113.9",
		"6.6.6.6,203.0.113.9,10.1.2.3", "unknown, 203.0.113.9")
	f("203.0.113.9", "10.0.0.1", "6.6.6.6", "203.0.113.9")
	f("203.0.113.9", "10.0.0.1", "6.6.6.6, 203.0.113.9", "10.1.2.3", "10.1.2.4")
	f("10.1.2.3", "10.0.0.1", "10.1.2.3")

	// A member that is no address ends the search.
	f("10.0.0.1", "10.0.0.1")
	each("10.0.0.1", "", "unknown", "203.0.113.9, 203.0.113.9:http", "203.0.113.9, 203.0.113.9:",
		"203.0.113.9, 203.0.113.9:655360", "203.0.113.9, [203.0.113.9]", "203.0.113.9, [2001:db8:2::1",
		"203.0.113.9, [2001:db8:2::1]80", "203.0.113.9, 203.0.113.09")
	f("10.0.0.1", "10.0.0.1", ", ,", "")
	f("10.1.2.3", "10.0.0.1", "203.0.113.9, unknown, 10.1.2.3")
	f("10.0.0.1", "10.0.0.1", "203.0.113.9", "\"quoted\"")

	// Some gateways add the port, and brackets.
	each("203.0.113.9", "203.0.113.9:40001", "6.6.6.6:1, 203.0.113.9:40001, 10.1.2.3:443", "[::ffff:203.0.113.9]:80")
	each("2001:db8:2::1", "[2001:db8:2::1]:4711", "[2001:db8:2::1]", "[2001:db8:2::1], [2001:db8:1::7]:443")

	// Empty members are skipped.
	each("203.0.113.9", "203.0.113.9,", "203.0.113.9, ,, 10.1.2.3,\t")
	f("203.0.113.9", "10.0.0.1", "203.0.113.9", "")

	// Addresses are normalised.
	f("203.0.113.9", "10.0.0.1", "::ffff:203.0.113.9")
	f("203.0.113.9", "::ffff:10.0.0.1", "203.0.113.9")
	f("203.0.113.9", "::ffff:203.0.113.9", "6.6.6.6")
	each("2001:db8:2::1", "2001:db8:2::1, 2001:db8:1::7", "2001:db8:2::1%eth0")
	f("2001:db8:2::1", "2001:db8:1::7", "2001:0DB8:0002::0001")
	f("2001:db8:2::1", "fe80::1%eth0", "2001:db8:2::1")
}

// Forwarded (RFC 7239) is used where there is no X-Forwarded-For.
func TestClientIPByForwarded(t *testing.T) {
	t.Parallel()
	proxies := newProxies(silent(), "10.0.0.0/8", "2001:db8:1::/48")
	f, each := checkers(t, proxies, "Forwarded")
	f("203.0.113.9", "203.0.113.9", "for=6.6.6.6")
	each("203.0.113.9", "for=203.0.113.9", `for="203.0.113.9:40001"`, "for=203.0.113.9:40001", `for="203.0.113.9:_port-1"`,
		`For="20\3.0.113.9"`, `for="[::ffff:203.0.113.9]"`,
		`for=6.6.6.6, for=203.0.113.9;proto=http;by="[2001:db8:1::7]", , for="10.1.2.3:443",`)
	each("2001:db8:2::1", `for="[2001:db8:2::1]:4711"`, `by=_a;proto=https ; FOR="[2001:db8:2::1]";host="a;b,c"`)
	f("203.0.113.9", "10.0.0.1", "for=6.6.6.6", "for=203.0.113.9", "for=10.1.2.3")

	// What a client sends cannot hide what a proxy adds after it.
	each("203.0.113.9", `for=", for=203.0.113.9`, `for="\", for="203.0.113.9"`)
	f("203.0.113.9", "10.0.0.1", `"`, `for=203.0.113.9;host="x\"y\\"`)

	// A hop without an address ends the search.
	each("10.0.0.1", "for=203.0.113.9, for=unknown", "for=203.0.113.9, proto=https", "for=203.0.113.9;for=203.0.113.8",
		`for=203.0.113.9, for="`, `for=203.0.113.9, for="203.0.113.8\"`, "203.0.113.9")
	f("10.1.2.3", "10.0.0.1", "for=203.0.113.9, for=_hidden, for=10.1.2.3")

	// X-Forwarded-For has precedence if it has a member: a proxy that sets it does not check
	// Forwarded.
	both := withLines("10.0.0.1", "Forwarded", "for=6.6.6.6")
	both.Request.Header.Set("X-Forwarded-For", "203.0.113.9")
	testenv.Equal(t, proxies.ClientIP(both).String(), "203.0.113.9", "of both headers, X-Forwarded-For has the client")
	both.Request.Header.Set("X-Forwarded-For", "unknown")
	testenv.Equal(t, proxies.ClientIP(both).String(), "10.0.0.1",
		"beside X-Forwarded-For: unknown, the client is the proxy")
	both.Request.Header.Set("X-Forwarded-For", ",")
	testenv.Equal(t, proxies.ClientIP(both).String(), "6.6.6.6",
		"beside an empty X-Forwarded-For, Forwarded has the client")
}

// The host comes from X-Forwarded-Host of trusted proxies only.
func TestRequestedHost(t *testing.T) {
	t.Parallel()
	proxies := newProxies(silent(), "10.0.0.0/8")
	f := func(want, peer string, lines ...string) {
		t.Helper()
		rc := withLines(peer, "X-Forwarded-Host", lines...)
		rc.Request.Header.SetHost("core.test:8080")
		testenv.Equal(t, proxies.RequestedHost(rc), want, "of %s with X-Forwarded-Host %q the host", peer, lines)
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
	testenv.Equal(t, none.ClientIP(from("203.0.113.9", "6.6.6.6")).String(), "203.0.113.9", "the client is the peer")
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
				testenv.Equal(t, proxies.ClientIP(withLines("10.0.0.1", test.header, lines...)).String(), test.want,
					"%s: %q: the client", test.header, lines)
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
		testenv.Check(t, out.Len() == 0, "valid headers are logged: %s", out.String())
		f := func(after time.Duration, peer, header, value, want string) {
			t.Helper()
			<-time.After(after)
			out.Reset()
			reason := "untrusted"
			if strings.HasPrefix(peer, "10.") {
				reason = "unread"
			}
			series := fmt.Sprintf("veneer_forwarded_headers_ignored_total{header=%q,reason=%q}", header, reason)
			before := metricstest.Value(t, metricstest.Text(t, prometheus.DefaultGatherer), series)
			for range 3 {
				proxies.ClientIP(withLines(peer, header, value))
			}
			// Parallel tests count as well.
			counted := metricstest.Value(t, metricstest.Text(t, prometheus.DefaultGatherer), series) - before
			testenv.Check(t, counted >= 3, "%s rose by %v; want 3", series, counted)
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

func TestPrefixAndNetwork(t *testing.T) {
	t.Parallel()
	f := func(client, prefix, network string) {
		t.Helper()
		addr := netip.MustParseAddr(client)
		testenv.Equal(t, clientip.Prefix(addr).String(), prefix, "%s is counted by", client)
		testenv.Equal(t, clientip.Network(addr).String(), network, "%s belongs to", client)
	}

	f("203.0.113.9", "203.0.113.9/32", "203.0.113.0/24")
	f("203.0.113.255", "203.0.113.255/32", "203.0.113.0/24")
	f("203.0.114.0", "203.0.114.0/32", "203.0.114.0/24")
	f("2001:db8:2:3:4:5:6:7", "2001:db8:2:3::/64", "2001:db8:2::/56")
	f("2001:db8:2:3:ffff::", "2001:db8:2:3::/64", "2001:db8:2::/56")
	f("2001:db8:2:4::", "2001:db8:2:4::/64", "2001:db8:2::/56")
	f("2001:db8:2:ff:ffff::", "2001:db8:2:ff::/64", "2001:db8:2::/56")
	f("2001:db8:2:100::", "2001:db8:2:100::/64", "2001:db8:2:100::/56")
}
