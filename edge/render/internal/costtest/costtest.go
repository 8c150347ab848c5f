// Package costtest measures and tests the estimated cost of rendering.
package costtest

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Accuracy compares the estimated cost of pictures of noise, with a reducer of exact sizes, with the CPU time of the
// process, as libvips uses more than one processor. It reports the median of the measured times as a multiple of the
// estimates, and the highest and the lowest multiple of that median, from 5 ms on.
func Accuracy(b *testing.B, reducer render.Reducer) {
	b.Helper()
	all := pictures(reducer)
	for b.Loop() {
		for _, p := range all {
			p.render(b, reducer)
		}
	}
	all = slices.DeleteFunc(all, func(p *picture) bool { return max(p.cost, p.took) < 5*time.Millisecond })
	slices.SortFunc(all, func(a, b *picture) int { return cmp.Compare(a.ratio(), b.ratio()) })
	median, lowest, highest := all[len(all)/2].ratio(), all[0], all[len(all)-1]
	b.Logf("lowest: %s; highest: %s", lowest, highest)
	b.ReportMetric(median, "median")
	b.ReportMetric(lowest.ratio()/median, "lowest/median")
	b.ReportMetric(highest.ratio()/median, "highest/median")
}

// pictures returns the pictures that Accuracy measures.
func pictures(reducer render.Reducer) (all []*picture) {
	scales := []int{1, 8, 16}
	if testing.Short() {
		scales = scales[:1]
	}
	for _, scale := range scales {
		noise, cape := skintest.Noise(4, 64*scale, 64*scale), skintest.Noise(4, 64*scale, 32*scale)
		for _, view := range measured(reducer) {
			sheet, worn := noise, skin.Sheet{}
			if view.Type == skin.Cape {
				sheet = cape
			} else if view.Wear != render.WearNothing {
				worn = cape
			}
			for _, view.Format = range []render.Format{render.PNG, render.WebP} {
				cost := render.New(reducer).Cost(view, sheet.Width, worn.Width)
				all = append(all, &picture{sheet: sheet, worn: worn, view: view, cost: cost, took: time.Hour})
			}
		}
	}
	return all
}

// picture is a picture that Accuracy measures.
type picture struct {
	sheet, worn skin.Sheet
	view        render.View
	cost, took  time.Duration // estimated, and the shortest that was measured
}

func (p *picture) ratio() float64 { return float64(p.took) / float64(p.cost) }

func (p *picture) String() string {
	return fmt.Sprintf("%+v of scale %d takes %s, estimated %s", p.view, p.sheet.Scale(), p.took, p.cost)
}

// render measures the CPU time of rendering the picture with no cached sample map.
func (p *picture) render(tb testing.TB, reducer render.Reducer) {
	tb.Helper()
	r := render.New(reducer)
	before := ProcessorTime(tb)
	_, _, err := r.Render(p.sheet, p.worn, p.view)
	testenv.Do(tb, err)
	p.took = min(p.took, ProcessorTime(tb)-before)
}

// measured returns the views that Accuracy measures.
func measured(reducer render.Reducer) []render.View {
	if reducer == nil {
		return drawn
	}
	var views []render.View
	for _, mode := range []render.Mode{render.Flat, render.Isometric, render.Bust, render.Body, render.Front} {
		for _, requested := range []int{100, 500, 1000} {
			size, exact := mode.ExactOf(requested)
			views = append(views, render.View{Mode: mode, Type: skin.Classic, Size: size, Exact: exact})
		}
	}
	return views
}

// drawn are views that are not reduced.
var drawn = []render.View{
	{Mode: render.Flat, Type: skin.Classic, Size: 512},
	{Mode: render.Isometric, Type: skin.Classic, Size: 512},
	{Mode: render.Preview, Type: skin.Slim, Size: 64},
	{Mode: render.Preview, Type: skin.Classic, Size: 400},
	{Mode: render.Preview, Type: skin.Classic, Size: 1024},
	{Mode: render.Preview, Type: skin.Cape, Size: 1024},
	{Mode: render.LegacySheet, Type: skin.Slim, Size: 32},
	{Mode: render.Card, Type: skin.Classic, Size: 630},
	{Mode: render.Card, Type: skin.Slim, Size: 630, Wear: render.WearElytra},
	{Mode: render.Card, Type: skin.Cape, Size: 630},
	{Mode: render.Isometric, Type: skin.Classic, Size: 512, Attitude: render.Isometric.Attitude(2, render.Tilt25)},
	{Mode: render.Bust, Type: skin.Classic, Size: 512},
	{Mode: render.Bust, Type: skin.Slim, Size: 128, Attitude: render.Bust.Attitude(1, render.TiltIso)},
	{Mode: render.Body, Type: skin.Classic, Size: 1024},
	{Mode: render.Body, Type: skin.Slim, Size: 400, Attitude: render.Body.Attitude(3, render.Tilt25), Omit: render.OmitHat},
	{Mode: render.Body, Type: skin.Classic, Size: 1024, Attitude: render.Body.Attitude(0, render.TiltLevel)},
	{Mode: render.Front, Type: skin.Classic, Size: 1024},
	{Mode: render.Back, Type: skin.Classic, Size: 1024, Wear: render.WearElytra},
	{Mode: render.Body, Type: skin.Classic, Size: 400, Wear: render.WearCape},
	{Mode: render.Body, Type: skin.Classic, Size: 1024, Pose: render.Walk},
	{Mode: render.Body, Type: skin.Slim, Size: 400, Pose: render.Sneak, Wear: render.WearElytra, Attitude: render.Body.Attitude(3, render.TiltIso)},
	{Mode: render.Bust, Type: skin.Classic, Size: 512, Pose: render.Wave, Wear: render.WearCape},
}

// ProcessorTime returns the CPU time of all threads of this process.
func ProcessorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var spent unix.Timespec
	testenv.Do(tb, unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &spent))
	return time.Duration(spent.Nano())
}

// Limit checks that no picture is estimated at more than 150 ms, whatever its size and its sheet's.
func Limit(t *testing.T, reducer render.Reducer) {
	t.Helper()
	const limit = 150 * time.Millisecond
	const decoding = 33 * time.Nanosecond // of a texel
	r := render.New(reducer)
	var most time.Duration
	var mostly render.View
	var scaleOfMost int
	for scale := 1; scale <= skin.MaxScale; scale++ {
		for _, view := range limited(reducer) {
			wornWidth, texels := 0, 64*64*scale*scale
			if view.Wear != render.WearNothing {
				wornWidth = 64 * scale
				texels += texels / 2
			}
			for _, view.Format = range []render.Format{render.PNG, render.WebP} {
				if took := r.Cost(view, 64*scale, wornWidth) + time.Duration(texels)*decoding; took > most {
					most, mostly, scaleOfMost = took, view, scale
				}
			}
		}
	}
	if most > limit || most < limit/2 {
		t.Errorf("the most expensive picture, %+v of scale %d, is estimated at %s; want at most %s and at least half of that", mostly, scaleOfMost, most, limit)
	}
}

// limited returns the views that Limit estimates, with exact sizes if there is a reducer.
func limited(reducer render.Reducer) (views []render.View) {
	exactly := func(view render.View) {
		views = append(views, view)
		if reducer != nil {
			view.Size, view.Exact = view.Mode.ExactOf(view.Size - 1)
			views = append(views, view)
		}
	}
	turned := func(view render.View) {
		exactly(view)
		for _, view.Attitude = range []render.Attitude{view.Mode.Attitude(0, render.TiltLevel), view.Mode.Attitude(3, render.TiltIso)} {
			exactly(view)
		}
	}
	posed := func(view render.View) {
		turned(view)
		view.Wear = render.WearElytra
		exactly(view)
		view.Pose = render.Sneak
		exactly(view)
	}
	for height := 64; height <= 1024; height += 16 {
		posed(render.View{Mode: render.Body, Type: skin.Classic, Size: height})
		exactly(render.View{Mode: render.Back, Type: skin.Classic, Size: height, Wear: render.WearElytra})
		exactly(render.View{Mode: render.Left, Type: skin.Classic, Size: height})
		views = append(views, render.View{Mode: render.Preview, Type: skin.Classic, Size: height}, render.View{Mode: render.Preview, Type: skin.Cape, Size: height})
	}
	views = append(views, render.View{Mode: render.LegacySheet, Type: skin.Slim, Size: 32}, render.View{Mode: render.Card, Type: skin.Cape, Size: 630})
	for wear := render.WearNothing; wear <= render.WearElytra; wear++ {
		views = append(views, render.View{Mode: render.Card, Type: skin.Classic, Size: 630, Wear: wear})
	}
	for side := 8; side <= 512; side += 8 {
		exactly(render.View{Mode: render.Flat, Type: skin.Classic, Size: side})
		turned(render.View{Mode: render.Isometric, Type: skin.Classic, Size: side})
		posed(render.View{Mode: render.Bust, Type: skin.Classic, Size: side})
	}
	return views
}
