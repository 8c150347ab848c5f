package console

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/tlsreload/tlsreloadtest"
)

// phoneNetwork is a phone's connection: 150 ms, 1.6 Mbit/s down and 0.75 Mbit/s up.
var phoneNetwork = network.Conditions{Latency: 150, DownloadThroughput: 1_600_000 / 8, UploadThroughput: 750_000 / 8}

// usable is set to when a page could first be used, in milliseconds after the navigation: when it has the
// field for the e-mail address, the counts of the home page, players, or textures. largest is when its largest
// picture or text was there.
const usable = `new MutationObserver((_, observer) => {
	if (!document.querySelector("[name=email], .counts, .player, .item")) return;
	window.usable = performance.now();
	observer.disconnect();
}).observe(document, {childList: true, subtree: true, characterData: true});
new PerformanceObserver((list) => {
	window.largest = list.getEntries().at(-1).startTime;
}).observe({type: "largest-contentful-paint", buffered: true});`

// mostFirstBytes is how much the first page may take, which is the one for signing in.
const mostFirstBytes = 65_000

// BenchmarkFirstPage loads the page for signing in, the library, and two pages of a user, over a phone's connection, behind haproxy with
// TLS, with an empty cache and again with what the first visit left in it.
func BenchmarkFirstPage(b *testing.B) {
	site := startSite(b, "CORE_DEMO=1")
	for _, protocol := range []string{"h2", "http/1.1"} {
		address, certificate := startHaproxy(b, protocol, strings.TrimPrefix(site.EdgeURL, "http://"))
		ctx := startPhone(b, certificate)
		measure := func(name, path string) {
			b.Run(protocol+"/"+name, func(b *testing.B) {
				var first, largest, again, bytes float64
				for b.Loop() {
					call(b, ctx, network.ClearBrowserCache, cdp.Empty{})
					first += visit(b, ctx, address, path)
					largest += number(b, ctx, "window.largest")
					bytes += number(b, ctx, `performance.getEntriesByType("resource").reduce((sum, e) => sum + (e.startTime < window.usable ? e.transferSize : 0), performance.getEntriesByType("navigation")[0].transferSize)`)
					if got := number(b, ctx, fmt.Sprintf(`performance.getEntriesByType("resource").filter((e) => e.nextHopProtocol !== %q).length`, protocol)); got != 0 {
						b.Fatalf("%.0f files came over another protocol", got)
					}
					again += visit(b, ctx, address, path)
					if got := number(b, ctx, `performance.getEntriesByType("resource").filter((e) => /\/(app|vendor)\//.test(e.name) && e.transferSize > 0).length`); got != 0 {
						b.Fatalf("%.0f files were loaded again", got)
					}
				}
				if each := bytes / float64(b.N); name == "signin" && each > mostFirstBytes {
					b.Errorf("the first page takes %.0f bytes", each)
				}
				b.ReportMetric(first/float64(b.N), "ms-first")
				b.ReportMetric(largest/float64(b.N), "ms-largest")
				b.ReportMetric(again/float64(b.N), "ms-again")
				b.ReportMetric(bytes/float64(b.N), "bytes-first")
			})
		}
		measure("signin", "/signin")
		measure("library", "/library")
		visit(b, ctx, address, "/signin")
		testenv.Do(b, chromedp.Do(ctx, chromedp.SendKeys("[name=email]", "demo@example.com"),
			chromedp.SendKeys("[name=password]", "demo-password\r"), chromedp.WaitVisible(".counts")))
		measure("home", "/")
		measure("players", "/players")
	}
}

// visit loads a page, and returns after how many milliseconds it could be used.
func visit(tb testing.TB, ctx context.Context, address, path string) float64 {
	tb.Helper()
	page := "https://" + address + "/console" + path
	testenv.Do(tb, chromedp.Do(ctx, chromedp.Navigate("about:blank"), chromedp.Navigate(page)))
	usable := chromedp.Poll[bool]("window.usable > 0 && window.largest > 0 && [...document.images].every((image) => image.complete)", chromedp.WithPollingInterval(pollInterval))
	testenv.Must(chromedp.Run(ctx, usable))(tb)
	return number(tb, ctx, "window.usable")
}

func number(tb testing.TB, ctx context.Context, expression string) float64 {
	tb.Helper()
	return testenv.Must(chromedp.Run(ctx, chromedp.Evaluate[float64](expression)))(tb)
}

func call[P, R any](tb testing.TB, ctx context.Context, command cdp.Command[P, R], params P) {
	tb.Helper()
	testenv.Must(chromedp.Call(ctx, command, params))(tb)
}

// startPhone starts a browser with a phone's connection, which trusts a certificate by its public key: of sites with
// errors in theirs a browser would keep no files.
func startPhone(tb testing.TB, certificate *x509.Certificate) context.Context {
	tb.Helper()
	key := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
	ctx, stop, err := launch(program(tb), chromedp.Flag("ignore-certificate-errors-spki-list", base64.StdEncoding.EncodeToString(key[:])))
	tb.Cleanup(stop)
	testenv.Do(tb, err)
	testenv.Do(tb, chromedp.Do(ctx, chromedp.EmulateViewport(360, 800)))
	call(tb, ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: usable})
	call(tb, ctx, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
		MatchedNetworkConditions: []*network.Conditions{&phoneNetwork},
	})
	return ctx
}

// startHaproxy starts a haproxy with TLS and one protocol in front of an edge, and returns its address and certificate.
func startHaproxy(tb testing.TB, protocol, edge string) (address string, certificate *x509.Certificate) {
	tb.Helper()
	if _, err := exec.LookPath("haproxy"); err != nil {
		testenv.Skip(tb, "haproxy is not installed: deploy/dev/install haproxy installs it")
	}
	directory := tb.TempDir()
	chain, key := tlsreloadtest.NewAuthority(tb).Issue(tb)
	issued := testenv.Must(tls.LoadX509KeyPair(chain, key))(tb)
	both := string(testenv.Must(os.ReadFile(chain))(tb)) + string(testenv.Must(os.ReadFile(key))(tb))
	pair := stack.WriteFile(tb, directory, "pair.pem", both)
	address = stack.FreeAddress(tb)
	config := stack.WriteFile(tb, directory, "haproxy.cfg", fmt.Sprintf(`
defaults
  mode http
  timeout connect 10s
  timeout client 1m
  timeout server 1m
frontend https
  bind %s ssl crt %s alpn %s
  default_backend edge
backend edge
  server edge %s
`, address, pair, protocol, edge))
	stack.RunServer(tb, address, nil, "haproxy", "-db", "-f", config)
	return address, issued.Leaf
}
