//go:build !race

package render

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/paint"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// The estimated cost of pictures of noise is right within a factor of four, from 5 ms on. The
// factor is relative to the median of all, because machines differ. It is measured in CPU time,
// as libvips uses more than one processor; the test is not parallel, so that nothing else uses
// any.
func TestCost(t *testing.T) { //nolint:paralleltest // it measures the whole process
	testenv.SkipShort(t)
	const factor, least = 4, 5 * time.Millisecond
	for _, encoder := range []Encoder{Native, Libvips} {
		r, err := Start(Config{Encoder: encoder})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		type measurement struct {
			of         string
			cost, took time.Duration
			ratio      float64
		}
		var all []measurement
		for _, scale := range []int{1, 4, 8, 12, 16} {
			for _, view := range []View{
				{Pose: Flat, Type: skin.Classic, Size: 512},
				{Pose: Isometric, Type: skin.Classic, Size: 512},
				{Pose: Preview, Type: skin.Slim, Size: 64},
				{Pose: Preview, Type: skin.Classic, Size: 400},
				{Pose: Preview, Type: skin.Classic, Size: 1024},
				{Pose: Preview, Type: skin.Cape, Size: 1024},
			} {
				height := 64 * scale
				if view.Type == skin.Cape {
					height = 32 * scale
				}
				sheet := paint.Noise(4, 64*scale, height)
				for _, view.Format = range []Format{PNG, WebP} {
					r.sampleMaps = newMapCache(mapCacheBytes)
					cost := r.Cost(view, sheet.Width)
					if took := renderTime(t, r, sheet, view, 3*cost); max(cost, took) >= least {
						of := fmt.Sprintf("%v %v of scale %d at %d as %v by %v", view.Pose, view.Type, scale, view.Size, view.Format, encoder)
						all = append(all, measurement{of, cost, took, float64(took) / float64(cost)})
					}
				}
			}
		}
		if len(all) < 30 {
			t.Fatalf("only %d pictures by %v took long enough to be measured", len(all), encoder)
		}
		slices.SortFunc(all, func(a, b measurement) int { return cmp.Compare(a.ratio, b.ratio) })
		median := all[len(all)/2].ratio
		t.Logf("by %v, this machine takes %.2f times as long as the reference machine", encoder, median)
		for _, m := range all {
			if m.ratio > factor*median || m.ratio < median/factor {
				t.Errorf("%s takes %s; estimated %s", m.of, m.took, m.cost)
			}
		}
	}
}

// renderTime returns the shortest CPU time of rendering a picture with no cached sample map: of
// two runs, and of up to ten as long as it is above enough, because the measured time is the
// whole process's and may have other work in it.
func renderTime(t *testing.T, r *Renderer, sheet skin.Sheet, view View, enough time.Duration) time.Duration {
	t.Helper()
	shortest := time.Hour
	for n := 0; n < 2 || n < 10 && shortest > enough; n++ {
		r.sampleMaps = newMapCache(mapCacheBytes)
		before := processorTime(t)
		if _, _, err := r.Render(sheet, view); err != nil {
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

// No picture is estimated at more than 150 ms, whatever its size and its sheet's.
func TestCostLimit(t *testing.T) {
	t.Parallel()
	const bound = 150 * time.Millisecond
	const decoding = 33 * time.Nanosecond // of a texel
	for _, encoder := range []Encoder{Native, Libvips} {
		r := &Renderer{encoder: encoder, sampleMaps: newMapCache(mapCacheBytes)}
		var most time.Duration
		for scale := 1; scale <= skin.MaxScale; scale++ {
			texels := 64 * 64 * scale * scale
			for _, format := range []Format{PNG, WebP} {
				for size := minHeight; size <= maxHeight; size += heightStep {
					for _, kind := range []skin.Type{skin.Classic, skin.Cape} {
						most = max(most, r.Cost(View{Pose: Preview, Type: kind, Size: size, Format: format}, 64*scale)+time.Duration(texels)*decoding)
					}
				}
				for size := minSize; size <= maxSize; size += sizeStep {
					for _, pose := range []Pose{Flat, Isometric} {
						most = max(most, r.Cost(View{Pose: pose, Type: skin.Classic, Size: size, Format: format}, 64*scale)+time.Duration(texels)*decoding)
					}
				}
			}
		}
		if most > bound || most < bound/2 {
			t.Errorf("the most expensive picture by %v is estimated at %s; want some %s, and not more", encoder, most, bound)
		}
	}
}

// Previews of large sheets are capped in height.
func TestLargeSheetsHaveSmallerPreviews(t *testing.T) {
	t.Parallel()
	r := &Renderer{sampleMaps: newMapCache(mapCacheBytes)}
	f := func(kind skin.Type, scale, asked, want int) {
		t.Helper()
		height := 64 * scale
		if kind == skin.Cape {
			height = 32 * scale
		}
		picture, err := r.Draw(paint.Noise(1, 64*scale, height), View{Pose: Preview, Type: kind, Size: asked})
		if err != nil || picture.Height != want {
			t.Errorf("a preview of %v of scale %d at %d is %d pixels high, %v; want %d", kind, scale, asked, picture.Height, err, want)
		}
	}
	f(skin.Classic, 8, 1024, 1024)
	f(skin.Classic, 9, 1024, 720)
	f(skin.Slim, 12, 1024, 720)
	f(skin.Classic, 12, 704, 704)
	f(skin.Classic, 13, 1024, 384)
	f(skin.Slim, 16, 400, 240)
	f(skin.Cape, 16, 1024, 1024)
}
