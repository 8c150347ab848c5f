//go:build !race

package console

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/veneer-skins/veneer/shared/testenv"
)

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
func (w *tab) appear(t *testing.T, a appearance) {
	t.Helper()
	w.do(t, chromedp.EmulateViewport(a.width, 800))
	send(t, w, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: a.scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
	})
}

// inspect has axe-core look for barriers at 320 and 1,280 pixels, light and dark, where nothing may be
// wider than the window. In all appearances it takes screenshots at 360 and 1,280 pixels.
func (w *tab) inspect(t *testing.T, name string) {
	t.Helper()
	w.answered(t)
	w.await(t, `!document.querySelector(".results[aria-busy]") && [...document.images].every((i) => i.complete || i.getBoundingClientRect().top > innerHeight)`)
	appearances := []appearance{{narrow, "light"}, {wide, "dark"}}
	if inAllAppearances {
		appearances = []appearance{{narrow, "light"}, {narrow, "dark"}, {phone, "light"}, {phone, "dark"}, {wide, "light"}, {wide, "dark"}}
	}
	for _, a := range appearances {
		w.appear(t, a)
		what := fmt.Sprintf("%s-%d-%s", name, a.width, a.scheme)
		if wider := eval[int](t, w, "document.documentElement.scrollWidth - innerWidth"); wider > 0 {
			t.Errorf("%s is %d pixels wider than the window", what, wider)
		}
		if a.width != narrow {
			w.screenshot(t, what)
		}
		if a.width != phone {
			w.await(t, "document.getAnimations().length === 0") // a colour in transition may lack contrast
			w.checkBarriers(t, what)
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

// checkBarriers has axe-core look for barriers. Without its package the test goes on, as it has enough
// to do.
func (w *tab) checkBarriers(t *testing.T, what string) {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(top, ".dev/node/console/node_modules/axe-core/axe.min.js"))
	if err != nil {
		return // TestBarriersAreLookedFor is skipped
	}
	if !eval[bool](t, w, `typeof axe === "object"`) {
		eval[bool](t, w, string(source)+"; true")
	}
	found := eval[string](t, w, `axe.run({resultTypes: ["violations"], preload: false}).then(({violations}) => JSON.stringify(violations.map((v) => [v.id, v.help, v.nodes.map((n) => n.html + " " + n.failureSummary)]), null, 1))`)
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
