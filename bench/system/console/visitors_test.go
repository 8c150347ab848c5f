package console

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// Visitors see the front page, and the pages of a player and of a texture, in both languages.
func TestVisitors(t *testing.T) {
	t.Parallel()
	s, w := openSite(t, "CORE_DEMO=1")
	w.scriptAtStart(t, watchLayout)
	w.expect("/p/Nobody")
	for _, page := range []struct{ name, path, en, zh string }{
		{"front", "/", "Newest skins", "最新皮肤"},
		{"shared-player", "/p/Demo", "Pictures for websites and forums", "用于网站和论坛的图片"},
		{"shared-texture", "/t/1", "Wear it", "穿戴"},
		{"missing", "/p/Nobody", "There is nothing here", "这里什么也没有"},
	} {
		for query, text := range map[string]string{"": page.en, "?lang=zh": page.zh} {
			w.do(t, chromedp.Navigate(s.EdgeURL+page.path+query))
			w.sees(t, text)
			w.loadAll(t)
			if moved := eval[float64](t, w, "window.moved"); moved > mostMoved {
				t.Errorf("%s moves by %.3f: %s", page.path+query, moved, eval[string](t, w, `window.movers.join("; ")`))
			}
			if bytes := eval[int](t, w, `performance.getEntriesByType("navigation")[0].transferSize`); bytes > 20<<10 {
				t.Errorf("%s takes %d bytes", page.path+query, bytes)
			}
			w.inspect(t, page.name+query)
		}
	}

	w.do(t, chromedp.Navigate(s.EdgeURL+"/"))
	w.reduceMotion(t, "no-preference")
	eval[bool](t, w, `document.querySelector(".wall a").dispatchEvent(new PointerEvent("pointerenter", { pointerType: "mouse" }))`)
	w.await(t, `document.querySelector(".wall img").src.endsWith("&turn=4")`)
	eval[bool](t, w, `document.querySelector(".wall a").dispatchEvent(new PointerEvent("pointerleave", { pointerType: "mouse" }))`)
	w.await(t, `document.querySelector(".wall img").src.endsWith("?height=352")`)
	eval[bool](t, w, `(document.querySelector(".wall a").click(), true)`)
	w.sees(t, "Uploaded by")
	w.do(t, chromedp.Navigate(s.EdgeURL+"/"))
	w.fillIn(t, `input[name="q"]`, "traveller")
	w.pressEnter(t)
	w.isAt(t, "/library?q=traveller", "Library")
}

// Without scripts the pages are complete, and have no buttons that do nothing.
func TestVisitorsWithoutScripts(t *testing.T) {
	t.Parallel()
	s, w := openSite(t, "CORE_DEMO=1")
	send(t, w, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	for path, text := range map[string]string{"/": "Most liked skins", "/p/Demo": "/face/player/Demo.png", "/t/1": "Download"} {
		w.do(t, chromedp.Navigate(s.EdgeURL+path))
		w.sees(t, text)
		w.loadAll(t)
		buttons := eval[int](t, w, `[...document.querySelectorAll("button")].filter((b) => b.checkVisibility() && !b.form).length`)
		testenv.Equal(t, buttons, 0, "%s: buttons that take a script", path)
	}
}

// A player's page shows the figure in 3D when it is asked for, and has its pictures' URLs copied.
func TestSharedPlayer(t *testing.T) {
	t.Parallel()
	s := startSite(t, "CORE_DEMO=1")
	w := withWebGL.open(t, s.EdgeURL, "en")
	w.do(t, chromedp.Navigate(s.EdgeURL+"/p/Demo"))
	w.press(t, "Show in 3D")
	w.await(t, `document.activeElement.textContent === "Pause" && Boolean(document.querySelector(".stage canvas"))`)
	w.screenshot(t, "shared-player-3d")
	w.press(t, "Pause")
	w.await(t, `document.activeElement.textContent === "Play"`)
	w.inspect(t, "shared-player-3d")

	grant(t, w, "clipboard-read", "clipboard-write")
	clipboard.Lock()
	defer clipboard.Unlock()
	url := s.EdgeURL + "/face/player/Demo.png?size=96"
	for name, want := range map[string]string{
		"Copy the URL of: Face": url, "Copy HTML for: Face": `<img src="` + url + `" alt="Demo: Face">`, "Copy Markdown for: Face": "![Demo: Face](" + url + ")",
	} {
		w.press(t, name)
		w.sees(t, "Copied.")
		testenv.Equal(t, eval[string](t, w, "navigator.clipboard.readText()"), want, "%s: the clipboard", name)
	}
}
