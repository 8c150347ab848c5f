package vips_test

import (
	"bytes"
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// exactModes are the modes with exact sizes.
var exactModes = []render.Mode{render.Flat, render.Isometric, render.Bust, render.Body, render.Front, render.Back, render.Left, render.Right}

// Every size has a view, of exactly so many pixels, which is drawn larger only as far as needed.
func TestExactSizes(t *testing.T) {
	t.Parallel()
	for _, mode := range exactModes {
		largest := 512
		if mode == render.Body || mode >= render.Front {
			largest = 1024
		}
		for requested := -1; requested <= largest+1; requested++ {
			size, exact := mode.ExactOf(requested)
			want := min(max(requested, 8), largest)
			view := render.View{Mode: mode, Type: skin.Classic, Size: size, Exact: exact}
			width, height := view.Extent()
			wide := want
			if largest == 1024 {
				wide = (want + 1) / 2
			}
			if height != want || width != wide || size < want || (exact == 0) != (size == want) || size > max(64, want+31) {
				t.Errorf("%s of %d pixels: %d × %d of %+v", mode, requested, width, height, view)
			}
			for _, wrong := range []render.View{{Mode: mode, Type: skin.Classic, Size: size, Exact: size}, {Mode: mode, Type: skin.Classic, Size: largest, Exact: 9}, {Mode: mode, Type: skin.Classic, Size: size, Exact: 7}} {
				if wrong.Check() == nil {
					t.Fatalf("%+v is a view", wrong)
				}
			}
		}
	}
	for _, mode := range []render.Mode{render.Preview, render.LegacySheet} {
		if (render.View{Mode: mode, Type: skin.Classic, Size: mode.SizeOf(100), Exact: 99}).Check() == nil {
			t.Errorf("%s has exact sizes", mode)
		}
	}
}

// Reduced pictures have their size, and no pixel that no drawn one accounts for: opaque faces stay opaque,
// transparent pixels are black, and the colours at the outline are those of the figure.
func TestReducedPixels(t *testing.T) {
	t.Parallel()
	white := skin.NewSheet(64, 64)
	for i := range white.Pix {
		white.Pix[i] = 255
	}
	for _, mode := range exactModes {
		for _, requested := range []int{8, 9, 20, 25, 45, 99, 100, 180, 301, 505, 999} {
			size, exact := mode.ExactOf(requested)
			view := render.View{Mode: mode, Type: skin.Slim, Size: size, Exact: exact, Omit: render.OmitLight & mode.Omissible()}
			picture := testenv.Must(reducing.Draw(white, skin.Sheet{}, view))(t)
			if width, height := view.Extent(); picture.Width != width || picture.Height != height || len(picture.Pix) != 4*width*height {
				t.Errorf("%+v: %d × %d pixels in %d bytes; want %d × %d", view, picture.Width, picture.Height, len(picture.Pix), width, height)
			}
			for i := 0; i < len(picture.Pix); i += 4 {
				switch pixel := [4]byte(picture.Pix[i:]); {
				case pixel == [4]byte{}, [3]byte(pixel[:3]) == [3]byte{255, 255, 255} && (pixel[3] == 255 || mode != render.Flat):
				default:
					t.Fatalf("%+v: pixel %d is %v; want white of some alpha", view, i/4, pixel)
				}
			}
		}
	}
}

// Reduced pictures look like the average of a large one: the root mean square of the differences of
// premultiplied values is at most 8, and 12 to 14 with the nearest pixels.
func TestReducedColours(t *testing.T) {
	t.Parallel()
	for _, mode := range exactModes {
		for _, requested := range []int{45, 100, 180} {
			size, exact := mode.ExactOf(requested)
			if exact == 0 {
				continue
			}
			sheet := artwork.Explorer()
			view := render.View{Mode: mode, Type: skin.Classic, Size: size, Exact: exact}
			got := testenv.Must(reducing.Draw(sheet, skin.Sheet{}, view))(t)
			const factor = 8
			large, err := reducing.Draw(sheet, skin.Sheet{}, render.View{Mode: mode, Type: skin.Classic, Size: mode.SizeOf(1024)})
			testenv.Do(t, err)
			var sum float64
			for y := range got.Height {
				for x := range got.Width {
					var want [4]float64
					for v := range factor {
						for u := range factor {
							// The sample in the middle of a part of the pixel.
							column := (factor*x + u) * large.Width / (factor * got.Width)
							row := (factor*y + v) * large.Height / (factor * got.Height)
							for c, value := range premultipliedAt(large, column, row) {
								want[c] += value / (factor * factor)
							}
						}
					}
					for c, value := range premultipliedAt(got, x, y) {
						sum += (value - want[c]) * (value - want[c])
					}
				}
			}
			rms := math.Sqrt(sum / float64(len(got.Pix)))
			testenv.Check(t, rms <= 8, "%s of %d pixels is off by %.1f", mode, requested, rms)
		}
	}
}

// premultipliedAt returns the values of a pixel, multiplied by its alpha.
func premultipliedAt(picture render.Picture, x, y int) [4]float64 {
	pixel := picture.Pix[4*(y*picture.Width+x):][:4]
	alpha := float64(pixel[3])
	return [4]float64{float64(pixel[0]) * alpha / 255, float64(pixel[1]) * alpha / 255, float64(pixel[2]) * alpha / 255, alpha}
}

// The same picture is the same file, however many are reduced at once.
func TestConcurrentReductions(t *testing.T) {
	t.Parallel()
	views := []render.View{
		{Mode: render.Flat, Type: skin.Classic, Size: 24, Exact: 20},
		{Mode: render.Isometric, Type: skin.Classic, Size: 104, Exact: 100, Format: render.WebP},
		{Mode: render.Body, Type: skin.Slim, Size: 368, Exact: 360},
		{Mode: render.Front, Type: skin.Slim, Size: 384, Exact: 360, Format: render.WebP},
	}
	sheet := skintest.Noise(3, 64, 64)
	files := make([][]byte, len(views))
	for i, view := range views {
		var err error
		if files[i], _, err = reducing.Render(sheet, skin.Sheet{}, view); err != nil {
			t.Fatal(err)
		}
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for i, view := range views {
				got, _, err := reducing.Render(sheet, skin.Sheet{}, view)
				testenv.Check(t, err == nil && bytes.Equal(got, files[i]),
					"%+v: %d other bytes, %v", view, len(got), err)
			}
		})
	}
	group.Wait()
}

// Only pictures of exact sizes depend on the reducer.
func TestReducerRevision(t *testing.T) {
	t.Parallel()
	with, without := reducing, render.New(nil)
	drawn, exact := render.View{Mode: render.Flat, Size: 24}, render.View{Mode: render.Flat, Size: 24, Exact: 20}
	if with.RevisionOf(drawn) != without.Revision() || with.RevisionOf(exact) == with.Revision() || len(with.RevisionOf(exact)) != len(with.Revision()) {
		t.Errorf("revisions %s and, exact, %s; without a reducer %s", with.RevisionOf(drawn), with.RevisionOf(exact), without.Revision())
	}
	if _, err := without.Draw(artwork.Fox(), skin.Sheet{}, render.View{Mode: render.Flat, Type: skin.Classic, Size: 24, Exact: 20}); err == nil {
		t.Error("a renderer without a reducer draws an exact size")
	}
}

// BenchmarkReduced measures pictures of exact sizes, and those that they are reduced from.
func BenchmarkReduced(b *testing.B) {
	for _, view := range []render.View{
		{Mode: render.Flat, Size: 24, Exact: 20},
		{Mode: render.Flat, Size: 184, Exact: 180},
		{Mode: render.Isometric, Size: 184, Exact: 180},
		{Mode: render.Body, Size: 368, Exact: 360},
		{Mode: render.Front, Size: 384, Exact: 360},
		{Mode: render.Body, Size: 1008, Exact: 1000},
	} {
		for _, format := range []render.Format{render.PNG, render.WebP} {
			for _, exact := range []int{0, view.Exact} {
				view := view
				view.Type, view.Format, view.Exact = skin.Classic, format, exact
				b.Run(fmt.Sprintf("%s/%d/%s/%d", view.Mode, view.Size, format, exact), func(b *testing.B) {
					b.ReportAllocs()
					sheet := artwork.Explorer()
					for b.Loop() {
						if _, _, err := reducing.Render(sheet, skin.Sheet{}, view); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}
