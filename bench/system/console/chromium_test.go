//go:build !race

package console

import (
	"context"
	"flag"
	"os/exec"
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
	plain = &chromium{flags: []chromedp.ExecAllocatorOption{chromedp.Flag("disable-gpu", true)}}
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
	path, err := exec.LookPath("chromium")
	if err != nil {
		testenv.Skip(tb, "chromium is not installed, or not in PATH: deploy/dev/install chromium installs it")
	}
	return path
}

// launch starts a Chromium, and returns the context of its first page.
func launch(path string, flags ...chromedp.ExecAllocatorOption) (ctx context.Context, stop func(), err error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.Flag("no-sandbox", true), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		// Pages under the address bar, which took 2 s of a processor for each window, and a spare process for each in use.
		chromedp.Flag("disable-features", "Translate,WebUIOmniboxPopup,WebUIOmniboxAimPopup,SpareRendererForSitePerProcess"),
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
	if language != "en" {
		w.speak(t, language)
	}
	return w
}

// speak has the page's requests and scripts prefer a language.
func (w *tab) speak(t *testing.T, language string) {
	t.Helper()
	version := send(t, w, browser.GetVersion, cdp.Empty{})
	send(t, w, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{UserAgent: version.UserAgent, AcceptLanguage: language})
	send(t, w, emulation.SetLocaleOverride, emulation.SetLocaleOverrideParams{Locale: strings.ReplaceAll(language, "-", "_")})
}
