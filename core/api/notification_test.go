package api_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/core"
)

// notify sends the client's user a notification.
func (c client) notify(t *testing.T, title, content string) {
	t.Helper()
	if n, err := c.services.Notifications.Send(t.Context(), []core.UserID{c.uid}, title, content); n != 1 || err != nil {
		t.Fatalf("sent to %d users, %v", n, err)
	}
}

// unread returns the ids of the client's unread notifications.
func (c client) unread(t *testing.T) []string {
	t.Helper()
	var list []struct{ ID string }
	if err := json.Unmarshal(c.get(t, "/api/user/notifications").body, &list); err != nil {
		t.Fatal(err)
	}
	ids := make([]string, len(list))
	for i, n := range list {
		ids[i] = n.ID
	}
	return ids
}

func (c client) read(t *testing.T, id string) response {
	t.Helper()
	return c.send(t, "POST", "/api/user/notifications/"+id, body{})
}

func TestNotifications(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	c.get(t, "/api/user/notifications").is(t, 200, `[]`)
	c.notify(t, " First ", "One")
	c.notify(t, "Second <b>", "Two **words**")
	if n, err := c.services.Notifications.Announce(t.Context(), core.CLIActor, "all", "Third", "Three"); n != 1 || err != nil {
		t.Fatalf("sent to %d users, %v", n, err)
	}
	c.site.exec(t, "UPDATE messages SET sent_at = '2024-05-06 23:59:59.999+02'")
	c.get(t, "/api/user/notifications").is(t, 200, `[{"id":"<uuid>","title":"Third"},{"id":"<uuid>","title":"Second <b>"},{"id":"<uuid>","title":"First"}]`)

	// A read notification leaves the list, and can be read again.
	ids := c.unread(t)
	const second = `{"title":"Second <b>","content":"<p>Two <strong>words</strong></p>\n","time":"2024-05-06 21:59:59"}`
	c.read(t, ids[1]).is(t, 200, second)
	c.get(t, "/api/user/notifications").is(t, 200, `[{"id":"<uuid>","title":"Third"},{"id":"<uuid>","title":"First"}]`)
	c.read(t, ids[1]).is(t, 200, second)
	if n := c.site.count(t, "SELECT count(*) FROM notifications WHERE read_at IS NOT NULL"); n != 1 {
		t.Errorf("%d notifications are read; want 1", n)
	}

	// The same notification stays unread for other users.
	otherUser := c.signUp(t)
	if n, err := c.services.Notifications.Announce(t.Context(), core.CLIActor, "all", "All", "Hear!"); n != 2 || err != nil {
		t.Fatalf("sent to %d users, %v", n, err)
	}
	c.read(t, c.unread(t)[0]).is(t, 200, `{"title":"All","content":"<p>Hear!</p>\n","time":"<time>"}`)
	otherUser.get(t, "/api/user/notifications").is(t, 200, `[{"id":"<uuid>","title":"All"}]`)
}

func TestReadNotificationRefuses(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	otherUser := c.signUp(t)
	otherUser.notify(t, "Theirs", "X")
	theirs := otherUser.unread(t)[0]
	for _, id := range []string{
		theirs, strings.ToUpper(theirs), "00000000-0000-4000-8000-000000000000", "1", "0", "-1", "nonsense", theirs + "0", theirs[1:], "%00", "%FF",
	} {
		c.read(t, id).isError(t, 404, 3)
	}
	if got := otherUser.unread(t); len(got) != 1 {
		t.Errorf("%d of another user's notifications are unread; want 1", len(got))
	}
}

// The longest content is accepted in every encoding: an emoji takes 12 bytes as JSON escapes and in
// a form.
func TestLongestAnnouncement(t *testing.T) {
	t.Parallel()

	c := listen(t)
	admin := c.signUpAs(t, core.Administrator)
	const most = 20_000
	title := strings.Repeat("\U0001F600", 64)
	send := func(content body) response {
		t.Helper()
		return admin.send(t, "POST", "/api/admin/notifications", content)
	}
	f := func(character, escaped string) {
		t.Helper()
		inForm := url.Values{"to": {"all"}, "title": {title}, "content": {strings.Repeat(character, most)}}
		for _, content := range []body{
			encodeJSON(`{"to":"all","title":"T","content":"` + strings.Repeat(character, most) + `"}`),
			encodeJSON(`{"to":"all","title":"T","content":"` + strings.Repeat(escaped, most) + `"}`),
			{"application/x-www-form-urlencoded", []byte(inForm.Encode())},
		} {
			send(content).is(t, 200, `{"code":0,"message":"<text>","data":{"users":1}}`)
		}
		send(encodeJSON(`{"to":"all","title":"T","content":"`+strings.Repeat(escaped, most+1)+`"}`)).isError(t, 422, 4, "content")
	}
	f("\u76ae", `\u76ae`)
	f("\U0001F600", `\ud83d\ude00`)
	send(encodeJSON(`{"to":"all","title":"T","content":"`+strings.Repeat("x", 400_000)+`"}`)).isError(t, 413, 4)
}

// Administrators send notifications to all users, to normal users, or to one.
func TestAnnounce(t *testing.T) {
	t.Parallel()

	c := start(t)
	admin, ann, bob := c.signUpAs(t, core.Administrator), c.signUp(t), c.signUp(t)
	send := func(to string) response {
		t.Helper()
		return admin.post(t, "/api/admin/notifications", `{"to":"`+to+`","title":" To `+to+` ","content":"A **word**\r\nand more"}`)
	}
	sent := func(to, users string) {
		t.Helper()
		send(to).is(t, 200, `{"code":0,"message":"<text>","data":{"users":`+users+`}}`)
	}
	unread := func(c client, titles ...string) {
		t.Helper()
		want := make([]string, len(titles))
		for i, title := range titles {
			want[i] = `{"id":"<uuid>","title":"` + title + `"}`
		}
		c.get(t, "/api/user/notifications").is(t, 200, "["+strings.Join(want, ",")+"]")
	}

	sent("all", "3")
	sent(" normal ", "2")
	sent(fmt.Sprint(ann.uid), "1")
	sent("USER3@example.com", "1")
	newcomer := c.signUp(t)
	unread(admin, "To all")
	unread(ann, fmt.Sprintf("To %d", ann.uid), "To  normal", "To all")
	unread(bob, "To USER3@example.com", "To  normal", "To all")
	unread(newcomer)
	admin.logs(t, 0,
		fmt.Sprintf(`notification.send user:%d {"title": "To USER3@example.com", "users": 1}`, bob.uid),
		fmt.Sprintf(`notification.send user:%d {"title": "To %d", "users": 1}`, ann.uid, ann.uid),
		`notification.send users:normal {"title": "To  normal", "users": 2}`,
		`notification.send users:all {"title": "To all", "users": 3}`,
	)

	// Each recipient has their own read state.
	ids := ann.unread(t)
	ann.read(t, ids[2]).is(t, 200, `{"title":"To all","content":"<p>A <strong>word</strong>\nand more</p>\n","time":"<time>"}`)
	ann.read(t, ids[2]).is(t, 200, `{"title":"To all","content":"<p>A <strong>word</strong>\nand more</p>\n","time":"<time>"}`)
	unread(ann, fmt.Sprintf("To %d", ann.uid), "To  normal")
	unread(bob, "To USER3@example.com", "To  normal", "To all")
	for _, id := range ids {
		newcomer.read(t, id).isError(t, 404, 3)
	}
	admin.read(t, ids[1]).isError(t, 404, 3)

	for _, missing := range []string{"999999", "0", "-1", "nobody@example.com", "x"} {
		send(missing).isError(t, 404, 3)
	}
	for object, fields := range map[string][]string{
		`{}`:                                  {"content", "title", "to"},
		`{"to":" ","title":"","content":" "}`: {"content", "title", "to"},
		`{"to":7,"title":"T","content":"C"}`:  {"to"},
		`{"to":"a\u0000","title":"a\nb","content":"a\rb"}`:                                    {"content", "title", "to"},
		`{"to":"all","title":"T","content":"` + strings.Repeat("ä", 20_001) + `"}`:            {"content"},
		`{"to":"all","title":"` + strings.Repeat("ä", 65) + `","content":"C"}`:                {"title"},
		`{"to":"nobody@example.com","title":"` + strings.Repeat("ä", 65) + `","content":"C"}`: {"title"},
	} {
		admin.post(t, "/api/admin/notifications", object).isError(t, 422, 4, fields...)
	}
	if n := len(c.site.acts(t)); n != 4 {
		t.Errorf("%d acts are noted; want the 4 that were granted", n)
	}
	admin.send(t, "POST", "/api/admin/notifications", encodeForm("to=all&title=T&content=a%0D%0Ab")).is(t, 200, `{"code":0,"message":"<text>","data":{"users":4}}`)
}

// The HTML of a notification runs no scripts and contains no elements that imitate the site.
func TestNotificationsAreSanitized(t *testing.T) {
	t.Parallel()

	c := start(t, "LIMIT_REQUESTS=0").signUp(t)
	for _, content := range []string{
		"<script>alert(1)</script>",
		"before <script src=//evil.example></script> after",
		"<img src=x onerror=alert(1)>",
		"<b onclick=\"alert(1)\">bold</b>",
		"<a href=\"javascript:alert(1)\">link</a>",
		"[link](javascript:alert(1))",
		"[link](JaVaScRiPt:alert(1))",
		"[link](java&#10;script:alert(1))",
		"[link](&#x6A;avascript:alert(1))",
		"[link](vbscript:alert(1))",
		"[link](data:text/html;base64,PHNjcmlwdD4=)",
		"![image](javascript:alert(1))",
		"<javascript:alert(1)>",
		"[link](https://example.com \"\" onclick=alert(1) \")",
		"[ref]\n\n[ref]: javascript:alert(1)",
		"<iframe src=https://evil.example></iframe>",
		"<style>body{display:none}</style>",
		"<form action=https://evil.example><input name=password></form>",
		"<svg/onload=alert(1)>",
		"<div style=\"position:fixed\">over all</div>",
		"<p id=login class=modal>imitation</p>",
		"`<script>alert(1)</script>`",
		"```\n<img src=x onerror=alert(1)>\n```",
	} {
		c.notify(t, "Title", content)
		html := strings.ToLower(c.read(t, c.unread(t)[0]).field(t, "content"))
		if bad := harmful.FindString(html); bad != "" {
			t.Errorf("%q becomes %q, which has %q", content, html, bad)
		}
	}
}

// harmful matches what the HTML of a notification must not contain.
var harmful = regexp.MustCompile(`<(script|iframe|style|form|input|svg|div)|<[^>]*\s(on\w+|style|id|class)=|<[^>]*\s(href|src)="?(java|vbscript|data|x)`)

func TestNotificationsAreMarkdown(t *testing.T) {
	t.Parallel()

	c := start(t, "LIMIT_REQUESTS=0").signUp(t)
	f := func(content, want string) {
		t.Helper()
		c.notify(t, "Title", content)
		if got := c.read(t, c.unread(t)[0]).field(t, "content"); got != want+"\n" {
			t.Errorf("%q becomes %q; want %q", content, got, want+"\n")
		}
	}

	f("plain\ntext", "<p>plain\ntext</p>")
	f("# Title\n\nA *b* **c** ~~d~~ `e`", "<h1>Title</h1>\n<p>A <em>b</em> <strong>c</strong> <del>d</del> <code>e</code></p>")
	f("- a\n- b\n\n1. c", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>\n<ol>\n<li>c</li>\n</ol>")
	f("> quote\n\n---", "<blockquote>\n<p>quote</p>\n</blockquote>\n<hr>")
	f("```\ncode <b>\n```", "<pre><code>code &lt;b&gt;\n</code></pre>")
	f("[shop](https://example.com/?a=1&b=2)", `<p><a href="https://example.com/?a=1&amp;b=2" rel="nofollow">shop</a></p>`)
	f("https://example.com", `<p><a href="https://example.com" rel="nofollow">https://example.com</a></p>`)
	f("[mail](mailto:help@example.com)", `<p><a href="mailto:help@example.com" rel="nofollow">mail</a></p>`)
	f("![skin](https://example.com/a.png)", `<p><img src="https://example.com/a.png" alt="skin"></p>`)
	f("| a | b |\n|---|--:|\n| 1 | 2 |", "<table>\n<thead>\n<tr>\n<th>a</th>\n<th align=\"right\">b</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td>1</td>\n<td align=\"right\">2</td>\n</tr>\n</tbody>\n</table>")
	f("- [x] done", "<ul>\n<li>[x] done</li>\n</ul>") // a checkbox would be a form element
	f("Zoë & 🦊 < 5", "<p>Zoë &amp; 🦊 &lt; 5</p>")
}

// Titles and contents are validated, with an error for each field.
func TestSendRefuses(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	f := func(title, content string, wrong bool) {
		t.Helper()
		_, err := c.services.Notifications.Announce(t.Context(), core.CLIActor, "all", title, content)
		if (err != nil) != wrong {
			t.Errorf("%.20q, %.20q: %v; want it refused: %t", title, content, err, wrong)
		}
	}

	f("", "content", true)
	f(" ", "content", true)
	f("a\nb", "content", true)
	f(strings.Repeat("x", 65), "content", true)
	f("Title", " \n", true)
	f("Title", "a\x00b", true)
	f("Title", "a\rb", true)
	f("Title", "a\xffb", true)
	f("Title", strings.Repeat("ä", 20_001), true)
	f("Title", strings.Repeat("ä", 20_000), false)
	f("Title", "a\n\tb", false)
}
