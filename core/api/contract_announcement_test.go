package api_test

import (
	"testing"

	"github.com/veneer-skins/veneer/core"
)

// forAnnouncements tries what becomes of what administrators announce.
func forAnnouncements(t *testing.T, s *site, said hearing) {
	t.Helper()
	c := s.serve(t)
	normal, admin := c.signUp(t), c.signUpAs(t, core.Administrator)
	announce := func(by client, to string) answer {
		t.Helper()
		return by.post(t, "/api/admin/notifications", `{"to":"`+to+`","title":"T","content":"C"}`)
	}
	said.hear(t, announce(normal, "all"), announce(admin, "all"), announce(admin, "999999"), announce(admin, " "))
}
