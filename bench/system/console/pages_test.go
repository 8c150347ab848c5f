//go:build !race

package console

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
)

// Pages say what something costs before it is done, and show the score that is left.
func TestCosts(t *testing.T) {
	t.Parallel()
	s := startSite(t, "CORE_SCORE_REGISTRATION", "100", "CORE_SCORE_PLAYER", "5", "CORE_SCORE_PRIVATE_TEXTURE_KIB", "2", "CORE_SCORE_SIGN_REWARD", "10")
	ann := register(t, s, "ann@example.com", "Ann")
	w := plain.open(t, s.EdgeURL, "en")
	scoreIs := func(condition string) {
		t.Helper()
		w.press(t, "Home")
		w.isAt(t, "/", "Hello, Ann")
		w.await(t, `Number(document.querySelector(".figure")?.innerText) `+condition)
	}
	w.signIn(t, ann, "/", "Hello, Ann")
	w.sees(t, "First steps")
	w.inspect(t, "home-new")
	w.press(t, "Players")
	w.isAt(t, "/players", "Players")
	w.press(t, "Add a player")
	w.sees(t, "It costs 5 points.")
	w.sees(t, "letters A to Z, digits and underscores")
	w.fill(t, "name", "Ann_1")
	w.press(t, "Add")
	w.sees(t, "Ann_1")
	scoreIs("=== 95")

	w.press(t, "Players")
	w.isAt(t, "/players", "Players")
	w.takesDrops(t)
	robot := dropped{"Robot.png", file(t, "Robot.png", artwork.Robot())}
	w.drag(t, ".player", false, robot)
	w.drag(t, ".target", true, robot)
	w.sees(t, "The file is uploaded for you only, which costs ")
	w.inspect(t, "players-cost")
	w.press(t, "Cancel")
	w.await(t, `!document.querySelector("dialog")`)
	w.drag(t, ".player", false, robot)
	w.drag(t, ".target", true, robot)
	w.sees(t, "The file is uploaded for you only, which costs ")
	w.press(t, "Upload")
	w.await(t, `document.querySelector('img[alt="Skin of Ann_1, front and back"]')?.naturalWidth > 0`)
	scoreIs("< 95")

	// Today is signed also after a reload.
	w.press(t, "Sign in for today (+10 points)")
	w.sees(t, "Signed in for today. Next time from")
	w.visit(t, "/")
	w.sees(t, "Signed in for today. Next time from")
	w.visit(t, "/score")
	w.press(t, "Players")
	w.press(t, "Delete Ann_1")
	w.press(t, "Delete")
	w.sees(t, "Ann_1 is deleted.")
}

// A page that could not be read says so, and reads again when it is asked to.
func TestTryAgain(t *testing.T) {
	t.Parallel()
	s := startSite(t)
	ann := register(t, s, "ann@example.com", "Ann")
	ann.call(t, http.MethodPost, "/api/players", map[string]any{"name": "Ann_1"}, nil)
	w := plain.open(t, s.EdgeURL, "en")
	w.signIn(t, ann, "/", "Hello, Ann")
	eval[bool](t, w, `(globalThis.connected = fetch, globalThis.fetch = () => Promise.reject(new TypeError("there is no network")), true)`)
	w.press(t, "Players")
	w.sees(t, "Loading")
	w.sees(t, "The site cannot be reached.")
	w.inspect(t, "players-failed")
	eval[bool](t, w, `(globalThis.fetch = connected, true)`)
	w.press(t, "Try again")
	w.sees(t, "Ann_1")
	w.focusIs(t, "h1")

	// The home page needs to know the site.
	send(t, w, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `
		globalThis.connected = fetch;
		globalThis.fetch = (url, init) => url === "/api/site" ? Promise.resolve(new Response("{}", { status: 500 })) : connected(url, init);`})
	w.visit(t, "/")
	w.sees(t, "Try again")
	eval[bool](t, w, `(globalThis.fetch = connected, true)`)
	w.press(t, "Try again")
	w.sees(t, "First steps")
}

// A search waits for enough characters, and old skins have no slim arms.
func TestLibraryHints(t *testing.T) {
	t.Parallel()
	s := startSite(t)
	ann := register(t, s, "ann@example.com", "Ann")
	sheet := skin.NewSheet(64, 32)
	for i := range sheet.Pix {
		sheet.Pix[i] = 255
	}
	old := ann.upload(t, "Old", skin.Classic, sheet)
	w := plain.open(t, s.EdgeURL, "en")
	w.signIn(t, ann, "/library", "Library")
	w.shows(t, "1 result", 1)
	w.search(t, "ol")
	w.sees(t, "Please type at least 3 characters")
	w.inspect(t, "library-short")
	w.search(t, "old")
	w.isAt(t, "/library?q=old", "Library")
	w.await(t, `!document.body.innerText.includes("Please type at least 3 characters")`)
	path := fmt.Sprintf("/texture?tid=%d", old.TID)
	w.visit(t, path)
	w.isAt(t, path, "Old")
	w.await(t, `document.querySelector(".sheet img").naturalHeight === 32`)
	if eval[bool](t, w, `document.body.innerText.includes("Give it slim arms")`) {
		t.Error("an old skin is offered slim arms")
	}
}

// What will be uploaded turns on a figure, one file at a time, and is drawn by the rules of our pictures. An upload can
// be cancelled.
func TestUploadPreview(t *testing.T) {
	t.Parallel()
	s := startSite(t, "CORE_LIMIT_UPLOADS", "1")
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
	w.do(t, chromedp.SetUploadFiles(`main input[type="file"]`, []string{file(t, "Robot.png", artwork.Robot()), file(t, "Old.png", old)}))
	w.await(t, ready("Robot"))
	w.await(t, ready("Old"))
	w.await(t, `viewers.length === 1 && viewers[0].autoRotate && !viewers[0].renderPaused`)
	angle := eval[float64](t, w, `viewers[0].playerWrapper.rotation.y`)
	w.await(t, fmt.Sprintf(`viewers[0].playerWrapper.rotation.y > %v`, angle+0.1))
	pixel := eval[string](t, w, `(([c]) => [...c.getContext("2d").getImageData(c.width * 8 / 36, c.height * 4 / 32, 1, 1).data].join())(document.querySelectorAll("canvas.figure-canvas"))`)
	if pixel != "255,255,255,255" {
		t.Errorf("the head of a skin with an opaque hat is drawn %s; want white", pixel)
	}
	w.press(t, "Turn the figure to the right")
	w.await(t, `!viewers[0].autoRotate`)
	w.press(t, "Show in 3D: Old")
	w.await(t, `viewers.length === 2 && viewers[0].disposed`)
	w.inspect(t, "upload-3d")

	w.expect("/api/textures")
	w.press(t, "Upload all 2 files")
	w.press(t, "Cancel the upload of Old") // which waits, as one upload a minute is possible
	w.await(t, `document.querySelectorAll(".upload").length === 1 && document.activeElement.tagName === "H1"`)
	w.sees(t, "It is uploaded, and in your closet.")
}
