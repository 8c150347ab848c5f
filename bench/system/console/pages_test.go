package console

import (
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Pages say what something costs before it is done, and show the score that is left.
func TestCosts(t *testing.T) {
	t.Parallel()
	s, w := openSite(t, "CORE_SCORE_REGISTRATION=100", "CORE_SCORE_PLAYER=5", "CORE_SCORE_PRIVATE_TEXTURE_KIB=2", "CORE_SCORE_SIGN_REWARD=10")
	ann := register(t, s, "ann@example.com", "Ann")
	scoreIs := func(condition string) {
		t.Helper()
		w.follow(t, "Home", "/", "Hello, Ann")
		w.await(t, `Number(document.querySelector(".figure")?.innerText) `+condition)
	}
	w.signIn(t, ann, "/", "Hello, Ann", "First steps")
	w.inspect(t, "home-new")
	w.follow(t, "Players", "/players", "Players")
	w.pressAndSee(t, "Add a player", "It costs 5 points.", "letters A to Z, digits and underscores")
	w.fill(t, "name", "Ann_1")
	w.pressAndSee(t, "Add", "Ann_1")
	scoreIs("=== 95")

	w.follow(t, "Players", "/players", "Players")
	w.takesDrops(t)
	robot := dropped{"Robot.png", file(t, "Robot.png", artwork.Robot())}
	w.drag(t, ".player", false, robot)
	w.drag(t, ".target", true, robot)
	w.sees(t, "The file is uploaded for you only, which costs ")
	w.inspect(t, "players-cost")
	w.pressAndAwait(t, "Cancel", `!document.querySelector("dialog")`)
	w.drag(t, ".player", false, robot)
	w.drag(t, ".target", true, robot)
	w.sees(t, "The file is uploaded for you only, which costs ")
	w.pressAndAwait(t, "Upload", `document.querySelector('img[alt="Skin of Ann_1, front and back"]')?.naturalWidth > 0`)
	scoreIs("< 95")

	// Today is signed also after a reload.
	w.pressAndSee(t, "Sign in for today (+10 points)", "Signed in for today. Next time from")
	w.visit(t, "/", "Signed in for today. Next time from")
	w.visit(t, "/score")
	w.press(t, "Players", "Delete Ann_1")
	w.pressAndSee(t, "Delete", "Ann_1 is deleted.")
}

// The documentation of the API has enough contrast, and no string becomes markup that runs. The rest of its markup is
// Swagger UI's.
func TestDocsPage(t *testing.T) {
	t.Parallel()
	s, w := openSite(t)
	w.do(t, chromedp.Navigate(s.EdgeURL+"/api/docs"))
	w.sees(t, "Open POST /api/auth/login and execute it", "Shown by Swagger UI")
	w.checkBarriers(t, "api-docs", "color-contrast")
	w.do(t, chromedp.Navigate(s.EdgeURL+"/api/docs#/auth/login"), chromedp.WaitVisible(".execute"))
	eval[bool](t, w, `document.querySelectorAll('.opblock-tag[data-is-open="false"]').forEach((tag) => tag.click()), true`)
	w.await(t, `["get", "post", "put", "delete"].every((method) => document.querySelector(".opblock-" + method))`)
	w.checkBarriers(t, "api-docs-operation", "color-contrast")
	w.screenshot(t, "api-docs-operation")
	for markup, refused := range map[string]bool{
		`<img src=x onerror=alert(1)>`: true, `<script>alert(1)</script>`: true, `<svg onload=alert(1)>`: true,
		`<a href="javascript:alert(1)">x</a>`: true, `<a href="java&#115;cript:alert(1)">x</a>`: true, `<a href="java&Tab;script:alert(1)">x</a>`: true,
		`<p>It counts once = 1 &#115;</p>`: false,
	} {
		set := fmt.Sprintf(`(() => { try { document.createElement("div").innerHTML = %q; return false } catch (e) { return e instanceof TypeError } })()`, markup)
		testenv.Equal(t, eval[bool](t, w, set), refused, "%s is refused", markup)
	}
}

// A page that could not be read says so, and reads again when it is asked to.
func TestTryAgain(t *testing.T) {
	t.Parallel()
	s, w := openSite(t)
	ann := register(t, s, "ann@example.com", "Ann")
	ann.AddPlayer(t, "Ann_1")
	w.signIn(t, ann, "/", "Hello, Ann")
	eval[bool](t, w, `(globalThis.connected = fetch, globalThis.fetch = () => Promise.reject(new TypeError("there is no network")), true)`)
	w.pressAndSee(t, "Players", "Loading", "The site cannot be reached.")
	w.inspect(t, "players-failed")
	eval[bool](t, w, `(globalThis.fetch = connected, true)`)
	w.pressAndSee(t, "Try again", "Ann_1")
	w.focusIs(t, "h1")

	// The home page needs to know the site.
	w.scriptAtStart(t, `globalThis.connected = fetch;
		globalThis.fetch = (url, init) => url === "/api/site" ? Promise.resolve(new Response("{}", { status: 500 })) : connected(url, init);`)
	w.visit(t, "/", "Try again")
	eval[bool](t, w, `(globalThis.fetch = connected, true)`)
	w.pressAndSee(t, "Try again", "First steps")
}

// A search waits for enough characters, and old skins have no slim arms.
func TestLibraryHints(t *testing.T) {
	t.Parallel()
	s, w := openSite(t)
	ann := register(t, s, "ann@example.com", "Ann")
	old := ann.Upload(t, "Old", skin.Classic, skintest.Noise(1, 64, 32))
	w.signIn(t, ann, "/library", "Library")
	w.shows(t, "1 result", 1)
	w.search(t, "ol")
	w.sees(t, "Please type at least 3 characters")
	w.inspect(t, "library-short")
	w.search(t, "old")
	w.isAt(t, "/library?q=old", "Library")
	w.await(t, `!document.body.innerText.includes("Please type at least 3 characters")`)
	// The front page leads here with any text.
	w.arrive(t, "/library?q=fr", "Library")
	w.shows(t, "1 result", 1)
	w.sees(t, "Please type at least 3 characters")
	w.arrive(t, fmt.Sprintf("/texture?tid=%d", old.TID), "Old")
	w.await(t, `document.querySelector(".sheet img").naturalHeight === 32`)
	if eval[bool](t, w, `document.body.innerText.includes("Give it slim arms")`) {
		t.Error("an old skin is offered slim arms")
	}
}

// What will be uploaded turns on a figure, one file at a time, and is drawn by the rules of our pictures. An upload can
// be cancelled.
func TestUploadPreview(t *testing.T) {
	t.Parallel()
	s := startSite(t, "CORE_LIMIT_UPLOADS=1")
	ann := register(t, s, "ann@example.com", "Ann")
	w := withWebGL.open(t, s.EdgeURL, "en")
	w.signIn(t, ann, "/upload", "Upload")
	w.watchViewers(t)
	old := skin.NewSheet(64, 32)
	for i := range old.Pix {
		old.Pix[i] = 255
	}
	for y := range 16 {
		for x := 32; x < 64; x++ { // a hat without transparency, which is none
			copy(old.Pix[old.At(x, y):], []byte{255, 0, 0, 255})
		}
	}
	w.reduceMotion(t, "reduce") // else the figure opens by itself where no processor draws
	w.do(t, chromedp.SetUploadFiles(`main input[type="file"]`, []string{file(t, "Robot.png", artwork.Robot()), file(t, "Old.png", old)}))
	w.await(t, ready("Robot"))
	w.await(t, ready("Old"))
	w.reduceMotion(t, "no-preference")
	w.press(t, "Show in 3D: Robot")
	w.await(t, `viewers.length === 1 && viewers[0].autoRotate && !viewers[0].renderPaused`)
	angle := eval[float64](t, w, `viewers[0].playerWrapper.rotation.y`)
	w.await(t, fmt.Sprintf(`viewers[0].playerWrapper.rotation.y > %v`, angle+0.1))
	pixel := eval[string](t, w, `(([c]) => [...c.getContext("2d").getImageData(c.width * 8 / 36, c.height * 4 / 32, 1, 1).data].join())(document.querySelectorAll('article[aria-label="Old"] canvas.figure-canvas'))`)
	testenv.Equal(t, pixel, "255,255,255,255", "the head of a skin with an opaque hat, which is white")
	w.pressAndAwait(t, "Turn the figure to the right", `!viewers[0].autoRotate`)
	w.pressAndAwait(t, "Show in 3D: Old", `viewers.length === 2 && viewers[0].disposed`)
	w.inspect(t, "upload-3d")

	w.expect("/api/textures")
	w.press(t, "Upload all 2 files")
	w.press(t, "Cancel the upload of Old") // which waits, as one upload a minute is possible
	w.await(t, `document.querySelectorAll("article.upload").length === 1 && document.activeElement.tagName === "H1"`)
	w.sees(t, "It is uploaded, and in your closet.")
}

const (
	demoUUID = "7d4448409dc011d1b2455ffdce74fad2"
	// haveAddress is whether an example with a path is shown, and among the addresses that can be copied.
	haveAddress = `((path) => [...document.images].some((i) => i.getAttribute("src") === path && i.parentElement.getAttribute("href") === path && i.naturalWidth > 0) &&
		[...document.querySelectorAll("figure code")].some((c) => c.textContent === path))`
	allShown = `[...document.images].every((i) => i.complete && i.naturalWidth > 0)`
)

// loadAll has the page load the pictures that are below the window, and waits for them.
func (tab *tab) loadAll(t *testing.T) {
	t.Helper()
	eval[bool](t, tab, `([...document.images].forEach((i) => { i.loading = "eager"; }), true)`)
	tab.await(t, allShown)
}

// The page at /pictures of an edge shows pictures of a player, and of another player by the keyboard alone. Its
// addresses can be copied, with and without the clipboard's permission.
func TestStartPage(t *testing.T) {
	t.Parallel()
	s, w := openSite(t, "CORE_DEMO=1", "EDGE_EXAMPLE_PLAYER=Demo")
	w.do(t, chromedp.Navigate(s.EdgeURL+"/pictures"))
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
	w.pressAndSee(t, "Show", "This site has no such player, or it has no skin.")
	w.await(t, `[...document.querySelectorAll("details code.address")].some((c) => c.textContent === "/cape/uuid/`+demoUUID+`")`)
	w.inspect(t, "start-unknown")
	w.fill(t, "player", " ")
	w.pressAndAwait(t, "Show", allShown+" && "+haveAddress+`("/face/player/Demo")`)

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
		testenv.Equal(t, eval[string](t, w, "permitted.readText()"), s.EdgeURL+test.path, "%s: the clipboard", test.name)
		testenv.Equal(t, eval[string](t, w, "document.activeElement.textContent"), "Copy", "%s: the focus is on", test.name)
		eval[bool](t, w, `(document.getElementById("status").textContent = "", true)`)
	}
}

// Without scripts, and without a player in the settings, the page shows the default skin and all
// addresses, and has no fields and buttons that do nothing.
func TestStartPageWithoutScripts(t *testing.T) {
	t.Parallel()
	s, w := openSite(t)
	send(t, w, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	w.do(t, chromedp.Navigate(s.EdgeURL+"/pictures"))
	w.loadAll(t)
	w.await(t, haveAddress+`("/face/user/0")`)
	fields := eval[int](t, w, `[...document.querySelectorAll("input, button")].filter((e) => e.checkVisibility()).length`)
	testenv.Equal(t, fields, 0, "fields and buttons")
	w.sees(t, "/face/player/{name}")
}
