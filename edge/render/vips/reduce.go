package vips

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"log/slog"
	"time"

	govips "github.com/davidbyttow/govips/v2/vips"

	"github.com/veneer-skins/veneer/edge/render"
)

// Reducer reduces pictures with libvips. It is safe for concurrent use. StartReducer returns one; the
// zero value is not ready.
type Reducer struct{ revision string }

var _ render.Reducer = (*Reducer)(nil)

// The kernels of flat pictures and of those in space, which weight the pixels that become one. They have the
// least error of those without visible ringing, see docs/benchmarks.md.
const (
	flatKernel  = govips.KernelLinear
	spaceKernel = govips.KernelCubic
)

// StartReducer starts libvips, unless it runs, and returns a Reducer. The log gets libvips' warnings; nil
// discards them. After all Reducers of a process are closed, StartReducer must not be called again.
func StartReducer(log *slog.Logger) (*Reducer, error) {
	if err := start(log); err != nil {
		return nil, err
	}
	r := new(Reducer)
	if err := r.selfTest(); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Close stops libvips if nothing else uses it. No other method may run or be called any more.
func (*Reducer) Close() { stop() }

// selfTest sets the revision: the version of libvips, and what it makes of a sample.
func (r *Reducer) selfTest() error {
	const side, reduced = 64, 45
	sample := render.Picture{Width: side, Height: side}
	for i := range side * side {
		sample.Pix = binary.BigEndian.AppendUint32(sample.Pix, noise(i%side, i/side))
	}
	pixels := []byte(govips.Version)
	for _, inSpace := range []bool{false, true} {
		picture, err := r.Reduce(sample, reduced, reduced, inSpace)
		if err != nil {
			return fmt.Errorf("reduce a sample: %w", err)
		}
		pixels = append(pixels, picture.Pix...)
	}
	sum := sha256.Sum256(pixels)
	r.revision = fmt.Sprintf("%x", sum[:6])
	return nil
}

// Revision returns a token of hexadecimal digits that differs with the version of libvips, and with what it
// makes of a sample.
func (r *Reducer) Revision() string { return r.revision }

// Cost returns about how long Reduce takes, fitted to measurements of the sizes of BenchmarkCost.
func (*Reducer) Cost(pixels int) time.Duration {
	const start, perPixel = 400 * time.Microsecond, 32 * time.Nanosecond
	return start + time.Duration(pixels)*perPixel
}

// Reduce returns the picture in a smaller width and height.
//
// libvips gets premultiplied pixels, so that transparent ones lend no colour to others, in four bands of
// no meaning: of an image with alpha it would make floating-point numbers, which take twice as long (26 and
// 15 ms for a body of 1,000 pixels), and cuts the fractions off in the end, after which opaque pictures are not opaque.
func (*Reducer) Reduce(picture render.Picture, width, height int, inSpace bool) (render.Picture, error) {
	kernel := flatKernel
	if inSpace {
		kernel = spaceKernel
	}
	img, err := govips.NewImageFromGoImage(&image.NRGBA{
		Pix:    premultiplied(picture.Pix),
		Stride: 4 * picture.Width,
		Rect:   image.Rect(0, 0, picture.Width, picture.Height),
	})
	if err != nil {
		return render.Picture{}, firstLine(err)
	}
	defer img.Close()
	bands, err := img.CopyChangingInterpretation(govips.InterpretationMultiband)
	if err != nil {
		return render.Picture{}, firstLine(err)
	}
	defer bands.Close()
	across, down := float64(width)/float64(picture.Width), float64(height)/float64(picture.Height)
	if err := bands.ResizeWithVScale(across, down, kernel); err != nil {
		return render.Picture{}, firstLine(err)
	}
	values, err := bands.ToBytes()
	if err != nil {
		return render.Picture{}, firstLine(err)
	}
	if bands.Width() != width || bands.Height() != height || len(values) != 4*width*height {
		return render.Picture{}, errors.New("libvips made a picture of another size")
	}
	unpremultiply(values)
	return render.Picture{Width: width, Height: height, Pix: values}, nil
}

// premultiplied returns pixels with their colours multiplied by their alpha.
func premultiplied(pixels []byte) []byte {
	out := make([]byte, len(pixels))
	for i := 0; i < len(pixels); i += 4 {
		alpha := uint32(pixels[i+3])
		for c := range 3 {
			out[i+c] = byte((uint32(pixels[i+c])*alpha + 127) / 255)
		}
		out[i+3] = pixels[i+3]
	}
	return out
}

// unpremultiply undoes premultiplied. A kernel with negative weights may leave a colour greater than its
// alpha.
func unpremultiply(pixels []byte) {
	for i := 0; i < len(pixels); i += 4 {
		alpha := uint32(pixels[i+3])
		if alpha == 255 {
			continue
		}
		if alpha == 0 {
			clear(pixels[i:][:3])
			continue
		}
		for c := range 3 {
			pixels[i+c] = byte(min((uint32(pixels[i+c])*255+alpha/2)/alpha, 255))
		}
	}
}

// noise returns a number that looks random for each x and y.
func noise(x, y int) uint32 {
	n := uint32(x)*0x9e3779b1 ^ uint32(y)*0x85ebca6b
	n = (n ^ n>>15) * 0x2c1b3c6d
	n = (n ^ n>>12) * 0x297a2d39
	return n ^ n>>15
}
