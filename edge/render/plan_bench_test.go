package render

import (
	"fmt"
	"testing"

	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/paint"
)

// BenchmarkPlan measures what the first picture of a size costs beside painting,
// and BenchmarkPaint every picture of it.
func BenchmarkPlan(b *testing.B) {
	for _, key := range benchedPlans() {
		b.Run(key.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				plan := key.plan()
				b.ReportMetric(float64(plan.bytes()), "plan-bytes")
				b.ReportMetric(float64(len(plan.stacks)), "stacks")
				b.ReportMetric(float64(len(plan.runs)), "runs")
				b.ReportMetric(float64(len(plan.parts)), "parts")
			}
		})
	}
}

// BenchmarkPaint measures painting noise, the worst of all sheets. Of smooth pictures
// that is nearly all of the work, of crisp ones the smaller part.
func BenchmarkPaint(b *testing.B) {
	for _, key := range benchedPlans() {
		b.Run(key.String(), func(b *testing.B) {
			plan, colours := key.plan(), new(brush)
			sheet := paint.Noise(1, 64*key.scale, 64*key.scale).Normalised(skin.Steve)
			pixels := make([]byte, 4*plan.width*plan.height)
			b.ReportAllocs()
			for b.Loop() {
				plan.paint(pixels, sheet, colours)
			}
		})
	}
}

// benchedPlans are the plans that the tests look at, and some that are larger.
func benchedPlans() []planKey {
	return append(
		planned(),
		planKey{Preview, skin.Steve, 400, 1},
		planKey{Preview, skin.Steve, 1024, 1},
		planKey{Preview, skin.Steve, 400, 8},
		planKey{Preview, skin.Steve, 1024, 8},
	)
}

// String names the plan in the way of benchmarks.
func (k planKey) String() string {
	return fmt.Sprintf("pose=%s/size=%d/scale=%d", k.pose, k.size, k.scale)
}
