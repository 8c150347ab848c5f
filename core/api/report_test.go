package api_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// report reports a texture.
func (c client) report(t *testing.T, tid string) response {
	t.Helper()
	return c.post(t, "/api/reports", `{"tid":`+tid+`,"reason":"It is mine."}`)
}

// settleReport settles a report.
func (c client) settleReport(t *testing.T, rid, action string) response {
	t.Helper()
	return c.put(t, "/api/admin/reports/"+rid, `{"action":"`+action+`"}`)
}

// latestReport returns the id of the latest report.
func (c client) latestReport(t *testing.T) string {
	t.Helper()
	return fmt.Sprint(c.site.count(t, "SELECT max(rid) FROM reports"))
}

// Users list their own reports, without the uploaders, and no reports of others.
func TestOwnReports(t *testing.T) {
	t.Parallel()

	c := start(t)
	admin, ann, bob := c.signUpAs(t, core.Administrator), c.signUp(t), c.signUp(t)
	first, second := ann.texture(t, "name=A&type=steve", skinFile(t, 1)), ann.texture(t, "name=B&type=steve", skinFile(t, 2))
	page := func(perPage, from, to, total, page, last int, reports ...string) string {
		return fmt.Sprintf(`{"per_page":%d,"from":%d,"to":%d,"total":%d,"current_page":%d,"last_page":%d,"data":[%s]}`,
			perPage, from, to, total, page, last, strings.Join(reports, ","))
	}
	report := func(rid, tid, state, settled string) string {
		return fmt.Sprintf(`{"rid":%s,"tid":%s,"state":%q,"reason":"It is mine.","reported_at":"<time>"%s}`, rid, tid, state, settled)
	}

	bob.get(t, "/api/reports").is(t, 200, page(50, 0, 0, 0, 1, 1))
	bob.report(t, first)
	bobsFirst := c.latestReport(t)
	ann.report(t, first)
	bob.report(t, second)
	bobsSecond := c.latestReport(t)
	bob.get(t, "/api/reports").is(t, 200, page(50, 1, 2, 2, 1, 1, report(bobsSecond, second, "open", ""), report(bobsFirst, first, "open", "")))
	bob.get(t, "/api/reports?perPage=1&page=2").is(t, 200, page(1, 2, 2, 2, 2, 2, report(bobsFirst, first, "open", "")))
	bob.get(t, "/api/reports?page=2").is(t, 200, page(50, 0, 0, 2, 2, 1))

	// What came of a report is told, also when the texture and its uploader are gone.
	admin.settleReport(t, bobsFirst, "delete")
	c.site.exec(t, "DELETE FROM users WHERE uid = $1", ann.uid)
	deleted := report(bobsFirst, first, "deleted", `,"settled_at":"<time>"`)
	bob.get(t, "/api/reports").is(t, 200, page(50, 1, 2, 2, 1, 1, report(bobsSecond, second, "open", ""), deleted))
	bob.get(t, "/api/reports?state=deleted").is(t, 200, page(50, 1, 1, 1, 1, 1, deleted))
	admin.get(t, "/api/reports").is(t, 200, page(50, 0, 0, 0, 1, 1))
	for query, field := range map[string]string{"state=x": "state", "state=": "state", "page=0": "page", "perPage=101": "perPage"} {
		bob.get(t, "/api/reports?"+query).isError(t, 422, 4, field)
	}
	c.get(t, "/api/reports").isError(t, 401, 5)
}

func TestReports(t *testing.T) {
	t.Parallel()

	c := start(t)
	admin, ann, bob := c.signUpAs(t, core.Administrator), c.signUp(t), c.signUp(t)
	public := ann.texture(t, "name=Public&type=steve", skinFile(t, 1))
	private := ann.texture(t, "name=Private&type=steve&public=false", skinFile(t, 2))
	const thanks = `{"code":0,"message":"<text>"}`

	bob.post(t, "/api/reports", `{"tid":`+public+`,"reason":"  First line.\r\n\tSecond <b>line</b>. "}`).is(t, 200, thanks)
	bobs := c.latestReport(t)
	bob.report(t, public).isError(t, 409, 2, "tid")
	bob.report(t, private).isError(t, 403, 6)
	bob.report(t, "999999").isError(t, 404, 3)
	ann.send(t, "POST", "/api/reports", encodeForm("tid="+private+"&reason=Mine")).is(t, 200, thanks)
	anns := c.latestReport(t)
	admin.report(t, private).is(t, 200, thanks)
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
		bob.post(t, "/api/reports", object).isError(t, 422, 4, fields...)
	}
	bob.as("").report(t, public).isError(t, 401, 5)

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
			rid, tid, name, ann.uid, reporter.uid, state, reason, settled)
	}
	page := func(perPage, from, to, total, page, last int, reports ...string) string {
		return fmt.Sprintf(`{"per_page":%d,"from":%d,"to":%d,"total":%d,"current_page":%d,"last_page":%d,"data":[%s]}`,
			perPage, from, to, total, page, last, strings.Join(reports, ","))
	}
	first := report(bobs, public, bob, "open", "First line.\n\tSecond <b>line</b>.")
	second, third := report(anns, private, ann, "open", "Mine"), report(admins, private, admin, "open", "It is mine.")
	list := func(query string) response {
		t.Helper()
		return admin.get(t, "/api/admin/reports?"+query)
	}
	list("").is(t, 200, page(50, 1, 3, 3, 1, 1, third, second, first))
	list("perPage=2&page=2&state=+open+").is(t, 200, page(2, 3, 3, 3, 2, 2, first))
	list("page=2").is(t, 200, page(50, 0, 0, 3, 2, 1))
	list("state=banned").is(t, 200, page(50, 0, 0, 0, 1, 1))
	for query, field := range map[string]string{
		"state=x": "state", "page=0": "page", "page=x": "page", "perPage=0": "perPage", "perPage=101": "perPage",
	} {
		list(query).isError(t, 422, 4, field)
	}

	admin.settleReport(t, bobs, "reject").is(t, 200, `{"code":0,"message":"<text>","data":`+report(bobs, public, bob, "rejected", "First line.\n\tSecond <b>line</b>.")+`}`)
	admin.settleReport(t, bobs, "delete").isError(t, 409, 2)
	admin.send(t, "PUT", "/api/admin/reports/"+anns, encodeForm("action=+delete+")).is(t, 200, `{"code":0,"message":"<text>","data":`+report(anns, private, ann, "deleted", "Mine")+`}`)
	admin.settleReport(t, admins, "ban").isError(t, 409, 2)
	list("state=deleted").is(t, 200, page(50, 1, 2, 2, 1, 1, report(admins, private, admin, "deleted", "It is mine."), report(anns, private, ann, "deleted", "Mine")))
	if got := ann.get(t, "/api/closet").field(t, "total"); got != "1" {
		t.Errorf("the uploader's closet holds %s textures; want the public one", got)
	}
	for _, action := range []string{``, `x`, `rejected`} {
		admin.settleReport(t, bobs, action).isError(t, 422, 4, "action")
	}
	admin.put(t, "/api/admin/reports/"+bobs, `{}`).isError(t, 422, 4, "action")
	for _, rid := range []string{"999999", "0", "-1", "x", "01"} {
		admin.settleReport(t, rid, "reject").isError(t, 404, 3)
	}

	// Each reporter gets one notification of the outcome.
	notified := func(c client, want string) {
		t.Helper()
		id := c.unread(t)[0]
		c.read(t, id).is(t, 200, `{"title":"Your report","content":"<p>Thank you for reporting texture `+want+`</p>\n","time":"<time>"}`)
	}
	notified(bob, public+". We looked at it, and it stays.")
	notified(ann, private+". It is deleted.")
	notified(admin, private+". It is deleted.")
	bob.report(t, public)
	admin.settleReport(t, bob.latestReport(t), "ban")
	notified(bob, public+". Its uploader is banned.")
	ann.get(t, "/api/user").isError(t, 403, -1)
}

// The rate of a user's reports is limited, successful or not.
func TestReportsAreLimited(t *testing.T) {
	t.Parallel()

	c := start(t, "LIMIT_REPORTS=2").signUp(t)
	tid := c.texture(t, "name=Public&type=steve", skinFile(t, 1))
	c.report(t, tid).hasRateLimit(t, 200, rateLimit{"2", "1", "1800", ""})
	c.post(t, "/api/reports", `{}`).hasRateLimit(t, 422, rateLimit{"2", "0", "3600", ""})
	c.report(t, tid).hasRateLimit(t, 429, rateLimit{"2", "0", "3600", "1800"})
	c.signUp(t).report(t, tid).hasRateLimit(t, 200, rateLimit{"2", "1", "1800", ""})
	c.site.advance(30 * time.Minute)
	c.report(t, tid).isError(t, 409, 2, "tid")
}

// The rate of a network's reports is limited, since one person can have many accounts.
func TestReportsOfNetworkAreLimited(t *testing.T) {
	t.Parallel()

	c := start(t, "LIMIT_REPORTS=2")
	tid := c.signUp(t).texture(t, "name=Public&type=steve", skinFile(t, 1))
	hostile := c.from(t, "203.0.113.7")
	for i := range 10 {
		account := c.from(t, fmt.Sprintf("203.0.113.%d", i)).signUp(t)
		account.report(t, tid).is(t, 200, `{"code":0,"message":"<text>"}`)
	}
	refused := hostile.signUp(t).report(t, tid)
	refused.isError(t, 429, 8)
	if got := refused.headerValue("Retry-After"); got != "360" {
		t.Errorf("Retry-After is %q; want 360", got)
	}
	c.from(t, "198.51.100.1").signUp(t).report(t, tid).is(t, 200, `{"code":0,"message":"<text>"}`)
	c.site.advance(6 * time.Minute)
	hostile.signUp(t).report(t, tid).is(t, 200, `{"code":0,"message":"<text>"}`)
}

// Concurrent reports, settlements and deletions of textures and users do not deadlock, no settled
// report stays open, and every settlement is one entry of the audit log.
func TestConcurrentReportsAndDeletions(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)

	s, servers := twoServers(t)
	admins := []client{servers[0].signUpAs(t, core.Administrator), servers[1].signUpAs(t, core.Administrator)}
	settlements := func() int {
		return s.count(t, "SELECT count(*) FROM audit_log WHERE action = 'report.settle'")
	}
	for round := range 4 {
		ann, bob, cid := servers[0].signUp(t), servers[1].signUp(t), servers[0].signUp(t)
		ann.withPassword(t, rightPassword)
		bob.withPassword(t, rightPassword)
		var tids, rids []string
		for i := range 4 {
			tid := ann.texture(t, fmt.Sprintf("name=N&type=steve&public=%t", i > 0), numberedSkin(t, 10*round+i))
			tids = append(tids, tid)
			if i > 0 {
				bob.report(t, tid)
				rids = append(rids, bob.latestReport(t))
				cid.post(t, "/api/closet", `{"tid":`+tid+`,"name":"N"}`)
			}
		}
		before, settled := settlements(), make(chan string, 100)
		var work sync.WaitGroup
		at := func(statuses []int, do func() response) {
			work.Go(func() {
				if a := do(); !slices.Contains(statuses, a.status) {
					t.Errorf("%s: %d %s; want one of %v", a.request, a.status, a.body, statuses)
				}
			})
		}
		for i, tid := range tids[1:] {
			at([]int{200, 404}, func() response { return cid.report(t, tid) })
			for j, admin := range admins {
				action := []string{"reject", "delete", "ban"}[(i+j+round)%3]
				at([]int{200, 404, 409}, func() response {
					a := admin.settleReport(t, rids[i], action)
					if a.status == 200 {
						settled <- rids[i]
					}
					return a
				})
			}
		}
		at([]int{200, 401, 403}, func() response {
			return ann.delete(t, "/api/user?password="+strings.ReplaceAll(rightPassword, " ", "+"))
		})
		at([]int{200}, func() response {
			return bob.delete(t, "/api/user?password="+strings.ReplaceAll(rightPassword, " ", "+"))
		})
		work.Wait()
		close(settled)
		counts := map[string]int{}
		for rid := range settled {
			if counts[rid]++; counts[rid] > 1 {
				t.Errorf("report %s was settled %d times", rid, counts[rid])
			}
		}
		if n := settlements() - before; n != len(counts) {
			t.Errorf("%d acts are noted of %d settlements", n, len(counts))
		}
		if n := s.count(t, "SELECT count(*) FROM reports WHERE state = 'deleted' AND tid IN (SELECT tid FROM textures)"); n != 0 {
			t.Errorf("%d reports are settled as deleted though the texture exists", n)
		}
		if n := s.count(t, "SELECT count(*) FROM reports o JOIN reports d USING (tid) WHERE o.state = 'open' AND d.state = 'deleted'"); n != 0 {
			t.Errorf("%d reports are open though the texture was deleted", n)
		}
		if n := s.count(t, "SELECT count(*) FROM reports WHERE reporter = $1", bob.uid); n != 0 {
			t.Errorf("%d reports refer to deleted users", n)
		}
	}
	s.checkLikes(t)
}
