//go:build cgo && !race

package render_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/edge/render/internal/costtest"
	"github.com/veneer-skins/veneer/edge/render/vips/libwebp"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
)

// BenchmarkFile measures a picture from a decoded sheet to the bytes of a file, on one core, beside a
// floor: libwebp alone (lossless, method 1, quality 20) encoding the same finished pixels. The three
// alternate; times are medians of the CPU time of the process, the garbage collector's included. A
// ratio below 1 means that drawing and encoding take less than the library takes for encoding alone.
// The textures are a usual skin, one with gradients, one of few colours, nothing but noise,
// high-resolution ones of scale 4 and 8, and a cape.
func BenchmarkFile(b *testing.B) {
	skins := []string{"Explorer", "Smooth 1", "Plain 1", "Noise", "HD Detail 1", "HD Fine 1"}
	textures := append(skintest.Skins(), skintest.Capes()...)
	for _, of := range []struct {
		name  string
		mode  render.Mode
		sizes []int
		skins []string
	}{
		{"flat", render.Flat, []int{64, 128, 512}, skins},
		{"isometric", render.Isometric, []int{64, 128, 512}, skins},
		{"preview", render.Preview, []int{128, 400}, skins},
		{"bust", render.Bust, []int{128, 400}, skins},
		{"body", render.Body, []int{128, 400}, skins},
		{"front", render.Front, []int{128, 400}, skins},
		{"cape", render.Preview, []int{400}, []string{"Sunrise"}},
	} {
		for _, size := range of.sizes {
			for _, name := range of.skins {
				b.Run(fmt.Sprintf("view=%s-%d/texture=%s", of.name, size, name), func(b *testing.B) {
					texture := textures[slices.IndexFunc(textures, func(t artwork.NamedSheet) bool { return t.Name == name })]
					benchmarkFile(b, texture, render.View{Mode: of.mode, Type: texture.Type, Size: size})
				})
			}
		}
	}
}

func benchmarkFile(b *testing.B, texture artwork.NamedSheet, view render.View) {
	b.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	picture := mustDrawWorn(b, texture.Sheet, skin.Sheet{}, view)
	asWebP, asPNG := view, view
	asWebP.Format, asPNG.Format = render.WebP, render.PNG
	writers := []struct {
		name  string
		write func()
		took  []time.Duration
	}{
		{name: "floor", write: func() {
			if _, err := libwebp.Encode(picture.Pix, picture.Width, picture.Height, 1, 20); err != nil {
				b.Fatal(err)
			}
		}},
		{name: "webp", write: func() { mustRenderWorn(b, texture.Sheet, skin.Sheet{}, asWebP) }},
		{name: "png", write: func() { mustRenderWorn(b, texture.Sheet, skin.Sheet{}, asPNG) }},
	}
	for round := 0; b.Loop(); round++ {
		for position := range writers {
			// The order rotates, so that each follows different ones: the data of the last one is in the
			// processor's caches.
			w := &writers[(position+round)%len(writers)]
			before := costtest.ProcessorTime(b)
			w.write()
			w.took = append(w.took, costtest.ProcessorTime(b)-before)
		}
	}
	median := func(i int) float64 {
		slices.Sort(writers[i].took)
		return writers[i].took[len(writers[i].took)/2].Seconds() * 1000
	}
	for i, w := range writers {
		b.ReportMetric(median(i), w.name+"-ms")
		if i > 0 {
			b.ReportMetric(median(i)/median(0), w.name+"/floor")
		}
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkCores renders pictures of all own skins on all cores: with -cpu 1,2 the ratio of the times is
// what a second core gives.
func BenchmarkCores(b *testing.B) {
	for _, format := range []render.Format{render.WebP, render.PNG} {
		b.Run("format="+format.String(), func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					for _, texture := range artwork.Skins() {
						for _, view := range []render.View{{Mode: render.Preview, Size: 400}, {Mode: render.Isometric, Size: 128}, {Mode: render.Flat, Size: 128}} {
							view.Type, view.Format = texture.Type, format
							if _, _, err := renderer.Render(texture.Sheet, skin.Sheet{}, view); err != nil {
								b.Error(err)
							}
						}
					}
				}
			})
		})
	}
}
