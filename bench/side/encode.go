package side

import (
	"context"
	"fmt"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/edge/render/libwebp"
	"github.com/veneer-skins/veneer/shared/skin/paint"
)

// encoderRounds is how many rounds of siteEach there are.
const encoderRounds = 11

// What libwebp is told, with which it is about as thorough as Veneer's own encoder.
const (
	libwebpMethod  = 1
	libwebpQuality = 20
)

// encoded returns the scenario of the writer of pictures alone.
func encoded() scenario {
	return scenario{
		name: "encoding", measures: "Finished pictures of twelve skins are written as lossless WebP: heads of 64 and 128 pixels, heads in space of 128, figures of 400.",
		unit: "pictures/s", moreIsBetter: true, rounds: encoderRounds, open: (*stage).encoders,
	}
}

// encoders opens those that write the same pixels, all in this program.
func (s *stage) encoders(context.Context) ([]subject, error) {
	own, err := render.Start(render.Config{})
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, own.Close)
	vips, err := render.Start(render.Config{Encoder: render.Libvips})
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, vips.Close)
	s.took["libwebp"] = true
	s.tell("libwebp's method and quality", fmt.Sprint(libwebpMethod, " and ", libwebpQuality))
	var pictures []render.Picture
	for _, texture := range paint.Skins() {
		for _, view := range []render.View{
			{Pose: render.Flat, Size: 64}, {Pose: render.Flat, Size: 128}, {Pose: render.Isometric, Size: 128}, {Pose: render.Preview, Size: 400},
		} {
			view.Type = texture.Type
			picture, err := own.Draw(texture.Sheet, view)
			if err != nil {
				return nil, err
			}
			pictures = append(pictures, picture)
		}
	}
	return []subject{
		{name: "Veneer", measure: s.encode(pictures, func(p render.Picture) ([]byte, error) { return own.Encode(p, render.WebP) })},
		{name: "libwebp", measure: s.encode(pictures, func(p render.Picture) ([]byte, error) {
			return libwebp.Encode(p.Pix, p.Width, p.Height, libwebpMethod, libwebpQuality)
		})},
		{name: "libvips", measure: s.encode(pictures, func(p render.Picture) ([]byte, error) { return vips.Encode(p, render.WebP) })},
	}, nil
}

// encode returns the measuring of how many pictures are written a second, all of them the
// same number of times.
func (s *stage) encode(pictures []render.Picture, encode func(render.Picture) ([]byte, error)) func(context.Context, int) (outcome, error) {
	written := 0
	all := s.alone(func() error {
		written = 0
		for _, p := range pictures {
			file, err := encode(p)
			if err != nil {
				return err
			}
			written += len(file)
		}
		return nil
	})
	return func(ctx context.Context, round int) (outcome, error) {
		out, err := all(ctx, round)
		out.figure *= float64(len(pictures))
		out.more = []figureOf{{"size", "bytes/picture", float64(written) / float64(len(pictures))}}
		return out, err
	}
}
