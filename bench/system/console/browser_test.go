//go:build !race

package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/veneer-skins/veneer/shared/testenv"
)

const top = "../../.."

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
}

// open starts a browser with a page, in a language.
func open(t *testing.T, site, language string) *tab {
	t.Helper()
	return openWith(t, site, language, chromedp.Flag("disable-gpu", true))
}

func openWith(t *testing.T, site, language string, flags ...chromedp.ExecAllocatorOption) *tab {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		testenv.Skip(t, "chromium is not installed, or not in PATH: deploy/dev/install chromium installs it")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.Flag("no-sandbox", true), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("accept-lang", language), chromedp.Flag("lang", language),
	)
	options = append(options, flags...)
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...) //nolint:usetesting // the browser must not end before its clean-up
	ctx, cancel := chromedp.NewContext(allocator)
	w := &tab{ctx: ctx, site: site, expected: new(sync.Map)}
	t.Cleanup(func() {
		cancel()
		stop()
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, problem := range w.problems {
			t.Errorf("the browser reports: %s", problem)
		}
	})
	if err := chromedp.Listen(ctx, w.observe); err != nil {
		t.Fatal(err)
	}
	return w
}

// another opens another page of the same browser, which shares its cookies unless it is in a new
// browser context.
func (w *tab) another(t *testing.T, options ...chromedp.ContextOption) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(w.ctx, options...)
	second := &tab{ctx: ctx, site: w.site, expected: w.expected}
	t.Cleanup(func() {
		cancel()
		second.mu.Lock()
		defer second.mu.Unlock()
		for _, problem := range second.problems {
			t.Errorf("the second page reports: %s", problem)
		}
	})
	if err := chromedp.Listen(ctx, second.observe); err != nil {
		t.Fatal(err)
	}
	return second
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
	}
	if problem != "" {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.problems = append(w.problems, problem)
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
	if _, err := chromedp.Run(ctx, chromedp.Poll[bool](expression, chromedp.WithPollingInterval(pollInterval))); err != nil {
		w.fail(t, fmt.Errorf("waited for %s: %w", expression, err))
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

// fill types a value into a field, in place of its content.
func (w *tab) fill(t *testing.T, name, value string) {
	t.Helper()
	field := fmt.Sprintf("input[name=%q]", name)
	w.do(t, chromedp.WaitVisible(field))
	eval[bool](t, w, fmt.Sprintf("(document.querySelector(%s).select(), true)", quote(field)))
	w.do(t, chromedp.SendKeys(field, value))
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

// appearance is how a page is shown.
type appearance struct {
	width  int64
	scheme string
}

// narrow is the width at which a page of 1,280 pixels is shown when it is enlarged four times.
const narrow = 320

// inAllAppearances is set to have axe-core look for all barriers in all appearances, and to take
// screenshots, which takes three times as long. Else axe-core looks for all at 320 pixels, for all but
// contrast at 1,280 pixels, and for contrast in dark: contrast does not depend on the width, nor other
// barriers on the scheme.
var inAllAppearances = os.Getenv("TEST_APPEARANCES") == "all"

// appear emulates a width of the window and a colour scheme.
func (w *tab) appear(t *testing.T, a appearance) {
	t.Helper()
	w.do(t, chromedp.EmulateViewport(a.width, 800))
	ctx, cancel := context.WithTimeout(w.ctx, walkTimeout)
	defer cancel()
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: a.scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
	}); err != nil {
		t.Fatal(err)
	}
}

// inspect has axe-core look for barriers at 320 and 1,280 pixels, light and dark, where nothing may be
// wider than the window. In all appearances it takes screenshots at 360 and 1,280 pixels.
func (w *tab) inspect(t *testing.T, name string) {
	t.Helper()
	w.await(t, `[...document.images].every((i) => i.complete || i.getBoundingClientRect().top > innerHeight)`)
	const all, contrast, allButContrast = `{}`, `{runOnly: ["color-contrast"]}`, `{rules: {"color-contrast": {enabled: false}}}`
	type check struct {
		appearance
		options string // of axe-core, empty to leave it out
	}
	checks := []check{{appearance{narrow, "light"}, all}, {appearance{1280, "dark"}, contrast}, {appearance{1280, "light"}, allButContrast}}
	if inAllAppearances {
		checks = []check{
			{appearance{narrow, "light"}, all},
			{appearance{narrow, "dark"}, all},
			{appearance{360, "light"}, ""},
			{appearance{360, "dark"}, ""},
			{appearance{1280, "dark"}, all},
			{appearance{1280, "light"}, all},
		}
	}
	for _, c := range checks {
		w.appear(t, c.appearance)
		if wider := eval[int](t, w, "document.documentElement.scrollWidth - innerWidth"); wider > 0 {
			t.Errorf("%s at %d pixels is %d pixels wider than the window", name, c.width, wider)
		}
		if c.width != narrow {
			w.screenshot(t, fmt.Sprintf("%s-%d-%s", name, c.width, c.scheme))
		}
		if c.options != "" {
			w.await(t, "document.getAnimations().length === 0") // a colour in transition may lack contrast
			w.checkBarriers(t, fmt.Sprintf("%s at %d pixels, %s", name, c.width, c.scheme), c.options)
		}
	}
}

// screenshot writes a picture of the whole page to .dev/screenshots, if there are to be any.
func (w *tab) screenshot(t *testing.T, name string) {
	t.Helper()
	if !inAllAppearances {
		return
	}
	directory := filepath.Join(top, ".dev/screenshots")
	if err := os.MkdirAll(directory, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(w.ctx, walkTimeout)
	defer cancel()
	picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(directory, name+".png"), picture, 0o600); err != nil {
		t.Fatal(err)
	}
}

// checkBarriers has axe-core look for barriers, with its options. Without its package the test goes on, as it has
// enough to do.
func (w *tab) checkBarriers(t *testing.T, what, options string) {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(top, ".dev/node/console/node_modules/axe-core/axe.min.js"))
	if err != nil {
		return // TestBarriersAreLookedFor is skipped
	}
	if !eval[bool](t, w, `typeof axe === "object"`) {
		eval[bool](t, w, string(source)+"; true")
	}
	found := eval[string](t, w, `axe.run(`+options+`).then(({violations}) => JSON.stringify(violations.map((v) => [v.id, v.help, v.nodes.map((n) => n.html + " " + n.failureSummary)]), null, 1))`)
	if found != "[]" {
		t.Errorf("axe finds in %s:\n%s", what, found)
	}
}

// The other tests have axe-core look for barriers if it is there.
func TestBarriersAreLookedFor(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(filepath.Join(top, ".dev/node/console/node_modules/axe-core/axe.min.js")); err != nil {
		testenv.Skip(t, "axe-core is not in .dev/node/console: install Node 20.19 or later with npm, then run deploy/dev/node")
	}
}
