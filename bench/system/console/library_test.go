package console

import (
	"fmt"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// search types into the search of the page, in place of its content.
func (tab *tab) search(t *testing.T, text string) {
	t.Helper()
	const field = `input[type="search"]`
	tab.do(t, chromedp.WaitVisible(field))
	eval[bool](t, tab, `(document.querySelector('input[type="search"]').select(), true)`)
	tab.do(t, chromedp.SendKeys(field, text))
}

// shows waits until the list of the page has these many results, and this many of them on the page.
func (tab *tab) shows(t *testing.T, results string, items int) {
	t.Helper()
	tab.await(t, fmt.Sprintf(`document.querySelector(".results")?.innerText === %s && !document.querySelector(".results[aria-busy]") && document.querySelectorAll(".items > li").length === %d`,
		quote(results), items))
}

// likes waits until the server has so many likes of a texture.
func (tab *tab) likes(t *testing.T, texture site.Texture, count int) {
	t.Helper()
	tab.await(t, fmt.Sprintf(`fetch("/api/textures/%d").then((r) => r.json()).then(({ likes }) => likes === %d)`, texture.TID, count))
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
	s, w := openSite(t, "CORE_LIMIT_UPLOADS=0", "CORE_LIMIT_CHANGES=0", "CORE_QUOTA_CLOSET_ITEMS=201", "CORE_SCORE_CLOSET_ITEM=1", "CORE_SCORE_REGISTRATION=100")
	zoe, ann := register(t, s, "zoe@example.com", "Zoë"), register(t, s, "ann@example.com", "Ann <i>")
	fox, mage := ann.Upload(t, "Fox", skin.Classic, artwork.Fox()), ann.Upload(t, "Mage <b>", skin.Classic, artwork.Mage())
	skins := artwork.Skins()
	for n := 1; n <= 200; n++ {
		if name := fmt.Sprintf("Texture %03d", n); n%10 == 0 {
			zoe.Upload(t, name, skin.Cape, variant(artwork.NightSky(), n))
		} else {
			painting := skins[n%len(skins)]
			zoe.Upload(t, name, painting.Type, variant(painting.Sheet, n))
		}
	}
	zoe.AddPlayer(t, "Zoe_1")

	w.signIn(t, zoe, "/library", "Library")
	w.shows(t, "202 results", 24)
	w.inspect(t, "library")
	const page = `document.querySelector(".pager input").value === `
	w.follow(t, "Next", "/library?page=2", "Library")
	w.await(t, `document.activeElement.className.includes("results") && `+page+`"2"`)
	w.pressAndAwait(t, "Next", page+`"3"`)
	w.back(t)
	w.await(t, page+`"2"`)
	w.isAt(t, "/library?page=2", "Library")

	// A page by its number; others than 1 to 9 there are not.
	for _, number := range []string{"10", "0", "x", ""} {
		w.fillIn(t, ".pager input", number)
		w.pressEnter(t)
		w.await(t, page+`"2"`)
	}
	w.fillIn(t, ".pager input", "9")
	w.pressEnter(t)
	w.isAt(t, "/library?page=9", "Library", "of 9")
	w.await(t, `document.activeElement.className.includes("results") && `+page+`"9"`)
	w.shows(t, "202 results", 10)
	w.back(t)
	w.await(t, page+`"2"`)

	// Another filter begins at the first page, and back returns to the page of the other.
	w.follow(t, "Capes", "/library?type=cape", "Library")
	w.shows(t, "20 results", 20)
	w.back(t)
	w.isAt(t, "/library?page=2", "Library")
	w.shows(t, "202 results", 24)
	w.await(t, `document.querySelector(".chips [aria-current]").innerText === "All" && document.querySelector(".filter select").value === ""`)
	eval[bool](t, w, "(history.forward(), true)")
	w.shows(t, "20 results", 20)
	w.follow(t, "All", "/library", "Library")

	w.search(t, "Texture 11")
	w.isAt(t, "/library?q=Texture+11", "Library")
	w.shows(t, "10 results", 10)
	w.follow(t, "Mine", "/library?q=Texture+11&uploader=1", "Library")
	w.search(t, kb.Delete)
	w.isAt(t, "/library?uploader=1", "Library")
	w.shows(t, "200 results", 24)
	w.inspect(t, "library-mine")
	w.back(t)
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
	w.follow(t, "Only textures by Ann <i>", "/library?uploader=2", "Library")
	w.shows(t, "2 results", 2)
	likes := `[...document.querySelectorAll(".items .likes")].map((e) => e.innerText.match(/[0-9]+/)[0]).join()`
	testenv.Equal(t, eval[string](t, w, likes), "1,1", "the likes")
	w.enterOn(t, "Add to closet: Fox")
	w.await(t, `document.activeElement.getAttribute("aria-label") === "Remove from closet: Fox"`)
	w.await(t, likes+` === "1,2"`)
	w.likes(t, fox, 2)
	// The closet is full: what was shown is taken back.
	w.expect("/api/closet")
	w.pressAndSee(t, "Add to closet: Mage <b>", "The closet has 201 items already, and may have no more.")
	w.await(t, likes+` === "1,2" && Boolean(document.querySelector('[aria-label="Add to closet: Mage <b>"]'))`)
	w.visit(t, "/library?uploader=2&sort=likes")
	w.await(t, likes+` === "2,1"`)
	w.pressAndAwait(t, "Remove from closet: Fox", likes+` === "1,1"`)
	w.likes(t, fox, 1)
	w.press(t, "Add to closet: Mage <b>")
	w.likes(t, mage, 2)
	w.follow(t, "Show all uploaders, not only Ann <i>", "/library?sort=likes", "Library")

	// The closet.
	w.follow(t, "Closet", "/closet", "Closet")
	w.shows(t, "181 results", 24)
	w.inspect(t, "closet")
	w.choose(t, "Order", "name")
	w.isAt(t, "/closet?sort=name", "Closet")
	w.shows(t, "181 results", 24)
	w.back(t)
	w.follow(t, "Capes", "/closet?category=cape", "Closet")
	w.shows(t, "20 results", 20)
	w.back(t)
	w.shows(t, "181 results", 24)
	w.search(t, "Texture 19")
	w.shows(t, "9 results", 9)
	w.isAt(t, "/closet?q=Texture+19", "Closet")
	// The keyboard alone renames.
	w.enterOn(t, "More about Texture 199")
	w.enterOn(t, "Rename Texture 199")
	w.await(t, `Boolean(document.querySelector('dialog[open] [name="name"]'))`)
	w.tabTo(t, "name")
	w.inspect(t, "closet-rename")
	eval[bool](t, w, `(document.activeElement.select(), true)`)
	w.do(t, chromedp.KeyEvent("Sunday <u>best</u>"))
	w.pressEnter(t)
	w.await(t, `!document.querySelector("dialog") && document.activeElement.getAttribute("aria-label") === "More about Sunday <u>best</u>"`)
	w.pressAndSee(t, "Use as avatar: Sunday <u>best</u>", "Sunday <u>best</u> is your avatar now.")
	w.pressAndSee(t, "Do not use as avatar: Sunday <u>best</u>", "Sunday <u>best</u> is no longer your avatar.")
	w.pressAndAwait(t, "Wear Sunday <u>best</u>", `location.search.includes("wear=")`)
	w.sees(t, "Zoe_1")
	w.inspect(t, "closet-wear")
	w.pressAndSee(t, "Put it on Zoe_1", "Zoe_1 wears Sunday <u>best</u> now.")
	w.isAt(t, "/closet?q=Texture+19", "Closet")
	w.pressAndSee(t, "Remove from closet: Texture 198", "Texture 198 is out of your closet.")
	w.visit(t, "/closet?q=Texture+19") // Sunday best has another name
	w.shows(t, "7 results", 7)
	w.search(t, "nothing has this name")
	w.sees(t, "Nothing in the closet has this in its name.")
}

// A new user has an empty closet, which says what to do.
func TestEmptyCloset(t *testing.T) {
	t.Parallel()
	s, w := openSite(t)
	w.signIn(t, register(t, s, "new@example.com", "New"), "/closet", "Closet", "There are no skins in your closet.")
	w.inspect(t, "closet-none")
	w.follow(t, "Look into the library", "/library", "Library", "There are no textures on this site yet.")
	w.inspect(t, "library-none")
	w.pressAndSee(t, "Mine", "You have not uploaded a texture yet.")

	// The pages for visitors know the user as long as the session lasts.
	w.expect("/p/Nobody")
	w.do(t, chromedp.Navigate(s.EdgeURL+"/p/Nobody"))
	w.await(t, `document.querySelector("header nav a:last-of-type").innerText === "New"`)
	account := `document.querySelector("header nav a:last-of-type").innerText + " " + document.querySelector(".hero .main").innerText`
	front := chromedp.Navigate(s.EdgeURL + "/")
	w.do(t, front)
	w.await(t, account+` === "New Upload a skin"`)
	w.visit(t, "/library")
	w.signOut(t)
	w.do(t, front)
	w.await(t, account+` === "Sign in Create account"`)
}

// clipboard is locked by walks that copy: all walks of a browser share it.
var clipboard sync.Mutex

// grant lets the site do what users are asked for.
func grant(t *testing.T, w *tab, permissions ...string) {
	t.Helper()
	for _, name := range permissions {
		send(t, w, browser.SetPermission, browser.SetPermissionParams{
			Permission: &browser.PermissionDescriptor{Name: name}, Setting: browser.PermissionSettingGranted, Origin: w.site,
			BrowserContextID: chromedp.FromContext(w.ctx).BrowserContextID,
		})
	}
}

// An uploader renames a texture, gives it other arms, makes it private and public, and deletes it;
// another user sees it, keeps it, and reports it; an administrator may do all of that.
func TestTexture(t *testing.T) {
	t.Parallel()
	s, w := openSite(t, "CORE_SCORE_PRIVATE_TEXTURE_KIB=5", "CORE_SCORE_TEXTURE_KIB=1", "CORE_SCORE_REGISTRATION=1000")
	zoe, ann := register(t, s, "zoe@example.com", "Zoë"), register(t, s, "ann@example.com", "Ann")
	mage := zoe.Upload(t, "Mage", skin.Classic, artwork.Mage())
	cape := zoe.Upload(t, "Night & <i>sky</i>", skin.Cape, artwork.NightSky())
	path := fmt.Sprintf("/texture?tid=%d", mage.TID)

	grant(t, w, "clipboard-read", "clipboard-write")
	w.signIn(t, zoe, path, "Mage", "Public: everyone can find and use it.")
	w.inspect(t, "texture")
	shared := fmt.Sprintf(`[...document.querySelectorAll('main a[href="/t/%d"]')].map((a) => a.innerText).join()`, mage.TID)
	testenv.Equal(t, eval[string](t, w, shared), "Page to share", "the link of a public texture")
	func() {
		clipboard.Lock()
		defer clipboard.Unlock()
		eval[bool](t, w, `(document.querySelector("details").open = true, document.querySelector('[aria-label="Copy the hash"]').focus(), true)`)
		w.pressEnter(t)
		w.sees(t, "Copied.")
		testenv.Equal(t, eval[string](t, w, "navigator.clipboard.readText()"), mage.Hash, "the clipboard")
	}()
	eval[bool](t, w, `(HTMLAnchorElement.prototype.click = function () { globalThis.saved = this; }, true)`)
	w.pressAndAwait(t, "Download", `globalThis.saved?.download === "Mage.png"`)
	if got := eval[string](t, w, `new Promise((resolve) => { const i = new Image(); i.onload = () => resolve(i.naturalWidth + " × " + i.naturalHeight); i.src = saved.href; })`); got != "64 × 64" {
		t.Errorf("the download is %q", got)
	}

	// A change that arrives after the form's is shown in the end, and the next one is not sent before it.
	hold := func() {
		eval[bool](t, w, `(globalThis.arrived = 0, globalThis.held = new Promise((release) => { globalThis.release = release; }), true)`)
	}
	release := func() { eval[bool](t, w, `(release(), true)`) }
	const slim, classic = `document.querySelector(".facts").innerText.includes("Skin with slim arms")`, `document.querySelector(".facts").innerText.includes("Skin with classic arms")`
	eval[bool](t, w, `(globalThis.unheld = fetch, globalThis.fetch = async (url, init) => {
		if (init?.body === '{"type":"alex"}') await held;
		const response = await unheld(url, init);
		if (init?.method === "PUT") arrived++;
		return response;
	}, true)`)
	hold()
	w.pressAndAwait(t, "Give it slim arms", slim)
	w.press(t, "Rename")
	w.expect("/api/textures/999999")
	w.fill(t, "name", " ")
	w.pressEnter(t)
	w.await(t, `document.querySelector('dialog [name="name"]').getAttribute("aria-invalid") === "true"`)
	w.fill(t, "name", "Great Mage")
	w.pressEnter(t)
	w.isAt(t, path, "Great Mage")
	release()
	w.await(t, slim)
	w.pressAndAwait(t, "Give it classic arms", classic)
	w.await(t, `arrived === 3`) // a name and two types
	hold()
	w.pressAndAwait(t, "Give it slim arms", slim)
	w.pressAndAwait(t, "Give it classic arms", classic)
	release()
	w.await(t, `arrived === 2`)
	w.pressAndSee(t, "Make it private", "points at most.")
	w.inspect(t, "texture-private-confirm")
	w.pressAndSee(t, "Make it private", "Private: only you and administrators can find and use it.")
	testenv.Equal(t, eval[string](t, w, shared), "", "the link of a private texture")
	w.pressAndSee(t, "Make it public", "Everyone can find and use it then. This may pay back")
	w.pressAndSee(t, "Make it public", "Public: everyone can find and use it.")
	w.answered(t) // it is shown before, and to others it is a 403 until then
	w.await(t, `fetch("/api/textures/`+fmt.Sprint(mage.TID)+`").then((r) => r.json()).then((t) => t.public === true && t.name === "Great Mage" && t.type === "steve")`)
	w.pressAndSee(t, "Wear Great Mage", "You have no players yet.")
	w.inspect(t, "texture-wear-none")
	w.follow(t, "Close", path, "Great Mage")
	w.visit(t, "/texture?tid=999999")
	w.await(t, `Boolean(document.querySelector("main [role=alert]")?.innerText)`)
	w.arrive(t, fmt.Sprintf("/texture?tid=%d", cape.TID), "Night & <i>sky</i>")
	w.inspect(t, "texture-cape")
	w.signOut(t)

	// Another user.
	w.signIn(t, ann, path, "Great Mage")
	w.await(t, `![...document.querySelectorAll("button")].some((b) => b.innerText === "Rename")`)
	w.press(t, "Add to closet: Great Mage")
	w.await(t, `Boolean(document.querySelector('[aria-label="Remove from closet: Great Mage"]'))`)
	w.expect("/api/reports")
	w.pressAndSee(t, "Report", "What is wrong with it?")
	w.press(t, "Send the report")
	w.await(t, `document.querySelector('dialog [name="reason"]').getAttribute("aria-invalid") === "true" && document.activeElement.name === "reason"`)
	w.inspect(t, "texture-report")
	w.do(t, chromedp.SendKeys(`dialog [name="reason"]`, "I drew this skin."))
	w.pressAndSee(t, "Send the report", "Thank you. An administrator will look at it.")
	w.closed(t)
	w.press(t, "Report")
	w.do(t, chromedp.SendKeys(`dialog [name="reason"]`, "I drew this skin."))
	w.pressAndSee(t, "Send the report", "You have reported this texture already.")
	w.press(t, "Close")
	w.signOut(t)

	// An administrator.
	s.Core.Run(t, "user", "permission", "-set", "1", "ann@example.com")
	w.signIn(t, ann, path, "Great Mage")
	w.pressAndSee(t, "Make it private", "It leaves the closets of all other users")
	w.pressAndSee(t, "Make it private", "Private: only its uploader and administrators can find and use it.")
	w.await(t, `Boolean(document.querySelector('[aria-label="Add to closet: Great Mage"]'))`) // it has left the closets of others
	w.inspect(t, "texture-administrator")
	w.pressAndSee(t, "Delete", "This cannot be undone.")
	eval[bool](t, w, `(document.querySelector("[name=refuse]").click(), true)`)
	w.pressAndSee(t, "Delete", "Great Mage is deleted.")
	w.isAt(t, "/library", "Library")
	w.arrive(t, "/admin/refusals", "Refused pictures")
	w.sees(t, "Great Mage")
}
