package console

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/core/mail/mailtest"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// publicURL is where the site says that it is; links in e-mails begin with it.
const publicURL = "https://skins.example.org"

// mailSettings are the settings of a site that sends its e-mail to a server.
func mailSettings(server *mailtest.Server) []string {
	return []string{
		"CORE_SMTP_HOST=" + server.Host, fmt.Sprint("CORE_SMTP_PORT=", server.Port), "CORE_SMTP_TLS=none",
		"CORE_SMTP_FROM=noreply@skins.example.org", "CORE_PUBLIC_URL=" + publicURL,
	}
}

// awaitLink waits for an e-mail to an address with a link to a page of the console, and returns the path of
// that page with the token.
func awaitLink(t *testing.T, server *mailtest.Server, to, page string) string {
	t.Helper()
	for count := 1; ; count++ {
		m := server.Await(t, count)[count-1]
		if _, rest, found := strings.Cut(m.Text, publicURL+"/console"+page+"#token="); found && m.To == to {
			behind, _, _ := strings.Cut(rest, "\n")
			return page + "#token=" + strings.TrimSpace(behind)
		}
	}
}

// openLink opens a page by a link that has a token.
func (tab *tab) openLink(t *testing.T, link string) {
	t.Helper()
	tab.do(t, chromedp.Navigate("about:blank")) // a change of the fragment alone would not load the page
	tab.visit(t, link)
}

// Where registrations are confirmed, links in e-mails make an account, change the address and reset the
// password.
func TestConfirmedRegistration(t *testing.T) {
	t.Parallel()
	mails := mailtest.Start(t, mailtest.Options{})
	_, w := openSite(t, append(mailSettings(mails), "CORE_REGISTRATION=confirm")...)
	w.arrive(t, "/register", "Create account")
	w.fill(t, "email", "zoe@example.com", "nickname", "Zoe", "player_name", "Zoe_1")
	w.pressAndSee(t, "Create account", "An e-mail with a link is on its way to you.")
	w.inspect(t, "register-sent")

	w.openLink(t, awaitLink(t, mails, "zoe@example.com", "/verify?registration"))
	w.isAt(t, "/verify?registration", "Create account")
	w.inspect(t, "verify-registration")
	const keptFor = `document.querySelector("form [autocomplete=username]").value`
	testenv.Equal(t, eval[string](t, w, keptFor), "zoe@example.com", "the name to keep the password with")
	w.fill(t, "password", password)
	w.follow(t, "Create account", "/", "Hello, Zoe")
	w.pressAndSee(t, "Players", "Zoe_1")

	w.visit(t, "/account?change=email")
	w.fill(t, "email", "zoe@example.org", "password", password)
	w.pressAndSee(t, "Save", "An e-mail with a link is on its way to zoe@example.org.")
	w.isAt(t, "/account", "Account")
	w.openLink(t, awaitLink(t, mails, "zoe@example.org", "/verify"))
	w.isAt(t, "/verify", "Verify the e-mail address")
	w.inspect(t, "verify")
	w.pressAndSee(t, "Verify", "The e-mail address is verified.")
	w.pressAndSee(t, "Account", "zoe@example.org")
	w.signOut(t)
	w.follow(t, "Forgot the password?", "/reset", "New password")
	w.inspect(t, "reset")
	w.fill(t, "email", "zoe@example.org")
	w.pressAndSee(t, "Send the e-mail", "If there is an account with this address")
	link := awaitLink(t, mails, "zoe@example.org", "/reset")
	w.openLink(t, link)
	w.isAt(t, "/reset", "New password")
	testenv.Equal(t, eval[string](t, w, keptFor), "zoe@example.org", "the name to keep the new password with")
	w.fill(t, "password", "battery staple")
	w.follow(t, "Set the password", "/signin", "Sign in", "The password is changed. Please sign in with it.")
	w.enter(t, "zoe@example.org", "battery staple", "/", "Hello, Zoe")

	// A link works once.
	w.expect("/api/auth/password")
	w.openLink(t, link)
	w.fill(t, "password", "battery staple")
	w.pressAndAwait(t, "Set the password", `Boolean(document.querySelector("form [role=alert]")?.innerText)`)
	w.inspect(t, "reset-used")
}

// A site without registration says so, and has no link to it.
func TestClosedRegistration(t *testing.T) {
	t.Parallel()
	_, w := openSite(t, "CORE_REGISTRATION=closed")
	w.visit(t, "/register", "New accounts cannot be created here at the moment.")
	w.inspect(t, "register-closed")
	w.follow(t, "Sign in to an existing account", "/signin", "Sign in")
	w.await(t, `!document.querySelector(".links a")`)
}

// A user changes the nickname, verifies the address, changes address and password, ends sessions, and
// deletes the account.
func TestAccount(t *testing.T) {
	t.Parallel()
	mails := mailtest.Start(t, mailtest.Options{})
	s, w := openSite(t, mailSettings(mails)...)
	register(t, s, "ann@example.com", "Ann")
	w.visit(t, "/account")
	w.isAt(t, "/signin?next=%2Faccount", "Sign in")
	w.enter(t, "ann@example.com", password, "/account", "Account", "Not verified yet", "Another browser")
	w.inspect(t, "account")

	w.pressAndSee(t, "Send an e-mail with a link", "on its way to ann@example.com")
	w.focusIs(t, "#verification")
	w.openLink(t, awaitLink(t, mails, "ann@example.com", "/verify"))
	w.pressAndSee(t, "Verify", "The e-mail address is verified.")

	w.pressAndSee(t, "Account", "Verified")
	w.follow(t, "Change the nickname", "/account?change=nickname", "Account")
	w.expect("/api/user")
	w.fill(t, "nickname", " ")
	w.press(t, "Save")
	w.await(t, `document.querySelector("dialog [name=nickname]").getAttribute("aria-invalid") === "true"`)
	w.inspect(t, "account-nickname")
	w.fill(t, "nickname", "<i>Ann</i>")
	w.pressAndSee(t, "Save", "The nickname is changed.")
	w.isAt(t, "/account", "Account", "<i>Ann</i>")
	// Back does not open the dialog again.
	w.back(t)
	w.isAt(t, "/", "Hello, <i>Ann</i>")
	w.press(t, "Account")

	w.press(t, "Change the e-mail address")
	w.expect("/api/user/email", "/api/user/password")
	w.fill(t, "email", "ann@example.org", "password", "wrong horse")
	w.press(t, "Save")
	w.await(t, `document.querySelector("dialog [name=password]").getAttribute("aria-invalid") === "true"`)
	w.fill(t, "password", password)
	w.pressAndSee(t, "Save", "The e-mail address is changed.", "ann@example.org")

	w.press(t, "Change the password")
	w.inspect(t, "account-password")
	w.fill(t, "current_password", password, "new_password", "battery staple")
	w.pressAndSee(t, "Save", "The password is changed. You are signed out everywhere else.")
	w.await(t, `!document.body.innerText.includes("Another browser")`)

	w.pressAndSee(t, "Delete the account", "This cannot be undone.")
	w.inspect(t, "account-delete")
	w.fill(t, "password", password)
	w.press(t, "Delete the account for good")
	w.await(t, `document.querySelector("dialog [name=password]").getAttribute("aria-invalid") === "true"`)
	w.fill(t, "password", "battery staple")
	w.follow(t, "Delete the account for good", "/signin", "Sign in", "The account is deleted.")
	w.expect("/console/session")
	w.submit(t, "ann@example.org", "battery staple")
	w.await(t, `document.querySelector("form [role=alert]").innerText !== ""`)
}

// otherSession is a script that says whether the account lists another session than the present one.
const otherSession = `Boolean(document.querySelector("[aria-label^='Sign out the browser']"))`

// Signing out everywhere else ends the session of another browser, which shows the page where
// it was once its user has signed in again.
func TestSignOutElsewhere(t *testing.T) {
	t.Parallel()
	s := startSite(t, "CORE_DEMO=1")
	first := plain.open(t, s.EdgeURL, "en")
	first.signInAsDemo(t, "/account", "Account")
	second := plain.open(t, s.EdgeURL, "en")
	second.visit(t, "/reports?state=open")
	second.isAt(t, "/signin?next=%2Freports%3Fstate%3Dopen", "Sign in")
	second.enter(t, "demo@example.com", "demo-password", "/reports?state=open", "My reports")

	first.visit(t, "/account", "Chrome on Linux")
	first.await(t, otherSession)
	second.answered(t)
	first.pressAndSee(t, "Sign out everywhere else", "You are signed out everywhere else.")
	first.await(t, "!"+otherSession)
	second.expect("/api/reports", "/console/session/token")
	second.choose(t, "Show", "rejected")
	second.isAt(t, "/signin?next=%2Freports%3Fstate%3Drejected", "Sign in")
	second.enter(t, "demo@example.com", "demo-password", "/reports?state=rejected", "My reports")

	// A session that is ended one by one.
	first.visit(t, "/account", "Chrome on Linux")
	first.await(t, otherSession)
	second.answered(t)
	eval[bool](t, first, `([...document.querySelectorAll("button")].find((b) => b.getAttribute("aria-label")?.startsWith("Sign out the browser")).click(), true)`)
	first.sees(t, "The browser is signed out.")
	second.expect("/api/user/sessions")
	second.follow(t, "Account", "/signin?next=%2Faccount", "Sign in")
}

// After another user has signed in in this browser, a tab changes nothing with the session of that one, and
// shows nothing of the former user.
func TestOtherUser(t *testing.T) {
	t.Parallel()
	s, w := openSite(t)
	ann, bob := register(t, s, "ann@example.com", "Ann"), register(t, s, "bob@example.com", "Bob")
	w.signIn(t, ann, "/account", "Account")
	w.answered(t)
	eval[bool](t, w, `fetch("/console/session", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ email: "bob@example.com", password: `+quote(password)+` }) }).then((r) => r.ok)`)
	ann.Call(t, http.MethodDelete, "/api/user/sessions", nil)
	w.expect("/api/user")
	w.press(t, "Change the nickname")
	w.fill(t, "nickname", "Anna")
	w.pressAndSee(t, "Save", "bob@example.com")
	w.isAt(t, "/account?change=nickname", "Account")
	w.answered(t)
	for want, user := range map[string]*account{"Ann": ann, "Bob": bob} {
		var current struct{ Nickname string }
		user.Get(t, "/api/user", &current)
		testenv.Equal(t, current.Nickname, want, "the nickname now")
	}
}

// A user sees what changed the score, page by page.
func TestScore(t *testing.T) {
	t.Parallel()
	s, w := openSite(t, "CORE_SCORE_REGISTRATION=100", "CORE_SCORE_PLAYER=2", "CORE_SCORE_SIGN_REWARD=1000")
	ann := register(t, s, "ann@example.com", "Ann")
	for i := range 21 {
		ann.AddPlayer(t, fmt.Sprintf("Ann_%d", i))
	}
	ann.Call(t, "POST", "/api/user/sign", nil)
	w.signIn(t, ann, "/score", "Score", "You have 1,058 points.", "Signed in for the day", "+1,000", "Page 1 of 2")
	w.inspect(t, "score")
	w.follow(t, "Next", "/score?page=2", "Score", "Welcome to the site")
	w.await(t, `document.activeElement.className.includes("results")`)
	w.back(t)
	w.isAt(t, "/score", "Score", "Signed in for the day")
}

// A user sees what came of the reports, by their state.
func TestReports(t *testing.T) {
	t.Parallel()
	s, w := openSite(t, "CORE_DEMO=1")
	ann := register(t, s, "ann@example.com", "Ann")
	for tid, reason := range []string{"I have drawn this.\nIt is mine.", "<b>Not a skin</b>", "The cape of another site."} {
		ann.Call(t, "POST", "/api/reports", map[string]any{"tid": tid + 1, "reason": reason})
	}
	zoe := register(t, s, "zoe@example.com", "Zoe")
	s.Core.Run(t, "user", "permission", "-set", "1", "zoe@example.com")
	zoe.Call(t, "PUT", "/api/admin/reports/1", map[string]string{"action": "reject"})
	zoe.Call(t, "PUT", "/api/admin/reports/2", map[string]string{"action": "delete"})

	w.signIn(t, ann, "/reports", "My reports")
	w.await(t, `document.querySelectorAll(".line").length === 3`)
	w.sees(t, "<b>Not a skin</b>", "Texture deleted")
	w.inspect(t, "reports")
	w.choose(t, "Show", "rejected")
	w.isAt(t, "/reports?state=rejected", "My reports")
	w.await(t, `document.querySelectorAll(".line").length === 1 && document.querySelector(".line").innerText.includes("It is mine.")`)
	w.choose(t, "Show", "banned")
	w.sees(t, "You have no reports in this state.")
	w.back(t)
	w.isAt(t, "/reports?state=rejected", "My reports")
	w.await(t, `document.querySelector(".filter select").value === "rejected" && document.querySelectorAll(".line").length === 1`)
}

// Visitors learn how to use the site in games: by mods, and by launchers where it serves them.
func TestConnect(t *testing.T) {
	t.Parallel()
	modsOnly := startSite(t)
	w := plain.open(t, modsOnly.EdgeURL, "en")
	w.visit(t, "/signin")
	w.follow(t, "Connect a game", "/connect", "Connect a game")
	w.sees(t, "This site does not sign players in to games.", modsOnly.EdgeURL+"/csl/")

	core := site.NewCore(t, blobstoretest.Directory(t).Config)
	core.Set(siteSettings...)
	site.ServeLaunchers(t, core, publicURL)
	s := site.StartWith(t, core, siteSettings...)
	w = plain.open(t, s.EdgeURL, "en")
	w.visit(t, "/connect")
	address := s.EdgeURL + "/api/yggdrasil/"
	w.sees(t, address)
	w.inspect(t, "connect")
	dragged := eval[string](t, w, `(() => {
		const data = new DataTransfer();
		document.querySelector(".dragged").dispatchEvent(new DragEvent("dragstart", { bubbles: true, dataTransfer: data }));
		return data.getData("text/plain");
	})()`)
	testenv.Equal(t, dragged, "authlib-injector:yggdrasil-server:"+url.QueryEscape(address), "what a drag takes")
	// The clipboard needs a permission that a headless browser lacks: then the text is selected.
	clipboard.Lock()
	defer clipboard.Unlock()
	w.pressAndAwait(t, "Copy the address for launchers", `Boolean(document.querySelector(".notice"))`)
	if got := eval[string](t, w, `document.querySelector(".notice").innerText.includes("Copied") ? "" : getSelection().toString()`); got != "" && got != address {
		t.Errorf("%q is selected; want %q", got, address)
	}
}

// Theme and language are kept after a reload, and both change at once.
func TestChoices(t *testing.T) {
	t.Parallel()
	_, w := openSite(t)
	w.arrive(t, "/connect", "Connect a game")
	background := `getComputedStyle(document.documentElement).backgroundColor`
	w.choose(t, "Colours", "light")
	w.await(t, `document.documentElement.dataset.theme === "light"`)
	light := eval[string](t, w, background)
	w.choose(t, "Colours", "dark")
	w.await(t, background+" !== "+quote(light))
	w.choose(t, "Language", "zh")
	w.isAt(t, "/connect", "在游戏中使用")
	w.inspect(t, "zh-connect")
	w.arrive(t, "/signin", "登录")
	w.await(t, `document.documentElement.dataset.theme === "dark" && document.documentElement.lang === "zh-Hans"`)
	testenv.Check(t, eval[string](t, w, background) != light, "the dark theme is not kept")
}
