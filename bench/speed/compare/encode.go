package compare

import (
	"context"
	"fmt"
	"time"

	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/edge/render/vips"
	"github.com/veneer-skins/veneer/edge/render/vips/libwebp"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
)

// The rounds of the encoders.
const (
	encoderWarmUp = 2
	encoderRounds = 11
	encoderEach   = 1500 * time.Millisecond
)

// Parameters of libwebp that make it about as thorough as Veneer's own encoder.
const (
	libwebpMethod  = 1
	libwebpQuality = 20
)

// encodingScenario returns the scenario of the encoders alone.
func encodingScenario() scenario {
	return scenario{
		name: "encoding", measures: "Finished pictures of twelve skins are written as lossless WebP: heads of 64 and 128 pixels, heads in space of 128, figures of 400.",
		unit: "pictures/s", moreIsBetter: true, warmUp: encoderWarmUp, rounds: encoderRounds, open: (*env).encodingSubjects,
	}
}

// encodingSubjects opens the encoders, which encode the same pixels in this program.
func (e *env) encodingSubjects(context.Context) ([]subject, error) {
	libvips, err := vips.Start(nil)
	if err != nil {
		return nil, err
	}
	e.closers = append(e.closers, libvips.Close)
	native, byLibvips := render.New(new(render.NativeEncoder), nil), render.New(libvips, nil)
	e.usedPrograms["libwebp"], e.usedPrograms["libvips"] = true, true
	e.addSetting("libvips's settings", "those of EDGE_ENCODER=libvips, in edge/render/vips")
	e.addSetting("libwebp's method and quality", fmt.Sprint(libwebpMethod, " and ", libwebpQuality))
	var pictures []render.Picture
	for _, texture := range artwork.Skins() {
		for _, view := range []render.View{
			{Mode: render.Flat, Size: 64}, {Mode: render.Flat, Size: 128}, {Mode: render.Isometric, Size: 128}, {Mode: render.Preview, Size: 400},
		} {
			view.Type = texture.Type
			picture, err := native.Draw(texture.Sheet, skin.Sheet{}, view)
			if err != nil {
				return nil, err
			}
			pictures = append(pictures, picture)
		}
	}
	return []subject{
		{name: "Veneer", measure: e.measureEncoding(pictures, func(p render.Picture) ([]byte, error) { return native.Encode(p, render.WebP) })},
		{name: "libwebp", measure: e.measureEncoding(pictures, func(p render.Picture) ([]byte, error) {
			return libwebp.Encode(p.Pix, p.Width, p.Height, libwebpMethod, libwebpQuality)
		})},
		{name: "libvips", measure: e.measureEncoding(pictures, func(p render.Picture) ([]byte, error) { return byLibvips.Encode(p, render.WebP) })},
	}, nil
}

// measureEncoding returns the measurement of an encoder's pictures a second, on the servers'
// processor. It encodes all pictures the same number of times.
func (e *env) measureEncoding(pictures []render.Picture, encode func(render.Picture) ([]byte, error)) func(context.Context, int) (outcome, error) {
	return func(ctx context.Context, _ int) (outcome, error) {
		unpin, err := load.Pin(e.serverEnv.CPUs[0])
		if err != nil {
			return outcome{}, err
		}
		defer unpin()
		began, files, bytes := time.Now(), 0, 0
		for time.Since(began) < e.duration(encoderEach) && ctx.Err() == nil {
			for _, p := range pictures {
				file, err := encode(p)
				if err != nil {
					return outcome{}, err
				}
				files++
				bytes += len(file)
			}
		}
		return outcome{float64(files) / time.Since(began).Seconds(), []namedFigure{{"size", "bytes/picture", float64(bytes) / float64(files)}}}, ctx.Err()
	}
}
