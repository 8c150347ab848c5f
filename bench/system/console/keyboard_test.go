package console

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/veneer-skins/veneer/core/mail/mailtest"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// focusIs waits until the focus is on the element of a selector.
func (tab *tab) focusIs(t *testing.T, selector string) {
	t.Helper()
	tab.await(t, "document.activeElement.matches("+quote(selector)+")")
}

// enterOn presses Enter on the button or link with a name, by the keyboard alone.
func (tab *tab) enterOn(t *testing.T, name string) {
	t.Helper()
	tab.tabTo(t, name)
	tab.pressEnter(t)
}

// types types into the field with a name, in place of its content, by the keyboard alone. A dialog has the focus
// on its first field.
func (tab *tab) types(t *testing.T, name, value string) {
	t.Helper()
	tab.await(t, `Boolean(document.querySelector('[name="`+name+`"], [aria-label="`+name+`"]'))`)
	if !eval[bool](t, tab, `[document.activeElement.name, document.activeElement.getAttribute("aria-label")].includes(`+quote(name)+`)`) {
		tab.tabTo(t, name)
	}
	tab.do(t, chromedp.KeyEvent(value))
}

// submits types into the field with a name, and sends its form.
func (tab *tab) submits(t *testing.T, name, value string) {
	t.Helper()
	tab.types(t, name, value)
	tab.pressEnter(t)
}

// opens goes to a page by its link, and waits until its heading has the focus.
func (tab *tab) opens(t *testing.T, link, path, heading string, texts ...string) {
	t.Helper()
	tab.enterOn(t, link)
	tab.isAt(t, path, heading, texts...)
	tab.focusIs(t, "h1")
}

// opensByMenu does the same by a link in the menu.
func (tab *tab) opensByMenu(t *testing.T, link, path, heading string, texts ...string) {
	t.Helper()
	tab.enterOn(t, "Menu")
	tab.opens(t, link, path, heading, texts...)
}

// confirms presses a button that asks a question, which has the focus on its harmless answer, and gives the other one.
func (tab *tab) confirms(t *testing.T, asking, action string) {
	t.Helper()
	tab.enterOn(t, asking)
	tab.await(t, `document.activeElement.matches("dialog[open] button") && document.activeElement.innerText === "Cancel"`)
	tab.enterOn(t, action)
	tab.closed(t)
}

// The keyboard alone registers, and resets the password.
func TestKeyboardOfVisitor(t *testing.T) {
	t.Parallel()
	mails := mailtest.Start(t, mailtest.Options{})
	_, w := openSite(t, mailSettings(mails)...)
	w.arrive(t, "/signin", "Sign in")
	w.focusIs(t, "#email")
	w.enterOn(t, "To the content")
	w.focusIs(t, "#main")
	w.opens(t, "Create account", "/register", "Create account")
	w.types(t, "email", "ann@example.com")
	w.types(t, "nickname", "Ann")
	w.types(t, "player_name", "Ann_1")
	w.submits(t, "password", password)
	w.isAt(t, "/", "Hello, Ann", "Nothing new.")
	w.expect("/api/user") // which the page may read once more
	w.enterOn(t, "Menu")
	w.enterOn(t, "Sign out")
	w.isAt(t, "/signin", "Sign in")
	w.focusIs(t, "#email")
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

// The keyboard alone searches from the front page, which begins with the link to its content, and copies the address of a
// texture's page.
func TestKeyboardOfSharedPages(t *testing.T) {
	t.Parallel()
	s, w := openSite(t, "CORE_DEMO=1")
	w.do(t, chromedp.Navigate(s.EdgeURL+"/"))
	w.sees(t, "Newest skins")
	w.do(t, chromedp.KeyEvent(kb.Tab))
	w.focusIs(t, ".skip")
	w.await(t, `document.activeElement.getBoundingClientRect().top >= 0`)
	w.pressEnter(t)
	w.do(t, chromedp.KeyEvent(kb.Tab))
	w.focusIs(t, `main input[name="q"]`)
	w.submits(t, "q", "explorer")
	w.isAt(t, "/library?q=explorer", "Library")
	w.shows(t, "1 result", 1)

	w.do(t, chromedp.Navigate(s.EdgeURL+"/t/1"))
	w.sees(t, "Wear it")
	grant(t, w, "clipboard-read", "clipboard-write")
	clipboard.Lock()
	defer clipboard.Unlock()
	w.tabTo(t, "Show in 3D")
	w.enterOn(t, "Copy the URL of: Link to this page")
	w.sees(t, "Copied.")
	testenv.Equal(t, eval[string](t, w, "navigator.clipboard.readText()"), s.EdgeURL+"/t/1", "the clipboard")
	w.focusIs(t, `[data-as="url"]`)
}

// The keyboard alone adds, dresses, undresses, renames and deletes a player, empties the closet, reports a
// texture, and changes and deletes one.
func TestKeyboardOfPlayer(t *testing.T) {
	t.Parallel()
	s, w := openSite(t)
	ann, bob := register(t, s, "ann@example.com", "Ann"), register(t, s, "bob@example.com", "Bob")
	fox := ann.Upload(t, "Fox", skin.Classic, artwork.Fox())
	mage := bob.Upload(t, "Mage", skin.Classic, artwork.Mage())
	w.signIn(t, ann, "/", "Hello, Ann")
	w.opens(t, "Players", "/players", "Players")
	w.enterOn(t, "Add a player")
	w.submits(t, "name", "Ann_1")
	w.await(t, `!document.querySelector("dialog") && document.querySelector(".player h2")?.innerText === "Ann_1"`)
	w.enterOn(t, "Choose a skin for Ann_1")
	w.await(t, `Boolean(document.querySelector("dialog[open]")?.contains(document.activeElement))`)
	w.do(t, chromedp.KeyEvent(kb.Escape))
	w.await(t, `!document.querySelector("dialog") && document.activeElement.getAttribute("aria-label") === "Choose a skin for Ann_1"`)
	w.pressEnter(t)
	w.await(t, `Boolean(document.querySelector("dialog[open] .tile"))`)
	w.enterOn(t, "Fox")
	w.await(t, `document.querySelector(".tile").getAttribute("aria-pressed") === "true"`)
	w.enterOn(t, "Wear")
	w.await(t, `document.activeElement.getAttribute("aria-label") === "Choose a skin for Ann_1" && Boolean(document.querySelector('img[alt="Skin of Ann_1, front and back"]'))`)
	w.enterOn(t, "Take off the skin of Ann_1")
	w.await(t, `document.activeElement.getAttribute("aria-label") === "Choose a skin for Ann_1" && !document.querySelector('img[alt="Skin of Ann_1, front and back"]')`)
	w.enterOn(t, "Rename Ann_1")
	w.submits(t, "name", "Ann_2")
	w.await(t, `!document.querySelector("dialog") && document.querySelector(".player h2").innerText === "Ann_2" && document.activeElement.getAttribute("aria-label") === "Rename Ann_2"`)
	w.enterOn(t, "More about Ann_2")
	w.confirms(t, "Delete Ann_2", "Delete")
	w.sees(t, "You have no players yet.")
	w.focusIs(t, "h1")

	w.opens(t, "Closet", "/closet", "Closet")
	w.enterOn(t, "More about Fox")
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
	w.confirms(t, "Make it private", "Make it private")
	w.sees(t, "Private: only you and administrators can find and use it.")
	w.answered(t) // of a texture that is deleted there is no picture
	w.confirms(t, "Delete", "Delete")
	w.isAt(t, "/library", "Library", "Red fox is deleted.")
}

// The keyboard alone changes the nickname and the password, ends sessions, uploads a file, and deletes the account.
func TestKeyboardOfAccount(t *testing.T) {
	t.Parallel()
	s, w := openSite(t)
	ann := register(t, s, "ann@example.com", "Ann")
	ann.AddPlayer(t, "Ann_1")
	w.reduceMotion(t, "reduce") // a figure that turns takes much of a processor
	w.signIn(t, ann, "/account", "Account", "Another browser")
	w.enterOn(t, "Change the nickname")
	w.await(t, `Boolean(document.querySelector("dialog[open]")?.contains(document.activeElement))`)
	w.tabTo(t, "nickname")
	w.do(t, chromedp.KeyEvent("s")) // Tab selects what is in the field
	w.pressEnter(t)
	w.isAt(t, "/account", "Account")
	w.await(t, `document.querySelector(".setting bdi").innerText === "s" && document.activeElement.getAttribute("aria-label") === "Change the nickname"`)
	w.enterOn(t, "Sign out everywhere else")
	w.focusIs(t, "#sessions")
	w.await(t, `!document.body.innerText.includes("Another browser")`)
	w.enterOn(t, "Change the password")
	w.types(t, "current_password", password)
	w.submits(t, "new_password", "battery staple")
	w.await(t, `!document.querySelector("dialog") && document.activeElement.getAttribute("aria-label") === "Change the password"`)
	w.sees(t, "The password is changed.")

	w.opens(t, "Upload", "/upload", "Upload")
	w.tabTo(t, "files")
	// The dialog that chooses a file is the system's.
	w.do(t, chromedp.SetUploadFiles(`main input[type="file"]`, []string{paint(t, "Keys.png", 1)}))
	w.await(t, ready("Keys"))
	w.enterOn(t, "Upload Keys")
	w.sees(t, "It is uploaded, and in your closet.")
	w.await(t, `document.activeElement.innerText === "Keys"`)
	w.enterOn(t, "Put Keys on Ann_1")
	w.sees(t, "Ann_1 wears Keys now.")

	w.opensByMenu(t, "Account", "/account", "Account")
	w.enterOn(t, "Delete the account")
	w.submits(t, "password", "battery staple")
	w.isAt(t, "/signin", "Sign in", "The account is deleted.")
}

// The keyboard alone settles a report by a ban, changes users, players and textures, sends a notification, and reads the audit log.
func TestKeyboardOfAdministration(t *testing.T) {
	t.Parallel()
	s, w := openSite(t)
	admin, ann, bob := register(t, s, "admin@example.com", "Admin"), register(t, s, "ann@example.com", "Ann"), register(t, s, "bob@example.com", "Bob")
	s.Core.Run(t, "user", "permission", "-set", "1", "admin@example.com")
	bob.Upload(t, "Fox", skin.Classic, artwork.Fox())
	bob.AddPlayer(t, "Bob_1")
	bob.report(t, ann.Upload(t, "Insult", skin.Classic, artwork.Mage()), "It insults me.")
	w.signIn(t, admin, "/", "Hello, Admin")

	w.opensByMenu(t, "Reports", "/admin/reports", "Reports", "It insults me.")
	w.enterOn(t, "Ban the uploader of report 1")
	w.enterOn(t, "Ban")
	w.closed(t)
	w.sees(t, "Report 1: Uploader banned", "There are no open reports.")
	w.await(t, `document.activeElement.className.includes("results")`)
	if status, answer := ann.Do(t, http.MethodGet, "/api/user", nil); status == http.StatusOK {
		t.Errorf("a banned user is answered %s", answer)
	}

	w.opens(t, "Users", "/admin/users", "Users")
	w.submits(t, "Nickname, e-mail, player or number", fmt.Sprint(bob.UID))
	w.isAt(t, fmt.Sprintf("/admin/users?uid=%d", bob.UID), "Bob")
	w.enterOn(t, "Change the nickname")
	w.submits(t, "nickname", "Robert")
	w.await(t, `!document.querySelector("dialog") && document.querySelector("h1").innerText === "Robert"`)
	w.tabTo(t, "verified")
	w.do(t, chromedp.KeyEvent(" "))
	w.await(t, `fetch("/api/site").then(() => document.querySelector(".check input").checked)`)
	w.enterOn(t, "Ban")
	w.enterOn(t, "Ban")
	w.await(t, `document.querySelector(".badge.banned")?.innerText === "Banned"`)

	w.opens(t, "All players", "/admin/players", "All players")
	w.enterOn(t, "Rename Bob_1")
	w.submits(t, "name", "Bob_2")
	w.await(t, `!document.querySelector("dialog") && document.activeElement.getAttribute("aria-label") === "Rename Bob_2"`)
	w.enterOn(t, "Change the textures of Bob_2")
	w.submits(t, "skin", "1")
	w.await(t, `!document.querySelector("dialog") && Boolean(document.querySelector('img[alt="Skin of Bob_2, front and back"]'))`)
	w.confirms(t, "Delete Bob_2", "Delete")
	w.focusIs(t, ".results")
	w.sees(t, "No player fits.")

	w.opens(t, "All textures", "/admin/textures", "All textures")
	w.enterOn(t, "Change Fox")
	w.submits(t, "name", "Red fox")
	w.await(t, `!document.querySelector("dialog") && document.activeElement.getAttribute("aria-label") === "Change Red fox"`)
	w.confirms(t, "Delete Red fox", "Delete")
	w.focusIs(t, ".results")
	w.sees(t, "1 result")

	w.opens(t, "Send notifications", "/admin/notifications", "Send notifications")
	w.types(t, "title", "To all")
	w.types(t, "content", "All is well.")
	w.confirms(t, "Send", "Send")
	w.sees(t, "The notification is sent to ")

	w.opens(t, "Audit log", "/admin/audit", "Audit log")
	w.submits(t, "On: a user, or as texture:7", fmt.Sprintf("user:%d", bob.UID))
	w.isAt(t, fmt.Sprintf("/admin/audit?subject=user%%3A%d", bob.UID), "Audit log")
	w.await(t, `document.querySelectorAll(".act").length === 3`)
}
