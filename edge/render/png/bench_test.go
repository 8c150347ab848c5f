//go:build !race

package png_test

import (
	"testing"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/edge/render/png"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
)

// BenchmarkAppend measures each mode, of a skin of few colours and of noise.
func BenchmarkAppend(b *testing.B) {
	for _, texture := range []artwork.NamedSheet{
		{Name: "explorer", Type: skin.Classic, Sheet: artwork.Explorer()},
		{Name: "noise", Type: skin.Classic, Sheet: skintest.Noise(1, 64, 64)},
	} {
		for _, view := range []render.View{
			{Mode: render.Flat, Type: texture.Type, Size: 128},
			{Mode: render.Isometric, Type: texture.Type, Size: 128},
			{Mode: render.Preview, Type: texture.Type, Size: render.DefaultHeight},
		} {
			b.Run("skin="+texture.Name+"/mode="+view.Mode.String(), func(b *testing.B) {
				p, err := renderer.Draw(texture.Sheet, skin.Sheet{}, view)
				if err != nil {
					b.Fatal(err)
				}
				var e png.Encoder
				var file []byte
				b.ReportAllocs()
				for b.Loop() {
					if file, err = e.Append(file[:0], p.Pix, p.Width, p.Height); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(len(file)), "file-bytes")
			})
		}
	}
}
