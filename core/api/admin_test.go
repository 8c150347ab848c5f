package api_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/veneer-skins/veneer/core"
)

// permit gives the client's user a permission.
func (c client) permit(t *testing.T, permission core.Permission) {
	t.Helper()
	c.site.exec(t, "UPDATE users SET permission = $2 WHERE uid = $1", c.uid, permission)
}

// signUpAs returns a client that is signed in as a new user with a permission.
func (c client) signUpAs(t *testing.T, permission core.Permission) client {
	t.Helper()
	c = c.signUp(t)
	c.permit(t, permission)
	return c
}

// user returns the administrators' path of the client's user.
func (c client) user() string { return fmt.Sprintf("/api/admin/users/%d", c.uid) }

// acts returns the entries of the audit log as "actor action subject details", newest first.
func (s *testSite) acts(t *testing.T) []string {
	t.Helper()
	rows, err := s.sql.Query(t.Context(), "SELECT actor, action, subject, details FROM audit_log ORDER BY id DESC")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var acts []string
	for rows.Next() {
		var actor int64
		var action, subject string
		var details json.RawMessage
		if err := rows.Scan(&actor, &action, &subject, &details); err != nil {
			t.Fatal(err)
		}
		acts = append(acts, fmt.Sprintf("%d %s %s %s", actor, action, subject, details))
	}
	return acts
}

// logs checks the entries, newest first, that were added to the audit log after the first before
// ones; all are acts of the client's user.
func (c client) logs(t *testing.T, before int, want ...string) {
	t.Helper()
	acts := c.site.acts(t)
	for i, act := range want {
		want[i] = fmt.Sprintf("%d %s", c.uid, act)
	}
	if diff := cmp.Diff(want, acts[:len(acts)-before], cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the audit log gained (-want +got):\n%s", diff)
	}
}

// Other users get 403 before the request is read.
func TestAdminRoutesNeedPermission(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	for _, e := range mustLoadContract(t).endpoints() {
		if !strings.HasPrefix(e.path, "/api/admin/") {
			continue
		}
		c.permit(t, core.Normal)
		c.send(t, e.method, e.path, encodeJSON("{")).isError(t, 403, 6)
		c.permit(t, core.Banned)
		c.send(t, e.method, e.path, encodeJSON("{")).isError(t, 403, -1)
	}
	if acts := c.site.acts(t); len(acts) > 0 {
		t.Errorf("the audit log holds %q", acts)
	}
}

func TestSetPermission(t *testing.T) {
	t.Parallel()

	c := start(t)
	admin, root := c.signUpAs(t, core.Administrator), c.signUpAs(t, core.SuperAdministrator)
	user, peer, other := c.signUp(t), c.signUpAs(t, core.Administrator), c.signUpAs(t, core.SuperAdministrator)
	set := func(by, of client, object string) response {
		t.Helper()
		return by.put(t, of.user()+"/permission", object)
	}
	granted := func(by, of client, from, to string) {
		t.Helper()
		before := len(c.site.acts(t))
		a := set(by, of, `{"permission":`+to+`}`)
		if got := a.field(t, "data", "permission"); a.status != 200 || got != to {
			t.Errorf("%s is answered with %d %s", a.request, a.status, a.body)
		}
		by.logs(t, before, fmt.Sprintf(`user.permission user:%d {"to": %s, "from": %s, "email": "user%d@example.com", "nickname": "Somebody"}`, of.uid, to, from, of.uid))
	}
	refused := func(a response, status, code int, fields ...string) {
		t.Helper()
		a.isError(t, status, code, fields...)
	}

	granted(admin, user, "0", "-1")
	granted(admin, user, "-1", "-1")
	granted(admin, user, "-1", "0")
	granted(root, user, "0", "1")
	granted(root, user, "1", "-1")
	granted(root, user, "-1", "1")
	granted(root, user, "1", "0")

	before := len(c.site.acts(t))
	refused(set(admin, user, `{"permission":1}`), 403, 6)
	refused(set(admin, admin, `{"permission":0}`), 403, 6)
	refused(set(admin, peer, `{"permission":-1}`), 403, 6)
	refused(set(admin, root, `{"permission":-1}`), 403, 6)
	refused(set(root, root, `{"permission":1}`), 403, 6)
	refused(set(root, other, `{"permission":-1}`), 403, 6)
	for _, object := range []string{`{}`, `{"permission":null}`, `{"permission":2}`, `{"permission":-2}`, `{"permission":"x"}`, `{"permission":65536}`, `{"permission":4294967295}`} {
		refused(set(root, user, object), 422, 4, "permission")
	}
	for _, uid := range []string{"999999", "0", "-1", "x", "01"} {
		refused(root.put(t, "/api/admin/users/"+uid+"/permission", `{"permission":0}`), 404, 3)
	}
	root.logs(t, before)
	if got := root.send(t, "PUT", user.user()+"/permission", encodeForm("permission=-1")).field(t, "data", "permission"); got != "-1" {
		t.Errorf("a form sets the permission to %s", got)
	}
}

// Every route rejects a banned user, and a log-in works again once the ban is lifted.
func TestBansEndSessions(t *testing.T) {
	t.Parallel()

	c := start(t)
	admin, user, otherServer := c.signUpAs(t, core.Administrator), c.signUp(t), c.site.serve(t)
	otherServer.uid = user.uid
	otherServer = otherServer.signIn(t)
	admin.put(t, user.user()+"/permission", `{"permission":-1}`)
	for _, c := range []client{user, otherServer} {
		c.get(t, "/api/user").isError(t, 403, -1)
		c.get(t, "/api/players").isError(t, 403, -1)
		c.send(t, "POST", "/api/auth/refresh", body{}).isError(t, 403, -1)
	}
	admin.put(t, user.user()+"/permission", `{"permission":0}`)
	for _, c := range []client{user, otherServer} {
		c.get(t, "/api/user").isError(t, 401, 5)
		c.send(t, "POST", "/api/auth/refresh", body{}).isError(t, 401, 5)
	}
	user = user.signIn(t)
	user.works(t, true)
	admin.put(t, user.user()+"/permission", `{"permission":0}`)
	user.works(t, true) // there was no ban to lift
}

func TestAuditLog(t *testing.T) {
	t.Parallel()

	c := start(t, "TRUSTED_PROXIES=0.0.0.0/32")
	admin, user := c.signUpAs(t, core.Administrator), c.signUp(t)
	list := func(query string) response {
		t.Helper()
		return admin.get(t, "/api/admin/audit?"+query)
	}

	list("").is(t, 200, `{"per_page":50,"next":0,"data":[]}`)
	ban := func(permission string, headers ...string) {
		t.Helper()
		if a := admin.send(t, "PUT", user.user()+"/permission", encodeJSON(`{"permission":`+permission+`}`), headers...); a.status != 200 {
			t.Fatalf("%s: %d %s", a.request, a.status, a.body)
		}
	}
	ban("-1", "X-Forwarded-For", "198.51.100.7, 2001:db8::42")
	ban("0")
	entry := func(address, from, to string) string {
		return fmt.Sprintf(`{"id":"<integer>","time":"<time>","actor":%d,"actor_email":"user1@example.com","address":%q,"action":"user.permission","subject":"user:%d",
			"details":{"email":"user2@example.com","nickname":"Somebody","from":%s,"to":%s}}`, admin.uid, address, user.uid, from, to)
	}
	banned, freed := entry("2001:db8::42", "0", "-1"), entry("0.0.0.0", "-1", "0")
	list("").is(t, 200, `{"per_page":50,"next":0,"data":[`+freed+`,`+banned+`]}`)

	// The pages continue where the one before ended.
	first := list("perPage=1")
	next := first.field(t, "next")
	first.is(t, 200, `{"per_page":1,"next":"<integer>","data":[`+freed+`]}`)
	list("perPage=1&before="+next).is(t, 200, `{"per_page":1,"next":0,"data":[`+banned+`]}`)
	list("before=1").is(t, 200, `{"per_page":50,"next":0,"data":[]}`)

	both := fmt.Sprintf("actor=%d&action=user.permission&subject=%s", admin.uid, url.QueryEscape(fmt.Sprintf(" user:%d ", user.uid)))
	list(both).is(t, 200, `{"per_page":50,"next":0,"data":[`+freed+`,`+banned+`]}`)
	for _, nothing := range []string{fmt.Sprintf("actor=%d", user.uid), "action=user", "subject=user", "subject=user:999", "action=%25"} {
		list(nothing).is(t, 200, `{"per_page":50,"next":0,"data":[]}`)
	}
	for query, field := range map[string]string{
		"actor=-1": "actor", "actor=x": "actor", "before=0": "before", "before=-1": "before", "perPage=0": "perPage", "perPage=101": "perPage",
		"action=" + strings.Repeat("x", 101): "action", "subject=" + strings.Repeat("x", 101): "subject", "subject=%00": "subject", "action=%ff": "action",
	} {
		list(query).isError(t, 422, 4, field)
	}
}
