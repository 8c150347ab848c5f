package console

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"

	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// closed waits until no dialog is open.
func (tab *tab) closed(t *testing.T) {
	t.Helper()
	tab.await(t, `!document.querySelector("dialog")`)
}

// shownPictures waits until all pictures have arrived.
func (tab *tab) shownPictures(t *testing.T) {
	t.Helper()
	tab.await(t, `[...document.images].every((i) => i.naturalWidth > 0 || i.getBoundingClientRect().top > innerHeight)`)
}

// An administrator settles reports: one is rejected, one ends in a deletion, one in a ban, and one is
// about the administrator's own texture, which others must settle. Then users, players and textures
// are changed, a user is notified, and the audit log has all of it.
func TestAdministrator(t *testing.T) {
	t.Parallel()
	s := startSite(t)
	admin, ann, bob := register(t, s, "admin@example.com", "Admin"), register(t, s, "ann@example.com", "Ann"), register(t, s, "bob@example.com", "Bob")
	s.Core.Run(t, "user", "permission", "-set", "1", "Admin@example.com")
	paintings := artwork.Skins()
	var textures []site.Texture
	for i, name := range []string{"Stolen", "Insult", "Fine"} {
		textures = append(textures, bob.Upload(t, name, paintings[i].Type, paintings[i].Sheet))
	}
	own := admin.Upload(t, "Own", paintings[3].Type, paintings[3].Sheet)
	ann.AddPlayer(t, "Ann_1")
	ann.report(t, textures[0], "I have drawn this skin.\nIt was taken from my site.")
	bob.report(t, textures[0], "It is not mine.")
	ann.report(t, textures[1], "It insults me.")
	ann.report(t, textures[2], "I do not like the colours.")
	ann.report(t, own, "It is yours.")

	b := plain.open(t, s.EdgeURL, "en")
	b.signIn(t, bob, "/", "Hello, Bob")
	w := plain.open(t, s.EdgeURL, "en")
	w.signIn(t, admin, "/", "Hello, Admin")
	w.follow(t, "Reports", "/admin/reports", "Reports", "5 results")
	w.shownPictures(t)
	w.inspect(t, "admin-reports")

	w.await(t, `document.querySelector("[data-count]")?.dataset.count === "5"`)
	w.press(t, "Reject report 4")
	w.sees(t, "Report 4: Rejected", "4 results")
	w.await(t, `document.activeElement.className.includes("results") && !document.querySelector("[aria-label='Reject report 4']")`)
	w.expect("/api/admin/reports/5")
	w.pressAndSee(t, "Reject report 5", "The user's permission must be lower than yours.")
	w.await(t, `Boolean(document.querySelector("[aria-label='Reject report 5']"))`)
	w.press(t, "Close this notice")
	w.pressAndSee(t, "Delete the texture of report 1", "This cannot be undone.")
	w.inspect(t, "admin-reports-delete")
	w.press(t, "Delete the texture")
	w.sees(t, "Report 1: Texture deleted", "2 results") // with the other report about it
	if status, _ := ann.Do(t, http.MethodGet, fmt.Sprintf("/api/textures/%d", textures[0].TID), nil); status != http.StatusNotFound {
		t.Errorf("a deleted texture: %d", status)
	}
	w.press(t, "Warn the uploader of report 3")
	w.await(t, fmt.Sprintf(`document.querySelector("[name=to]")?.value === "%d" && document.querySelector("[name=title]").value === "A warning"`, bob.UID))
	w.back(t)
	w.press(t, "Ban the uploader of report 3")
	w.fillIn(t, `[name="reason"]`, "Insults, again.")
	for _, zone := range []string{"Etc/GMT+12", "Pacific/Kiritimati", ""} { // in one of them it is another day than in UTC
		send(t, w, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: zone})
		w.choose(t, "End", "7")
		w.choose(t, "End", "date")
		w.await(t, `Boolean(document.querySelector("[name=until]"))`)
		testenv.Equal(t, eval[string](t, w, `document.querySelector("[name=until]").min`), eval[string](t, w, `new Date().toLocaleDateString("sv")`), "the first day in %s", zone)
	}
	w.pressAndSee(t, "Ban", "Choose the last day of the ban.")
	w.inspect(t, "admin-ban")
	w.choose(t, "End", "7")
	w.press(t, "Ban")
	w.sees(t, "Report 3: Uploader banned", "1 result")
	w.await(t, `document.querySelector("[data-count]")?.dataset.count === "1"`)
	w.choose(t, "State", "all")
	w.isAt(t, "/admin/reports?state=all", "Reports", "5 results", "Settled")
	w.shownPictures(t)
	w.inspect(t, "admin-reports-settled")
	w.choose(t, "State", "rejected")
	w.sees(t, "1 result")
	w.back(t)
	w.isAt(t, "/admin/reports?state=all", "Reports")
	b.expect("/api/players", "/api/deleted-players")
	b.pressAndSee(t, "Players", "Your account is banned", "Insults, again.", "After that you can sign in again.")
	b.inspect(t, "banned")
	b.expect("/console/session/token")
	b.visit(t, "/closet", "Your account is banned", "Insults, again.")
	b.press(t, "Sign out")
	b.isAt(t, "/signin", "Sign in") // where another account can sign in
	b.expect("/console/session")
	b.submit(t, "bob@example.com", password)
	b.sees(t, "Your account is banned")

	// The counts.
	w.follow(t, "Overview", "/admin", "Overview", "Open reports", "3 textures")
	w.inspect(t, "admin-counts")

	// Users.
	w.follow(t, "Users", "/admin/users", "Users", "3 results")
	w.inspect(t, "admin-users")
	w.fillIn(t, `[aria-label="Search nicknames"]`, "bO")
	w.isAt(t, "/admin/users?nickname=bO", "Users", "1 result")
	eval[bool](t, w, `(document.querySelector("a.row").click(), true)`)
	w.isAt(t, fmt.Sprintf("/admin/users?uid=%d", bob.UID), "Bob")
	w.await(t, `document.activeElement.tagName === "H1"`)
	w.pressAndSee(t, "Lift the ban", "The user can sign in again.")
	w.press(t, "Lift the ban")
	w.closed(t)
	w.expect(fmt.Sprintf("/api/admin/users/%d/password", bob.UID))
	w.press(t, "Set a password")
	w.fill(t, "password", "short")
	w.pressAndAwait(t, "Save", `document.querySelector('[name="password"]').getAttribute("aria-invalid") === "true"`)
	w.inspect(t, "admin-user-password")
	w.fill(t, "password", "another horse")
	w.pressAndSee(t, "Save", "The password is set.")
	w.closed(t)
	bob.LogIn(t, "bob@example.com", "another horse")
	w.press(t, "Change the score")
	w.fill(t, "score", "120")
	w.press(t, "Save")
	w.closed(t)
	w.sees(t, "120")
	eval[bool](t, w, `(document.querySelector(".check input").click(), true)`)
	w.answered(t)
	var found struct{ Data []struct{ Verified bool } }
	admin.Get(t, fmt.Sprintf("/api/admin/users?uid=%d", bob.UID), &found)
	testenv.Check(t, len(found.Data) == 1 && found.Data[0].Verified, "the e-mail address is not verified: %+v", found)
	w.press(t, "Add a texture")
	w.fill(t, "tid", "own", "name", "A gift")
	w.pressAndSee(t, "Add", "A gift")
	w.shownPictures(t)
	w.inspect(t, "admin-user")
	w.pressAndSee(t, "Remove A gift from the closet", "A gift is out of the closet.")
	w.press(t, "All users")
	w.fill(t, "uid", "Admin@example.com")
	w.pressAndSee(t, "Open", "This is your own account, which you cannot change here.")

	// Players.
	w.follow(t, "All players", "/admin/players", "All players")
	w.press(t, "Rename Ann_1")
	w.fill(t, "name", "Ann_2")
	w.press(t, "Rename")
	w.closed(t)
	w.press(t, "Change the textures of Ann_2")
	w.fill(t, "skin", "Nothing like it")
	w.pressAndSee(t, "Put on", "No texture has exactly this name.")
	w.fill(t, "skin", "fine")
	w.inspect(t, "admin-player-textures")
	w.pressAndAwait(t, "Put on", `document.querySelector('img[alt="Skin of Ann_2, front and back"]')?.naturalWidth > 0`)
	w.await(t, fmt.Sprintf(`document.querySelector('dd a[href$="tid=%d"]')?.innerText === "Fine"`, textures[2].TID))
	w.press(t, "Give Ann_2 to another user")
	w.fill(t, "uid", "Bob")
	w.press(t, "Give")
	w.closed(t)
	w.press(t, "Bob")
	w.follow(t, "Players of the user", fmt.Sprintf("/admin/players?uid=%d", bob.UID), "All players", "1 result")
	w.shownPictures(t)
	w.inspect(t, "admin-players")
	w.press(t, "Change the textures of Ann_2")
	w.pressAndSee(t, "Take off the skin", "No skin")
	w.answered(t)
	w.press(t, "Delete Ann_2")
	w.pressAndSee(t, "Delete", "No player fits.")

	// Textures.
	w.follow(t, "All textures", "/admin/textures", "All textures", "3 results")
	w.expect("/api/admin/textures")
	w.fillIn(t, `[aria-label="Uploader: nickname, e-mail or player"]`, "nobody")
	w.pressEnter(t)
	w.sees(t, "No user has this number, e-mail address, nickname or player.")
	w.await(t, `!document.querySelector("article")`)
	w.fillIn(t, `[aria-label="Uploader: nickname, e-mail or player"]`, "admin")
	w.pressEnter(t)
	w.isAt(t, "/admin/textures?uploader=admin", "All textures", "1 result")
	w.fillIn(t, `[aria-label="Uploader: nickname, e-mail or player"]`, " ")
	w.pressEnter(t)
	w.isAt(t, "/admin/textures", "All textures", "3 results")
	w.press(t, "Change Insult")
	w.fill(t, "name", "Compliment")
	w.choose(t, "Who may use it", "private")
	w.inspect(t, "admin-texture-change")
	w.press(t, "Save")
	w.closed(t)
	w.sees(t, "Compliment")
	w.await(t, `document.querySelector(".entry .badge").innerText === "Private"`)
	w.shownPictures(t)
	w.inspect(t, "admin-textures")
	w.press(t, "Delete Fine")
	eval[bool](t, w, `(document.querySelector("[name=refuse]").click(), true)`)
	w.pressAndSee(t, "Delete", "2 results")
	w.answered(t)
	w.follow(t, "Refused pictures", "/admin/refusals", "Refused pictures", "1 result", "Fine")
	w.inspect(t, "admin-refusals")
	w.pressAndSee(t, "Allow again: Fine", "Fine may be uploaded again.", "No picture is refused.")

	// Notifications.
	w.follow(t, "Send notifications", "/admin/notifications", "Send notifications")
	w.inspect(t, "admin-notifications")
	w.fill(t, "title", "To all")
	w.fillIn(t, `[name="content"]`, "On **Sunday** from 8 to 9.")
	w.pressAndSee(t, "Send", "All users of the site get this notification.")
	w.press(t, "Cancel")
	w.closed(t)
	w.choose(t, "For", "one")
	w.fill(t, "to", "ann@example.com")
	w.pressAndSee(t, "Send", "The notification is sent to 1 user.")
	var unread []struct{ Title string }
	ann.Get(t, "/api/user/notifications", &unread)
	testenv.Check(t, len(unread) > 0 && unread[0].Title == "To all", "Ann's notifications are %+v", unread)

	// The log.
	w.follow(t, "Audit log", "/admin/audit", "Audit log")
	for _, act := range []string{
		"Notification sent", "Pixels allowed again", "Texture deleted", "Texture changed", "Player deleted", "Textures of a player taken off", "Player given to another user",
		"Player dressed", "Player renamed", "Removed from a closet", "Added to a closet", "Verification changed", "Score changed", "Password set", "Permission changed", "Report settled",
	} {
		w.sees(t, act)
	}
	w.inspect(t, "admin-audit")
	w.choose(t, "Act", "user.score")
	w.await(t, `document.querySelectorAll(".act").length === 1 && document.querySelector(".act").innerText.includes("120")`)
	w.back(t)
	w.await(t, `document.querySelectorAll(".act").length > 15`)

	w.choose(t, "Language", "zh")
	w.await(t, `document.documentElement.lang === "zh-Hans"`)
	for page, heading := range map[string]string{"reports?state=all": "举报", "textures": "全部材质", "users": "用户", "players": "全部角色", "notifications": "发送通知", "audit": "审计日志", "": "概览"} {
		w.arrive(t, strings.TrimSuffix("/admin/"+page, "/"), heading)
		w.settled(t)
		name, _, _ := strings.Cut(page, "?")
		for _, a := range []appearance{{360, "light"}, {1280, "dark"}} {
			w.appear(t, a)
			w.screenshot(t, fmt.Sprintf("zh-admin-%s-%d-%s", name, a.width, a.scheme))
		}
	}
}
