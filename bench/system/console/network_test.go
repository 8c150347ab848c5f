//go:build !race

package console

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// busyProxy passes requests on, and answers some as a busy server does.
type busyProxy struct {
	mu   sync.Mutex
	left map[string]int // how many requests are refused, by method and path
}

func (p *busyProxy) refuse(count int, method, path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left[method+" "+path] = count
}

// remaining returns how many requests are yet to be refused.
func (p *busyProxy) remaining(method, path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left[method+" "+path]
}

// start starts the proxy and returns its URL.
func (p *busyProxy) start(t *testing.T, target string) string {
	t.Helper()
	parsed, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(parsed)
		r.Out.Host = r.In.Host // the console compares it with the origin
	}, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)} // pages leave requests unfinished
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		isRefused := p.left[r.Method+" "+r.URL.Path] > 0
		if isRefused {
			p.left[r.Method+" "+r.URL.Path]--
		}
		p.mu.Unlock()
		if isRefused {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// setNetwork emulates a network.
func (w *tab) setNetwork(t *testing.T, conditions network.Conditions) {
	t.Helper()
	send(t, w, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{MatchedNetworkConditions: []*network.Conditions{&conditions}})
}

// A busy server is asked again, a refused change is taken back with a sentence, and so is one without a
// network.
func TestFailingNetwork(t *testing.T) {
	t.Parallel()
	s := startSite(t, "CORE_DEMO", "1")
	proxy := &busyProxy{left: map[string]int{}}
	w := plain.open(t, proxy.start(t, s.EdgeURL), "en")
	// A slow phone's connection.
	w.setNetwork(t, network.Conditions{Latency: 150, DownloadThroughput: 1.6e6 / 8, UploadThroughput: 750e3 / 8})
	w.visit(t, "/signin?next=%2Faccount")
	w.enter(t, "demo@example.com", "demo-password", "/account", "Account")
	w.setNetwork(t, network.Conditions{DownloadThroughput: -1, UploadThroughput: -1})

	// What is only read is read again.
	w.expect("/api/players", "/api/user", "/api/players/1/textures")
	proxy.refuse(2, "GET", "/api/players")
	w.press(t, "Players")
	w.await(t, `document.querySelectorAll(".player").length === 2`)
	if left := proxy.remaining("GET", "/api/players"); left != 0 {
		t.Errorf("%d of 2 refusals are left", left)
	}

	// A change is not sent twice.
	proxy.refuse(5, "DELETE", "/api/players/1/textures")
	w.await(t, `document.querySelector('img[alt="Skin of Demo, front and back"]')?.naturalWidth > 0`)
	w.press(t, "Take off the skin of Demo")
	w.sees(t, "The site is busy or being repaired. Please try again in a moment.")
	w.await(t, `Boolean(document.querySelector('img[alt="Skin of Demo, front and back"]'))`)
	w.inspect(t, "players-busy")
	w.press(t, "Close this notice")

	w.visit(t, "/account?change=nickname")
	w.isAt(t, "/account?change=nickname", "Account")
	w.sees(t, "This browser") // all that the page reads is there
	w.setNetwork(t, network.Conditions{Offline: true, DownloadThroughput: -1, UploadThroughput: -1})
	w.fill(t, "nickname", "Nobody")
	w.press(t, "Save")
	w.sees(t, "The site cannot be reached. Please check the connection and try again.")
	w.await(t, `document.querySelector(".setting bdi").innerText === "Demo"`)
	w.inspect(t, "account-offline")
	w.setNetwork(t, network.Conditions{DownloadThroughput: -1, UploadThroughput: -1})
	w.press(t, "Save")
	w.sees(t, "The nickname is changed.")
	w.await(t, `document.querySelector(".setting bdi").innerText === "Nobody"`)

	// A file is sent again, with its progress, and one that is not taken can be sent once more.
	w.press(t, "Upload")
	w.isAt(t, "/upload", "Upload")
	w.do(t, chromedp.SetUploadFiles(`main input[type="file"]`, []string{paint(t, "Late.png", 3)}))
	w.await(t, ready("Late"))
	w.expect("/api/textures")
	eval[bool](t, w, `(globalThis.sent = new Promise((resolve) => new MutationObserver((_, observer) => {
		if (document.querySelector("progress")?.value !== 1) return;
		observer.disconnect();
		resolve(true);
	}).observe(document.body, { subtree: true, childList: true, attributes: true })), true)`)
	proxy.refuse(6, "POST", "/api/textures")
	w.press(t, "Upload Late")
	eval[bool](t, w, "globalThis.sent")
	w.await(t, `document.querySelector('article[aria-label="Late"] [role="alert"]').innerText.startsWith("The site is busy")`)
	w.inspect(t, "upload-busy")
	w.press(t, "Upload Late")
	w.sees(t, "It is uploaded, and in your closet.")
	if left := proxy.remaining("POST", "/api/textures"); left != 0 {
		t.Errorf("%d of 6 refusals are left", left)
	}
}
