package render_test

import (
	"testing"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
)

// BenchmarkRender measures each mode at its default size with the native encoders;
// BenchmarkEncode of package vips is the counterpart.
func BenchmarkRender(b *testing.B) {
	for _, bench := range []struct {
		name  string
		sheet string
		view  render.View
	}{
		{"flat", "classic", render.View{Mode: render.Flat, Type: skin.Classic, Size: render.DefaultSize}},
		{"flat-hd", "hd", render.View{Mode: render.Flat, Type: skin.Classic, Size: render.DefaultSize}},
		{"isometric", "classic", render.View{Mode: render.Isometric, Type: skin.Classic, Size: render.DefaultSize}},
		{"preview", "classic", render.View{Mode: render.Preview, Type: skin.Classic, Size: render.DefaultHeight}},
		{"preview-slim", "slim", render.View{Mode: render.Preview, Type: skin.Slim, Size: render.DefaultHeight}},
		{"bust", "classic", render.View{Mode: render.Bust, Type: skin.Classic, Size: 128}},
		{"bust-turned", "classic", render.View{Mode: render.Bust, Type: skin.Classic, Size: 128, Attitude: render.Bust.Attitude(1, render.Tilt25)}},
		{"bust-512", "classic", render.View{Mode: render.Bust, Type: skin.Classic, Size: 512}},
		{"bust-512-turned", "classic", render.View{Mode: render.Bust, Type: skin.Classic, Size: 512, Attitude: render.Bust.Attitude(1, render.Tilt25)}},
		{"body", "classic", render.View{Mode: render.Body, Type: skin.Classic, Size: 128}},
		{"body-turned", "classic", render.View{Mode: render.Body, Type: skin.Classic, Size: 128, Attitude: render.Body.Attitude(1, render.Tilt25)}},
		{"body-512", "classic", render.View{Mode: render.Body, Type: skin.Classic, Size: 512}},
		{"body-512-turned", "classic", render.View{Mode: render.Body, Type: skin.Classic, Size: 512, Attitude: render.Body.Attitude(1, render.Tilt25)}},
		{"body-512-turned-hd", "hd", render.View{Mode: render.Body, Type: skin.Classic, Size: 512, Attitude: render.Body.Attitude(1, render.Tilt25)}},
		{"isometric-turned", "classic", render.View{Mode: render.Isometric, Type: skin.Classic, Size: 128, Attitude: render.Isometric.Attitude(7, render.TiltIso)}},
		{"isometric-512-turned", "classic", render.View{Mode: render.Isometric, Type: skin.Classic, Size: 512, Attitude: render.Isometric.Attitude(7, render.TiltIso)}},
		{"body-cape", "classic", render.View{Mode: render.Body, Type: skin.Classic, Size: 400, Wear: render.WearCape}},
		{"body-walking", "classic", render.View{Mode: render.Body, Type: skin.Classic, Size: 400, Pose: render.Walk}},
		{"body-walking-elytra", "classic", render.View{Mode: render.Body, Type: skin.Classic, Size: 400, Pose: render.Walk, Wear: render.WearElytra}},
		{"body-1024-walking-hd", "hd", render.View{Mode: render.Body, Type: skin.Classic, Size: 1024, Pose: render.Walk}},
		{"front", "classic", render.View{Mode: render.Front, Type: skin.Classic, Size: 512}},
		{"preview-cape", "cape", render.View{Mode: render.Preview, Type: skin.Cape, Size: render.DefaultHeight}},
	} {
		sheet, worn := readSheet(b, bench.sheet), wornSheet(b, bench.view)
		b.Run("mode="+bench.name+"/step=draw", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				mustDrawWorn(b, sheet, worn, bench.view)
			}
		})
		for _, format := range []render.Format{render.PNG, render.WebP} {
			view := bench.view
			view.Format = format
			b.Run("mode="+bench.name+"/step=encode/format="+format.String(), func(b *testing.B) {
				picture := mustDrawWorn(b, sheet, worn, view)
				b.ReportAllocs()
				for b.Loop() {
					file, err := renderer.Encode(picture, format)
					if err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(float64(len(file)), "file-bytes")
				}
			})
			b.Run("mode="+bench.name+"/step=render/format="+format.String(), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					b.ReportMetric(float64(len(mustRenderWorn(b, sheet, worn, view))), "file-bytes")
				}
			})
		}
	}
}
