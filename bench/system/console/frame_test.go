//go:build !race

package console

import (
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// block lets no request to URLs that match patterns through.
func (w *tab) block(t *testing.T, patterns ...string) {
	t.Helper()
	blocked := make([]*network.BlockPattern, len(patterns))
	for i, pattern := range patterns {
		blocked[i] = &network.BlockPattern{URLPattern: w.site + pattern, Block: true}
	}
	w.do(t)
	if _, err := chromedp.Call(w.ctx, network.SetBlockedURLs, network.SetBlockedURLsParams{URLPatterns: blocked}); err != nil {
		t.Fatal(err)
	}
}

// scriptAtStart has pages run a script before their own.
func (w *tab) scriptAtStart(t *testing.T, script string) {
	t.Helper()
	w.do(t)
	if _, err := chromedp.Call(w.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script}); err != nil {
		t.Fatal(err)
	}
}

// signInAsDemo signs the demo's user in, and waits for a page.
func (w *tab) signInAsDemo(t *testing.T, path, heading string) {
	t.Helper()
	w.visit(t, path)
	w.enter(t, "demo@example.com", "demo-password", path, heading)
}

// A visitor sees the library and textures, and comes back from signing in. A page's title names what it
// shows, and going back shows the list where it was left.
func TestVisitor(t *testing.T) {
	t.Parallel()
	s := startSite(t, "CORE_DEMO", "1")
	w := plain.open(t, s.EdgeURL, "en")
	w.do(t, chromedp.EmulateViewport(360, 640))
	w.visit(t, "/library")
	w.isAt(t, "/library", "Library")
	const listed = `document.querySelectorAll(".items > li").length > 5`
	w.await(t, listed)
	w.inspect(t, "library-visitor")
	w.do(t, chromedp.EmulateViewport(360, 640))
	eval[bool](t, w, `(scrollTo(0, 700), document.querySelectorAll(".items h2 a")[5].click(), true)`)
	w.await(t, `location.pathname === "/console/texture" && Boolean(document.querySelector(".facts")) && scrollY === 0`)
	w.await(t, `document.title === document.querySelector("h1").innerText + " · Veneer"`)
	w.inspect(t, "texture-visitor")
	w.do(t, chromedp.EmulateViewport(360, 640))
	eval[bool](t, w, "(history.back(), true)")
	w.isAt(t, "/library", "Library")
	w.await(t, "scrollY === 700 && "+listed)
	if got := eval[string](t, w, "document.title"); got != "Library · Veneer" {
		t.Errorf("the title of the library is %q", got)
	}
	eval[bool](t, w, "(history.forward(), true)")
	w.await(t, `Boolean(document.querySelector(".facts"))`)
	w.press(t, "Sign in to keep or wear it")
	w.await(t, `document.activeElement.innerText === "Sign in"`)
	w.fill(t, "email", "demo@example.com")
	w.fill(t, "password", "demo-password")
	w.press(t, "Sign in")
	w.await(t, `location.pathname === "/console/texture" && [...document.querySelectorAll("button")].some((b) => b.innerText === "Wear")`)
	w.visit(t, "/register") // which is for visitors
	w.isAt(t, "/", "Hello, Demo")
}

// A page that is left changes neither the URL nor its list.
func TestLeavePage(t *testing.T) {
	t.Parallel()
	s := startSite(t, "CORE_DEMO", "1")
	w := plain.open(t, s.EdgeURL, "en")
	w.signInAsDemo(t, "/players", "Players")
	w.visit(t, "/library?type=cape")
	w.await(t, `document.querySelectorAll(".items > li").length > 0`)
	// The next page comes later than a search begins.
	if _, err := chromedp.Call(w.ctx, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
		MatchedNetworkConditions: []*network.Conditions{{Latency: 1000, DownloadThroughput: -1, UploadThroughput: -1}},
	}); err != nil {
		t.Fatal(err)
	}
	eval[bool](t, w, `(performance.clearResourceTimings(), true)`)
	w.do(t, chromedp.SendKeys(`input[type="search"]`, "abc"))
	w.press(t, "Account")
	w.isAt(t, "/account", "Account")
	w.sees(t, "This browser")
	const lists = `performance.getEntriesByType("resource").filter((e) => e.name.includes("/api/textures")).length`
	if got := eval[int](t, w, lists); got != 0 {
		t.Errorf("the library is asked %d times by the URL of another page", got)
	}
	w.isAt(t, "/account", "Account")
}

// A module that does not arrive is not taken for a new release, and the pages that are there stay within reach.
func TestMissingModule(t *testing.T) {
	t.Parallel()
	s := startSite(t, "CORE_DEMO", "1")
	w := plain.open(t, s.EdgeURL, "en")
	w.signInAsDemo(t, "/players", "Players")
	const modules = "/console/*/app/*"
	base := eval[string](t, w, `new URL(document.querySelector("link[rel=modulepreload]").href).pathname.split("/app/")[0].split("/vendor/")[0]`)
	w.expect(base+"/app/pages/closet.js", base+"/app/main.js", base+"/app/words/zh.js", base+"/app/router.js", base+"/app/parts/wear.js")
	w.block(t, modules)
	w.press(t, "Closet")
	w.isAt(t, "/closet", "Something went wrong")
	w.sees(t, "The site cannot be reached.")
	w.await(t, `document.activeElement.tagName === "H1"`)
	w.press(t, "Players")
	w.isAt(t, "/players", "Players")
	// The words of another language do not arrive either: the choice goes back.
	eval[bool](t, w, `((s) => { s.value = "zh"; s.dispatchEvent(new Event("change", { bubbles: true })); return true; })(document.querySelectorAll(".choice select")[1])`)
	w.await(t, `document.querySelector(".notice")?.innerText.startsWith("The site cannot be reached.") && document.querySelectorAll(".choice select")[1].value === "en"`)
	if got := eval[string](t, w, `localStorage["veneer.language"] ?? ""`); got != "" {
		t.Errorf("the language is kept: %s", got)
	}
	w.block(t)
	w.press(t, "Closet")
	w.await(t, `document.querySelector("h1").innerText !== "Players"`)
	if eval[string](t, w, `document.querySelector("h1").innerText`) != "Closet" { // browsers may keep that a module failed
		w.press(t, "Load the page again")
	}
	w.isAt(t, "/closet", "Closet")

	// Without a module of the first page there is a link.
	w.block(t, base+"/app/router.js")
	w.do(t, chromedp.Reload())
	w.sees(t, "The page is not there yet. Load it again")
	if got, want := eval[string](t, w, `document.querySelector(".late a").href`), w.site+"/console/closet"; got != want {
		t.Errorf("the link leads to %s; want %s", got, want)
	}
}

// Browsers may refuse to keep anything for a site.
func TestWithoutStorage(t *testing.T) {
	t.Parallel()
	s := startSite(t)
	w := plain.open(t, s.EdgeURL, "en")
	w.scriptAtStart(t, `Object.defineProperty(window, "localStorage", { get() { throw new DOMException("no storage", "SecurityError"); } });`)
	w.visit(t, "/signin")
	w.isAt(t, "/signin", "Sign in")
	eval[bool](t, w, `((s) => { s.value = "zh"; s.dispatchEvent(new Event("change", { bubbles: true })); return true; })(document.querySelectorAll(".choice select")[1])`)
	w.isAt(t, "/signin", "登录")
}

// Nothing moves while pages load over a phone's connection.
func TestNothingMoves(t *testing.T) {
	t.Parallel()
	s := startSite(t, "CORE_DEMO", "1")
	w := plain.open(t, s.EdgeURL, "en")
	w.do(t, chromedp.EmulateViewport(360, 640))
	w.signInAsDemo(t, "/players", "Players")
	w.scriptAtStart(t, `window.moved = 0;
		new PerformanceObserver((list) => { for (const e of list.getEntries()) if (!e.hadRecentInput) window.moved += e.value; }).observe({ type: "layout-shift", buffered: true });`)
	if _, err := chromedp.Call(w.ctx, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
		MatchedNetworkConditions: []*network.Conditions{{Latency: 150, DownloadThroughput: 1.6e6 / 8, UploadThroughput: 750e3 / 8}},
	}); err != nil {
		t.Fatal(err)
	}
	for path, shown := range map[string]string{
		"/": `Boolean(document.querySelector(".counts"))`, "/players": `document.querySelectorAll(".player").length === 2`,
		"/closet": `document.querySelectorAll(".item").length > 0`, "/library": `document.querySelectorAll(".item").length > 0`,
	} {
		w.visit(t, path)
		w.await(t, shown)
		eval[bool](t, w, `new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve(true))))`)
		if moved := eval[float64](t, w, "window.moved"); moved > 0.01 {
			t.Errorf("%s moves by %.3f", path, moved)
		}
	}
}
