package serve_test

import (
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/serve"
)

// from is a request of a peer with lines of X-Forwarded-For.
func from(peer string, forwarded ...string) *fasthttp.RequestCtx {
	rc := exchange(net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(peer), 1234)))
	for _, line := range forwarded {
		rc.Request.Header.Add("X-Forwarded-For", line)
	}
	return rc
}

func TestClient(t *testing.T) {
	t.Parallel()

	proxies := serve.NewProxies(serve.ProxyConfig{TrustedProxies: []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:1::/48"), netip.MustParsePrefix("fe80::/10"),
	}}, silent())
	f := func(want, peer string, forwarded ...string) {
		t.Helper()
		if got := proxies.Client(from(peer, forwarded...)).String(); got != want {
			t.Errorf("the client behind %s with X-Forwarded-For %q is %s; want %s", peer, forwarded, got, want)
		}
	}

	// A peer that is no proxy is the client, whatever it says.
	f("203.0.113.9", "203.0.113.9")
	f("203.0.113.9", "203.0.113.9", "6.6.6.6")
	f("203.0.113.9", "203.0.113.9", "6.6.6.6, 10.1.2.3")
	f("2001:db8:2::1", "2001:db8:2::1", "6.6.6.6")

	// A proxy tells who the client is, and the client tells nothing.
	f("203.0.113.9", "10.0.0.1", "203.0.113.9")
	f("203.0.113.9", "10.0.0.1", " 203.0.113.9 ")
	f("203.0.113.9", "10.0.0.1", "6.6.6.6, 203.0.113.9")
	f("203.0.113.9", "10.0.0.1", "10.6.6.6, 203.0.113.9")
	f("203.0.113.9", "10.0.0.1", "6.6.6.6", "203.0.113.9")
	f("203.0.113.9", "10.0.0.1", "6.6.6.6,203.0.113.9,10.1.2.3")
	f("203.0.113.9", "10.0.0.1", "6.6.6.6, 203.0.113.9", "10.1.2.3", "10.1.2.4")
	f("203.0.113.9", "10.0.0.1", "unknown, 203.0.113.9")
	f("10.1.2.3", "10.0.0.1", "10.1.2.3")

	// Behind what is no address nobody can be told.
	f("10.0.0.1", "10.0.0.1")
	f("10.0.0.1", "10.0.0.1", "")
	f("10.0.0.1", "10.0.0.1", "unknown")
	f("10.0.0.1", "10.0.0.1", "203.0.113.9,")
	f("10.0.0.1", "10.0.0.1", "203.0.113.9:80")
	f("10.1.2.3", "10.0.0.1", "203.0.113.9, unknown, 10.1.2.3")
	f("10.0.0.1", "10.0.0.1", "203.0.113.9", "\"quoted\"")

	// An address has one form.
	f("203.0.113.9", "10.0.0.1", "::ffff:203.0.113.9")
	f("203.0.113.9", "::ffff:10.0.0.1", "203.0.113.9")
	f("203.0.113.9", "::ffff:203.0.113.9", "6.6.6.6")
	f("2001:db8:2::1", "10.0.0.1", "2001:db8:2::1, 2001:db8:1::7")
	f("2001:db8:2::1", "2001:db8:1::7", "2001:0DB8:0002::0001")
	f("2001:db8:2::1", "fe80::1%eth0", "2001:db8:2::1")
	f("2001:db8:2::1", "10.0.0.1", "2001:db8:2::1%eth0")
}

func TestClientsWithoutProxies(t *testing.T) {
	t.Parallel()

	var none *serve.Proxies
	if got := none.Client(from("203.0.113.9", "6.6.6.6")).String(); got != "203.0.113.9" {
		t.Errorf("the client is %s; want the peer", got)
	}
}

func TestForgeriesAreLoggedOnceAMinute(t *testing.T) {
	t.Parallel()

	// Time passes only where the test says so.
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		proxies := serve.NewProxies(serve.ProxyConfig{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
			slog.New(slog.NewTextHandler(&out, nil)))
		proxies.Client(from("203.0.113.9"))
		proxies.Client(from("10.0.0.1", "6.6.6.6"))
		if out.Len() > 0 {
			t.Errorf("what is no forgery is logged: %s", out.String())
		}
		f := func(after time.Duration, peer string, lines int) {
			t.Helper()
			<-time.After(after)
			out.Reset()
			for range 3 {
				proxies.Client(from(peer, "6.6.6.6"))
			}
			got := out.String()
			if strings.Count(got, "\n") != lines || lines > 0 && (!strings.Contains(got, "level=WARN") || !strings.Contains(got, "peer="+peer)) {
				t.Errorf("%s later the log is %q; want %d lines that name the peer", after, got, lines)
			}
		}

		f(0, "203.0.113.9", 1)
		f(0, "203.0.113.10", 0) // whoever it is
		f(59*time.Second, "203.0.113.9", 0)
		f(time.Second, "203.0.113.10", 1)
		f(59*time.Second, "203.0.113.10", 0)
		f(time.Hour, "203.0.113.9", 1)
	})
}

func TestNetwork(t *testing.T) {
	t.Parallel()

	f := func(client, want string) {
		t.Helper()
		if got := serve.Network(netip.MustParseAddr(client)).String(); got != want {
			t.Errorf("%s is counted by %s; want %s", client, got, want)
		}
	}

	f("203.0.113.9", "203.0.113.9/32")
	f("2001:db8:2:3:4:5:6:7", "2001:db8:2:3::/64")
	f("2001:db8:2:3:ffff::", "2001:db8:2:3::/64")
	f("2001:db8:2:4::", "2001:db8:2:4::/64")
}
