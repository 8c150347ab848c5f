package console

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// startSite starts a site with settings of both programs, as NAME=VALUE.
func startSite(tb testing.TB, settings ...string) *site.System {
	tb.Helper()
	return site.Start(tb, blobstoretest.Directory(tb).Config, append(siteSettings, settings...)...)
}

var siteSettings = []string{
	"CORE_TRUSTED_PROXIES=127.0.0.1/32", "CORE_LIMIT_REQUESTS=0", // the edge sends all requests
	// Browsers leave little of a processor for pictures.
	"EDGE_RENDER_QUEUE_TIMEOUT=30s", "EDGE_CORE_TIMEOUT=30s", "EDGE_WORK_TIMEOUT=30s",
}

// openSite starts a site and opens a page of it, for a user that reads English.
func openSite(t *testing.T, settings ...string) (*site.System, *tab) {
	t.Helper()
	s := startSite(t, settings...)
	return s, plain.open(t, s.EdgeURL, "en")
}

// file writes a skin and returns its path.
func file(t *testing.T, name string, sheet skin.Sheet) string {
	t.Helper()
	content := testenv.Must(sheet.PNG())(t)
	path := filepath.Join(t.TempDir(), name)
	testenv.Do(t, os.WriteFile(path, content, 0o600))
	return path
}

// A player registers, makes a player, dresses it from a file and from the closet, renames it, takes
// the skin off, signs out and in again, and deletes the player.
func TestPlayer(t *testing.T) {
	t.Parallel()
	_, w := openSite(t, "CORE_SCORE_SIGN_REWARD=10")
	w.visit(t, "/players") // which takes a user
	w.isAt(t, "/signin?next=%2Fplayers", "Sign in")
	w.inspect(t, "signin")
	w.follow(t, "Create account", "/register?next=%2Fplayers", "Create account")
	w.inspect(t, "register")
	w.follow(t, "Sign in to an existing account", "/signin?next=%2Fplayers", "Sign in")
	w.follow(t, "Create account", "/register?next=%2Fplayers", "Create account")

	// Errors stand at their fields.
	w.expect("/api/auth/register")
	w.fill(t, "email", "ann@example.com", "nickname", "Ann <b>&amp;</b>", "password", "short")
	w.press(t, "Create account")
	w.await(t, `document.querySelector('[name="password"]').getAttribute("aria-invalid") === "true" && document.activeElement.name === "password"`)
	w.inspect(t, "register-wrong")
	w.fill(t, "password", "correct horse")
	w.follow(t, "Create account", "/players", "Players", "You have no players yet.") // which was wanted
	w.follow(t, "Home", "/", "Hello, Ann <b>&amp;</b>")
	w.pressAndSee(t, "Sign in for today (+10 points)", "Signed in for today. Next time from")
	w.focusIs(t, "#signed") // what was pressed is gone
	w.inspect(t, "home")

	w.follow(t, "Players", "/players", "Players", "You have no players yet.")
	w.inspect(t, "players-none")
	w.press(t, "Add a player")
	w.expect("/api/players")
	w.fill(t, "name", "a!")
	w.pressAndAwait(t, "Add", `document.querySelector('dialog [name="name"]').getAttribute("aria-invalid") === "true"`)
	w.inspect(t, "players-add")
	w.fill(t, "name", "Ann_1")
	w.pressAndSee(t, "Add", "Ann_1")
	w.closed(t)

	w.pressAndSee(t, "Choose a skin for Ann_1", "There are no skins in your closet.")
	w.inspect(t, "wardrobe-none")
	w.do(t, chromedp.SetUploadFiles(`dialog input[type="file"]`, []string{file(t, "Robot.png", artwork.Robot())}))
	w.isAt(t, "/players", "Players")
	w.await(t, `document.querySelector('img[alt="Skin of Ann_1, front and back"]')?.naturalWidth > 0`)
	w.inspect(t, "players")
	w.pressAndAwait(t, "Take off the skin of Ann_1", `!document.querySelector('img[alt="Skin of Ann_1, front and back"]')`)
	w.press(t, "Choose a skin for Ann_1", "Robot", "Wear")
	w.await(t, `Boolean(document.querySelector('img[alt="Skin of Ann_1, front and back"]'))`)

	testenv.Equal(t, eval[string](t, w, `document.querySelector('.menu a[href="/p/Ann_1"]').textContent`), "Page to share", "the link to the page of a player")

	// Back closes the dialog, forward opens it.
	w.pressAndAwait(t, "Choose a skin for Ann_1", "Boolean(document.querySelector('dialog[open]'))")
	w.back(t)
	w.closed(t)
	eval[bool](t, w, "(history.forward(), true)")
	w.await(t, "Boolean(document.querySelector('dialog[open]'))")
	w.press(t, "Close")

	w.press(t, "Rename Ann_1")
	w.fill(t, "name", "Ann_2")
	w.press(t, "Rename")
	w.await(t, `!document.querySelector("dialog") && document.querySelector("h2").innerText === "Ann_2"`)
	// A reload continues the session.
	w.visit(t, "/players", "Ann_2")
	w.answered(t) // requests after the end of the session would be refused

	w.signOut(t)
	w.expect("/console/session")
	w.submit(t, "ann@example.com", "wrong horse")
	w.await(t, `document.querySelector("form [role=alert]").innerText !== ""`)
	w.inspect(t, "signin-wrong")
	w.enter(t, "ann@example.com", "correct horse", "/", "Hello, Ann <b>&amp;</b>")
	w.press(t, "Players")
	w.pressAndSee(t, "Delete Ann_2", "You can restore it for a day.")
	w.inspect(t, "players-delete")
	w.pressAndSee(t, "Delete", "Ann_2 is deleted.", "You have no players yet.", "Deleted today")
	w.inspect(t, "players-deleted")
	w.pressAndAwait(t, "Restore Ann_2", `document.querySelector(".player h2")?.innerText === "Ann_2" && !document.body.innerText.includes("Deleted today")`)
	w.press(t, "Delete Ann_2")
	w.pressAndSee(t, "Delete", "You have no players yet.")
	w.pressAndAwait(t, "Undo", `document.querySelector(".player h2")?.innerText === "Ann_2"`)
	w.expect("/console/nothing")
	w.arrive(t, "/nothing", "Not found")
	w.inspect(t, "missing")
}

// The demo's user, in Chinese, has players with textures, notifications and a closet, and looks through the
// library.
func TestDemoInChinese(t *testing.T) {
	t.Parallel()
	s := startSite(t, "CORE_DEMO=1", "CORE_SITE_NAME=Skinland")
	w := plain.open(t, s.EdgeURL, "zh-CN")
	w.visit(t, "/")
	w.isAt(t, "/signin?next=%2F", "登录")
	w.inspect(t, "zh-signin")
	w.expect("/console/session")
	w.submit(t, "demo@example.com", "wrong horse")
	w.sees(t, "角色名、电子邮箱或密码不正确。") // a sentence of the API
	w.enter(t, "demo@example.com", "demo-password", "/", "您好，Demo")
	w.await(t, `document.querySelectorAll(".list button.row").length > 0`)
	w.sees(t, "欢迎使用 Skinland")
	eval[bool](t, w, `(document.querySelector(".list button.row").click(), true)`)
	w.await(t, `Boolean(document.querySelector(".list .rich")?.innerText)`)
	w.focusIs(t, ".list h3")
	w.inspect(t, "zh-home")
	w.pressAndAwait(t, "角色", `document.querySelectorAll(".player").length === 2`)
	w.inspect(t, "zh-players")
	w.pressAndAwait(t, "为 Demo 选择皮肤", `document.querySelectorAll(".tile").length > 0`)
	w.inspect(t, "zh-wardrobe")
	testenv.Equal(t, eval[string](t, w, "document.documentElement.lang"), "zh-Hans", "the language of the page")
	w.arrive(t, "/closet", "衣柜")
	w.await(t, `document.querySelectorAll(".items > li").length > 0`)
	w.inspect(t, "zh-closet")
	w.follow(t, "材质库", "/library", "材质库")
	w.await(t, `document.querySelectorAll(".items > li").length > 0`)
	w.follow(t, "我的", "/library?uploader=1", "材质库")
	w.inspect(t, "zh-library")
	w.pressAndSee(t, "Explorer", "公开：所有人都能找到并使用它。")
	w.inspect(t, "zh-texture")
	w.pressAndSee(t, "设为私有", "重新设为公开不会恢复这些。")
	w.inspect(t, "zh-texture-private")
}

// Two tabs share a session, of which each has the token in memory only. They sign out together, and
// continue after core was away.
func TestTabs(t *testing.T) {
	t.Parallel()
	s := startSite(t, "CORE_DEMO=1", "CORE_TOKEN_TTL=6s", "CORE_REFRESH_GRACE=1s")
	first := plain.open(t, s.EdgeURL, "en")
	first.signInAsDemo(t, "/", "Hello, Demo")
	second := first.another(t)
	second.arrive(t, "/players", "Players")
	for name, want := range map[string]string{"localStorage": "veneer.theme,veneer.user", "sessionStorage": "", "document.cookie": ""} {
		expression := "Object.keys(" + name + ").sort().join()"
		if name == "document.cookie" {
			expression = name
		}
		testenv.Equal(t, eval[string](t, first, expression), want, "what pages can read in %s", name)
	}

	// Core is away, and begins anew.
	first.expect(eval[string](t, first, `new URL(document.querySelector(".hero img").src).pathname`))
	first.expect("/api/site", "/api/user", "/api/players", "/api/deleted-players", "/api/closet", "/api/notifications", "/api/textures", "/console/session/token", "/avatar/user/0", "/preview/1", "/preview/2", "/preview/13", "/body/2")
	s.Core.Kill(t)
	first.press(t, "Players")
	s.Core.StartReady(t)
	first.isAt(t, "/players", "Players")
	const shown = `document.images.length === 6 && [...document.images].every((i) => i.naturalWidth > 0)`
	for tries := 1; ; tries++ { // a busy machine may take longer than the page tries
		first.await(t, shown+` || document.body.innerText.includes("Please try again in a moment.")`)
		if eval[bool](t, first, shown) {
			break
		}
		if tries == 5 {
			t.Fatal("the page does not show the players")
		}
		first.arrive(t, "/players", "Players")
	}
	second.follow(t, "Home", "/", "Hello, Demo")

	first.signOut(t)
	second.isAt(t, "/signin?next=%2F", "Sign in")
}
