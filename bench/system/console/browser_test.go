package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// pollInterval is how often a page is asked for what a walk waits for. By default that is at each frame,
// which then has to be drawn.
const pollInterval = 50 * time.Millisecond

// walkTimeout is how long one step of a walk may take on a machine that runs all tests at once.
const walkTimeout = 3 * time.Minute

// tab is a page in a browser, at a site.
type tab struct {
	ctx  context.Context
	site string

	expected *sync.Map // paths of refused requests that a walk provokes

	mu       sync.Mutex
	problems []string
	pending  map[network.RequestID]bool // requests that are not answered yet
}

// newTab opens a page in the browser of a context, which expects requests to some paths to be refused.
func newTab(t *testing.T, parent context.Context, site string, expected *sync.Map, options ...chromedp.ContextOption) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(parent, options...)
	w := &tab{ctx: ctx, site: site, expected: expected, pending: map[network.RequestID]bool{}}
	t.Cleanup(func() {
		cancel()
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, problem := range w.problems {
			t.Errorf("the browser reports: %s", problem)
		}
	})
	testenv.Do(t, chromedp.Listen(ctx, w.observe))
	send(t, w, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}) // of several windows one has the focus
	w.do(t, chromedp.EmulateViewport(1280, 800))
	return w
}

// another opens another page of the same browser context, which shares its cookies.
func (tab *tab) another(t *testing.T) *tab {
	t.Helper()
	return newTab(t, tab.ctx, tab.site, tab.expected)
}

// observe records what must not happen.
func (tab *tab) observe(event any) {
	problem := ""
	switch event := event.(type) {
	case *runtime.EventExceptionThrown:
		problem = "exception: " + event.ExceptionDetails.Text
		if event.ExceptionDetails.Exception != nil {
			problem += " " + event.ExceptionDetails.Exception.Description
		}
	case *runtime.EventConsoleAPICalled:
		problem = fmt.Sprintf("console.%s: %v", event.Type, event.Args)
	case *log.EventEntryAdded:
		if address, err := url.Parse(event.Entry.URL); event.Entry.Level == log.EntryLevelVerbose || err == nil && tab.isExpected(address.Path) {
			return
		}
		problem = fmt.Sprintf("%s %s: %s %s", event.Entry.Source, event.Entry.Level, event.Entry.Text, event.Entry.URL)
	case *network.EventRequestWillBeSent:
		if requested := event.Request.URL; !strings.HasPrefix(requested, tab.site+"/") && !strings.HasPrefix(requested, "data:") && !strings.HasPrefix(requested, "blob:") {
			problem = "request to " + requested
		}
		tab.setPending(event.RequestID, true)
	case *network.EventLoadingFinished:
		tab.setPending(event.RequestID, false)
	case *network.EventLoadingFailed:
		tab.setPending(event.RequestID, false)
	case *page.EventFrameNavigated:
		if event.Frame.ParentID == "" {
			tab.leave()
		}
	}
	if problem != "" {
		tab.mu.Lock()
		defer tab.mu.Unlock()
		tab.problems = append(tab.problems, problem)
	}
}

func (tab *tab) setPending(id network.RequestID, isPending bool) {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	if isPending {
		tab.pending[id] = true
	} else {
		delete(tab.pending, id)
	}
}

// leave forgets the requests of the page before: no event tells of their end.
func (tab *tab) leave() {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	clear(tab.pending)
}

// answered waits until all requests of the page are answered: pages show a change before that. They send
// some after a frame is drawn.
func (tab *tab) answered(t *testing.T) {
	t.Helper()
	eval[bool](t, tab, "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(true)))))")
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for timeout := time.After(walkTimeout); ; {
		tab.mu.Lock()
		left := len(tab.pending)
		tab.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-timeout:
			tab.fail(t, fmt.Errorf("%d requests are not answered", left))
		}
	}
}

// expect lets requests to paths be refused, of all pages of the browser.
func (tab *tab) expect(paths ...string) {
	for _, path := range paths {
		tab.expected.Store(path, nil)
	}
}

func (tab *tab) isExpected(path string) bool {
	_, ok := tab.expected.Load(path)
	return ok
}

func send[P, R any](tb testing.TB, w *tab, command cdp.Command[P, R], params P) R {
	tb.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, walkTimeout)
	defer cancel()
	return testenv.Must(chromedp.Call(ctx, command, params))(tb)
}

func (tab *tab) do(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, walkTimeout)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		tab.fail(t, err)
	}
}

func eval[T any](t *testing.T, w *tab, expression string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, walkTimeout)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		w.fail(t, fmt.Errorf("%.200s: %w", expression, err))
	}
	return value
}

// fail ends the test with what the page shows.
func (tab *tab) fail(t *testing.T, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, walkTimeout)
	defer cancel()
	shown, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
	tab.mu.Lock()
	defer tab.mu.Unlock()
	t.Fatalf("%v\nthe page shows:\n%s\nthe browser reports %q", err, shown, tab.problems)
}

// await waits until an expression is true.
func (tab *tab) await(t *testing.T, expression string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, walkTimeout)
	defer cancel()
	for {
		_, err := chromedp.Run(ctx, chromedp.Poll[bool](expression, chromedp.WithPollingInterval(pollInterval), chromedp.WithPollingTimeout(walkTimeout)))
		if err == nil {
			return
		}
		if !strings.Contains(err.Error(), "(-32000)") || ctx.Err() != nil { // the page is being loaded again
			tab.fail(t, fmt.Errorf("waited for %s: %w", expression, err))
		}
	}
}

func quote(text string) string {
	quoted, _ := json.Marshal(text) // of a string it never fails
	return string(quoted)
}

// sees waits until the page shows texts.
func (tab *tab) sees(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		tab.await(t, "document.body.innerText.includes("+quote(text)+")")
	}
}

// visit loads a page of the console, and waits until it shows texts.
func (tab *tab) visit(t *testing.T, path string, texts ...string) {
	t.Helper()
	tab.do(t, chromedp.Navigate(tab.site+"/console"+path))
	tab.sees(t, texts...)
}

// isAt waits until the browser is at a path, and the page is shown with texts.
func (tab *tab) isAt(t *testing.T, path, heading string, texts ...string) {
	t.Helper()
	tab.await(t, "location.pathname + location.search === "+quote("/console"+path)+" && document.querySelector('h1')?.innerText === "+quote(heading))
	tab.sees(t, texts...)
}

// arrive loads a page of the console, and waits until it is shown.
func (tab *tab) arrive(t *testing.T, path, heading string) {
	t.Helper()
	tab.visit(t, path)
	tab.isAt(t, path, heading)
}

// follow presses a link or button, and waits until the page to which it leads is shown.
func (tab *tab) follow(t *testing.T, name, path, heading string, texts ...string) {
	t.Helper()
	tab.press(t, name)
	tab.isAt(t, path, heading, texts...)
}

// signOut signs out, once all requests of the page are answered: one that comes after the session's end is a 401.
func (tab *tab) signOut(t *testing.T) {
	t.Helper()
	tab.answered(t)
	tab.follow(t, "Sign out", "/signin", "Sign in")
}

func (tab *tab) back(t *testing.T) {
	t.Helper()
	eval[bool](t, tab, "(history.back(), true)")
}

// scriptAtStart has pages run a script before their own.
func (tab *tab) scriptAtStart(t *testing.T, script string) {
	t.Helper()
	send(t, tab, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
}

// pressAndSee presses a button or link, and waits until the page shows texts.
func (tab *tab) pressAndSee(t *testing.T, name string, texts ...string) {
	t.Helper()
	tab.press(t, name)
	tab.sees(t, texts...)
}

// pressAndAwait presses a button or link, and waits until an expression is true.
func (tab *tab) pressAndAwait(t *testing.T, name, expression string) {
	t.Helper()
	tab.press(t, name)
	tab.await(t, expression)
}

// press presses the buttons or links with names for assistive technology, one after the other, each as
// soon as there is one. In a dialog the page behind it is out of reach.
func (tab *tab) press(t *testing.T, names ...string) {
	t.Helper()
	const find = `[...(document.querySelector("dialog[open]") ?? document).querySelectorAll("button, a")]` +
		`.find((e) => (e.getAttribute("aria-label") ?? e.innerText).trim() === %s && !e.disabled)`
	for _, name := range names {
		element := fmt.Sprintf(find, quote(name))
		tab.await(t, "Boolean("+element+")")
		eval[bool](t, tab, "("+element+".click(), true)")
	}
}

// fill puts values into fields, in place of their content: pairs of a name and a value.
func (tab *tab) fill(t *testing.T, fields ...string) {
	t.Helper()
	for field := range slices.Chunk(fields, 2) {
		tab.fillIn(t, fmt.Sprintf("input[name=%q]", field[0]), field[1])
	}
}

// fillIn puts a value into the field of a selector, in place of its content, by one event of input. Walks by
// keyboard type key by key, each of which is three messages.
func (tab *tab) fillIn(t *testing.T, selector, value string) {
	t.Helper()
	field := "document.querySelector(" + quote(selector) + ")"
	tab.await(t, field+"?.getClientRects().length > 0")
	eval[bool](t, tab, "("+field+".focus(), "+field+".select(), true)")
	send(t, tab, input.InsertText, input.InsertTextParams{Text: value})
}

// enter signs in on the page that is shown, and waits for the page from which it came.
func (tab *tab) enter(t *testing.T, email, password, path, heading string, texts ...string) {
	t.Helper()
	tab.submit(t, email, password)
	tab.isAt(t, path, heading, texts...)
}

// submit sends the form of the page for signing in, in any language.
func (tab *tab) submit(t *testing.T, email, password string) {
	t.Helper()
	tab.fill(t, "email", email, "password", password)
	eval[bool](t, tab, `(document.querySelector("form button.main").click(), true)`)
}

// pressEnter presses Enter as a keyboard does: chromedp.KeyEvent sends what the key does and what it types
// apart, and between the two a link may open a dialog: its first button would get the latter.
func (tab *tab) pressEnter(t *testing.T) {
	t.Helper()
	key := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: "Enter", Code: "Enter", Text: "\r", WindowsVirtualKeyCode: 13}
	send(t, tab, input.DispatchKeyEvent, key)
	key.Type, key.Text = input.DispatchKeyEventTypeKeyUp, ""
	send(t, tab, input.DispatchKeyEvent, key)
}

// tabTo presses Tab until the focus is on the element with a name: for assistive technology, in its form,
// or its text.
func (tab *tab) tabTo(t *testing.T, name string) {
	t.Helper()
	const focused = `(document.activeElement.getAttribute("aria-label") ?? document.activeElement.name ?? "") || document.activeElement.innerText`
	for range 150 {
		tab.do(t, chromedp.KeyEvent(kb.Tab))
		if got := eval[string](t, tab, focused); got == name {
			if eval[bool](t, tab, `getComputedStyle(document.activeElement).outlineStyle === "none" && !document.activeElement.matches("input[type=file]")`) {
				t.Errorf("the focus on %s cannot be seen", name)
			}
			return
		}
	}
	tab.fail(t, fmt.Errorf("the focus does not come to %s", name))
}
