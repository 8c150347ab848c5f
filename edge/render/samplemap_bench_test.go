package render

import (
	"fmt"
	"testing"

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
				samples := key.build()
				b.ReportMetric(float64(samples.bytes()), "map-bytes")
				b.ReportMetric(float64(len(samples.lists)), "lists")
				b.ReportMetric(float64(len(samples.runs)), "runs")
				b.ReportMetric(float64(len(samples.contributions)), "contributions")
			}
		})
	}
}

// BenchmarkPaint measures painting noise, the worst of all sheets. Of smooth pictures that is
// nearly all of the work, of crisp ones the smaller part.
func BenchmarkPaint(b *testing.B) {
	for _, key := range benchmarkKeys() {
		b.Run(key.String(), func(b *testing.B) {
			samples, scratch := key.build(), new(painter)
			sheet := skintest.Noise(1, 64*key.scales.skin, 64*key.scales.skin).Normalised(skin.Classic)
			pixels := make([]byte, 4*samples.width*samples.height)
			b.ReportAllocs()
			for b.Loop() {
				samples.paint(pixels, sheet, skin.Sheet{}, View{}, scratch)
			}
		})
	}
}

// benchmarkKeys are the keys that the tests use, and some of larger pictures.
func benchmarkKeys() []mapKey {
	return append(
		mappedKeys(),
		newMapKey(Preview, skin.Classic, 400, 1),
		newMapKey(Preview, skin.Classic, 1024, 1),
		newMapKey(Preview, skin.Classic, 400, 8),
		newMapKey(Preview, skin.Classic, 1024, 8),
	)
}

// String returns the key in the format of benchmark names.
func (k mapKey) String() string {
	return fmt.Sprintf("mode=%s/size=%d/scale=%d", k.mode, k.size, k.scales.skin)
}
