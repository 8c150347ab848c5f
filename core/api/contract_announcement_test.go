package api_test

import (
	"testing"

	"github.com/veneer-skins/veneer/core"
)

// recordAnnouncements records the responses to notifications that administrators send.
func recordAnnouncements(t *testing.T, s *testSite, seen seenResponses) {
	t.Helper()
	c := s.serve(t)
	normal, admin := c.signUp(t), c.signUpAs(t, core.Administrator)
	announce := func(by client, to string) response {
		t.Helper()
		return by.post(t, "/api/admin/notifications", `{"to":"`+to+`","title":"T","content":"C"}`)
	}
	seen.record(t, announce(normal, "all"), announce(admin, "all"), announce(admin, "999999"), announce(admin, " "))
}
