//go:build !race

package console

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
)

// search types into the search of the page, in place of its content.
func (w *tab) search(t *testing.T, text string) {
	t.Helper()
	const field = `input[type="search"]`
	w.do(t, chromedp.WaitVisible(field))
	eval[bool](t, w, `(document.querySelector('input[type="search"]').select(), true)`)
	w.do(t, chromedp.SendKeys(field, text))
}

// shows waits until the list of the page has these many results, and this many of them on the page.
func (w *tab) shows(t *testing.T, results string, items int) {
	t.Helper()
	w.await(t, fmt.Sprintf(`document.querySelector(".results")?.innerText === %s && !document.querySelector(".results[aria-busy]") && document.querySelectorAll(".items > li").length === %d`,
		quote(results), items))
}

// fits checks that the page is not wider than the narrowest window.
func (w *tab) fits(t *testing.T, name string) {
	t.Helper()
	w.do(t, chromedp.EmulateViewport(320, 800))
	if wider := eval[int](t, w, "document.documentElement.scrollWidth - innerWidth"); wider > 0 {
		t.Errorf("%s at 320 pixels is %d pixels wider than the window", name, wider)
	}
	w.do(t, chromedp.EmulateViewport(1280, 800))
}

// likes waits until the server has so many likes of a texture.
func (w *tab) likes(t *testing.T, texture uploaded, count int) {
	t.Helper()
	w.await(t, fmt.Sprintf(`fetch("/api/textures/%d").then((r) => r.json()).then(({ likes }) => likes === %d)`, texture.TID, count))
}

// variant returns a sheet that differs from all others of its kind.
func variant(sheet skin.Sheet, n int) skin.Sheet {
	copied := skin.NewSheet(sheet.Width, sheet.Height)
	copy(copied.Pix, sheet.Pix)
	copy(copied.Pix[copied.At(10, 10):], []byte{byte(n), byte(n >> 8), 77, 255})
	return copied
}

// An uploader has two hundred textures. The library has them on several pages, by name, type and
// uploader, and the URL says what is shown. The closet has them, too, with names of its own.
func TestUploader(t *testing.T) {
	t.Parallel()
	s := startSite(t, "CORE_LIMIT_UPLOADS", "0", "CORE_LIMIT_CHANGES", "0", "CORE_QUOTA_CLOSET_ITEMS", "201", "CORE_SCORE_CLOSET_ITEM", "1", "CORE_SCORE_REGISTRATION", "100")
	zoe, ann := register(t, s, "zoe@example.com", "Zoë"), register(t, s, "ann@example.com", "Ann <i>")
	fox, mage := ann.upload(t, "Fox", skin.Classic, artwork.Fox()), ann.upload(t, "Mage <b>", skin.Classic, artwork.Mage())
	skins := artwork.Skins()
	for n := 1; n <= 200; n++ {
		if name := fmt.Sprintf("Texture %03d", n); n%10 == 0 {
			zoe.upload(t, name, skin.Cape, variant(artwork.NightSky(), n))
		} else {
			painting := skins[n%len(skins)]
			zoe.upload(t, name, painting.Type, variant(painting.Sheet, n))
		}
	}
	zoe.call(t, "POST", "/api/players", map[string]any{"name": "Zoe_1"}, nil)

	w := plain.open(t, s.EdgeURL, "en")
	w.signIn(t, zoe, "/library", "Library")
	w.shows(t, "202 results", 24)
	w.inspect(t, "library")
	w.fits(t, "library")
	w.press(t, "Next")
	w.isAt(t, "/library?page=2", "Library")
	w.sees(t, "Page 2 of 9")
	w.await(t, `document.activeElement.className.includes("results")`)
	w.press(t, "Next")
	w.sees(t, "Page 3 of 9")
	eval[bool](t, w, "(history.back(), true)")
	w.sees(t, "Page 2 of 9")
	w.isAt(t, "/library?page=2", "Library")

	// Another filter begins at the first page, and back returns to the page of the other.
	w.choose(t, "Type", "Cape")
	w.isAt(t, "/library?type=cape", "Library")
	w.shows(t, "20 results", 20)
	eval[bool](t, w, "(history.back(), true)")
	w.isAt(t, "/library?page=2", "Library")
	w.shows(t, "202 results", 24)
	w.await(t, `[...document.querySelectorAll(".filter select")][0].value === ""`)
	eval[bool](t, w, "(history.forward(), true)")
	w.shows(t, "20 results", 20)
	w.choose(t, "Type", "All")

	w.search(t, "Texture 11")
	w.isAt(t, "/library?q=Texture+11", "Library")
	w.shows(t, "10 results", 10)
	w.press(t, "Only mine")
	w.isAt(t, "/library?q=Texture+11&uploader=1", "Library")
	w.search(t, kb.Delete)
	w.isAt(t, "/library?uploader=1", "Library")
	w.shows(t, "200 results", 24)
	w.inspect(t, "library-mine")
	eval[bool](t, w, "(history.back(), true)")
	w.isAt(t, "/library?q=Texture+11", "Library")
	w.await(t, `document.querySelector('input[type="search"]').value === "Texture 11"`)
	w.search(t, "nothing has this name")
	w.sees(t, "There is no such texture.")
	w.inspect(t, "library-nothing")
	w.press(t, "Show all textures")
	w.shows(t, "202 results", 24)

	// Of another uploader. The keyboard alone adds to the closet; the likes grow at once.
	w.visit(t, "/library?page=9")
	w.shows(t, "202 results", 10)
	w.press(t, "Only textures by Ann <i>")
	w.isAt(t, "/library?uploader=2", "Library")
	w.shows(t, "2 results", 2)
	likes := `[...document.querySelectorAll(".items .likes")].map((e) => e.innerText.match(/[0-9]+/)[0]).join()`
	if got := eval[string](t, w, likes); got != "1,1" {
		t.Errorf("the likes are %s", got)
	}
	w.tabTo(t, "Add to closet: Fox")
	w.pressEnter(t)
	w.await(t, `document.activeElement.getAttribute("aria-label") === "Remove from closet: Fox"`)
	w.await(t, likes+` === "1,2"`)
	w.likes(t, fox, 2)
	// The closet is full: what was shown is taken back.
	w.expect("/api/closet")
	w.press(t, "Add to closet: Mage <b>")
	w.sees(t, "The closet has 201 items already, and may have no more.")
	w.await(t, likes+` === "1,2" && Boolean(document.querySelector('[aria-label="Add to closet: Mage <b>"]'))`)
	w.visit(t, "/library?uploader=2&sort=likes")
	w.await(t, likes+` === "2,1"`)
	w.press(t, "Remove from closet: Fox")
	w.await(t, likes+` === "1,1"`)
	w.likes(t, fox, 1)
	w.press(t, "Add to closet: Mage <b>")
	w.likes(t, mage, 2)
	w.press(t, "Show all uploaders, not only Ann <i>")
	w.isAt(t, "/library?sort=likes", "Library")

	// The closet.
	w.press(t, "Closet")
	w.isAt(t, "/closet", "Closet")
	w.shows(t, "181 results", 24)
	w.inspect(t, "closet")
	w.fits(t, "closet")
	w.press(t, "Capes")
	w.isAt(t, "/closet?category=cape", "Closet")
	w.shows(t, "20 results", 20)
	eval[bool](t, w, "(history.back(), true)")
	w.shows(t, "181 results", 24)
	w.search(t, "Texture 19")
	w.shows(t, "9 results", 9)
	w.isAt(t, "/closet?q=Texture+19", "Closet")
	// The keyboard alone renames.
	w.tabTo(t, "Rename Texture 199")
	w.pressEnter(t)
	w.await(t, `Boolean(document.querySelector('dialog[open] [name="name"]'))`)
	w.tabTo(t, "name")
	w.inspect(t, "closet-rename")
	eval[bool](t, w, `(document.activeElement.select(), true)`)
	w.do(t, chromedp.KeyEvent("Sunday <u>best</u>"))
	w.pressEnter(t)
	w.await(t, `!document.querySelector("dialog") && document.activeElement.getAttribute("aria-label") === "Rename Sunday <u>best</u>"`)
	w.press(t, "Use Sunday <u>best</u> as the avatar")
	w.sees(t, "Sunday <u>best</u> is your avatar now.")
	w.await(t, `document.querySelector('[aria-label="Use Sunday <u>best</u> as the avatar"]').getAttribute("aria-pressed") === "true"`)
	w.press(t, "Wear Sunday <u>best</u>")
	w.await(t, `location.search.includes("wear=")`)
	w.sees(t, "Zoe_1")
	w.inspect(t, "closet-wear")
	w.press(t, "Zoe_1")
	w.sees(t, "Zoe_1 wears Sunday <u>best</u> now.")
	w.isAt(t, "/closet?q=Texture+19", "Closet")
	w.press(t, "Remove from closet: Texture 198")
	w.sees(t, "Texture 198 is out of your closet.")
	w.visit(t, "/closet?q=Texture+19") // Sunday best has another name
	w.shows(t, "7 results", 7)
	w.search(t, "nothing has this name")
	w.sees(t, "Nothing in the closet has this in its name.")
}

// A new user has an empty closet, which says what to do.
func TestEmptyCloset(t *testing.T) {
	t.Parallel()
	s := startSite(t)
	w := plain.open(t, s.EdgeURL, "en")
	w.signIn(t, register(t, s, "new@example.com", "New"), "/closet", "Closet")
	w.sees(t, "There are no skins in your closet.")
	w.inspect(t, "closet-none")
	w.press(t, "Look into the library")
	w.isAt(t, "/library", "Library")
	w.sees(t, "There are no textures on this site yet.")
	w.inspect(t, "library-none")
	w.press(t, "Only mine")
	w.sees(t, "You have not uploaded a texture yet.")
}
