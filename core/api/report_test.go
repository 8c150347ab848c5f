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

// reports reports a texture.
func (c client) reports(t *testing.T, tid string) answer {
	t.Helper()
	return c.post(t, "/api/reports", `{"tid":`+tid+`,"reason":"It is mine."}`)
}

// settles settles a report.
func (c client) settles(t *testing.T, rid, action string) answer {
	t.Helper()
	return c.put(t, "/api/admin/reports/"+rid, `{"action":"`+action+`"}`)
}

// latest returns the id of the latest report.
func (c client) latest(t *testing.T) string {
	t.Helper()
	return fmt.Sprint(c.site.count(t, "SELECT max(rid) FROM reports"))
}

func TestReports(t *testing.T) {
	t.Parallel()

	c := start(t)
	admin, ann, bob := c.signUpAs(t, core.Administrator), c.signUp(t), c.signUp(t)
	public := ann.texture(t, "name=Public&type=steve", skinFile(t, 1))
	private := ann.texture(t, "name=Private&type=steve&public=false", skinFile(t, 2))
	const thanks = `{"code":0,"message":"<text>"}`

	bob.post(t, "/api/reports", `{"tid":`+public+`,"reason":"  First line.\r\n\tSecond <b>line</b>. "}`).is(t, 200, thanks)
	bobs := c.latest(t)
	bob.reports(t, public).refuses(t, 409, 2, "tid")
	bob.reports(t, private).refuses(t, 403, 6)
	bob.reports(t, "999999").refuses(t, 404, 3)
	ann.send(t, "POST", "/api/reports", encodeForm("tid="+private+"&reason=Mine")).is(t, 200, thanks)
	anns := c.latest(t)
	admin.reports(t, private).is(t, 200, thanks)
	admins := c.latest(t)
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
		bob.post(t, "/api/reports", object).refuses(t, 422, 4, fields...)
	}
	bob.as("").reports(t, public).refuses(t, 401, 5)

	report := func(rid, tid string, reporter client, state, reason string) string {
		settled := ""
		if state != "open" {
			settled = `,"settled_at":"<time>"`
		}
		return fmt.Sprintf(`{"rid":%s,"tid":%s,"uploader":%d,"reporter":%d,"state":%q,"reason":%q,"reported_at":"<time>"%s}`,
			rid, tid, ann.uid, reporter.uid, state, reason, settled)
	}
	page := func(perPage, from, to, total, page, last int, reports ...string) string {
		return fmt.Sprintf(`{"per_page":%d,"from":%d,"to":%d,"total":%d,"current_page":%d,"last_page":%d,"data":[%s]}`,
			perPage, from, to, total, page, last, strings.Join(reports, ","))
	}
	first := report(bobs, public, bob, "open", "First line.\n\tSecond <b>line</b>.")
	second, third := report(anns, private, ann, "open", "Mine"), report(admins, private, admin, "open", "It is mine.")
	list := func(query string) answer {
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
		list(query).refuses(t, 422, 4, field)
	}

	admin.settles(t, bobs, "reject").is(t, 200, `{"code":0,"message":"<text>","data":`+report(bobs, public, bob, "rejected", "First line.\n\tSecond <b>line</b>.")+`}`)
	admin.settles(t, bobs, "delete").refuses(t, 409, 2)
	admin.send(t, "PUT", "/api/admin/reports/"+anns, encodeForm("action=+delete+")).is(t, 200, `{"code":0,"message":"<text>","data":`+report(anns, private, ann, "deleted", "Mine")+`}`)
	admin.settles(t, admins, "ban").refuses(t, 409, 2)
	list("state=deleted").is(t, 200, page(50, 1, 2, 2, 1, 1, report(admins, private, admin, "deleted", "It is mine."), report(anns, private, ann, "deleted", "Mine")))
	if got := ann.get(t, "/api/closet").field(t, "total"); got != "1" {
		t.Errorf("the uploader's closet holds %s textures; want the public one", got)
	}
	for _, action := range []string{``, `x`, `rejected`} {
		admin.settles(t, bobs, action).refuses(t, 422, 4, "action")
	}
	admin.put(t, "/api/admin/reports/"+bobs, `{}`).refuses(t, 422, 4, "action")
	for _, rid := range []string{"999999", "0", "-1", "x", "01"} {
		admin.settles(t, rid, "reject").refuses(t, 404, 3)
	}

	// Reporters are told what came of it, each once.
	told := func(c client, want string) {
		t.Helper()
		id := c.unread(t)[0]
		c.read(t, id).is(t, 200, `{"title":"Your report","content":"<p>Thank you for reporting texture `+want+`</p>\n","time":"<time>"}`)
	}
	told(bob, public+". We looked at it, and it stays.")
	told(ann, private+". It is deleted.")
	told(admin, private+". It is deleted.")
	bob.reports(t, public)
	admin.settles(t, bob.latest(t), "ban")
	told(bob, public+". Its uploader is banned.")
	ann.get(t, "/api/user").refuses(t, 403, -1)
}

// A user reports only so often, whatever comes of it.
func TestReportsAreLimited(t *testing.T) {
	t.Parallel()

	c := start(t, "LIMIT_REPORTS=2").signUp(t)
	tid := c.texture(t, "name=Public&type=steve", skinFile(t, 1))
	c.reports(t, tid).paced(t, 200, pace{"2", "1", "1800", ""})
	c.post(t, "/api/reports", `{}`).paced(t, 422, pace{"2", "0", "3600", ""})
	c.reports(t, tid).paced(t, 429, pace{"2", "0", "3600", "1800"})
	c.signUp(t).reports(t, tid).paced(t, 200, pace{"2", "1", "1800", ""})
	c.site.pass(30 * time.Minute)
	c.reports(t, tid).refuses(t, 409, 2, "tid")
}

// One person with many accounts cannot fill the list that administrators work through.
func TestReportsOfANetworkAreLimited(t *testing.T) {
	t.Parallel()

	c := start(t, "LIMIT_REPORTS=2")
	tid := c.signUp(t).texture(t, "name=Public&type=steve", skinFile(t, 1))
	hostile := c.at(t, "203.0.113.7")
	for i := range 10 {
		account := c.at(t, fmt.Sprintf("203.0.113.%d", i)).signUp(t)
		account.reports(t, tid).is(t, 200, `{"code":0,"message":"<text>"}`)
	}
	refused := hostile.signUp(t).reports(t, tid)
	refused.refuses(t, 429, 8)
	if got := refused.head("Retry-After"); got != "360" {
		t.Errorf("Retry-After is %q; want 360", got)
	}
	c.at(t, "198.51.100.1").signUp(t).reports(t, tid).is(t, 200, `{"code":0,"message":"<text>"}`)
	c.site.pass(6 * time.Minute)
	hostile.signUp(t).reports(t, tid).is(t, 200, `{"code":0,"message":"<text>"}`)
}

// However reports, settlements, deletions of textures and of users meet, nobody
// waits for each other for ever, no report stays open that was settled, and every
// settlement is one act.
func TestReportsMeetDeletions(t *testing.T) {
	t.Parallel()
	testenv.Long(t)

	s, servers := together(t)
	admins := []client{servers[0].signUpAs(t, core.Administrator), servers[1].signUpAs(t, core.Administrator)}
	settlements := func() int {
		return s.count(t, "SELECT count(*) FROM audit_log WHERE action = 'report.settle'")
	}
	for round := range 4 {
		ann, bob, cid := servers[0].signUp(t), servers[1].signUp(t), servers[0].signUp(t)
		ann.withPassword(t, right)
		bob.withPassword(t, right)
		var tids, rids []string
		for i := range 4 {
			tid := ann.texture(t, fmt.Sprintf("name=N&type=steve&public=%t", i > 0), numberedSkin(t, 10*round+i))
			tids = append(tids, tid)
			if i > 0 {
				bob.reports(t, tid)
				rids = append(rids, bob.latest(t))
				cid.post(t, "/api/closet", `{"tid":`+tid+`,"name":"N"}`)
			}
		}
		before, settled := settlements(), make(chan string, 100)
		var work sync.WaitGroup
		at := func(statuses []int, do func() answer) {
			work.Go(func() {
				if a := do(); !slices.Contains(statuses, a.status) {
					t.Errorf("%s: %d %s; want one of %v", a.request, a.status, a.body, statuses)
				}
			})
		}
		for i, tid := range tids[1:] {
			at([]int{200, 404}, func() answer { return cid.reports(t, tid) })
			for j, admin := range admins {
				action := []string{"reject", "delete", "ban"}[(i+j+round)%3]
				at([]int{200, 404, 409}, func() answer {
					a := admin.settles(t, rids[i], action)
					if a.status == 200 {
						settled <- rids[i]
					}
					return a
				})
			}
		}
		at([]int{200, 401, 403}, func() answer { return ann.delete(t, "/api/user?password="+strings.ReplaceAll(right, " ", "+")) })
		at([]int{200}, func() answer { return bob.delete(t, "/api/user?password="+strings.ReplaceAll(right, " ", "+")) })
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
			t.Errorf("%d reports say that a texture is deleted which is there", n)
		}
		if n := s.count(t, "SELECT count(*) FROM reports o JOIN reports d USING (tid) WHERE o.state = 'open' AND d.state = 'deleted'"); n != 0 {
			t.Errorf("%d reports are open about textures that were deleted for another", n)
		}
		if n := s.count(t, "SELECT count(*) FROM reports WHERE reporter = $1", bob.uid); n != 0 {
			t.Errorf("%d reports name a user who is deleted", n)
		}
	}
	s.checkLikes(t)
}
