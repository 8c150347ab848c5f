//go:build !race

package console

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/tlsreload/tlsreloadtest"
)

// A phone's connection.
const (
	phoneLatency  = 150           // milliseconds
	phoneDownload = 1_600_000 / 8 // bytes a second
	phoneUpload   = 750_000 / 8
)

// usable is set to when the field for the e-mail address could first be used, in milliseconds after
// the navigation.
const usable = `new MutationObserver((_, observer) => {
	if (!document.querySelector("[name=email]")) return;
	window.usable = performance.now();
	observer.disconnect();
}).observe(document, {childList: true, subtree: true});`

// BenchmarkFirstPage loads the page for signing in over a phone's connection, behind haproxy with TLS, with
// an empty cache and again with what the first visit left in it.
func BenchmarkFirstPage(b *testing.B) {
	site := startSite(b)
	for _, protocol := range []string{"h2", "http/1.1"} {
		b.Run(protocol, func(b *testing.B) {
			address := startHaproxy(b, protocol, strings.TrimPrefix(site.CoreURL, "http://"))
			ctx := startPhone(b)
			var first, again, bytes float64
			for b.Loop() {
				call(b, ctx, network.ClearBrowserCache, cdp.Empty{})
				first += visitSignIn(b, ctx, address)
				bytes += number(b, ctx, `performance.getEntriesByType("resource").reduce((sum, e) => sum + e.transferSize, performance.getEntriesByType("navigation")[0].transferSize)`)
				if got := number(b, ctx, fmt.Sprintf(`performance.getEntriesByType("resource").filter((e) => e.nextHopProtocol !== %q).length`, protocol)); got != 0 {
					b.Fatalf("%.0f files came over another protocol", got)
				}
				again += visitSignIn(b, ctx, address)
			}
			b.ReportMetric(first/float64(b.N), "ms-first")
			b.ReportMetric(again/float64(b.N), "ms-again")
			b.ReportMetric(bytes/float64(b.N), "bytes-first")
		})
	}
}

// visitSignIn returns after how many milliseconds the page could be used.
func visitSignIn(tb testing.TB, ctx context.Context, address string) float64 {
	tb.Helper()
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank"), chromedp.Navigate("https://"+address+"/console/signin"), chromedp.WaitVisible("[name=email]")); err != nil {
		tb.Fatal(err)
	}
	return number(tb, ctx, "window.usable")
}

func number(tb testing.TB, ctx context.Context, expression string) float64 {
	tb.Helper()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[float64](expression))
	if err != nil {
		tb.Fatal(err)
	}
	return value
}

func call[P, R any](tb testing.TB, ctx context.Context, command cdp.Command[P, R], params P) {
	tb.Helper()
	if _, err := chromedp.Call(ctx, command, params); err != nil {
		tb.Fatal(err)
	}
}

// startPhone starts a browser with a phone's connection.
func startPhone(tb testing.TB) context.Context {
	tb.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		testenv.Skip(tb, "chromium is not installed, or not in PATH: deploy/dev/install chromium installs it")
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:], //nolint:usetesting // the browser must not end before its clean-up
		chromedp.ExecPath(program), chromedp.Flag("no-sandbox", true), chromedp.Flag("disable-quic", true), chromedp.Flag("ignore-certificate-errors", true))...)
	ctx, cancel := chromedp.NewContext(allocator)
	tb.Cleanup(func() {
		cancel()
		stop()
	})
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(360, 800)); err != nil {
		tb.Fatal(err)
	}
	call(tb, ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: usable})
	call(tb, ctx, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
		MatchedNetworkConditions: []*network.Conditions{{Latency: phoneLatency, DownloadThroughput: phoneDownload, UploadThroughput: phoneUpload}},
	})
	return ctx
}

// startHaproxy starts a haproxy with TLS and one protocol in front of core, and returns its address.
func startHaproxy(tb testing.TB, protocol, core string) string {
	tb.Helper()
	program, err := exec.LookPath("haproxy")
	if err != nil {
		testenv.Skip(tb, "haproxy is not installed: deploy/dev/install haproxy installs it")
	}
	directory := tb.TempDir()
	chain, key := tlsreloadtest.NewAuthority(tb).Issue(tb)
	var pair []byte
	for _, name := range []string{chain, key} {
		content, err := os.ReadFile(name)
		if err != nil {
			tb.Fatal(err)
		}
		pair = append(pair, content...)
	}
	address := stack.FreeAddress(tb)
	for name, content := range map[string][]byte{"pair.pem": pair, "haproxy.cfg": fmt.Appendf(nil, `
defaults
  mode http
  timeout connect 10s
  timeout client 1m
  timeout server 1m
frontend https
  bind %s ssl crt %s/pair.pem alpn %s
  default_backend core
backend core
  server core %s
`, address, directory, protocol, core)} {
		if err := os.WriteFile(filepath.Join(directory, name), content, 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	command := exec.Command(program, "-db", "-f", filepath.Join(directory, "haproxy.cfg"))
	command.Stderr = tb.Output()
	if err := command.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	ctx, cancel := context.WithTimeout(tb.Context(), walkTimeout)
	defer cancel()
	for tick := time.Tick(10 * time.Millisecond); ; {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err == nil {
			_ = conn.Close()
			return address
		}
		select {
		case <-tick:
		case <-ctx.Done():
			tb.Fatal(err)
		}
	}
}
