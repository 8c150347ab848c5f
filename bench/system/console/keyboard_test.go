//go:build !race

package console

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/veneer-skins/veneer/core/mail/mailtest"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
)

// enterOn presses Enter on the button or link with a name, by the keyboard alone.
func (w *tab) enterOn(t *testing.T, name string) {
	t.Helper()
	w.tabTo(t, name)
	w.pressEnter(t)
}

// types types into the field with a name, in place of its content, by the keyboard alone. A dialog has the focus
// on its first field.
func (w *tab) types(t *testing.T, name, value string) {
	t.Helper()
	w.await(t, `Boolean(document.querySelector('[name="`+name+`"], [aria-label="`+name+`"]'))`)
	if !eval[bool](t, w, `[document.activeElement.name, document.activeElement.getAttribute("aria-label")].includes(`+quote(name)+`)`) {
		w.tabTo(t, name)
	}
	w.do(t, chromedp.KeyEvent(value))
}

// submits types into the field with a name, and sends its form.
func (w *tab) submits(t *testing.T, name, value string) {
	t.Helper()
	w.types(t, name, value)
	w.pressEnter(t)
}

// opens goes to a page by its link, and waits until its heading has the focus.
func (w *tab) opens(t *testing.T, link, path, heading string) {
	t.Helper()
	w.enterOn(t, link)
	w.isAt(t, path, heading)
	w.focusIs(t, "h1")
}

// confirms waits for a question, which has the focus on its harmless answer, and gives the other one.
func (w *tab) confirms(t *testing.T, action string) {
	t.Helper()
	w.await(t, `document.activeElement.matches("dialog[open] button") && document.activeElement.innerText === "Cancel"`)
	w.enterOn(t, action)
	w.await(t, `!document.querySelector("dialog")`)
}

// The keyboard alone registers, and resets the password.
func TestKeyboardOfVisitor(t *testing.T) {
	t.Parallel()
	mails := mailtest.Start(t, mailtest.Options{})
	s := startSite(t, mailSettings(mails)...)
	w := plain.open(t, s.EdgeURL, "en")
	w.visit(t, "/signin")
	w.isAt(t, "/signin", "Sign in")
	w.opens(t, "Make an account", "/register", "Make an account")
	w.types(t, "email", "ann@example.com")
	w.types(t, "nickname", "Ann")
	w.types(t, "player_name", "Ann_1")
	w.submits(t, "password", password)
	w.isAt(t, "/", "Hello, Ann")
	w.sees(t, "Nothing new.")
	w.expect("/api/user") // which the page may read once more
	w.opens(t, "Sign out", "/signin", "Sign in")
	w.opens(t, "Forgot the password?", "/reset", "New password")
	w.submits(t, "email", "ann@example.com")
	w.sees(t, "If there is an account with this address")
	w.openLink(t, awaitLink(t, mails, "ann@example.com", "/reset"))
	w.isAt(t, "/reset", "New password")
	w.submits(t, "password", "battery staple")
	w.isAt(t, "/signin", "Sign in")
	w.types(t, "email", "ann@example.com")
	w.submits(t, "password", "battery staple")
	w.isAt(t, "/", "Hello, Ann")
}

// The keyboard alone adds, dresses, undresses, renames and deletes a player, empties the closet, reports a
// texture, and changes and deletes one.
func TestKeyboardOfPlayer(t *testing.T) {
	t.Parallel()
	s := startSite(t)
	ann, bob := register(t, s, "ann@example.com", "Ann"), register(t, s, "bob@example.com", "Bob")
	fox := ann.upload(t, "Fox", skin.Classic, artwork.Fox())
	mage := bob.upload(t, "Mage", skin.Classic, artwork.Mage())
	w := plain.open(t, s.EdgeURL, "en")
	w.signIn(t, ann, "/", "Hello, Ann")
	w.opens(t, "Players", "/players", "Players")
	w.enterOn(t, "Add a player")
	w.submits(t, "name", "Ann_1")
	w.await(t, `!document.querySelector("dialog") && document.querySelector(".player h2")?.innerText === "Ann_1"`)
	w.enterOn(t, "Choose a skin for Ann_1")
	w.await(t, `Boolean(document.querySelector("dialog[open] .tile"))`)
	w.enterOn(t, "Fox")
	w.await(t, `document.activeElement.getAttribute("aria-label") === "Choose a skin for Ann_1" && Boolean(document.querySelector('img[alt="Skin of Ann_1, front and back"]'))`)
	w.enterOn(t, "Take off the skin of Ann_1")
	w.await(t, `document.activeElement.getAttribute("aria-label") === "Choose a skin for Ann_1" && document.querySelector(".skin").innerText === "No skin"`)
	w.enterOn(t, "Rename Ann_1")
	w.submits(t, "name", "Ann_2")
	w.await(t, `!document.querySelector("dialog") && document.querySelector(".player h2").innerText === "Ann_2" && document.activeElement.getAttribute("aria-label") === "Rename Ann_2"`)
	w.enterOn(t, "Delete Ann_2")
	w.confirms(t, "Delete")
	w.sees(t, "You have no players yet.")
	w.focusIs(t, "h1")

	w.opens(t, "Closet", "/closet", "Closet")
	w.enterOn(t, "Remove from closet: Fox")
	w.focusIs(t, ".results")
	w.sees(t, "There are no skins in your closet.")

	w.opens(t, "Library", "/library", "Library")
	w.opens(t, "Mage", fmt.Sprintf("/texture?tid=%d", mage.TID), "Mage")
	w.enterOn(t, "Report")
	w.types(t, "reason", "I drew this skin.")
	w.enterOn(t, "Send the report")
	w.sees(t, "Thank you. An administrator will look at it.")
	w.await(t, `document.activeElement.innerText === "Report"`)

	w.opens(t, "Library", "/library", "Library")
	w.opens(t, "Fox", fmt.Sprintf("/texture?tid=%d", fox.TID), "Fox")
	w.enterOn(t, "Rename")
	w.submits(t, "name", "Red fox")
	w.await(t, `!document.querySelector("dialog") && document.querySelector("h1").innerText === "Red fox"`)
	w.enterOn(t, "Give it slim arms")
	w.await(t, `document.querySelector(".facts").innerText.includes("Skin with slim arms")`)
	w.enterOn(t, "Make it private")
	w.confirms(t, "Make it private")
	w.sees(t, "Private: only you and administrators can find and use it.")
	w.answered(t) // of a texture that is deleted there is no picture
	w.enterOn(t, "Delete")
	w.confirms(t, "Delete")
	w.isAt(t, "/library", "Library")
	w.sees(t, "Red fox is deleted.")
}

// The keyboard alone changes the password, ends sessions, and deletes the account.
func TestKeyboardOfSessions(t *testing.T) {
	t.Parallel()
	s := startSite(t)
	ann := register(t, s, "ann@example.com", "Ann")
	w := plain.open(t, s.EdgeURL, "en")
	w.signIn(t, ann, "/account", "Account")
	w.sees(t, "Another browser")
	w.enterOn(t, "Sign out everywhere else")
	w.focusIs(t, "#sessions")
	w.await(t, `!document.body.innerText.includes("Another browser")`)
	w.enterOn(t, "Change the password")
	w.types(t, "current_password", password)
	w.submits(t, "new_password", "battery staple")
	w.await(t, `!document.querySelector("dialog") && document.activeElement.getAttribute("aria-label") === "Change the password"`)
	w.sees(t, "The password is changed.")
	w.enterOn(t, "Delete the account")
	w.submits(t, "password", "battery staple")
	w.isAt(t, "/signin", "Sign in")
	w.sees(t, "The account is deleted.")
}

// The keyboard alone changes users, players and textures, sends a notification, and reads the audit log.
func TestKeyboardOfAdministration(t *testing.T) {
	t.Parallel()
	s := startSite(t)
	admin, bob := register(t, s, "admin@example.com", "Admin"), register(t, s, "bob@example.com", "Bob")
	s.Core.Run(t, "user", "permission", "-set", "1", "admin@example.com")
	bob.upload(t, "Fox", skin.Classic, artwork.Fox())
	bob.call(t, http.MethodPost, "/api/players", map[string]any{"name": "Bob_1"}, nil)
	w := plain.open(t, s.EdgeURL, "en")
	w.signIn(t, admin, "/", "Hello, Admin")

	w.opens(t, "Users", "/admin/users", "Users")
	w.submits(t, "Number of a user", fmt.Sprint(bob.UID))
	w.isAt(t, fmt.Sprintf("/admin/users?uid=%d", bob.UID), "Bob")
	w.enterOn(t, "Change the nickname")
	w.submits(t, "nickname", "Robert")
	w.await(t, `!document.querySelector("dialog") && document.querySelector("h1").innerText === "Robert"`)
	w.tabTo(t, "verified")
	w.do(t, chromedp.KeyEvent(" "))
	w.await(t, `fetch("/api/site").then(() => document.querySelector(".check input").checked)`)
	w.enterOn(t, "Ban")
	w.confirms(t, "Ban")
	w.await(t, `document.querySelector(".badge.banned")?.innerText === "Banned"`)

	w.opens(t, "All players", "/admin/players", "All players")
	w.enterOn(t, "Rename Bob_1")
	w.submits(t, "name", "Bob_2")
	w.await(t, `!document.querySelector("dialog") && document.activeElement.getAttribute("aria-label") === "Rename Bob_2"`)
	w.enterOn(t, "Change the textures of Bob_2")
	w.submits(t, "skin", "1")
	w.await(t, `!document.querySelector("dialog") && Boolean(document.querySelector('img[alt="Skin of Bob_2, front and back"]'))`)
	w.enterOn(t, "Delete Bob_2")
	w.confirms(t, "Delete")
	w.focusIs(t, ".results")
	w.sees(t, "No player fits.")

	w.opens(t, "All textures", "/admin/textures", "All textures")
	w.enterOn(t, "Change Fox")
	w.submits(t, "name", "Red fox")
	w.await(t, `!document.querySelector("dialog") && document.activeElement.getAttribute("aria-label") === "Change Red fox"`)
	w.enterOn(t, "Delete Red fox")
	w.confirms(t, "Delete")
	w.focusIs(t, ".results")
	w.sees(t, "No texture fits.")

	w.opens(t, "Send notifications", "/admin/notifications", "Send notifications")
	w.types(t, "title", "To all")
	w.types(t, "content", "All is well.")
	w.enterOn(t, "Send")
	w.confirms(t, "Send")
	w.sees(t, "The notification is sent to ")

	w.opens(t, "Audit log", "/admin/audit", "Audit log")
	w.types(t, "Subject, as user:2", fmt.Sprintf("user:%d", bob.UID))
	w.isAt(t, fmt.Sprintf("/admin/audit?subject=user%%3A%d", bob.UID), "Audit log")
	w.await(t, `document.querySelectorAll(".act").length === 3`)
}
