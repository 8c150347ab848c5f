//go:build !race

package console

import (
	"net/http"
	"testing"

	"github.com/veneer-skins/veneer/core/mail/mailtest"
)

// focusIs waits until the focus is on the element of a selector.
func (w *tab) focusIs(t *testing.T, selector string) {
	t.Helper()
	w.await(t, "document.activeElement.matches("+quote(selector)+")")
}

// The focus stays near what was pressed when that leaves the page.
func TestFocus(t *testing.T) {
	t.Parallel()
	s := startSite(t, append(mailSettings(mailtest.Start(t, mailtest.Options{})), "CORE_SCORE_SIGN_REWARD", "1")...)
	ann := register(t, s, "ann@example.com", "Ann")
	ann.call(t, http.MethodPost, "/api/players", map[string]any{"name": "Ann_1"}, nil)
	admin := register(t, s, "admin@example.com", "Admin")
	s.Core.Run(t, "user", "permission", "-set", "1", "admin@example.com")
	admin.call(t, http.MethodPost, "/api/admin/notifications", map[string]any{"to": "all", "title": "Hello", "content": "All is well."}, nil)

	w := plain.open(t, s.EdgeURL, "en")
	w.signIn(t, ann, "/", "Hello, Ann")
	w.press(t, "Sign in for today (+1 point)")
	w.focusIs(t, "#signed")
	w.press(t, "Send an e-mail with a link")
	w.focusIs(t, "#verification")
	w.press(t, "Hello")
	w.focusIs(t, ".list h3")
	w.press(t, "Account")
	w.press(t, "Sign out everywhere else")
	w.focusIs(t, "#sessions")
	w.press(t, "Players")
	w.press(t, "Delete Ann_1")
	w.press(t, "Delete")
	w.focusIs(t, "h1")
}
