package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// hostile are texts that would run a script as HTML, turn the order of the words around them, or be
// wider than the window.
var hostile = []string{
	`<img src=x onerror="pwned=1">`,
	`</bdi></h2><script>pwned=1</script>`,
	"\u202egnp.ecaf live",
	"\u2066\u2067isolates that do not end",
	"\u2069\u2069\u202eends isolates",
	strings.Repeat("W", 64),
	"مرحبا بالعالم (123)",
	"שלום-עולם, 1 + 2",
}

// hostileSite has these texts in every field that pages show, of an administrator and of others.
// The API refuses most of them, so they are written to the database.
func hostileSite(t *testing.T) (s *site.System, admin *account, users []*account) {
	t.Helper()
	s = startSite(t, "CORE_LIMIT_REGISTRATIONS=0", "CORE_LIMIT_REPORTS=0", "CORE_LIMIT_UPLOADS=0")
	admin = register(t, s, "admin@example.com", "Admin")
	s.Core.Run(t, "user", "permission", "-set", "2", "Admin@example.com")
	database := postgrestest.Conn(t, s.Core.Setting("CORE_DATABASE_URL"))
	write := func(sql string, values ...any) {
		t.Helper()
		if tag, err := database.Exec(t.Context(), sql, values...); err != nil || tag.RowsAffected() == 0 {
			t.Fatalf("%s: %v, %v", sql, tag, err)
		}
	}
	paintings := artwork.Skins()
	for i, text := range hostile {
		user := register(t, s, fmt.Sprintf("user%d@example.com", i), fmt.Sprintf("User%d", i))
		texture := user.Upload(t, fmt.Sprintf("Texture %d", i), paintings[i].Type, paintings[i].Sheet)
		tid := texture.TID
		admin.Call(t, http.MethodPost, "/api/closet", map[string]any{"tid": tid, "name": "An item"})
		admin.report(t, texture, "A reason")
		for _, owner := range []*account{admin, user} {
			name := fmt.Sprintf("P_%d_%d", owner.UID, i)
			owner.AddPlayer(t, name)
			write("UPDATE players SET name = $1, tid_skin = $2 WHERE name = $3", text, tid, name)
		}
		admin.Call(t, http.MethodPost, "/api/admin/notifications", map[string]any{"to": fmt.Sprint(admin.UID), "title": "A title", "content": "A content"})
		write("UPDATE messages SET title = $1, content = $1 WHERE title = 'A title'", text)
		write("UPDATE users SET nickname = $1 WHERE uid = $2", text, user.UID)
		write("UPDATE textures SET name = $1 WHERE tid = $2", text, tid)
		write("UPDATE closet_items SET item_name = $1 WHERE tid = $2", text, tid)
		write("UPDATE reports SET reason = $1 WHERE tid = $2", text+"\n"+text, tid)
		details := testenv.Must(json.Marshal(map[string]any{
			"name": text, "uploader": user.UID, "title": text, "from": map[string]any{"name": text, "type": "steve"}, "to": text,
		}))(t)
		write("INSERT INTO audit_log (actor, actor_email, address, action, subject, details) VALUES ($1, $2, '192.0.2.1', 'texture.change', $3, $4)",
			user.UID, text, fmt.Sprintf("texture:%d", tid), details)
		users = append(users, user)
	}
	write("UPDATE users SET nickname = $1 WHERE uid = $2", hostile[2], admin.UID)
	return s, admin, users
}

// findHarm returns what texts did to the page: a script that ran, elements that are not the page's,
// what is wider than the window, words that have changed places with a text in front or behind, and
// texts that could do so as they are not isolated.
const findHarm = `(() => {
	const problems = [];
	if (typeof pwned !== "undefined") problems.push("a script ran");
	for (const e of document.querySelectorAll("main :is(script, iframe, svg:not(.icon, .bars), object), img[src='x']")) problems.push("an element " + e.outerHTML);
	const wider = document.documentElement.scrollWidth - innerWidth;
	if (wider > 0) problems.push(wider + " pixels wider than the window");
	const dialog = document.querySelector("dialog");
	if (dialog && dialog.scrollWidth > dialog.clientWidth) problems.push("a dialog wider than itself");
	const isRTL = document.documentElement.dir === "rtl";
	const at = (node, offset) => { const range = document.createRange(); range.setStart(node, offset); range.setEnd(node, offset + 1); return range.getBoundingClientRect(); };
	const isInOrder = (first, second) => Math.abs(first.top - second.top) > Math.min(first.height, second.height) / 2 || (isRTL ? second.right <= first.left + 1 : second.left >= first.right - 1);
	for (const text of document.querySelectorAll("bdi")) {
		const block = text.closest("p, dd, li, h1, h2, h3, a, button, article");
		const nodes = [], walker = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
		while (walker.nextNode()) if (walker.currentNode.data.trim()) nodes.push(walker.currentNode);
		const own = nodes.filter((node) => text.contains(node));
		const rects = [...text.getClientRects()].filter((rect) => rect.width > 0);
		if (own.length === 0 || rects.length === 0) continue;
		const before = nodes[nodes.indexOf(own[0]) - 1], after = nodes[nodes.indexOf(own.at(-1)) + 1];
		if (before && !isInOrder(at(before, before.data.search(/\S\s*$/)), rects[0])) problems.push("behind " + before.data + " stands " + text.innerText);
		if (after && !isInOrder(rects.at(-1), at(after, after.data.search(/\S/)))) problems.push("before " + after.data + " stands " + text.innerText);
	}
	// Texts that are isolated by characters are those between U+2068 and U+2069.
	const all = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (all.nextNode()) {
		const {data, parentElement} = all.currentNode;
		if (/[\u202a-\u202e\u2066-\u2069\u0590-\u08ff]/.test(data.replace(/\u2068[^\u2066-\u2069]*\u2069/g, "")) && !parentElement.closest("bdi, .rich"))
			problems.push("not isolated: " + data);
	}
	return problems.join("\n");
})()`

// harmless fails the test if a text does harm to the page, at both widths.
func (tab *tab) harmless(t *testing.T, what string) {
	t.Helper()
	for _, width := range []int64{narrow, 1280} {
		tab.appear(t, appearance{width, "light"})
		testenv.Equal(t, eval[string](t, tab, findHarm), "", "harm to %s at %d pixels", what, width)
		tab.screenshot(t, fmt.Sprintf("hostile-%s-%d", what, width))
	}
}

// harmlessFromRight does the same with the page as in a right-to-left language.
func (tab *tab) harmlessFromRight(t *testing.T, what string) {
	t.Helper()
	eval[bool](t, tab, `(document.documentElement.dir = "rtl", true)`)
	tab.harmless(t, what+"-rtl")
}

// hostilePage is a page with texts, one of which it shows once it has all.
type hostilePage struct{ name, path, shows string }

func hostilePages(admin *account, users []*account) []hostilePage {
	user := func(a *account) string { return fmt.Sprintf("/admin/users?uid=%d", a.UID) }
	last := hostile[len(hostile)-1]
	return []hostilePage{
		{"home", "/", "Notifications"},
		{"players", "/players", last},
		{"wardrobe", "/players?pid=1&slot=skin", last},
		{"closet", "/closet", last},
		{"library", "/library", last},
		{"texture", "/texture?tid=1", hostile[0]},
		{"upload", "/upload", ""},
		{"account", "/account", ""},
		{"own-reports", "/reports", last},
		{"score", "/score", ""},
		{"connect", "/connect", ""},
		{"reports", "/admin/reports", last},
		{"textures", "/admin/textures", last},
		{"users", "/admin/users", last},
		{"user", user(users[0]), hostile[0]},
		{"user-wide", user(users[5]), hostile[5]},
		{"user-closet", user(admin), last},
		{"all-players", "/admin/players", last},
		{"notifications", "/admin/notifications", "Markdown"},
		{"audit", "/admin/audit", last},
		{"counts", "/admin", ""},
		{"refusals", "/admin/refusals", ""},
	}
}

// Texts of users are shown as they are. No script in them runs, words around them keep their places,
// and nothing is wider than the window, in a right-to-left language either.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	s, admin, users := hostileSite(t)
	w := plain.open(t, s.EdgeURL, "en")
	for _, page := range []string{"signin", "register", "reset", "verify"} {
		w.visit(t, "/"+page)
		w.await(t, `Boolean(document.querySelector("h1"))`)
		w.harmlessFromRight(t, page)
	}
	w.visit(t, "/signin")
	w.submit(t, "admin@example.com", password)
	w.await(t, `location.pathname === "/console/" && document.querySelectorAll(".list button.row").length > 0`)
	for i := range hostile {
		eval[bool](t, w, `(document.querySelector(".list button.row").click(), true)`)
		w.await(t, fmt.Sprintf(`document.querySelectorAll(".list .rich").length === %d`, i+1))
	}
	w.harmless(t, "opened")
	for _, page := range hostilePages(admin, users) {
		w.visit(t, page.path)
		w.settled(t)
		// Not every release has all of the texts.
		w.await(t, `document.querySelector("h1").innerText === "Not found" || document.body.innerText.includes(`+quote(page.shows)+`)`)
		w.settled(t)
		w.harmless(t, page.name)
		w.harmlessFromRight(t, page.name)
	}

	// Dialogs name what they act on, within a sentence.
	w.visit(t, "/admin/players")
	w.settled(t)
	for i := range 2 * len(hostile) {
		eval[bool](t, w, fmt.Sprintf(`([...document.querySelectorAll(".entry")][%d].querySelectorAll("button")[2].click(), true)`, i))
		w.await(t, `Boolean(document.querySelector("dialog[open] h2"))`)
		w.harmless(t, "dialog")
		const order = `(() => {
			const text = document.querySelector("dialog h2").firstChild;
			const at = (offset) => { const range = document.createRange(); range.setStart(text, offset); range.setEnd(text, offset + 1); return range.getBoundingClientRect(); };
			const first = at(0), end = at(text.data.length - 1);
			return text.data.startsWith("Give ") && text.data.endsWith(" to another user") && first.left < end.left || first.top < end.top;
		})()`
		if !eval[bool](t, w, order) {
			t.Errorf("the title of a dialog is out of order: %q", eval[string](t, w, `document.querySelector("dialog h2").innerText`))
		}
		w.press(t, "Close")
		w.closed(t)
	}
}

// A page of another origin cannot show the console in a frame, nor use the session of a user that is
// signed in, nor read anything. One on another port of the same host is of the same site: browsers
// send it the cookie.
func TestForeignPages(t *testing.T) {
	t.Parallel()
	s, w := openSite(t, "CORE_DEMO=1")
	w.signInAsDemo(t, "/", "Hello, Demo")
	session := cookieOf(t, w)
	if session == "" {
		t.Fatal("there is no cookie")
	}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		_, _ = rw.Write([]byte("<!doctype html><title>foreign</title><body>foreign"))
	}))
	t.Cleanup(server.Close)

	for _, origin := range []string{server.URL, strings.Replace(server.URL, "127.0.0.1", "localhost", 1)} {
		foreign := newForeign(t, w, origin)
		for _, init := range []string{
			`{method: "POST", mode: "cors", headers: {"Content-Type": "application/json"}, body: "{}"}`,
			`{method: "POST", mode: "cors", body: "{}"}`,
			`{method: "POST", mode: "no-cors", body: "{}"}`,
			`{method: "POST", mode: "no-cors", headers: {"Content-Type": "application/json", "Sec-Fetch-Site": "same-origin", "Origin": "` + s.EdgeURL + `"}, body: "{}"}`,
			`{method: "POST", mode: "cors", headers: {"X-Forwarded-Host": "` + strings.TrimPrefix(origin, "http://") + `", "Content-Type": "application/json"}, body: "{}"}`,
			`{method: "POST", mode: "no-cors", referrerPolicy: "no-referrer", body: new Blob(["{}"])}`,
			`{method: "DELETE", mode: "cors", headers: {"Content-Type": "application/json"}, body: "{}"}`,
			`{method: "GET", mode: "cors"}`,
		} {
			for _, path := range []string{"/console/session", "/console/session/token"} {
				foreign.reads(t, s.EdgeURL+path, init)
			}
		}
		for _, path := range []string{"/console/", "/api/user", "/api/closet", "/api/admin/users"} {
			foreign.reads(t, s.EdgeURL+path, `{mode: "cors"}`)
			foreign.reads(t, s.EdgeURL+path, `{mode: "no-cors"}`)
		}
		// A frame.
		eval[bool](t, foreign.tab, `new Promise((resolve) => {
			const frame = document.createElement("iframe");
			frame.onload = () => resolve(true);
			frame.src = `+quote(s.EdgeURL+"/console/")+`;
			document.body.append(frame);
		})`)
		select {
		case <-foreign.unframed:
		case <-time.After(walkTimeout):
			t.Errorf("%s can show the console in a frame", origin)
		}
		// A form, which needs no permission of the site.
		eval[bool](t, foreign.tab, `new Promise((resolve) => {
			const frame = document.createElement("iframe"), form = document.createElement("form");
			frame.name = "answer";
			form.method = "post"; form.enctype = "text/plain"; form.target = "answer"; form.action = `+quote(s.EdgeURL+"/console/session")+`;
			const field = document.createElement("input");
			field.name = '{"email":"demo@example.com","password":"demo-password","a":"'; field.value = '"}';
			form.append(field); document.body.append(frame, form);
			frame.onload = () => resolve(true);
			form.submit();
		})`)
		foreign.mu.Lock()
		for _, answer := range foreign.answers {
			t.Logf("%s: %s", origin, answer)
		}
		testenv.Check(t, len(foreign.unexpected) == 0, "%s is answered %q", origin, foreign.unexpected)
		testenv.Check(t, len(foreign.answers) > 0, "no request of %s has arrived", origin)
		foreign.mu.Unlock()
	}

	testenv.Equal(t, cookieOf(t, w), session, "the cookie")
	w.visit(t, "/players") // the session has not ended
	w.isAt(t, "/players", "Players")
}

// cookieOf returns the cookie of the session, which no page can read.
func cookieOf(t *testing.T, w *tab) string {
	t.Helper()
	answer := send(t, w, network.GetCookies, network.GetCookiesParams{URLs: []string{w.site + "/console/session/token"}})
	for _, cookie := range answer.Cookies {
		if strings.HasSuffix(cookie.Name, "veneer") {
			return cookie.Value
		}
	}
	return ""
}

// foreign is a page of another origin in the browser of a user that is signed in.
type foreign struct {
	*tab

	mu         sync.Mutex
	answers    []string // of the session routes
	unexpected []string // those that do not refuse the page because of its origin, or the method

	unframed chan struct{} // gets a value when the browser refuses to show the console in a frame
}

func newForeign(t *testing.T, w *tab, origin string) *foreign {
	t.Helper()
	ctx, cancel := chromedp.NewContext(w.ctx)
	t.Cleanup(cancel)
	f := &foreign{tab: &tab{ctx: ctx, site: origin, expected: new(sync.Map)}, unframed: make(chan struct{}, 1)}
	observe := func(event any) {
		f.mu.Lock()
		defer f.mu.Unlock()
		switch event := event.(type) {
		case *network.EventResponseReceived:
			if url := event.Response.URL; strings.Contains(url, "/console/session") {
				answer := fmt.Sprintf("%d %s", event.Response.Status, url)
				f.answers = append(f.answers, answer)
				if status := event.Response.Status; status != http.StatusForbidden && status != http.StatusMethodNotAllowed {
					f.unexpected = append(f.unexpected, answer)
				}
			}
		case *log.EventEntryAdded:
			if strings.Contains(event.Entry.Text, "frame-ancestors 'none'") {
				select {
				case f.unframed <- struct{}{}:
				default:
				}
			}
		}
	}
	testenv.Do(t, chromedp.Listen(ctx, observe))
	f.do(t, chromedp.Navigate(origin))
	return f
}

// reads fails the test if the page can read the response to a request with the user's cookies.
func (f *foreign) reads(t *testing.T, url, init string) {
	t.Helper()
	read := eval[string](t, f.tab, fmt.Sprintf(`fetch(%s, {credentials: "include", ...%s}).then((r) => r.text(), () => "")`, quote(url), init))
	testenv.Check(t, read == "", "%s reads %.100q of %s with %s", f.site, read, url, init)
}
