//go:build !race

package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
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
)

// pollInterval is how often a page is asked for what a walk waits for. By default that is at each frame,
// which then has to be drawn.
const pollInterval = 50 * time.Millisecond

// walkTimeout is how long one step of a walk may take.
const walkTimeout = 60 * time.Second

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
	if err := chromedp.Listen(ctx, w.observe); err != nil {
		t.Fatal(err)
	}
	send(t, w, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}) // of several windows one has the focus
	w.do(t, chromedp.EmulateViewport(1280, 800))
	return w
}

// another opens another page of the same browser context, which shares its cookies.
func (w *tab) another(t *testing.T) *tab {
	t.Helper()
	return newTab(t, w.ctx, w.site, w.expected)
}

// observe records what must not happen.
func (w *tab) observe(event any) {
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
		if address, err := url.Parse(event.Entry.URL); event.Entry.Level == log.EntryLevelVerbose || err == nil && w.isExpected(address.Path) {
			return
		}
		problem = fmt.Sprintf("%s %s: %s %s", event.Entry.Source, event.Entry.Level, event.Entry.Text, event.Entry.URL)
	case *network.EventRequestWillBeSent:
		if requested := event.Request.URL; !strings.HasPrefix(requested, w.site+"/") && !strings.HasPrefix(requested, "data:") && !strings.HasPrefix(requested, "blob:") {
			problem = "request to " + requested
		}
		w.setPending(event.RequestID, true)
	case *network.EventLoadingFinished:
		w.setPending(event.RequestID, false)
	case *network.EventLoadingFailed:
		w.setPending(event.RequestID, false)
	case *page.EventFrameNavigated:
		if event.Frame.ParentID == "" {
			w.leave()
		}
	}
	if problem != "" {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.problems = append(w.problems, problem)
	}
}

func (w *tab) setPending(id network.RequestID, isPending bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if isPending {
		w.pending[id] = true
	} else {
		delete(w.pending, id)
	}
}

// leave forgets the requests of the page before: no event tells of their end.
func (w *tab) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.pending)
}

// answered waits until all requests of the page are answered: pages show a change before that. They send
// some after a frame is drawn.
func (w *tab) answered(t *testing.T) {
	t.Helper()
	eval[bool](t, w, "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(true)))))")
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for timeout := time.After(walkTimeout); ; {
		w.mu.Lock()
		left := len(w.pending)
		w.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-timeout:
			w.fail(t, fmt.Errorf("%d requests are not answered", left))
		}
	}
}

// expect lets requests to paths be refused, of all pages of the browser.
func (w *tab) expect(paths ...string) {
	for _, path := range paths {
		w.expected.Store(path, nil)
	}
}

func (w *tab) isExpected(path string) bool {
	_, ok := w.expected.Load(path)
	return ok
}

// send sends a command of the DevTools protocol.
func send[P, R any](tb testing.TB, w *tab, command cdp.Command[P, R], params P) R {
	tb.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, walkTimeout)
	defer cancel()
	answer, err := chromedp.Call(ctx, command, params)
	if err != nil {
		tb.Fatal(err)
	}
	return answer
}

// do runs steps.
func (w *tab) do(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, walkTimeout)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		w.fail(t, err)
	}
}

// eval returns the value of an expression in the page.
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
func (w *tab) fail(t *testing.T, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, walkTimeout)
	defer cancel()
	shown, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
	w.mu.Lock()
	defer w.mu.Unlock()
	t.Fatalf("%v\nthe page shows:\n%s\nthe browser reports %q", err, shown, w.problems)
}

// await waits until an expression is true.
func (w *tab) await(t *testing.T, expression string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, walkTimeout)
	defer cancel()
	for {
		_, err := chromedp.Run(ctx, chromedp.Poll[bool](expression, chromedp.WithPollingInterval(pollInterval), chromedp.WithPollingTimeout(walkTimeout)))
		if err == nil {
			return
		}
		if !strings.Contains(err.Error(), "(-32000)") || ctx.Err() != nil { // the page is being loaded again
			w.fail(t, fmt.Errorf("waited for %s: %w", expression, err))
		}
	}
}

// quote returns a text as a JavaScript literal.
func quote(text string) string {
	quoted, _ := json.Marshal(text) // of a string it never fails
	return string(quoted)
}

// sees waits until the page shows a text.
func (w *tab) sees(t *testing.T, text string) {
	t.Helper()
	w.await(t, "document.body.innerText.includes("+quote(text)+")")
}

// visit loads a page of the console.
func (w *tab) visit(t *testing.T, path string) {
	t.Helper()
	w.do(t, chromedp.Navigate(w.site+"/console"+path))
}

// isAt waits until the URL is that of a page, and the page is shown.
func (w *tab) isAt(t *testing.T, path, heading string) {
	t.Helper()
	w.await(t, "location.pathname + location.search === "+quote("/console"+path)+" && document.querySelector('h1')?.innerText === "+quote(heading))
}

// press presses the button or link with a name for assistive technology, as soon as there is one. In
// a dialog the page behind it is out of reach.
func (w *tab) press(t *testing.T, name string) {
	t.Helper()
	const find = `[...(document.querySelector("dialog[open]") ?? document).querySelectorAll("button, a")]` +
		`.find((e) => (e.getAttribute("aria-label") ?? e.innerText).trim() === %s && !e.disabled)`
	element := fmt.Sprintf(find, quote(name))
	w.await(t, "Boolean("+element+")")
	eval[bool](t, w, "("+element+".click(), true)")
}

// fill puts a value into a field, in place of its content.
func (w *tab) fill(t *testing.T, name, value string) {
	t.Helper()
	w.fillIn(t, fmt.Sprintf("input[name=%q]", name), value)
}

// fillIn puts a value into the field of a selector, in place of its content, by one event of input. Walks by
// keyboard type key by key, each of which is three messages.
func (w *tab) fillIn(t *testing.T, selector, value string) {
	t.Helper()
	field := "document.querySelector(" + quote(selector) + ")"
	w.await(t, field+"?.checkVisibility()")
	eval[bool](t, w, "("+field+".focus(), "+field+".select(), true)")
	send(t, w, input.InsertText, input.InsertTextParams{Text: value})
}

// enter signs in on the page that is shown, and waits for the page from which it came.
func (w *tab) enter(t *testing.T, email, password, path, heading string) {
	t.Helper()
	w.submit(t, email, password)
	w.isAt(t, path, heading)
}

// submit sends the form of the page for signing in, in any language.
func (w *tab) submit(t *testing.T, email, password string) {
	t.Helper()
	w.fill(t, "email", email)
	w.fill(t, "password", password)
	eval[bool](t, w, `(document.querySelector("form button.main").click(), true)`)
}

// pressEnter presses Enter as a keyboard does: chromedp.KeyEvent sends what the key does and what it types
// apart, and between the two a link may open a dialog: its first button would get the latter.
func (w *tab) pressEnter(t *testing.T) {
	t.Helper()
	key := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: "Enter", Code: "Enter", Text: "\r", WindowsVirtualKeyCode: 13}
	send(t, w, input.DispatchKeyEvent, key)
	key.Type, key.Text = input.DispatchKeyEventTypeKeyUp, ""
	send(t, w, input.DispatchKeyEvent, key)
}

// tabTo presses Tab until the focus is on the element with a name: for assistive technology, in its form,
// or its text.
func (w *tab) tabTo(t *testing.T, name string) {
	t.Helper()
	const focused = `(document.activeElement.getAttribute("aria-label") ?? document.activeElement.name ?? "") || document.activeElement.innerText`
	for range 150 {
		w.do(t, chromedp.KeyEvent(kb.Tab))
		if got := eval[string](t, w, focused); got == name {
			if eval[bool](t, w, `getComputedStyle(document.activeElement).outlineStyle === "none" && !document.activeElement.matches("input[type=file]")`) {
				t.Errorf("the focus on %s cannot be seen", name)
			}
			return
		}
	}
	w.fail(t, fmt.Errorf("the focus does not come to %s", name))
}
