//go:build !race

package console

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/veneer-skins/veneer/core/mail/mailtest"
)

// publicURL is where the site says that it is; links in e-mails begin with it.
const publicURL = "https://skins.example.org"

// mailSettings are the settings of a site that sends its e-mail to a server.
func mailSettings(server *mailtest.Server) []string {
	return []string{
		"CORE_SMTP_HOST", server.Host, "CORE_SMTP_PORT", fmt.Sprint(server.Port), "CORE_SMTP_TLS", "none",
		"CORE_SMTP_FROM", "noreply@skins.example.org", "CORE_PUBLIC_URL", publicURL,
	}
}

// awaitLink waits for an e-mail to an address with a link to a page of the console, and returns the path of
// that page with the token.
func awaitLink(t *testing.T, server *mailtest.Server, to, page string) string {
	t.Helper()
	for count := 1; ; count++ {
		m := server.Await(t, count)[count-1]
		if _, rest, found := strings.Cut(m.Text, publicURL+"/console"+page+"#token="); found && m.To == to {
			token, _, _ := strings.Cut(rest, "\n")
			return page + "#token=" + strings.TrimSpace(token)
		}
	}
}

// openLink opens a page by a link that has a token.
func (w *tab) openLink(t *testing.T, link string) {
	t.Helper()
	w.do(t, chromedp.Navigate("about:blank")) // a change of the fragment alone would not load the page
	w.visit(t, link)
}

// Where registrations are confirmed, links in e-mails make an account, change the address and reset the
// password.
func TestConfirmedRegistration(t *testing.T) {
	t.Parallel()
	mails := mailtest.Start(t, mailtest.Options{})
	s := startSite(t, append(mailSettings(mails), "CORE_REGISTRATION", "confirm")...)
	w := plain.open(t, s.EdgeURL, "en")
	w.visit(t, "/register")
	w.isAt(t, "/register", "Make an account")
	w.fill(t, "email", "zoe@example.com")
	w.fill(t, "nickname", "Zoe")
	w.fill(t, "player_name", "Zoe_1")
	w.press(t, "Make the account")
	w.sees(t, "An e-mail with a link is on its way to you.")
	w.inspect(t, "register-sent")

	w.openLink(t, awaitLink(t, mails, "zoe@example.com", "/verify?registration"))
	w.isAt(t, "/verify?registration", "Make an account")
	w.inspect(t, "verify-registration")
	w.fill(t, "password", password)
	w.press(t, "Make the account")
	w.isAt(t, "/", "Hello, Zoe")
	w.press(t, "Players")
	w.sees(t, "Zoe_1")

	w.visit(t, "/account?change=email")
	w.fill(t, "email", "zoe@example.org")
	w.fill(t, "password", password)
	w.press(t, "Save")
	w.sees(t, "An e-mail with a link is on its way to zoe@example.org.")
	w.isAt(t, "/account", "Account")
	w.openLink(t, awaitLink(t, mails, "zoe@example.org", "/verify"))
	w.isAt(t, "/verify", "Verify the e-mail address")
	w.inspect(t, "verify")
	w.press(t, "Verify")
	w.sees(t, "The e-mail address is verified.")
	w.press(t, "Account")
	w.sees(t, "zoe@example.org")
	w.answered(t) // else the request for the sessions may come after the end of this one

	w.press(t, "Sign out")
	w.isAt(t, "/signin", "Sign in")
	w.press(t, "Forgot the password?")
	w.isAt(t, "/reset", "New password")
	w.inspect(t, "reset")
	w.fill(t, "email", "zoe@example.org")
	w.press(t, "Send the e-mail")
	w.sees(t, "If there is an account with this address")
	link := awaitLink(t, mails, "zoe@example.org", "/reset")
	w.openLink(t, link)
	w.isAt(t, "/reset", "New password")
	w.fill(t, "password", "battery staple")
	w.press(t, "Set the password")
	w.isAt(t, "/signin", "Sign in")
	w.sees(t, "The password is changed. Please sign in with it.")
	w.enter(t, "zoe@example.org", "battery staple", "/", "Hello, Zoe")

	// A link works once.
	w.expect("/api/auth/password")
	w.openLink(t, link)
	w.fill(t, "password", "battery staple")
	w.press(t, "Set the password")
	w.await(t, `Boolean(document.querySelector("form [role=alert]")?.innerText)`)
	w.inspect(t, "reset-used")
}

// A site without registration says so, and has no link to it.
func TestClosedRegistration(t *testing.T) {
	t.Parallel()
	s := startSite(t, "CORE_REGISTRATION", "closed")
	w := plain.open(t, s.EdgeURL, "en")
	w.visit(t, "/register")
	w.sees(t, "New accounts cannot be made here at the moment.")
	w.inspect(t, "register-closed")
	w.press(t, "Sign in with an account that you have")
	w.isAt(t, "/signin", "Sign in")
	w.await(t, `!document.querySelector(".links a")`)
}

// A user changes the nickname, verifies the address, changes address and password, ends sessions, and
// deletes the account.
func TestAccount(t *testing.T) {
	t.Parallel()
	mails := mailtest.Start(t, mailtest.Options{})
	s := startSite(t, mailSettings(mails)...)
	register(t, s, "ann@example.com", "Ann")
	w := plain.open(t, s.EdgeURL, "en")
	w.visit(t, "/account")
	w.isAt(t, "/signin?next=%2Faccount", "Sign in")
	w.enter(t, "ann@example.com", password, "/account", "Account")
	w.sees(t, "Not verified yet")
	w.sees(t, "Another browser")
	w.inspect(t, "account")

	w.press(t, "Send an e-mail with a link")
	w.sees(t, "on its way to ann@example.com")
	w.openLink(t, awaitLink(t, mails, "ann@example.com", "/verify"))
	w.press(t, "Verify")
	w.sees(t, "The e-mail address is verified.")

	w.press(t, "Account")
	w.sees(t, "Verified")
	w.press(t, "Change the nickname")
	w.isAt(t, "/account?change=nickname", "Account")
	w.expect("/api/user")
	w.fill(t, "nickname", " ")
	w.press(t, "Save")
	w.await(t, `document.querySelector("dialog [name=nickname]").getAttribute("aria-invalid") === "true"`)
	w.inspect(t, "account-nickname")
	w.fill(t, "nickname", "<i>Ann</i>")
	w.press(t, "Save")
	w.sees(t, "The nickname is changed.")
	w.isAt(t, "/account", "Account")
	w.sees(t, "<i>Ann</i>")
	// Back does not open the dialog again.
	eval[bool](t, w, "(history.back(), true)")
	w.isAt(t, "/", "Hello, <i>Ann</i>")
	w.press(t, "Account")

	w.press(t, "Change the e-mail address")
	w.expect("/api/user/email", "/api/user/password")
	w.fill(t, "email", "ann@example.org")
	w.fill(t, "password", "wrong horse")
	w.press(t, "Save")
	w.await(t, `document.querySelector("dialog [name=password]").getAttribute("aria-invalid") === "true"`)
	w.fill(t, "password", password)
	w.press(t, "Save")
	w.sees(t, "The e-mail address is changed.")
	w.sees(t, "ann@example.org")

	w.press(t, "Change the password")
	w.inspect(t, "account-password")
	w.fill(t, "current_password", password)
	w.fill(t, "new_password", "battery staple")
	w.press(t, "Save")
	w.sees(t, "The password is changed. You are signed out everywhere else.")
	w.await(t, `!document.body.innerText.includes("Another browser")`)

	w.press(t, "Delete the account")
	w.sees(t, "This cannot be undone.")
	w.inspect(t, "account-delete")
	w.fill(t, "password", password)
	w.press(t, "Delete the account for good")
	w.await(t, `document.querySelector("dialog [name=password]").getAttribute("aria-invalid") === "true"`)
	w.fill(t, "password", "battery staple")
	w.press(t, "Delete the account for good")
	w.isAt(t, "/signin", "Sign in")
	w.sees(t, "The account is deleted.")
	w.expect("/console/session")
	w.submit(t, "ann@example.org", "battery staple")
	w.await(t, `document.querySelector("form [role=alert]").innerText !== ""`)
}

// Signing out everywhere else ends the session of another browser, which shows the page where
// it was once its user has signed in again.
func TestSignOutElsewhere(t *testing.T) {
	t.Parallel()
	s := startSite(t, "CORE_DEMO", "1")
	first := plain.open(t, s.EdgeURL, "en")
	first.visit(t, "/signin?next=%2Faccount")
	first.enter(t, "demo@example.com", "demo-password", "/account", "Account")
	second := plain.open(t, s.EdgeURL, "en")
	second.visit(t, "/reports?state=open")
	second.isAt(t, "/signin?next=%2Freports%3Fstate%3Dopen", "Sign in")
	second.enter(t, "demo@example.com", "demo-password", "/reports?state=open", "My reports")

	first.visit(t, "/account")
	first.sees(t, "Another browser")
	second.answered(t)
	first.press(t, "Sign out everywhere else")
	first.sees(t, "You are signed out everywhere else.")
	first.await(t, `!document.body.innerText.includes("Another browser")`)
	second.expect("/api/reports", "/console/session/token")
	eval[bool](t, second, `((s) => { s.value = "rejected"; s.dispatchEvent(new Event("change", { bubbles: true })); return true; })(document.querySelector(".filter select"))`)
	second.isAt(t, "/signin?next=%2Freports%3Fstate%3Drejected", "Sign in")
	second.enter(t, "demo@example.com", "demo-password", "/reports?state=rejected", "My reports")

	// A session that is ended one by one.
	first.visit(t, "/account")
	first.sees(t, "Another browser")
	second.answered(t)
	eval[bool](t, first, `([...document.querySelectorAll("button")].find((b) => b.getAttribute("aria-label")?.startsWith("Sign out the browser")).click(), true)`)
	first.sees(t, "The browser is signed out.")
	second.expect("/api/user/sessions")
	second.press(t, "Account")
	second.isAt(t, "/signin?next=%2Faccount", "Sign in")
}

// After another user has signed in in this browser, a tab changes nothing with the session of that one, and
// shows nothing of the former user.
func TestOtherUser(t *testing.T) {
	t.Parallel()
	s := startSite(t)
	ann, bob := register(t, s, "ann@example.com", "Ann"), register(t, s, "bob@example.com", "Bob")
	w := plain.open(t, s.EdgeURL, "en")
	w.signIn(t, ann, "/account", "Account")
	w.answered(t)
	eval[bool](t, w, `fetch("/console/session", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ email: "bob@example.com", password: `+quote(password)+` }) }).then((r) => r.ok)`)
	ann.call(t, http.MethodDelete, "/api/user/sessions", nil, nil)
	w.expect("/api/user")
	w.press(t, "Change the nickname")
	w.fill(t, "nickname", "Anna")
	w.press(t, "Save")
	w.sees(t, "bob@example.com")
	w.isAt(t, "/account?change=nickname", "Account")
	w.answered(t)
	for want, user := range map[string]*account{"Ann": ann, "Bob": bob} {
		var current struct {
			Nickname string `json:"nickname"`
		}
		user.call(t, http.MethodGet, "/api/user", nil, &current)
		if current.Nickname != want {
			t.Errorf("%s is called %q now", want, current.Nickname)
		}
	}
}

// A user sees what changed the score, page by page.
func TestScore(t *testing.T) {
	t.Parallel()
	s := startSite(t, "CORE_SCORE_REGISTRATION", "100", "CORE_SCORE_PLAYER", "2", "CORE_SCORE_SIGN_REWARD", "1000")
	ann := register(t, s, "ann@example.com", "Ann")
	for i := range 21 {
		ann.call(t, "POST", "/api/players", map[string]string{"name": fmt.Sprintf("Ann_%d", i)}, nil)
	}
	ann.call(t, "POST", "/api/user/sign", nil, nil)
	w := plain.open(t, s.EdgeURL, "en")
	w.visit(t, "/signin?next=%2Fscore")
	w.enter(t, "ann@example.com", password, "/score", "Score")
	w.sees(t, "You have 1,058 points.")
	w.sees(t, "Signed in for the day")
	w.sees(t, "+1,000")
	w.sees(t, "Page 1 of 2")
	w.inspect(t, "score")
	w.press(t, "Next")
	w.isAt(t, "/score?page=2", "Score")
	w.sees(t, "Welcome to the site")
	w.await(t, `document.activeElement.className.includes("results")`)
	eval[bool](t, w, "(history.back(), true)")
	w.isAt(t, "/score", "Score")
	w.sees(t, "Signed in for the day")
}

// A user sees what came of the reports, by their state.
func TestReports(t *testing.T) {
	t.Parallel()
	s := startSite(t, "CORE_DEMO", "1")
	ann := register(t, s, "ann@example.com", "Ann")
	for tid, reason := range []string{"I have drawn this.\nIt is mine.", "<b>Not a skin</b>", "The cape of another site."} {
		ann.call(t, "POST", "/api/reports", map[string]any{"tid": tid + 1, "reason": reason}, nil)
	}
	zoe := register(t, s, "zoe@example.com", "Zoe")
	s.Core.Run(t, "user", "permission", "-set", "1", "zoe@example.com")
	zoe.call(t, "PUT", "/api/admin/reports/1", map[string]string{"action": "reject"}, nil)
	zoe.call(t, "PUT", "/api/admin/reports/2", map[string]string{"action": "delete"}, nil)

	w := plain.open(t, s.EdgeURL, "en")
	w.visit(t, "/signin?next=%2Freports")
	w.enter(t, "ann@example.com", password, "/reports", "My reports")
	w.await(t, `document.querySelectorAll(".line").length === 3`)
	w.sees(t, "<b>Not a skin</b>")
	w.sees(t, "Texture deleted")
	w.inspect(t, "reports")
	choose := func(state string) {
		t.Helper()
		eval[bool](t, w, `((s) => { s.value = `+quote(state)+`; s.dispatchEvent(new Event("change", { bubbles: true })); return true; })(document.querySelector(".filter select"))`)
	}
	choose("rejected")
	w.isAt(t, "/reports?state=rejected", "My reports")
	w.await(t, `document.querySelectorAll(".line").length === 1 && document.querySelector(".line").innerText.includes("It is mine.")`)
	choose("banned")
	w.sees(t, "You have no reports in this state.")
	eval[bool](t, w, "(history.back(), true)")
	w.isAt(t, "/reports?state=rejected", "My reports")
	w.await(t, `document.querySelector(".filter select").value === "rejected" && document.querySelectorAll(".line").length === 1`)
}

// Visitors learn how to use the site in games: by mods, and by launchers where it serves them.
func TestConnect(t *testing.T) {
	t.Parallel()
	modsOnly := startSite(t)
	w := plain.open(t, modsOnly.EdgeURL, "en")
	w.visit(t, "/signin")
	w.press(t, "Connect a game")
	w.isAt(t, "/connect", "Connect a game")
	w.sees(t, "This site does not sign players in to games.")
	w.sees(t, modsOnly.EdgeURL+"/csl/")

	private, err := rsa.GenerateKey(rand.Reader, 2048) // 4096 bits take seconds
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(t.TempDir(), "yggdrasil.pem")
	if err := os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startSite(t, "CORE_PUBLIC_URL", publicURL, "CORE_YGGDRASIL_KEY_FILE", key)
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
	if want := "authlib-injector:yggdrasil-server:" + url.QueryEscape(address); dragged != want {
		t.Errorf("a drag takes %q; want %q", dragged, want)
	}
	// The clipboard needs a permission that a headless browser lacks: then the text is selected.
	clipboard.Lock()
	defer clipboard.Unlock()
	w.press(t, "Copy the address for launchers")
	w.await(t, `Boolean(document.querySelector(".notice"))`)
	if got := eval[string](t, w, `document.querySelector(".notice").innerText.includes("Copied") ? "" : getSelection().toString()`); got != "" && got != address {
		t.Errorf("%q is selected; want %q", got, address)
	}
}

// Theme and language are kept after a reload, and both change at once.
func TestChoices(t *testing.T) {
	t.Parallel()
	s := startSite(t)
	w := plain.open(t, s.EdgeURL, "en")
	w.visit(t, "/connect")
	w.isAt(t, "/connect", "Connect a game")
	choose := func(index int, value string) {
		t.Helper()
		eval[bool](t, w, fmt.Sprintf(`((s) => { s.value = %s; s.dispatchEvent(new Event("change", { bubbles: true })); return true; })(document.querySelectorAll(".choice select")[%d])`, quote(value), index))
	}
	background := `getComputedStyle(document.documentElement).backgroundColor`
	choose(0, "light")
	w.await(t, `document.documentElement.dataset.theme === "light"`)
	light := eval[string](t, w, background)
	choose(0, "dark")
	w.await(t, background+" !== "+quote(light))
	choose(1, "zh")
	w.isAt(t, "/connect", "在游戏中使用")
	w.inspect(t, "zh-connect")
	w.visit(t, "/signin")
	w.isAt(t, "/signin", "登录")
	w.await(t, `document.documentElement.dataset.theme === "dark" && document.documentElement.lang === "zh-Hans"`)
	if got := eval[string](t, w, background); got == light {
		t.Error("the dark theme is not kept")
	}
}

// The keyboard alone changes the nickname, and uploads a file.
func TestKeyboardOfAccount(t *testing.T) {
	t.Parallel()
	s := startSite(t, "CORE_DEMO", "1")
	w := plain.open(t, s.EdgeURL, "en")
	w.reduceMotion(t, "reduce") // a figure that turns takes much of a processor
	w.visit(t, "/signin?next=%2Faccount")
	w.isAt(t, "/signin?next=%2Faccount", "Sign in")
	w.tabTo(t, "email")
	w.do(t, chromedp.KeyEvent("demo@example.com"))
	w.tabTo(t, "password")
	w.do(t, chromedp.KeyEvent("demo-password"))
	w.pressEnter(t)
	w.isAt(t, "/account", "Account")
	w.await(t, `document.activeElement.tagName === "H1"`)
	w.tabTo(t, "Change the nickname")
	w.pressEnter(t)
	w.await(t, `Boolean(document.querySelector("dialog[open]")?.contains(document.activeElement))`)
	w.tabTo(t, "nickname")
	w.do(t, chromedp.KeyEvent("s")) // Tab selects what is in the field
	w.pressEnter(t)
	w.isAt(t, "/account", "Account")
	w.await(t, `document.querySelector(".setting bdi").innerText === "s" && document.activeElement.getAttribute("aria-label") === "Change the nickname"`)

	eval[bool](t, w, `(document.activeElement.blur(), true)`)
	w.tabTo(t, "Upload")
	w.pressEnter(t)
	w.isAt(t, "/upload", "Upload")
	w.await(t, `document.activeElement.tagName === "H1"`)
	w.tabTo(t, "files")
	// The dialog that chooses a file is the system's.
	w.do(t, chromedp.SetUploadFiles(`main input[type="file"]`, []string{paint(t, "Keys.png", 1)}))
	w.await(t, `document.querySelector('button[aria-label="Upload Keys"]')?.getAttribute("aria-disabled") === null`)
	w.tabTo(t, "Upload Keys")
	w.pressEnter(t)
	w.sees(t, "It is uploaded, and in your closet.")
	w.await(t, `document.activeElement.innerText === "Keys"`)
	w.tabTo(t, "Demo wears Keys")
	w.pressEnter(t)
	w.sees(t, "Demo wears Keys now.")
}
