package console

import (
	"cmp"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// block lets no request to URLs that match patterns through.
func (tab *tab) block(t *testing.T, patterns ...string) {
	t.Helper()
	blocked := make([]*network.BlockPattern, len(patterns))
	for i, pattern := range patterns {
		blocked[i] = &network.BlockPattern{URLPattern: tab.site + pattern, Block: true}
	}
	send(t, tab, network.SetBlockedURLs, network.SetBlockedURLsParams{URLPatterns: blocked})
}

// A visitor sees the library and textures, and comes back from signing in. A page's title names what it
// shows, and going back shows the list where it was left.
func TestVisitor(t *testing.T) {
	t.Parallel()
	_, w := openSite(t, "CORE_DEMO=1")
	w.do(t, chromedp.EmulateViewport(360, 640))
	w.arrive(t, "/library", "Library")
	const listed = `document.querySelectorAll(".items > li").length > 5`
	w.await(t, listed)
	w.inspect(t, "library-visitor")
	w.do(t, chromedp.EmulateViewport(360, 640))
	eval[bool](t, w, `(scrollTo(0, 700), document.querySelectorAll(".items h2 a")[5].click(), true)`)
	w.await(t, `location.pathname === "/console/texture" && Boolean(document.querySelector(".facts")) && scrollY === 0`)
	w.await(t, `document.title === document.querySelector("h1").innerText + " · Veneer"`)
	w.inspect(t, "texture-visitor")
	w.do(t, chromedp.EmulateViewport(360, 640))
	w.back(t)
	w.isAt(t, "/library", "Library")
	w.await(t, "scrollY === 700 && "+listed)
	testenv.Equal(t, eval[string](t, w, "document.title"), "Library · Veneer", "the title of the library")
	eval[bool](t, w, "(history.forward(), true)")
	w.await(t, `Boolean(document.querySelector(".facts"))`)
	w.pressAndAwait(t, "Sign in to keep or wear it", `document.activeElement.id === "email"`)
	w.fill(t, "email", "demo@example.com", "password", "demo-password")
	w.press(t, "Sign in")
	w.await(t, `location.pathname === "/console/texture" && [...document.querySelectorAll("button")].some((b) => b.innerText === "Wear")`)
	w.visit(t, "/register") // which is for visitors
	w.isAt(t, "/", "Hello, Demo")
}

// A page that is left changes neither the URL nor its list.
func TestLeavePage(t *testing.T) {
	t.Parallel()
	_, w := openSite(t, "CORE_DEMO=1")
	w.signInAsDemo(t, "/players", "Players")
	w.visit(t, "/library?type=cape")
	w.await(t, `document.querySelectorAll(".items > li").length > 0`)
	// The next page comes later than a search begins.
	w.setNetwork(t, network.Conditions{Latency: 1000, DownloadThroughput: -1, UploadThroughput: -1})
	eval[bool](t, w, `(performance.clearResourceTimings(), true)`)
	w.do(t, chromedp.SendKeys(`input[type="search"]`, "abc"))
	w.follow(t, "Account", "/account", "Account", "This browser")
	const lists = `performance.getEntriesByType("resource").filter((e) => e.name.includes("/api/textures")).length`
	testenv.Equal(t, eval[int](t, w, lists), 0, "the library is asked by the URL of another page")
	w.isAt(t, "/account", "Account")
}

// A module that does not arrive is not taken for a new release, and the pages that are there stay within reach.
func TestMissingModule(t *testing.T) {
	t.Parallel()
	_, w := openSite(t, "CORE_DEMO=1")
	w.signInAsDemo(t, "/players", "Players")
	const modules = "/console/*/app/*"
	base := eval[string](t, w, `new URL(document.querySelector("link[rel=modulepreload]").href).pathname.split("/app/")[0].split("/vendor/")[0]`)
	w.expect(base+"/app/pages/closet.js", base+"/app/main.js", base+"/app/words/zh.js", base+"/app/router.js", base+"/app/parts/wear.js")
	w.block(t, modules)
	w.follow(t, "Closet", "/closet", "Something went wrong", "The site cannot be reached.")
	w.await(t, `document.activeElement.tagName === "H1"`)
	w.follow(t, "Players", "/players", "Players")
	// The words of another language do not arrive either: the choice goes back.
	w.choose(t, "Language", "zh")
	w.await(t, `document.querySelector(".notice")?.innerText.startsWith("The site cannot be reached.") && document.querySelectorAll(".choice select")[1].value === "en"`)
	testenv.Equal(t, eval[string](t, w, `localStorage["veneer.language"] ?? ""`), "", "the language that is kept")
	w.block(t)
	w.pressAndAwait(t, "Closet", `document.querySelector("h1").innerText !== "Players"`)
	if eval[string](t, w, `document.querySelector("h1").innerText`) != "Closet" { // browsers may keep that a module failed
		w.press(t, "Load the page again")
	}
	w.isAt(t, "/closet", "Closet")

	// Without a module of the first page there is a link.
	w.block(t, base+"/app/router.js")
	w.do(t, chromedp.Reload())
	w.sees(t, "The page is not there yet. Load it again")
	link := eval[string](t, w, `document.querySelector(".late a").href`)
	testenv.Equal(t, link, w.site+"/console/closet", "the link leads to")
}

// Browsers may refuse to keep anything for a site.
func TestWithoutStorage(t *testing.T) {
	t.Parallel()
	_, w := openSite(t)
	w.scriptAtStart(t, `Object.defineProperty(window, "localStorage", { get() { throw new DOMException("no storage", "SecurityError"); } });`)
	w.arrive(t, "/signin", "Sign in")
	w.choose(t, "Language", "zh")
	w.isAt(t, "/signin", "登录")
}

// watchLayout sums up in window.moved by how much a page moves (CLS), and has in window.movers what moves.
const watchLayout = `window.moved = 0;
	window.movers = [];
	new PerformanceObserver((list) => {
		for (const e of list.getEntries().filter((e) => !e.hadRecentInput)) {
			window.moved += e.value;
			window.movers.push(...e.sources.map(({ node }) => (node?.outerHTML ?? String(node?.textContent)).slice(0, 120)));
		}
	}).observe({ type: "layout-shift", buffered: true });`

// mostMoved is by how much a page may move: a tenth of what counts as good. Letters may move by a part of a pixel.
const mostMoved = 0.01

// Nothing moves while pages load over a phone's connection.
func TestNothingMoves(t *testing.T) {
	t.Parallel()
	_, w := openSite(t, "CORE_DEMO=1")
	w.do(t, chromedp.EmulateViewport(360, 640))
	w.signInAsDemo(t, "/players", "Players")
	w.scriptAtStart(t, watchLayout)
	w.setNetwork(t, phoneNetwork)
	stays := func(path, shown string) {
		t.Helper()
		w.visit(t, path)
		w.await(t, shown)
		eval[bool](t, w, `new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve(true))))`)
		if moved := eval[float64](t, w, "window.moved"); moved > mostMoved {
			t.Errorf("%s moves by %.3f: %s", path, moved, eval[string](t, w, `window.movers.join("; ")`))
		}
	}
	const haveSessions = `document.querySelectorAll(".list > li").length > 0`
	for path, shown := range map[string]string{
		"/": `Boolean(document.querySelector(".counts"))`, "/players": `document.querySelectorAll(".player").length === 2`,
		"/closet": `document.querySelectorAll(".item").length > 0`, "/library": `document.querySelectorAll(".item").length > 0`,
		"/account": haveSessions,
	} {
		stays(path, shown)
	}
	w.do(t, chromedp.EmulateViewport(1280, 800))
	stays("/account", haveSessions)
}

// busyProxy passes requests on, and answers some as a busy server does.
type busyProxy struct {
	mu     sync.Mutex
	left   map[string]int // how many requests are refused, by method and path
	status int            // of refusals; Service Unavailable by default
}

func (p *busyProxy) refuse(count int, method, path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left[method+" "+path] = count
}

func (p *busyProxy) remaining(method, path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left[method+" "+path]
}

// start starts the proxy and returns its URL.
func (p *busyProxy) start(t *testing.T, target string) string {
	t.Helper()
	parsed := testenv.Must(url.Parse(target))(t)
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
			w.WriteHeader(cmp.Or(p.status, http.StatusServiceUnavailable))
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func (tab *tab) setNetwork(tb testing.TB, conditions network.Conditions) {
	tb.Helper()
	send(tb, tab, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{MatchedNetworkConditions: []*network.Conditions{&conditions}})
}

// A busy server is asked again, a refused change is taken back with a sentence, and so is one without a
// network.
func TestFailingNetwork(t *testing.T) {
	t.Parallel()
	s := startSite(t, "CORE_DEMO=1")
	proxy := &busyProxy{left: map[string]int{}}
	w := plain.open(t, proxy.start(t, s.EdgeURL), "en")
	w.setNetwork(t, phoneNetwork)
	w.signInAsDemo(t, "/account", "Account")
	w.setNetwork(t, network.Conditions{DownloadThroughput: -1, UploadThroughput: -1})

	// What is only read is read again.
	w.expect("/api/players", "/api/deleted-players", "/api/user", "/api/players/1/textures")
	proxy.refuse(2, "GET", "/api/players")
	w.pressAndAwait(t, "Players", `document.querySelectorAll(".player").length === 2`)
	testenv.Equal(t, proxy.remaining("GET", "/api/players"), 0, "refusals that are left of 2")

	// A change is not sent twice.
	proxy.refuse(5, "DELETE", "/api/players/1/textures")
	w.await(t, `document.querySelector('img[alt="Skin of Demo, front and back"]')?.naturalWidth > 0`)
	w.pressAndSee(t, "Take off the skin of Demo", "The site is busy or being repaired. Please try again in a moment.")
	w.await(t, `Boolean(document.querySelector('img[alt="Skin of Demo, front and back"]'))`)
	w.inspect(t, "players-busy")
	w.press(t, "Close this notice")

	w.arrive(t, "/account?change=nickname", "Account")
	w.sees(t, "This browser") // all that the page reads is there
	w.setNetwork(t, network.Conditions{Offline: true, DownloadThroughput: -1, UploadThroughput: -1})
	w.fill(t, "nickname", "Nobody")
	w.pressAndSee(t, "Save", "The site cannot be reached. Please check the connection and try again.")
	w.await(t, `document.querySelector(".setting bdi").innerText === "Demo"`)
	w.inspect(t, "account-offline")
	w.setNetwork(t, network.Conditions{DownloadThroughput: -1, UploadThroughput: -1})
	w.pressAndSee(t, "Save", "The nickname is changed.")
	w.await(t, `document.querySelector(".setting bdi").innerText === "Nobody"`)

	// A file is sent again, with its progress, and one that is not taken can be sent once more.
	w.follow(t, "Upload", "/upload", "Upload")
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
	w.pressAndSee(t, "Upload Late", "It is uploaded, and in your closet.")
	testenv.Equal(t, proxy.remaining("POST", "/api/textures"), 0, "refusals that are left of 6")
}
