package console

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/cdproto/input"

	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// doubleClick clicks twice on where a button or link with a name is at first.
func (tab *tab) doubleClick(t *testing.T, name string) {
	t.Helper()
	const find = `(() => {
		const e = [...(document.querySelector("dialog[open]") ?? document).querySelectorAll("button, a")].find((e) => (e.getAttribute("aria-label") ?? e.innerText).trim() === %s);
		e?.scrollIntoView({ block: "center" });
		const { left, top, width, height } = e?.getBoundingClientRect() ?? {};
		return width > 0 ? [left + width / 2, top + height / 2] : [];
	})()`
	tab.await(t, fmt.Sprintf(find, quote(name))+".length === 2")
	at := eval[[]float64](t, tab, fmt.Sprintf(find, quote(name)))
	for count := range int64(2) {
		for _, kind := range []input.DispatchMouseEventType{input.DispatchMouseEventTypeMousePressed, input.DispatchMouseEventTypeMouseReleased} {
			send(t, tab, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: kind, X: at[0], Y: at[1], Button: input.MouseButtonLeft, ClickCount: count + 1})
		}
	}
}

// Nothing is lost by a click too many: a double click does what a click does, and what is removed or taken off can be
// undone.
func TestUndo(t *testing.T) {
	t.Parallel()
	s, w := openSite(t, "CORE_LIMIT_UPLOADS=0")
	ann := register(t, s, "ann@example.com", "Ann")
	pid := ann.AddPlayer(t, "Ann_1")
	skins := artwork.Skins()
	for i := range 3 {
		ann.Upload(t, fmt.Sprintf("Skin %d", i), skins[i].Type, skins[i].Sheet)
	}
	items := func() (count int) {
		t.Helper()
		w.answered(t)
		var closet struct{ Total int }
		ann.Get(t, "/api/closet", &closet)
		return closet.Total
	}
	w.signIn(t, ann, "/players", "Players")
	w.doubleClick(t, "Add a player") // the second click is beside the dialog
	w.await(t, `Boolean(document.querySelector("dialog[open]"))`)
	w.back(t)
	w.closed(t)
	w.press(t, "Choose a skin for Ann_1", "Skin 1")
	w.doubleClick(t, "Wear")
	w.await(t, `!document.querySelector("dialog") && Boolean(document.querySelector(".worn img"))`)
	w.answered(t)
	w.await(t, `Boolean(document.querySelector(".worn img"))`)
	w.doubleClick(t, "Take off the skin of Ann_1")
	w.sees(t, "Ann_1 no longer wears the skin.")
	w.inspect(t, "players-undo")
	w.press(t, "Undo")
	w.await(t, `Boolean(document.querySelector(".worn img"))`)

	ann.Call(t, http.MethodPut, "/api/closet/2", map[string]any{"name": "Sunday best"})
	w.follow(t, "Closet", "/closet", "Closet")
	w.pressAndSee(t, "Remove from closet: Sunday best", "Sunday best is out of your closet.")
	testenv.Equal(t, items(), 2, "items after one is removed")
	w.pressAndSee(t, "Undo", "Sunday best")
	testenv.Equal(t, items(), 3, "items after undo")

	// What a player wears stays in the closet, also if it was not there before.
	bob := register(t, s, "bob@example.com", "Bob")
	fox := bob.Upload(t, "Fox", skins[4].Type, skins[4].Sheet)
	w.arrive(t, fmt.Sprintf("/texture?tid=%d", fox.TID), "Fox")
	w.press(t, "Wear Fox", "Put it on Ann_1")
	w.sees(t, "Ann_1 wears Fox now.", "Remove from closet")
	testenv.Equal(t, items(), 4, "items after Fox is worn")
	var players []struct {
		Skin int `json:"tid_skin"`
	}
	ann.Get(t, "/api/players", &players)
	testenv.Equal(t, players[0].Skin, fox.TID, "the skin of player %d", pid)

	// What was removed by its texture comes back under the name that it had.
	ann.Call(t, http.MethodPut, fmt.Sprintf("/api/closet/%d", fox.TID), map[string]any{"name": "Red one"})
	w.arrive(t, fmt.Sprintf("/texture?tid=%d", fox.TID), "Fox")
	w.pressAndSee(t, "Remove from closet: Fox", "Red one is out of your closet.")
	testenv.Equal(t, items(), 3, "items after the texture is removed")
	w.press(t, "Undo")
	w.answered(t)
	w.follow(t, "Closet", "/closet", "Closet", "Red one")
}

// Back closes each dialog, and forward opens it. A page that cannot be shown says so, as one does that is not there.
func TestNoDeadEnds(t *testing.T) {
	t.Parallel()
	s, w := openSite(t, "CORE_LIMIT_UPLOADS=0")
	ann := register(t, s, "ann@example.com", "Ann")
	ann.AddPlayer(t, "Ann_1")
	s.Core.Run(t, "user", "permission", "-set", "2", ann.email)
	bob := register(t, s, "bob@example.com", "Bob")
	for i := range 25 {
		ann.Upload(t, fmt.Sprintf("Skin %d", i), skin.Classic, skintest.Noise(uint64(i+1), 64, 64))
	}
	fox := bob.Upload(t, "Fox", skin.Classic, skintest.Noise(100, 64, 64))
	ann.report(t, fox, "It is not mine.")
	w.signIn(t, ann, "/", "Hello, Ann")
	texture := fmt.Sprintf("/texture?tid=%d", fox.TID)
	for _, test := range []struct{ page, heading, button string }{
		{"/players", "Players", "Add a player"},
		{"/players", "Players", "Rename Ann_1"},
		{"/players", "Players", "Delete Ann_1"},
		{"/closet", "Closet", "Rename Skin 24"},
		{texture, "Fox", "Report"},
		{texture, "Fox", "Rename"},
		{"/admin/players", "All players", "Delete Ann_1"},
		{"/admin/textures", "All textures", "Change Fox"},
		{"/admin/reports", "Reports", "Delete the texture of report 1"},
		{fmt.Sprintf("/admin/users?uid=%d", bob.UID), "Bob", "Ban"},
	} {
		w.arrive(t, "/score", "Score")
		w.arrive(t, test.page, test.heading)
		w.pressAndAwait(t, test.button, `Boolean(document.querySelector("dialog[open]"))`)
		w.back(t)
		w.closed(t)
		w.isAt(t, test.page, test.heading)
	}

	w.expect("/api/textures", "/api/textures/26", "/console/texture")
	w.visit(t, "/library?page=999")
	w.isAt(t, "/library?page=2", "Library")
	w.arrive(t, "/texture", "Not found")
	w.scriptAtStart(t, `globalThis.connected = fetch; globalThis.failed = []; console.error = (error) => failed.push(String(error));
		globalThis.fetch = (url, init) => url === "/api/textures/26" ? Promise.resolve(Response.json({ tid: 26, name: "Fox" })) : connected(url, init);`)
	w.visit(t, texture, "Something went wrong", "Load the page again")
	w.await(t, "failed.length > 0")
	w.inspect(t, "texture-broken")
	w.follow(t, "Library", "/library", "Library")
}

// Whose session ends is told so, and finds what was typed after signing in.
func TestSessionEnds(t *testing.T) {
	t.Parallel()
	s, w := openSite(t)
	ann := register(t, s, "ann@example.com", "Ann")
	w.signIn(t, ann, "/players", "Players")
	if eval[bool](t, w, `document.body.innerText.includes("Your session has ended")`) {
		t.Error("a session that has just begun is said to have ended")
	}
	w.press(t, "Add a player")
	w.fill(t, "name", "Ann_1")
	ann.Call(t, http.MethodDelete, "/api/user/sessions", nil)
	w.expect("/api/players", "/api/deleted-players", "/console/session/token")
	w.pressAndSee(t, "Add", "Your session has ended. Sign in to go on.")
	w.inspect(t, "signin-ended")
	w.submit(t, ann.email, password)
	w.await(t, `document.querySelector("dialog[open] input")?.value === "Ann_1"`)
	w.pressAndSee(t, "Add", "Ann_1")
	w.closed(t)
	w.signOut(t)
	if eval[bool](t, w, `document.body.innerText.includes("Your session has ended")`) {
		t.Error("who has signed out is told that the session has ended")
	}
}

// What is added while the list is still being read stays there, though the answer is older.
func TestLateAnswer(t *testing.T) {
	t.Parallel()
	s, w := openSite(t)
	ann := register(t, s, "ann@example.com", "Ann")
	w.scriptAtStart(t, `globalThis.reads = 0; globalThis.connected = fetch;
		globalThis.fetch = async (url, init) => {
			const answer = await connected(url, init);
			if (url === "/api/players" && init.method === "GET" && reads++ === 0) await new Promise((resolve) => { globalThis.arrive = resolve; });
			return answer;
		};`)
	w.signIn(t, ann, "/players", "Players")
	w.await(t, "reads === 1")
	w.press(t, "Add a player")
	w.fill(t, "name", "Ann_1")
	w.pressAndSee(t, "Add", "Ann_1")
	w.closed(t)
	eval[bool](t, w, "(arrive(), true)")
	w.await(t, "reads === 2")
	w.answered(t)
	testenv.Check(t, eval[bool](t, w, `document.body.innerText.includes("Ann_1")`), "the player that was added is gone")
}
