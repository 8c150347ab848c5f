package api_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// permit gives the client's user a permission.
func (c client) permit(t *testing.T, permission core.Permission) {
	t.Helper()
	c.site.Exec(t, "UPDATE users SET permission = $2 WHERE uid = $1", c.UID, permission)
}

// signUpAs returns a client that is signed in as a new user with a permission.
func (c client) signUpAs(t *testing.T, permission core.Permission) client {
	t.Helper()
	c = c.signUp(t)
	c.permit(t, permission)
	return c
}

// user returns the administrators' path of the client's user.
func (c client) user() string { return fmt.Sprintf("/api/admin/users/%d", c.UID) }

// acts returns the entries of the audit log as "actor action subject details", newest first.
func (s testSite) acts(t *testing.T) []string {
	t.Helper()
	rows, _ := s.SQL.Query(t.Context(), // CollectRows reports the error
		"SELECT actor || ' ' || action || ' ' || subject || ' ' || details FROM audit_log ORDER BY id DESC")
	return testenv.Must(pgx.CollectRows(rows, pgx.RowTo[string]))(t)
}

// logs checks the entries, newest first, that were added to the audit log after the first before
// ones; all are acts of the client's user.
func (c client) logs(t *testing.T, before int, want ...string) {
	t.Helper()
	acts := c.site.acts(t)
	for i, act := range want {
		want[i] = fmt.Sprintf("%d %s", c.UID, act)
	}
	diff := cmp.Diff(want, acts[:len(acts)-before], cmpopts.EquateEmpty())
	testenv.Check(t, diff == "", "the audit log gained (-want +got):\n%s", diff)
}

// Other users get 403 before the request is read.
func TestAdminRoutesNeedPermission(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	for _, e := range mustLoadContract(t).endpoints() {
		if !strings.HasPrefix(e.path, "/api/admin/") {
			continue
		}
		c.Send(t, e.method, e.path, encodeJSON("{")).IsError(t, 403, 6)
	}
	testenv.Equal(t, strings.Join(c.site.acts(t), "\n"), "", "the audit log")
}

func TestSetPermission(t *testing.T) {
	t.Parallel()
	c := start(t)
	admin, root := c.signUpAs(t, core.Administrator), c.signUpAs(t, core.SuperAdministrator)
	user, peer, other := c.signUp(t), c.signUpAs(t, core.Administrator), c.signUpAs(t, core.SuperAdministrator)
	set := func(by, of client, object string) response { return by.Put(t, of.user()+"/permission", object) }
	granted := func(by, of client, from, to string) {
		t.Helper()
		before := len(c.site.acts(t))
		set(by, of, `{"permission":`+to+`}`).Has(t, "data.permission", to)
		by.logs(t, before, fmt.Sprintf(`user.permission user:%d {"to": %s, "from": %s, "email": "user%d@example.com", "nickname": "Somebody"}`, of.UID, to, from, of.UID))
	}

	granted(admin, user, "0", "-1")
	granted(admin, user, "-1", "-1")
	granted(admin, user, "-1", "0")
	granted(root, user, "0", "1")
	granted(root, user, "1", "-1")
	granted(root, user, "-1", "1")
	granted(root, user, "1", "0")

	before := len(c.site.acts(t))
	set(admin, user, `{"permission":1}`).IsError(t, 403, 6)
	set(admin, admin, `{"permission":0}`).IsError(t, 403, 6)
	set(admin, peer, `{"permission":-1}`).IsError(t, 403, 6)
	set(admin, root, `{"permission":-1}`).IsError(t, 403, 6)
	set(root, root, `{"permission":1}`).IsError(t, 403, 6)
	set(root, other, `{"permission":-1}`).IsError(t, 403, 6)
	for _, object := range []string{`{}`, `{"permission":null}`, `{"permission":2}`, `{"permission":-2}`, `{"permission":"x"}`, `{"permission":65536}`, `{"permission":4294967295}`} {
		set(root, user, object).IsError(t, 422, 4, "permission")
	}
	for _, uid := range []string{"999999", "0", "-1", "x", "01"} {
		root.Put(t, "/api/admin/users/"+uid+"/permission", `{"permission":0}`).IsError(t, 404, 3)
	}
	root.logs(t, before)
	root.Send(t, "PUT", user.user()+"/permission", encodeForm("permission=-1")).HasField(t, "-1", "data", "permission")
}

// Every route rejects a banned user, and a log-in works again once the ban is lifted.
func TestBansEndSessions(t *testing.T) {
	t.Parallel()
	c := start(t)
	admin, user, otherServer := c.signUpAs(t, core.Administrator), c.signUp(t), c.site.serve(t)
	otherServer.UID = user.UID
	otherServer = otherServer.signIn(t)
	admin.Put(t, user.user()+"/permission", `{"permission":-1}`)
	for _, c := range []client{user, otherServer} {
		c.Get(t, "/api/user").IsError(t, 403, -1)
		c.Get(t, "/api/players").IsError(t, 403, -1)
		c.Send(t, "POST", "/api/auth/refresh", body{}).IsError(t, 403, -1)
	}
	admin.Put(t, user.user()+"/permission", `{"permission":0}`)
	for _, c := range []client{user, otherServer} {
		c.Get(t, "/api/user").IsError(t, 401, 5)
		c.Send(t, "POST", "/api/auth/refresh", body{}).IsError(t, 401, 5)
	}
	user = user.signIn(t)
	user.works(t, true)
	admin.Put(t, user.user()+"/permission", `{"permission":0}`)
	user.works(t, true) // there was no ban to lift
}

func TestAuditLog(t *testing.T) {
	t.Parallel()
	c := start(t, "TRUSTED_PROXIES=0.0.0.0/32")
	admin, user := c.signUpAs(t, core.Administrator), c.signUp(t)
	list := func(query string) response { return admin.Get(t, "/api/admin/audit?"+query) }

	list("").Is(t, 200, `{"per_page":50,"next":0,"data":[]}`)
	ban := func(permission string, headers ...string) {
		t.Helper()
		admin.Send(t, "PUT", user.user()+"/permission", encodeJSON(`{"permission":`+permission+`}`), headers...).HasStatus(t, 200)
	}
	ban("-1", "X-Forwarded-For", "198.51.100.7, 2001:db8::42")
	ban("0")
	entry := func(address, from, to string) string {
		return fmt.Sprintf(`{"id":"<integer>","time":"<time>","actor":%d,"actor_email":"user1@example.com","address":%q,"action":"user.permission","subject":"user:%d",
			"details":{"email":"user2@example.com","nickname":"Somebody","from":%s,"to":%s}}`, admin.UID, address, user.UID, from, to)
	}
	banned, freed := entry("2001:db8::42", "0", "-1"), entry("0.0.0.0", "-1", "0")
	list("").Is(t, 200, `{"per_page":50,"next":0,"data":[`+freed+`,`+banned+`]}`)

	// The pages continue where the one before ended.
	first := list("perPage=1")
	next := first.Field(t, "next")
	first.Is(t, 200, `{"per_page":1,"next":"<integer>","data":[`+freed+`]}`)
	list("perPage=1&before="+next).Is(t, 200, `{"per_page":1,"next":0,"data":[`+banned+`]}`)
	list("before=1").Is(t, 200, `{"per_page":50,"next":0,"data":[]}`)

	both := fmt.Sprintf("actor=%d&action=user.permission&subject=%s", admin.UID, url.QueryEscape(fmt.Sprintf(" user:%d ", user.UID)))
	list(both).Is(t, 200, `{"per_page":50,"next":0,"data":[`+freed+`,`+banned+`]}`)
	list("actor=user1%40example.com&subject=user2%40example.com").Is(t, 200, `{"per_page":50,"next":0,"data":[`+freed+`,`+banned+`]}`)
	for _, nothing := range []string{fmt.Sprintf("actor=%d", user.UID), "action=user", "subject=user:999", "action=%25"} {
		list(nothing).Is(t, 200, `{"per_page":50,"next":0,"data":[]}`)
	}
	for query, field := range map[string]string{
		"actor=-1": "actor", "actor=x": "actor", "before=0": "before", "before=-1": "before", "perPage=0": "perPage", "perPage=101": "perPage",
		"action=" + strings.Repeat("x", 101): "action", "subject=user:" + strings.Repeat("x", 101): "subject", "subject=user": "subject", "subject=%00": "subject", "action=%ff": "action",
	} {
		list(query).IsError(t, 422, 4, field)
	}
}

// A ban has a reason and an end, which the banned user is told, and lifts itself: the sessions and the former
// permission are there again.
func TestBansEnd(t *testing.T) {
	t.Parallel()
	c := start(t)
	admin, root, user := c.signUpAs(t, core.Administrator), c.signUpAs(t, core.SuperAdministrator), c.signUpAs(t, core.Administrator)
	user.withPassword(t, "correct horse")
	until := time.Now().UTC().Add(time.Hour).Format(time.DateTime)
	ban := fmt.Sprintf(`{"permission":-1,"reason":" Insults. ","until":%q}`, until)
	data := fmt.Sprintf(`{"reason":"Insults.","until":%q}`, until)
	root.Put(t, user.user()+"/permission", ban).Has(t, "data.ban_reason", `Insults.`, "data.banned_until", until)
	root.logs(t, 0, fmt.Sprintf(`user.permission user:%d {"to": -1, "from": 1, "email": "user3@example.com", "until": %q, "reason": "Insults.", "nickname": "Somebody"}`, user.UID, until))
	for _, a := range []response{
		user.Get(t, "/api/user"), user.Get(t, "/api/players"), user.Send(t, "POST", "/api/auth/refresh", body{}),
		user.Post(t, "/api/auth/login", `{"email":"user3@example.com","password":"correct horse"}`),
	} {
		a.Is(t, 403, `{"code":-1,"message":"This account is banned until `+until+` UTC. Insults.","data":`+data+`}`)
	}
	admin.Put(t, user.user()+"/permission", ban).Has(t, "data.permission", "-1") // the former permission is 0 from here on
	ends := func() {
		t.Helper()
		c.site.Exec(t, "UPDATE users SET banned_until = now() WHERE uid = $1", user.UID)
		user.works(t, true)
	}
	ends()
	user.Get(t, "/api/user").HasField(t, "0", "permission")

	root.Put(t, user.user()+"/permission", `{"permission":1}`).HasStatus(t, 200)
	user.works(t, true) // there was no ban to lift
	root.Put(t, user.user()+"/permission", ban).HasStatus(t, 200)
	ends()
	user.Get(t, "/api/user").HasField(t, "1", "permission")

	// A core of the release before knows permissions alone.
	c.site.Exec(t, "UPDATE users SET permission = 0 WHERE uid = $1", user.UID)
	c.site.Exec(t, "UPDATE users SET permission = -1 WHERE uid = $1", user.UID)
	user.Get(t, "/api/user").Is(t, 403, `{"code":-1,"message":"This account is banned."}`)
	root.Put(t, user.user()+"/permission", `{"permission":0}`).HasStatus(t, 200)
	user.Get(t, "/api/user").IsError(t, 401, 5)

	for object, field := range map[string]string{
		`{"permission":0,"reason":"x"}`: "permission", `{"permission":-1,"until":"2001-02-03 04:05:06"}`: "until", `{"permission":-1,"until":"tomorrow"}`: "until",
		`{"permission":-1,"until":5}`: "until", `{"permission":-1,"reason":"` + strings.Repeat("x", 1001) + `"}`: "reason",
	} {
		root.Put(t, user.user()+"/permission", object).IsError(t, 422, 4, field)
	}
	admin.Put(t, "/api/admin/reports/1", `{"action":"ban","until":"2001-02-03 04:05:06"}`).IsError(t, 422, 4, "until")
}
