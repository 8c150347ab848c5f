package api_test

import (
	"testing"

	"github.com/veneer-skins/veneer/core"
)

// recordAnnouncements records the responses to notifications that administrators send.
func recordAnnouncements(t *testing.T, s testSite, seen seenResponses) {
	t.Helper()
	c := s.serve(t)
	normal, admin := c.signUp(t), c.signUpAs(t, core.Administrator)
	object := func(to string) string { return `{"to":"` + to + `","title":"T","content":"C"}` }
	announce := func(by client, to string) response { return by.Post(t, "/api/admin/notifications", object(to)) }
	seen.record(t, announce(normal, "all"), announce(admin, "all"), announce(admin, "999999"), announce(admin, " "))
}
