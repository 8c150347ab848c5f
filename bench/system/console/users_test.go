package console

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/veneer-skins/veneer/bench/system/site"
)

const password = "correct horse" // of all accounts

// account is a user that calls the API besides the browser.
type account struct {
	site.Client
	email string
	UID   int64
}

// register makes an account by the API.
func register(t *testing.T, s *site.System, email, nickname string) *account {
	t.Helper()
	a := &account{Client: site.Client{Base: s.EdgeURL}, email: email}
	a.Token = a.Call(t, http.MethodPost, "/api/auth/register", map[string]any{"email": email, "nickname": nickname, "password": password}).Data.Token
	var user struct{ UID int64 }
	a.Get(t, "/api/user", &user)
	a.UID = user.UID
	return a
}

func (a *account) report(t *testing.T, texture site.Texture, reason string) {
	t.Helper()
	a.Call(t, http.MethodPost, "/api/reports", map[string]any{"tid": texture.TID, "reason": reason})
}

// signIn signs a user in on the way to a page.
func (tab *tab) signIn(t *testing.T, a *account, path, heading string, texts ...string) {
	t.Helper()
	tab.visit(t, "/signin?next="+url.QueryEscape(path))
	tab.enter(t, a.email, password, path, heading, texts...)
}

// signInAsDemo signs the demo's user in on the way to a page.
func (tab *tab) signInAsDemo(t *testing.T, path, heading string) {
	t.Helper()
	tab.visit(t, "/signin?next="+url.QueryEscape(path))
	tab.enter(t, "demo@example.com", "demo-password", path, heading)
}

// choose chooses the option with a text, of the field with a label.
func (tab *tab) choose(t *testing.T, label, option string) {
	t.Helper()
	field := fmt.Sprintf(`[...document.querySelectorAll("select")].find((e) => e.labels[0]?.innerText.startsWith(%s))`, quote(label))
	tab.await(t, "Boolean("+field+")")
	eval[bool](t, tab, fmt.Sprintf(`((select) => {
		select.value = [...select.options].find((o) => o.text === %s || o.value === %s).value;
		select.dispatchEvent(new Event("change", { bubbles: true }));
		return true;
	})(%s)`, quote(option), quote(option), field))
}

// settled waits until the page has what it asked for.
func (tab *tab) settled(t *testing.T) {
	t.Helper()
	tab.await(t, `Boolean(document.querySelector("h1")) && !document.querySelector("[aria-busy]") && document.querySelectorAll("main > * > *").length > 1 &&
		[...document.images].every((i) => i.naturalWidth > 0 || i.getBoundingClientRect().top > innerHeight)`)
}
