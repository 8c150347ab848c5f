//go:build !race

package console

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

const (
	demoUUID = "7d4448409dc011d1b2455ffdce74fad2"
	// haveAddress is whether an example with a path is shown, and among the addresses that can be copied.
	haveAddress = `((path) => [...document.images].some((i) => i.getAttribute("src") === path && i.parentElement.getAttribute("href") === path && i.naturalWidth > 0) &&
		[...document.querySelectorAll("figure code")].some((c) => c.textContent === path))`
	allShown = `[...document.images].every((i) => i.complete && i.naturalWidth > 0)`
)

// openStartPage opens the page at / of a site.
func openStartPage(t *testing.T, site string) *tab {
	t.Helper()
	w := plain.open(t, site, "en")
	w.do(t, chromedp.Navigate(site+"/"))
	return w
}

// loadAll has the page load the pictures that are below the window, and waits for them.
func (w *tab) loadAll(t *testing.T) {
	t.Helper()
	eval[bool](t, w, `([...document.images].forEach((i) => { i.loading = "eager"; }), true)`)
	w.await(t, allShown)
}

// The page at / of an edge shows pictures of a player, and those of another one by the keyboard alone. Its
// addresses can be copied, with and without the clipboard's permission.
func TestStartPage(t *testing.T) {
	t.Parallel()
	s := startSite(t, "CORE_DEMO", "1", "EDGE_EXAMPLE_PLAYER", "Demo")
	w := openStartPage(t, s.EdgeURL)
	w.loadAll(t)
	w.await(t, haveAddress+`("/face/player/Demo")`)
	const setAll = `((open) => { for (const d of document.querySelectorAll("details")) d.open = open; return true; })`
	eval[bool](t, w, setAll+"(true)")
	w.inspect(t, "start")
	eval[bool](t, w, setAll+"(false)")

	w.tabTo(t, "player")
	w.do(t, chromedp.KeyEvent("Slim"))
	w.pressEnter(t)
	w.await(t, allShown+" && "+haveAddress+`("/body/player/Slim?pose=walk")`)
	w.await(t, `[...document.querySelectorAll("details code.address")].some((c) => c.textContent === "/skin/Slim.png")`)
	w.expect("/face/uuid/"+demoUUID, "/head/uuid/"+demoUUID, "/bust/uuid/"+demoUUID, "/body/uuid/"+demoUUID, "/front/uuid/"+demoUUID, "/left/uuid/"+demoUUID, "/back/uuid/"+demoUUID)
	w.fill(t, "player", demoUUID)
	w.press(t, "Show")
	w.sees(t, "This site has no such player, or it has no skin.")
	w.await(t, `[...document.querySelectorAll("details code.address")].some((c) => c.textContent === "/cape/uuid/`+demoUUID+`")`)
	w.inspect(t, "start-unknown")
	w.fill(t, "player", " ")
	w.press(t, "Show")
	w.await(t, allShown+" && "+haveAddress+`("/face/player/Demo")`)

	grant(t, w, "clipboard-read", "clipboard-write")
	clipboard.Lock()
	defer clipboard.Unlock()
	eval[bool](t, w, `(globalThis.permitted = navigator.clipboard, document.querySelector("figure button").focus(), true)`)
	for _, test := range []struct{ name, before, path string }{
		{"permitted", "true", "/face/player/Demo"},
		{"without TLS", `Object.defineProperty(navigator, "clipboard", { value: undefined }) && permitted.writeText("").then(() => true)`, "/face/player/Demo"},
	} {
		eval[bool](t, w, test.before)
		w.pressEnter(t)
		w.sees(t, "Copied "+s.EdgeURL+test.path)
		if got := eval[string](t, w, "permitted.readText()"); got != s.EdgeURL+test.path {
			t.Errorf("%s: the clipboard has %q; want %q", test.name, got, s.EdgeURL+test.path)
		}
		if got := eval[string](t, w, "document.activeElement.textContent"); got != "Copy" {
			t.Errorf("%s: the focus is on %q; want it on the button", test.name, got)
		}
		eval[bool](t, w, `(document.getElementById("status").textContent = "", true)`)
	}
}

// Without scripts, and without a player in the settings, the page shows the default skin and all
// addresses, and has no fields and buttons that do nothing.
func TestStartPageWithoutScripts(t *testing.T) {
	t.Parallel()
	s := startSite(t)
	w := plain.open(t, s.EdgeURL, "en")
	send(t, w, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	w.do(t, chromedp.Navigate(s.EdgeURL+"/"))
	w.loadAll(t)
	w.await(t, haveAddress+`("/face/user/0")`)
	if got := eval[int](t, w, `[...document.querySelectorAll("input, button")].filter((e) => e.checkVisibility()).length`); got != 0 {
		t.Errorf("there are %d fields and buttons", got)
	}
	w.sees(t, "/face/player/{name}")
}
