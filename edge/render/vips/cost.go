package vips

import (
	"time"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
)

// Cost returns about how long Encode takes on one core of the reference machine. The constants are
// fitted to measurements of the sizes and scales of TestCost.
func (*Encoder) Cost(job render.EncodingJob) time.Duration {
	ms := cost(job)
	switch {
	case job.View.Type == skin.Cape:
		ms /= 2
	case !job.View.Mode.InSpace():
		ms /= 3
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// cost returns about how many milliseconds it takes to encode a figure.
func cost(job render.EncodingJob) float64 {
	const start = 0.3
	pixels, scale := float64(job.Pixels)/1e6, float64(min(job.Scale, 8))
	switch {
	case job.View.Format == render.WebP && job.Pixels <= maxThoroughWebP:
		return start + 300*pixels
	case job.View.Format == render.WebP:
		return start + pixels*(30+5*scale)
	case job.Crisp:
		return start + pixels*(12+3*scale)
	case job.Pixels <= maxThoroughPNG:
		return start + 100*pixels
	default:
		return start + 75*pixels
	}
}
