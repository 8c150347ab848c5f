package console

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// chromium is a browser process that walks share: each has a browser context of its own, with its own
// cookies, cache and storage.
type chromium struct {
	flags []chromedp.ExecAllocatorOption

	start sync.Once
	ctx   context.Context
	stop  func()
	err   error
}

var (
	plain = &chromium{flags: []chromedp.ExecAllocatorOption{chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-3d-apis", true)}}
	// SwiftShader draws WebGL, and all else with it, which takes a multiple of the processor time.
	withWebGL = &chromium{flags: []chromedp.ExecAllocatorOption{chromedp.Flag("use-angle", "swiftshader"), chromedp.Flag("enable-unsafe-swiftshader", true)}}
)

// Three walks at once use two processors: some wait for the clock, and each for its page.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "3"); err != nil {
		panic(err)
	}
	m.Run()
	for _, c := range []*chromium{plain, withWebGL} {
		if c.stop != nil {
			c.stop()
		}
	}
}

// program returns the path of Chromium. Where it is not installed the test is skipped.
func program(tb testing.TB) string {
	tb.Helper()
	const name = "chromium-headless-shell" // a walk in it takes half the processor time of one in chromium
	path, err := exec.LookPath(name)
	if err != nil {
		testenv.Skip(tb, name+" is not installed, or not in PATH: deploy/dev/install "+name+" installs it")
	}
	return path
}

// launch starts a Chromium, and returns the context of its first page.
func launch(path string, flags ...chromedp.ExecAllocatorOption) (ctx context.Context, stop func(), err error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.Flag("no-sandbox", true), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-features", "SpareRendererForSitePerProcess"), // a spare process for each in use
	)
	allocator, end := chromedp.NewExecAllocator(context.Background(), append(options, flags...)...)
	ctx, cancel := chromedp.NewContext(allocator)
	return ctx, func() { cancel(); end() }, chromedp.Do(ctx)
}

// open opens a page in a browser context of its own, for a user that reads a language.
func (c *chromium) open(t *testing.T, site, language string) *tab {
	t.Helper()
	path := program(t)
	c.start.Do(func() {
		c.ctx, c.stop, c.err = launch(path, append(c.flags, chromedp.Flag("accept-lang", "en"), chromedp.Flag("lang", "en"))...)
	})
	if c.err != nil {
		t.Fatal(c.err)
	}
	w := newTab(t, c.ctx, site, new(sync.Map), chromedp.WithNewBrowserContext())
	if language != "en" { // which the page's requests and scripts prefer
		version := send(t, w, browser.GetVersion, cdp.Empty{})
		send(t, w, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{UserAgent: version.UserAgent, AcceptLanguage: language})
		send(t, w, emulation.SetLocaleOverride, emulation.SetLocaleOverrideParams{Locale: strings.ReplaceAll(language, "-", "_")})
	}
	return w
}

const top = "../../.."

// appearance is how a page is shown.
type appearance struct {
	width  int64
	scheme string
}

// Widths of the window, in CSS pixels.
const (
	narrow = 320 // at which a page of 1,280 pixels is shown when it is enlarged four times
	phone  = 360
	wide   = 1280
)

// inAllAppearances is set to have axe-core look for barriers in all appearances, and to take
// screenshots. Else it looks at 320 pixels in light and at 1,280 pixels in dark: contrast does not depend
// on the width, nor other barriers on the scheme.
var inAllAppearances = os.Getenv("TEST_APPEARANCES") == "all"

// appear emulates a width of the window and a colour scheme.
func (tab *tab) appear(t *testing.T, a appearance) {
	t.Helper()
	tab.do(t, chromedp.EmulateViewport(a.width, 800))
	send(t, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: a.scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
	})
}

// inspect has axe-core look for barriers at 320 and 1,280 pixels, light and dark, where nothing may be
// wider than the window. In all appearances it takes screenshots at 360 and 1,280 pixels.
func (tab *tab) inspect(t *testing.T, name string) {
	t.Helper()
	tab.answered(t)
	tab.await(t, `!document.querySelector(".results[aria-busy]") && [...document.images].every((i) => i.complete || i.getBoundingClientRect().top > innerHeight)`)
	appearances := []appearance{{narrow, "light"}, {wide, "dark"}}
	if inAllAppearances {
		appearances = []appearance{{narrow, "light"}, {narrow, "dark"}, {phone, "light"}, {phone, "dark"}, {wide, "light"}, {wide, "dark"}}
	}
	for _, a := range appearances {
		tab.appear(t, a)
		what := fmt.Sprintf("%s-%d-%s", name, a.width, a.scheme)
		if wider := eval[int](t, tab, "document.documentElement.scrollWidth - innerWidth"); wider > 0 {
			t.Errorf("%s is %d pixels wider than the window", what, wider)
		}
		if a.width != narrow {
			tab.screenshot(t, what)
		}
		if a.width != phone {
			tab.await(t, "document.getAnimations().length === 0") // a colour in transition may lack contrast
			tab.checkBarriers(t, what)
		}
	}
}

// screenshot writes a picture of the whole page to .dev/screenshots, if there are to be any.
func (tab *tab) screenshot(t *testing.T, name string) {
	t.Helper()
	if !inAllAppearances {
		return
	}
	directory := filepath.Join(top, ".dev/screenshots")
	testenv.Do(t, os.MkdirAll(directory, 0o755))
	ctx, cancel := context.WithTimeout(tab.ctx, walkTimeout)
	defer cancel()
	picture := testenv.Must(chromedp.Run(ctx, chromedp.FullScreenshot(100)))(t)
	testenv.Do(t, os.WriteFile(filepath.Join(directory, name+".png"), picture, 0o600))
}

// checkBarriers has axe-core look for barriers by some rules, or by all. Without its package the test goes on, as it has
// enough to do.
func (tab *tab) checkBarriers(t *testing.T, what string, rules ...string) {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(top, ".dev/node/console/node_modules/axe-core/axe.min.js"))
	if err != nil {
		return // TestBarriersAreLookedFor is skipped
	}
	if !eval[bool](t, tab, `typeof axe === "object"`) {
		eval[bool](t, tab, string(source)+"; true")
	}
	options := map[string]any{"resultTypes": []string{"violations"}, "preload": false}
	if len(rules) > 0 {
		options["runOnly"] = rules
	}
	found := eval[string](t, tab, `axe.run(`+string(testenv.Must(json.Marshal(options))(t))+`).then(({violations}) => JSON.stringify(violations.map((v) => [v.id, v.help, v.nodes.map((n) => n.html + " " + n.failureSummary)]), null, 1))`)
	testenv.Equal(t, found, "[]", "axe finds in %s", what)
}

// The other tests have axe-core look for barriers if it is there.
func TestBarriersAreLookedFor(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(filepath.Join(top, ".dev/node/console/node_modules/axe-core/axe.min.js")); err != nil {
		testenv.Skip(t, "axe-core is not in .dev/node/console: install Node 20.19 or later with npm, then run deploy/dev/node")
	}
}
