package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// report reports a texture.
func (c client) report(t *testing.T, tid string) response {
	t.Helper()
	return c.Post(t, "/api/reports", `{"tid":`+tid+`,"reason":"It is mine."}`)
}

// settleReport settles a report.
func (c client) settleReport(t *testing.T, rid, action string) response {
	t.Helper()
	return c.Put(t, "/api/admin/reports/"+rid, `{"action":"`+action+`"}`)
}

// latestReport returns the id of the latest report.
func (c client) latestReport(t *testing.T) string {
	t.Helper()
	return fmt.Sprint(c.site.Count(t, "SELECT max(rid) FROM reports"))
}

// pageOf returns a page of a list as the API writes it.
func pageOf(perPage, from, to, total, page, last int, items ...string) string {
	return fmt.Sprintf(`{"per_page":%d,"from":%d,"to":%d,"total":%d,"current_page":%d,"last_page":%d,"data":[%s]}`,
		perPage, from, to, total, page, last, strings.Join(items, ","))
}

// Users list their own reports, without the uploaders, and no reports of others.
func TestOwnReports(t *testing.T) {
	t.Parallel()
	c := start(t)
	admin, ann, bob := c.signUpAs(t, core.Administrator), c.signUp(t), c.signUp(t)
	first, second := ann.texture(t, "name=A&type=steve", skinFile(t, 1)), ann.texture(t, "name=B&type=steve", skinFile(t, 2))
	report := func(rid, tid, state, settled string) string {
		return fmt.Sprintf(`{"rid":%s,"tid":%s,"state":%q,"reason":"It is mine.","reported_at":"<time>"%s}`, rid, tid, state, settled)
	}

	bob.Get(t, "/api/reports").Is(t, 200, pageOf(50, 0, 0, 0, 1, 1))
	bob.report(t, first)
	bobsFirst := c.latestReport(t)
	ann.report(t, first)
	bob.report(t, second)
	bobsSecond := c.latestReport(t)
	openFirst, openSecond := report(bobsFirst, first, "open", ""), report(bobsSecond, second, "open", "")
	bob.Get(t, "/api/reports").Is(t, 200, pageOf(50, 1, 2, 2, 1, 1, openSecond, openFirst))
	bob.Get(t, "/api/reports?perPage=1&page=2").Is(t, 200, pageOf(1, 2, 2, 2, 2, 2, openFirst))
	bob.Get(t, "/api/reports?page=2").Is(t, 200, pageOf(50, 0, 0, 2, 2, 1))

	// What came of a report is told, also when the texture and its uploader are gone.
	admin.settleReport(t, bobsFirst, "delete")
	c.site.Exec(t, "DELETE FROM users WHERE uid = $1", ann.UID)
	deleted := report(bobsFirst, first, "deleted", `,"settled_at":"<time>"`)
	bob.Get(t, "/api/reports").Is(t, 200, pageOf(50, 1, 2, 2, 1, 1, openSecond, deleted))
	bob.Get(t, "/api/reports?state=deleted").Is(t, 200, pageOf(50, 1, 1, 1, 1, 1, deleted))
	admin.Get(t, "/api/reports").Is(t, 200, pageOf(50, 0, 0, 0, 1, 1))
	for query, field := range map[string]string{"state=x": "state", "state=": "state", "page=0": "page", "perPage=101": "perPage"} {
		bob.Get(t, "/api/reports?"+query).IsError(t, 422, 4, field)
	}
	c.Get(t, "/api/reports").IsError(t, 401, 5)
}

func TestReports(t *testing.T) {
	t.Parallel()
	c := start(t)
	admin, ann, bob := c.signUpAs(t, core.Administrator), c.signUp(t), c.signUp(t)
	public := ann.texture(t, "name=Public&type=steve", skinFile(t, 1))
	private := ann.texture(t, "name=Private&type=steve&public=false", skinFile(t, 2))
	const thanks = `{"code":0,"message":"<text>"}`

	bob.Post(t, "/api/reports", `{"tid":`+public+`,"reason":"  First line.\r\n\tSecond <b>line</b>. "}`).Is(t, 200, thanks)
	bobs := c.latestReport(t)
	bob.report(t, public).IsError(t, 409, 2, "tid")
	bob.report(t, private).IsError(t, 403, 6)
	bob.report(t, "999999").IsError(t, 404, 3)
	ann.Send(t, "POST", "/api/reports", encodeForm("tid="+private+"&reason=Mine")).Is(t, 200, thanks)
	anns := c.latestReport(t)
	admin.report(t, private).Is(t, 200, thanks)
	admins := c.latestReport(t)
	for object, fields := range map[string][]string{
		`{}`:                       {"reason", "tid"},
		`{"tid":0,"reason":"x"}`:   {"tid"},
		`{"tid":1,"reason":" "}`:   {"reason"},
		`{"tid":1,"reason":1}`:     {"reason"},
		`{"tid":"x","reason":"x"}`: {"tid"},
		`{"tid":"1","reason":""}`:  {"reason"},
		`{"tid":0,"reason":"` + strings.Repeat("ä", 1001) + `"}`: {"reason", "tid"},
		`{"tid":1,"reason":"a\u0000b"}`:                          {"reason"},
		`{"tid":1,"reason":"a\rb"}`:                              {"reason"},
	} {
		bob.Post(t, "/api/reports", object).IsError(t, 422, 4, fields...)
	}
	bob.as("").report(t, public).IsError(t, 401, 5)

	report := func(rid, tid string, reporter client, state, reason string) string {
		settled := ""
		if state != "open" {
			settled = `,"settled_at":"<time>"`
		}
		name := ""
		if state != "deleted" {
			name = fmt.Sprintf(`"texture_name":%q,`, map[string]string{public: "Public", private: "Private"}[tid])
		}
		return fmt.Sprintf(`{"rid":%s,"tid":%s,%s"uploader":%d,"uploader_nickname":"Somebody","reporter":%d,"reporter_nickname":"Somebody","state":%q,"reason":%q,"reported_at":"<time>"%s}`,
			rid, tid, name, ann.UID, reporter.UID, state, reason, settled)
	}
	first := report(bobs, public, bob, "open", "First line.\n\tSecond <b>line</b>.")
	second, third := report(anns, private, ann, "open", "Mine"), report(admins, private, admin, "open", "It is mine.")
	list := func(query string) response { return admin.Get(t, "/api/admin/reports?"+query) }
	list("").Is(t, 200, pageOf(50, 1, 3, 3, 1, 1, third, second, first))
	list("perPage=2&page=2&state=+open+").Is(t, 200, pageOf(2, 3, 3, 3, 2, 2, first))
	list("page=2").Is(t, 200, pageOf(50, 0, 0, 3, 2, 1))
	list("state=banned").Is(t, 200, pageOf(50, 0, 0, 0, 1, 1))
	for query, field := range map[string]string{
		"state=x": "state", "page=0": "page", "page=x": "page", "perPage=0": "perPage", "perPage=101": "perPage",
	} {
		list(query).IsError(t, 422, 4, field)
	}

	admin.settleReport(t, bobs, "reject").Is(t, 200, `{"code":0,"message":"<text>","data":`+report(bobs, public, bob, "rejected", "First line.\n\tSecond <b>line</b>.")+`}`)
	admin.settleReport(t, bobs, "delete").IsError(t, 409, 2)
	admin.Send(t, "PUT", "/api/admin/reports/"+anns, encodeForm("action=+delete+")).Is(t, 200, `{"code":0,"message":"<text>","data":`+report(anns, private, ann, "deleted", "Mine")+`}`)
	admin.settleReport(t, admins, "ban").IsError(t, 409, 2)
	list("state=deleted").Is(t, 200, pageOf(50, 1, 2, 2, 1, 1,
		report(admins, private, admin, "deleted", "It is mine."), report(anns, private, ann, "deleted", "Mine")))
	ann.Get(t, "/api/closet").HasField(t, "1", "total")
	for _, action := range []string{``, `x`, `rejected`} {
		admin.settleReport(t, bobs, action).IsError(t, 422, 4, "action")
	}
	admin.Put(t, "/api/admin/reports/"+bobs, `{}`).IsError(t, 422, 4, "action")
	for _, rid := range []string{"999999", "0", "-1", "x", "01"} {
		admin.settleReport(t, rid, "reject").IsError(t, 404, 3)
	}

	// Each reporter gets one notification of the outcome.
	notified := func(c client, want string) {
		t.Helper()
		id := c.unread(t)[0]
		c.read(t, id).Is(t, 200, `{"title":"Your report","content":"<p>Thank you for reporting texture `+want+`</p>\n","time":"<time>","kind":"<text>","parameters":{"tid":"<integer>","name":"<text>"}}`)
	}
	notified(bob, public+". We looked at it, and it stays.")
	notified(ann, private+". It is deleted.")
	notified(admin, private+". It is deleted.")
	bob.report(t, public)
	admin.settleReport(t, bob.latestReport(t), "ban")
	notified(bob, public+". Its uploader is banned.")
	ann.Get(t, "/api/user").IsError(t, 403, -1)
}

// The rate of a user's reports is limited, successful or not.
func TestReportsAreLimited(t *testing.T) {
	t.Parallel()
	c := start(t, "LIMIT_REPORTS=2").signUp(t)
	tid := c.texture(t, "name=Public&type=steve", skinFile(t, 1))
	hasRateLimit(t, c.report(t, tid), 200, rateLimit{"2", "1", "1800", ""})
	hasRateLimit(t, c.Post(t, "/api/reports", `{}`), 422, rateLimit{"2", "0", "3600", ""})
	hasRateLimit(t, c.report(t, tid), 429, rateLimit{"2", "0", "3600", "1800"})
	hasRateLimit(t, c.signUp(t).report(t, tid), 200, rateLimit{"2", "1", "1800", ""})
	c.site.Advance(30 * time.Minute)
	c.report(t, tid).IsError(t, 409, 2, "tid")
}

// The rate of a network's reports is limited, since one person can have many accounts.
func TestReportsOfNetworkAreLimited(t *testing.T) {
	t.Parallel()
	c := start(t, "LIMIT_REPORTS=2")
	tid := c.signUp(t).texture(t, "name=Public&type=steve", skinFile(t, 1))
	hostile := c.from(t, "203.0.113.7")
	for i := range 10 {
		account := c.from(t, fmt.Sprintf("203.0.113.%d", i)).signUp(t)
		account.report(t, tid).Is(t, 200, `{"code":0,"message":"<text>"}`)
	}
	refused := hostile.signUp(t).report(t, tid)
	refused.IsError(t, 429, 8)
	testenv.Equal(t, refused.Header.Get("Retry-After"), "360", "Retry-After")
	c.from(t, "198.51.100.1").signUp(t).report(t, tid).Is(t, 200, `{"code":0,"message":"<text>"}`)
	c.site.Advance(6 * time.Minute)
	hostile.signUp(t).report(t, tid).Is(t, 200, `{"code":0,"message":"<text>"}`)
}
