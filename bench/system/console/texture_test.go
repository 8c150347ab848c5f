//go:build !race

package console

import (
	"fmt"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"

	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
)

// clipboard is locked by walks that copy: those of a browser share it.
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

// The demo's user looks through the pages in Chinese.
func TestLibraryInChinese(t *testing.T) {
	t.Parallel()
	s := startSite(t, "CORE_DEMO", "1")
	w := withWebGL.open(t, s.EdgeURL, "zh-CN")
	w.visit(t, "/closet")
	w.enter(t, "demo@example.com", "demo-password", "/closet", "衣柜")
	w.await(t, `document.querySelectorAll(".items > li").length > 0`)
	w.inspect(t, "zh-closet")
	w.press(t, "材质库")
	w.isAt(t, "/library", "材质库")
	w.await(t, `document.querySelectorAll(".items > li").length > 0`)
	w.press(t, "只看我的")
	w.isAt(t, "/library?uploader=1", "材质库")
	w.inspect(t, "zh-library")
	w.press(t, "Explorer")
	w.sees(t, "公开：所有人都能找到并使用它。")
	w.press(t, "3D 展示")
	w.await(t, `Boolean(document.querySelector("canvas")) && !document.querySelector(".stage[aria-busy]")`)
	w.inspect(t, "zh-texture")
	w.press(t, "设为私有")
	w.sees(t, "重新设为公开不会恢复这些。")
	w.inspect(t, "zh-texture-private")
}

// An uploader renames a texture, gives it other arms, makes it private and public, and deletes it;
// another user sees it, keeps it, and reports it; an administrator may do all of that.
func TestTexture(t *testing.T) {
	t.Parallel()
	s := startSite(t, "CORE_SCORE_PRIVATE_TEXTURE_KIB", "5", "CORE_SCORE_TEXTURE_KIB", "1", "CORE_SCORE_REGISTRATION", "1000")
	zoe, ann := register(t, s, "zoe@example.com", "Zoë"), register(t, s, "ann@example.com", "Ann")
	mage := zoe.upload(t, "Mage", skin.Classic, artwork.Mage())
	cape := zoe.upload(t, "Night & <i>sky</i>", skin.Cape, artwork.NightSky())
	path := fmt.Sprintf("/texture?tid=%d", mage.TID)

	w := plain.open(t, s.EdgeURL, "en")
	grant(t, w, "clipboard-read", "clipboard-write")
	w.signIn(t, zoe, path, "Mage")
	w.sees(t, "Public: everyone can find and use it.")
	w.inspect(t, "texture")
	w.fits(t, "texture")
	func() {
		clipboard.Lock()
		defer clipboard.Unlock()
		eval[bool](t, w, `(document.querySelector('[aria-label="Copy the hash"]').focus(), true)`)
		w.pressEnter(t)
		w.sees(t, "Copied.")
		if got := eval[string](t, w, "navigator.clipboard.readText()"); got != mage.Hash {
			t.Errorf("the clipboard has %q; want %q", got, mage.Hash)
		}
	}()
	eval[bool](t, w, `(HTMLAnchorElement.prototype.click = function () { globalThis.saved = this; }, true)`)
	w.press(t, "Download")
	w.await(t, `globalThis.saved?.download === "Mage.png"`)
	if got := eval[string](t, w, `new Promise((resolve) => { const i = new Image(); i.onload = () => resolve(i.naturalWidth + " × " + i.naturalHeight); i.src = saved.href; })`); got != "64 × 64" {
		t.Errorf("the download is %q", got)
	}

	w.press(t, "Rename")
	w.expect("/api/textures/"+fmt.Sprint(mage.TID), "/api/textures/999999")
	w.fill(t, "name", " ")
	w.pressEnter(t)
	w.await(t, `document.querySelector('dialog [name="name"]').getAttribute("aria-invalid") === "true"`)
	w.fill(t, "name", "Great Mage")
	w.pressEnter(t)
	w.isAt(t, path, "Great Mage")
	w.press(t, "Give it slim arms")
	w.await(t, `document.querySelector(".facts").innerText.includes("Skin with slim arms")`)
	w.press(t, "Give it classic arms")
	w.await(t, `document.querySelector(".facts").innerText.includes("Skin with classic arms")`)
	w.press(t, "Make it private")
	w.sees(t, "points at most.")
	w.inspect(t, "texture-private-confirm")
	w.press(t, "Make it private")
	w.sees(t, "Private: only you and administrators can find and use it.")
	w.press(t, "Make it public")
	w.sees(t, "Everyone can find and use it then. This may pay back")
	w.press(t, "Make it public")
	w.sees(t, "Public: everyone can find and use it.")
	w.await(t, `fetch("/api/textures/`+fmt.Sprint(mage.TID)+`").then((r) => r.json()).then((t) => t.public === true && t.name === "Great Mage" && t.type === "steve")`)
	w.press(t, "Wear Great Mage")
	w.sees(t, "You have no players yet.")
	w.inspect(t, "texture-wear-none")
	w.press(t, "Close")
	w.isAt(t, path, "Great Mage")
	w.visit(t, "/texture?tid=999999")
	w.await(t, `Boolean(document.querySelector("main [role=alert]")?.innerText)`)
	w.visit(t, fmt.Sprintf("/texture?tid=%d", cape.TID))
	w.isAt(t, fmt.Sprintf("/texture?tid=%d", cape.TID), "Night & <i>sky</i>")
	w.inspect(t, "texture-cape")
	w.press(t, "Sign out")
	w.isAt(t, "/signin", "Sign in")

	// Another user.
	w.signIn(t, ann, path, "Great Mage")
	w.await(t, `![...document.querySelectorAll("button")].some((b) => b.innerText === "Rename")`)
	w.press(t, "Add to closet: Great Mage")
	w.await(t, `Boolean(document.querySelector('[aria-label="Remove from closet: Great Mage"]'))`)
	w.expect("/api/reports")
	w.press(t, "Report")
	w.sees(t, "What is wrong with it?")
	w.press(t, "Send the report")
	w.await(t, `document.querySelector('dialog [name="reason"]').getAttribute("aria-invalid") === "true" && document.activeElement.name === "reason"`)
	w.inspect(t, "texture-report")
	w.do(t, chromedp.SendKeys(`dialog [name="reason"]`, "I drew this skin."))
	w.press(t, "Send the report")
	w.sees(t, "Thank you. An administrator will look at it.")
	w.await(t, `!document.querySelector("dialog")`)
	w.press(t, "Report")
	w.do(t, chromedp.SendKeys(`dialog [name="reason"]`, "I drew this skin."))
	w.press(t, "Send the report")
	w.sees(t, "You have reported this texture already.")
	w.press(t, "Close")
	w.press(t, "Sign out")
	w.isAt(t, "/signin", "Sign in")

	// An administrator.
	s.Core.Run(t, "user", "permission", "-set", "1", "ann@example.com")
	w.signIn(t, ann, path, "Great Mage")
	w.press(t, "Make it private")
	w.sees(t, "It leaves the closets of all other users")
	w.press(t, "Make it private")
	w.sees(t, "Private: only its uploader and administrators can find and use it.")
	w.await(t, `Boolean(document.querySelector('[aria-label="Add to closet: Great Mage"]'))`) // it has left the closets of others
	w.inspect(t, "texture-administrator")
	w.press(t, "Delete")
	w.sees(t, "This cannot be undone.")
	w.press(t, "Delete")
	w.sees(t, "Great Mage is deleted.")
	w.isAt(t, "/library", "Library")
}
