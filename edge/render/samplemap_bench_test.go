package render

import (
	"fmt"
	"testing"

	"github.com/veneer-skins/veneer/edge/render/raster"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
)

// BenchmarkBuildMap measures what the first picture of a size costs besides painting, and
// BenchmarkPaint what every picture of it costs.
func BenchmarkBuildMap(b *testing.B) {
	for _, key := range benchmarkKeys() {
		b.Run(key.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				samples := key.Build()
				b.ReportMetric(float64(samples.Bytes()), "map-bytes")
			}
		})
	}
}

// BenchmarkPaint measures painting noise, the worst of all sheets. Of smooth pictures that is
// nearly all of the work, of crisp ones the smaller part.
func BenchmarkPaint(b *testing.B) {
	for _, key := range benchmarkKeys() {
		b.Run(key.String(), func(b *testing.B) {
			samples, scratch := key.Build(), new(raster.Painter)
			sheet := skintest.Noise(1, 64*key.scales.Skin, 64*key.scales.Skin).Normalised(skin.Classic)
			pixels := make([]byte, 4*samples.Width*samples.Height)
			b.ReportAllocs()
			for b.Loop() {
				samples.Paint(pixels, sheet, skin.Sheet{}, skin.Classic, 0, scratch)
			}
		})
	}
}

// benchmarkKeys are keys of every kind of map, and some of larger pictures.
func benchmarkKeys() (keys []mapKey) {
	for _, key := range []struct {
		mode        Mode
		model       skin.Type
		size, scale int
	}{
		{Isometric, skin.Classic, 8, 1},
		{Isometric, skin.Classic, 56, 1},
		{Isometric, skin.Classic, 64, 2},
		{Isometric, skin.Classic, 64, 1},
		{Isometric, skin.Classic, 512, 1},
		{Isometric, skin.Classic, 248, 4},
		{Preview, skin.Classic, 128, 1},
		{Preview, skin.Classic, 144, 1},
		{Preview, skin.Slim, 400, 1},
		{Preview, skin.Slim, 400, 2},
		{Preview, skin.Classic, 400, 1},
		{Preview, skin.Classic, 1024, 1},
		{Preview, skin.Classic, 400, 8},
		{Preview, skin.Classic, 1024, 8},
	} {
		keys = append(keys, mapKeyOf(View{Mode: key.mode, Type: key.model, Size: key.size}, raster.Scales{Skin: key.scale}))
	}
	return keys
}

// String returns the key in the format of benchmark names.
func (k mapKey) String() string {
	return fmt.Sprintf("mode=%s/size=%d/scale=%d", k.mode, k.size, k.scales.Skin)
}
