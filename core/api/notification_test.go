package api_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// notify sends the client's user a notification.
func (c client) notify(t *testing.T, title, content string) {
	t.Helper()
	n := testenv.Must(c.Domain.Notifications.Send(t.Context(), []core.UserID{c.UID}, core.Message{Title: title, Content: content}))(t)
	testenv.Equal(t, n, 1, "users that are notified")
}

// unread returns the ids of the client's unread notifications.
func (c client) unread(t *testing.T) []string {
	t.Helper()
	var list []struct{ ID string }
	testenv.Do(t, json.Unmarshal(c.Get(t, "/api/user/notifications").Body, &list))
	ids := make([]string, len(list))
	for i, n := range list {
		ids[i] = n.ID
	}
	return ids
}

func (c client) read(t *testing.T, id string) response {
	t.Helper()
	return c.Send(t, "POST", "/api/user/notifications/"+id, body{})
}

func TestNotifications(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	c.Get(t, "/api/user/notifications").Is(t, 200, `[]`)
	c.notify(t, " First ", "One")
	c.notify(t, "Second <b>", "Two **words**")
	n := testenv.Must(c.Domain.Notifications.Announce(t.Context(), core.CLIActor, "all", "Third", "Three"))(t)
	testenv.Equal(t, n, 1, "users that are notified")
	c.site.Exec(t, "UPDATE messages SET sent_at = '2024-05-06 23:59:59.999+02'")
	c.Get(t, "/api/user/notifications").Is(t, 200, `[{"id":"<uuid>","title":"Third"},{"id":"<uuid>","title":"Second <b>"},{"id":"<uuid>","title":"First"}]`)

	// A read notification leaves the list, and can be read again.
	ids := c.unread(t)
	const second = `{"title":"Second <b>","content":"<p>Two <strong>words</strong></p>\n","time":"2024-05-06 21:59:59"}`
	c.read(t, ids[1]).Is(t, 200, second)
	c.Get(t, "/api/user/notifications").Is(t, 200, `[{"id":"<uuid>","title":"Third"},{"id":"<uuid>","title":"First"}]`)
	c.read(t, ids[1]).Is(t, 200, second)
	c.site.HasCount(t, 1, "SELECT count(*) FROM notifications WHERE read_at IS NOT NULL")

	// The same notification stays unread for other users.
	otherUser := c.signUp(t)
	n = testenv.Must(c.Domain.Notifications.Announce(t.Context(), core.CLIActor, "all", "All", "Hear!"))(t)
	testenv.Equal(t, n, 2, "users that are notified")
	c.read(t, c.unread(t)[0]).Is(t, 200, `{"title":"All","content":"<p>Hear!</p>\n","time":"<time>"}`)
	otherUser.Get(t, "/api/user/notifications").Is(t, 200, `[{"id":"<uuid>","title":"All"}]`)
}

// All notifications are listed, read ones too, and the user has the number of unread ones, up to 99.
func TestAllNotifications(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	unreadIs := func(want string) {
		t.Helper()
		c.Get(t, "/api/user").HasField(t, want, "unread")
	}
	unreadIs("0")
	c.Get(t, "/api/notifications").Is(t, 200, pageOf(20, 0, 0, 0, 1, 1))
	c.notify(t, "Own", "One")
	testenv.Must(c.Domain.Notifications.Announce(t.Context(), core.CLIActor, "all", "All", "Hear!"))(t)
	parameters := map[string]any{"tid": 7, "name": "Red <b>"}
	message := core.Message{Title: "Your report", Content: "X", Kind: "report_rejected", Parameters: parameters}
	testenv.Must(c.Domain.Notifications.Send(t.Context(), []core.UserID{c.UID}, message))(t)
	unreadIs("3")
	const kind = `"kind":"report_rejected","parameters":{"tid":7,"name":"Red <b>"}`
	c.read(t, c.unread(t)[0]).Is(t, 200, `{"title":"Your report","content":"<p>X</p>\n","time":"<time>",`+kind+`}`)
	c.read(t, c.unread(t)[0])
	unreadIs("1")
	entry := func(title, read string) string {
		return `{"id":"<uuid>","title":"` + title + `","time":"<time>","read":` + read + `}`
	}
	report := `{"id":"<uuid>","title":"Your report","time":"<time>","read":true,` + kind + `}`
	c.Get(t, "/api/notifications").Is(t, 200, pageOf(20, 1, 3, 3, 1, 1, report, entry("All", "true"), entry("Own", "false")))
	c.Get(t, "/api/notifications?perPage=2&page=2").Is(t, 200, pageOf(2, 3, 3, 3, 2, 2, entry("Own", "false")))
	c.Get(t, "/api/notifications?page=0&perPage=101").IsError(t, 422, 4, "page", "perPage")

	other := c.signUp(t)
	other.Get(t, "/api/notifications").Is(t, 200, pageOf(20, 0, 0, 0, 1, 1)) // who registers later is told nothing
	other.Get(t, "/api/user").HasField(t, "0", "unread")
	for range 120 {
		testenv.Must(c.Domain.Notifications.Announce(t.Context(), core.CLIActor, "normal", "Normal", "X"))(t)
	}
	unreadIs("99")
	c.permit(t, core.Administrator)
	unreadIs("1")
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
		c.read(t, id).IsError(t, 404, 3)
	}
	testenv.Equal(t, len(otherUser.unread(t)), 1, "of another user's notifications are unread")
}

// The longest content is accepted in every encoding: an emoji takes 12 bytes as JSON escapes and in
// a form.
func TestLongestAnnouncement(t *testing.T) {
	t.Parallel()
	c := listen(t)
	admin := c.signUpAs(t, core.Administrator)
	const most = 20_000
	title := strings.Repeat("\U0001F600", 64)
	send := func(content body) response { return admin.Send(t, "POST", "/api/admin/notifications", content) }
	f := func(character, escaped string) {
		t.Helper()
		inForm := url.Values{"to": {"all"}, "title": {title}, "content": {strings.Repeat(character, most)}}
		for _, content := range []body{
			encodeJSON(`{"to":"all","title":"T","content":"` + strings.Repeat(character, most) + `"}`),
			encodeJSON(`{"to":"all","title":"T","content":"` + strings.Repeat(escaped, most) + `"}`),
			encodeForm(inForm.Encode()),
		} {
			send(content).Is(t, 200, `{"code":0,"message":"<text>","data":{"users":1}}`)
		}
		send(encodeJSON(`{"to":"all","title":"T","content":"`+strings.Repeat(escaped, most+1)+`"}`)).IsError(t, 422, 4, "content")
	}
	f("\u76ae", `\u76ae`)
	f("\U0001F600", `\ud83d\ude00`)
	send(encodeJSON(`{"to":"all","title":"T","content":"`+strings.Repeat("x", 400_000)+`"}`)).IsError(t, 413, 4)
}

// Administrators send notifications to all users, to normal users, or to one.
func TestAnnounce(t *testing.T) {
	t.Parallel()
	c := start(t)
	admin, ann, bob := c.signUpAs(t, core.Administrator), c.signUp(t), c.signUp(t)
	send := func(to string) response {
		return admin.Post(t, "/api/admin/notifications", `{"to":"`+to+`","title":" To `+to+` ","content":"A **word**\r\nand more"}`)
	}
	sent := func(to, users string) {
		t.Helper()
		send(to).Is(t, 200, `{"code":0,"message":"<text>","data":{"users":`+users+`}}`)
	}
	unread := func(c client, titles ...string) {
		t.Helper()
		want := make([]string, len(titles))
		for i, title := range titles {
			want[i] = `{"id":"<uuid>","title":"` + title + `"}`
		}
		c.Get(t, "/api/user/notifications").Is(t, 200, "["+strings.Join(want, ",")+"]")
	}

	sent("all", "3")
	sent(" normal ", "2")
	sent(fmt.Sprint(ann.UID), "1")
	sent("USER3@example.com", "1")
	newcomer := c.signUp(t)
	unread(admin, "To all")
	unread(ann, fmt.Sprintf("To %d", ann.UID), "To  normal", "To all")
	unread(bob, "To USER3@example.com", "To  normal", "To all")
	unread(newcomer)
	admin.logs(t, 0,
		fmt.Sprintf(`notification.send user:%d {"title": "To USER3@example.com", "users": 1}`, bob.UID),
		fmt.Sprintf(`notification.send user:%d {"title": "To %d", "users": 1}`, ann.UID, ann.UID),
		`notification.send users:normal {"title": "To  normal", "users": 2}`,
		`notification.send users:all {"title": "To all", "users": 3}`,
	)

	// Each recipient has their own read state.
	ids := ann.unread(t)
	ann.read(t, ids[2]).Is(t, 200, `{"title":"To all","content":"<p>A <strong>word</strong>\nand more</p>\n","time":"<time>"}`)
	ann.read(t, ids[2]).Is(t, 200, `{"title":"To all","content":"<p>A <strong>word</strong>\nand more</p>\n","time":"<time>"}`)
	unread(ann, fmt.Sprintf("To %d", ann.UID), "To  normal")
	unread(bob, "To USER3@example.com", "To  normal", "To all")
	for _, id := range ids {
		newcomer.read(t, id).IsError(t, 404, 3)
	}
	admin.read(t, ids[1]).IsError(t, 404, 3)

	for _, missing := range []string{"999999", "0", "-1", "nobody@example.com", "x"} {
		send(missing).IsError(t, 404, 3)
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
		admin.Post(t, "/api/admin/notifications", object).IsError(t, 422, 4, fields...)
	}
	testenv.Equal(t, len(c.site.acts(t)), 4, "acts are noted")
	admin.Send(t, "POST", "/api/admin/notifications", encodeForm("to=all&title=T&content=a%0D%0Ab")).Is(t, 200, `{"code":0,"message":"<text>","data":{"users":4}}`)
}

// The HTML of a notification runs no scripts and contains no elements that imitate the site.
func TestNotificationsAreSanitized(t *testing.T) {
	t.Parallel()
	c := start(t, "LIMIT_REQUESTS=0").signUp(t)
	for _, content := range []string{
		"<script>alert(1)</script>", "before <script src=//evil.example></script> after",
		"<img src=x onerror=alert(1)>", "<b onclick=\"alert(1)\">bold</b>",
		"<a href=\"javascript:alert(1)\">link</a>", "[link](javascript:alert(1))", "[link](JaVaScRiPt:alert(1))",
		"[link](java&#10;script:alert(1))", "[link](&#x6A;avascript:alert(1))", "[link](vbscript:alert(1))",
		"[link](data:text/html;base64,PHNjcmlwdD4=)", "![image](javascript:alert(1))", "<javascript:alert(1)>",
		"[link](https://example.com \"\" onclick=alert(1) \")", "[ref]\n\n[ref]: javascript:alert(1)",
		"<iframe src=https://evil.example></iframe>", "<style>body{display:none}</style>",
		"<form action=https://evil.example><input name=password></form>", "<svg/onload=alert(1)>",
		"<div style=\"position:fixed\">over all</div>", "<p id=login class=modal>imitation</p>",
		"`<script>alert(1)</script>`", "```\n<img src=x onerror=alert(1)>\n```",
	} {
		c.notify(t, "Title", content)
		html := strings.ToLower(c.read(t, c.unread(t)[0]).Field(t, "content"))
		testenv.Equal(t, harmful.FindString(html), "", "%q becomes %q, which has", content, html)
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
		c.read(t, c.unread(t)[0]).HasField(t, want+"\n", "content")
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
		_, err := c.Domain.Notifications.Announce(t.Context(), core.CLIActor, "all", title, content)
		testenv.Equal(t, err != nil, wrong, "%.20q, %.20q is refused (%v)", title, content, err)
	}

	for _, title := range []string{"", " ", "a\nb", strings.Repeat("x", 65)} {
		f(title, "content", true)
	}
	for _, content := range []string{" \n", "a\x00b", "a\rb", "a\xffb", strings.Repeat("ä", 20_001)} {
		f("Title", content, true)
	}
	f("Title", strings.Repeat("ä", 20_000), false)
	f("Title", "a\n\tb", false)
}
