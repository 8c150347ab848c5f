// Package costtest tests the estimated cost of rendering with an encoder.
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
)

// Accuracy checks that the estimated cost of pictures of noise, with a reducer of those of exact sizes, is
// right within a factor of four, from 5 ms on. The factor is relative to the median of all, because machines differ. It is measured
// in CPU time of the process, as libvips uses more than one processor, so that nothing else should
// run in it.
func Accuracy(t *testing.T, encoder render.Encoder, reducer render.Reducer) {
	t.Helper()
	const factor, least = 4, 5 * time.Millisecond
	type measurement struct {
		of         string
		cost, took time.Duration
		ratio      float64
	}
	var all []measurement
	for _, scale := range []int{1, 4, 8, 12, 16} {
		for _, view := range measured(reducer) {
			sheet, worn := sheets(view, scale)
			for _, view.Format = range []render.Format{render.PNG, render.WebP} {
				cost := render.New(encoder, reducer).Cost(view, sheet.Width, worn.Width)
				if took := renderTime(t, encoder, reducer, sheet, worn, view, 3*cost); max(cost, took) >= least {
					of := fmt.Sprintf("%v %v of scale %d at %d, attitude %d, pose %d, wearing %d, exactly %d, as %v", view.Mode, view.Type, scale, view.Size, view.Attitude, view.Pose, view.Wear, view.Exact, view.Format)
					all = append(all, measurement{of, cost, took, float64(took) / float64(cost)})
				}
			}
		}
	}
	if len(all) < 60 {
		t.Fatalf("only %d pictures took long enough to be measured", len(all))
	}
	slices.SortFunc(all, func(a, b measurement) int { return cmp.Compare(a.ratio, b.ratio) })
	median := all[len(all)/2].ratio
	t.Logf("this machine takes %.2f times as long as the reference machine", median)
	for _, m := range all {
		if m.ratio > factor*median || m.ratio < median/factor {
			t.Errorf("%s takes %s; estimated %s", m.of, m.took, m.cost)
		}
	}
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

// sheets returns noise of a scale for a view, and what is worn in it.
func sheets(view render.View, scale int) (sheet, worn skin.Sheet) {
	cape := skintest.Noise(4, 64*scale, 32*scale)
	switch {
	case view.Type == skin.Cape:
		return cape, worn
	case view.Wear != render.WearNothing:
		worn = cape
	}
	return skintest.Noise(4, 64*scale, 64*scale), worn
}

// renderTime returns the shortest CPU time of rendering a picture with no cached sample map: of two
// runs, and of up to thirty as long as it is above enough, because the measured time is the whole
// process's and may have other work in it.
func renderTime(t *testing.T, encoder render.Encoder, reducer render.Reducer, sheet, worn skin.Sheet, view render.View, enough time.Duration) time.Duration {
	t.Helper()
	shortest := time.Hour
	for n := 0; n < 2 || n < 30 && shortest > enough; n++ {
		r := render.New(encoder, reducer)
		before := processorTime(t)
		if _, _, err := r.Render(sheet, worn, view); err != nil {
			t.Fatal(err)
		}
		shortest = min(shortest, processorTime(t)-before)
	}
	return shortest
}

// processorTime returns the CPU time of the process.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// Limit checks that no picture is estimated at more than 150 ms, whatever its size and its sheet's.
func Limit(t *testing.T, encoder render.Encoder, reducer render.Reducer) {
	t.Helper()
	const limit = 150 * time.Millisecond
	const decoding = 33 * time.Nanosecond // of a texel
	r := render.New(encoder, reducer)
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

// limited returns the views that Limit estimates, those of exact sizes if there is a reducer.
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
	views = append(views, render.View{Mode: render.LegacySheet, Type: skin.Slim, Size: 32})
	for side := 8; side <= 512; side += 8 {
		exactly(render.View{Mode: render.Flat, Type: skin.Classic, Size: side})
		turned(render.View{Mode: render.Isometric, Type: skin.Classic, Size: side})
		posed(render.View{Mode: render.Bust, Type: skin.Classic, Size: side})
	}
	return views
}
