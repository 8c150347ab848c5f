//go:build !race

package console

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
)

// startSite starts a site; settings of core and the edge are pairs of name and value.
func startSite(tb testing.TB, settings ...string) *stack.System {
	tb.Helper()
	files := blobstoretest.Directory(tb).Config
	core := stack.NewCore(tb, files)
	core.Set("CORE_TRUSTED_PROXIES", "127.0.0.1/32") // the edge
	core.Set("CORE_LIMIT_REQUESTS", "0")
	ofEdge := map[string]string{}
	for i := 0; i < len(settings); i += 2 {
		if name := settings[i]; strings.HasPrefix(name, "EDGE_") {
			ofEdge[name] = settings[i+1]
		} else {
			core.Set(name, settings[i+1])
		}
	}
	core.Start(tb)
	edge := stack.NewEdge(tb, files, core)
	for name, value := range ofEdge {
		edge.Set(name, value)
	}
	for _, setting := range []string{"EDGE_RENDER_QUEUE_TIMEOUT", "EDGE_CORE_TIMEOUT", "EDGE_WORK_TIMEOUT"} {
		edge.Set(setting, "30s") // browsers leave little of a processor for pictures
	}
	edge.Start(tb)
	edge.AwaitReady(tb)
	return &stack.System{Core: core, Edge: edge, CoreURL: core.BaseURL(tb, "public"), EdgeURL: edge.BaseURL(tb, "public")}
}

// file writes a skin and returns its path.
func file(t *testing.T, name string, sheet skin.Sheet) string {
	t.Helper()
	content, err := sheet.PNG()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A player registers, makes a player, dresses it from a file and from the closet, renames it, takes
// the skin off, signs out and in again, and deletes the player.
func TestPlayer(t *testing.T) {
	t.Parallel()
	s := startSite(t, "CORE_SCORE_SIGN_REWARD", "10")
	w := plain.open(t, s.EdgeURL, "en")
	w.visit(t, "/players") // which takes a user
	w.isAt(t, "/signin?next=%2Fplayers", "Sign in")
	w.inspect(t, "signin")
	w.press(t, "Make an account")
	w.isAt(t, "/register", "Make an account")
	w.inspect(t, "register")

	// Errors stand at their fields.
	w.expect("/api/auth/register")
	w.fill(t, "email", "ann@example.com")
	w.fill(t, "nickname", "Ann <b>&amp;</b>")
	w.fill(t, "password", "short")
	w.press(t, "Make the account")
	w.await(t, `document.querySelector('[name="password"]').getAttribute("aria-invalid") === "true" && document.activeElement.name === "password"`)
	w.inspect(t, "register-wrong")
	w.fill(t, "password", "correct horse")
	w.press(t, "Make the account")
	w.isAt(t, "/", "Hello, Ann <b>&amp;</b>")
	w.press(t, "Sign in for today (+10 points)")
	w.sees(t, "Signed in for today. Next time from")
	w.inspect(t, "home")

	w.press(t, "Players")
	w.isAt(t, "/players", "Players")
	w.sees(t, "You have no players yet.")
	w.inspect(t, "players-none")
	w.press(t, "Add a player")
	w.expect("/api/players")
	w.fill(t, "name", "a!")
	w.press(t, "Add")
	w.await(t, `document.querySelector('dialog [name="name"]').getAttribute("aria-invalid") === "true"`)
	w.inspect(t, "players-add")
	w.fill(t, "name", "Ann_1")
	w.press(t, "Add")
	w.sees(t, "Ann_1")
	w.await(t, "!document.querySelector('dialog')")

	w.press(t, "Choose a skin for Ann_1")
	w.sees(t, "There are no skins in your closet.")
	w.inspect(t, "wardrobe-none")
	w.do(t, chromedp.SetUploadFiles(`dialog input[type="file"]`, []string{file(t, "Robot.png", artwork.Robot())}))
	w.isAt(t, "/players", "Players")
	w.await(t, `document.querySelector('img[alt="Skin of Ann_1, front and back"]')?.naturalWidth > 0`)
	w.inspect(t, "players")
	w.press(t, "Take off the skin of Ann_1")
	w.sees(t, "No skin")
	w.press(t, "Choose a skin for Ann_1")
	w.press(t, "Robot")
	w.await(t, `Boolean(document.querySelector('img[alt="Skin of Ann_1, front and back"]'))`)

	// Back closes the dialog, forward opens it.
	w.press(t, "Choose a skin for Ann_1")
	w.await(t, "Boolean(document.querySelector('dialog[open]'))")
	eval[bool](t, w, "(history.back(), true)")
	w.await(t, "!document.querySelector('dialog')")
	eval[bool](t, w, "(history.forward(), true)")
	w.await(t, "Boolean(document.querySelector('dialog[open]'))")
	w.press(t, "Close")

	w.press(t, "Rename Ann_1")
	w.fill(t, "name", "Ann_2")
	w.press(t, "Rename")
	w.await(t, `!document.querySelector("dialog") && document.querySelector("h2").innerText === "Ann_2"`)
	// A reload continues the session.
	w.visit(t, "/players")
	w.sees(t, "Ann_2")

	w.press(t, "Sign out")
	w.isAt(t, "/signin", "Sign in")
	w.expect("/console/session")
	w.submit(t, "ann@example.com", "wrong horse")
	w.await(t, `document.querySelector("form [role=alert]").innerText !== ""`)
	w.inspect(t, "signin-wrong")
	w.enter(t, "ann@example.com", "correct horse", "/", "Hello, Ann <b>&amp;</b>")
	w.press(t, "Players")
	w.press(t, "Delete Ann_2")
	w.sees(t, "This cannot be undone.")
	w.inspect(t, "players-delete")
	w.press(t, "Delete")
	w.sees(t, "Ann_2 is deleted.")
	w.sees(t, "You have no players yet.")
	w.visit(t, "/nothing")
	w.isAt(t, "/nothing", "Not found")
}

// The demo's user, in Chinese, has players with textures, notifications and a closet of several
// pages. The URL has the search and the page of the closet.
func TestDemoInChinese(t *testing.T) {
	t.Parallel()
	s := startSite(t, "CORE_DEMO", "1")
	w := plain.open(t, s.EdgeURL, "zh-CN")
	w.visit(t, "/")
	w.isAt(t, "/signin?next=%2F", "登录")
	w.inspect(t, "zh-signin")
	w.expect("/console/session")
	w.submit(t, "demo@example.com", "wrong horse")
	w.sees(t, "电子邮箱或密码不正确。") // a sentence of the API
	w.enter(t, "demo@example.com", "demo-password", "/", "您好，Demo")
	w.await(t, `document.querySelectorAll(".list button.row").length > 0`)
	eval[bool](t, w, `(document.querySelector(".list button.row").click(), true)`)
	w.await(t, `Boolean(document.querySelector(".list .rich")?.innerText)`)
	w.inspect(t, "zh-home")
	w.press(t, "角色")
	w.await(t, `document.querySelectorAll(".player").length === 2`)
	w.inspect(t, "zh-players")
	w.press(t, "为 Demo 选择皮肤")
	w.await(t, `document.querySelectorAll(".tile").length > 0`)
	w.inspect(t, "zh-wardrobe")
	if eval[string](t, w, "document.documentElement.lang") != "zh-Hans" {
		t.Error("the page does not say that it is in Chinese")
	}
}

// Two tabs share a session, of which each has the token in memory only. They sign out together, and
// continue after core was away.
func TestTabs(t *testing.T) {
	t.Parallel()
	s := startSite(t, "CORE_DEMO", "1", "CORE_TOKEN_TTL", "6s", "CORE_REFRESH_GRACE", "1s")
	s.Core.FixAddresses(t)
	first := plain.open(t, s.EdgeURL, "en")
	first.visit(t, "/signin")
	first.isAt(t, "/signin", "Sign in")
	first.enter(t, "demo@example.com", "demo-password", "/", "Hello, Demo")
	second := first.another(t)
	second.visit(t, "/players")
	second.isAt(t, "/players", "Players")
	for name, want := range map[string]string{"localStorage": "veneer.theme", "sessionStorage": "", "document.cookie": ""} {
		expression := "Object.keys(" + name + ").join()"
		if name == "document.cookie" {
			expression = name
		}
		if got := eval[string](t, first, expression); got != want {
			t.Errorf("pages can read %q in %s; want %q", got, name, want)
		}
	}

	// Core is away, and begins anew.
	first.expect("/api/site", "/api/user", "/api/players", "/api/closet", "/api/user/notifications", "/console/session/token", "/avatar/user/0", "/preview/1", "/preview/2", "/preview/13")
	s.Core.Kill(t)
	first.press(t, "Players")
	s.Core.Start(t)
	s.Core.AwaitReady(t)
	first.isAt(t, "/players", "Players")
	const shown = `document.images.length === 3 && [...document.images].every((i) => i.naturalWidth > 0)`
	for tries := 1; ; tries++ { // a busy machine may take longer than the page tries
		first.await(t, shown+` || document.body.innerText.includes("Please try again in a moment.")`)
		if eval[bool](t, first, shown) {
			break
		}
		if tries == 5 {
			t.Fatal("the page does not show the players")
		}
		first.visit(t, "/players")
		first.isAt(t, "/players", "Players")
	}
	second.press(t, "Home")
	second.isAt(t, "/", "Hello, Demo")

	first.press(t, "Sign out")
	first.isAt(t, "/signin", "Sign in")
	second.isAt(t, "/signin?next=%2F", "Sign in")
}

// A user that is banned while signed in learns of it.
func TestBan(t *testing.T) {
	t.Parallel()
	s := startSite(t, "CORE_DEMO", "1")
	w := plain.open(t, s.EdgeURL, "en")
	w.visit(t, "/signin")
	w.enter(t, "demo@example.com", "demo-password", "/", "Hello, Demo")
	w.answered(t)
	s.Core.Run(t, "user", "permission", "-set", "-1", "demo@example.com")
	w.expect("/api/players")
	w.press(t, "Players")
	w.sees(t, "This account is banned.")
	// Another account can sign in.
	w.expect("/console/session/token")
	w.visit(t, "/players")
	w.sees(t, "This account is banned.")
	w.isAt(t, "/signin?next=%2Fplayers", "Sign in")
}

// The keyboard alone signs in and opens a dialog. The focus goes to the heading of a new page, stays in
// a dialog, and returns.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	s := startSite(t, "CORE_DEMO", "1")
	w := plain.open(t, s.EdgeURL, "en")
	w.visit(t, "/signin")
	w.isAt(t, "/signin", "Sign in")
	w.tabTo(t, "To the content")
	w.pressEnter(t)
	w.await(t, `document.activeElement.id === "main"`)
	w.tabTo(t, "email")
	w.do(t, chromedp.KeyEvent("demo@example.com"))
	w.tabTo(t, "password")
	w.do(t, chromedp.KeyEvent("demo-password"))
	w.pressEnter(t)
	w.isAt(t, "/", "Hello, Demo")
	w.await(t, `document.activeElement.tagName === "H1"`)
	eval[bool](t, w, `(document.activeElement.blur(), true)`)
	w.tabTo(t, "Players")
	w.pressEnter(t)
	w.isAt(t, "/players", "Players")
	w.await(t, `document.activeElement.tagName === "H1" && document.querySelectorAll(".player").length === 2`)
	w.tabTo(t, "Choose a skin for Demo")
	w.pressEnter(t)
	w.await(t, `Boolean(document.querySelector("dialog[open]")?.contains(document.activeElement))`)
	w.do(t, chromedp.KeyEvent(kb.Escape))
	w.await(t, `!document.querySelector("dialog") && document.activeElement.getAttribute("aria-label") === "Choose a skin for Demo"`)
}

// A page of another origin can neither show the console in a frame nor use its session.
func TestOtherOrigins(t *testing.T) {
	t.Parallel()
	s := startSite(t)
	for _, origin := range []string{"https://evil.example", "null"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.EdgeURL+"/console/session/token", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Origin", origin)
		request.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusForbidden {
			t.Errorf("a request of %s: %d", origin, response.StatusCode)
		}
	}
}
