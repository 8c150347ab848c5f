package render_test

import (
	"bytes"
	"errors"
	"image"
	"image/png"
	"regexp"
	"runtime"
	"slices"
	"sync"
	"testing"

	"golang.org/x/image/webp"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// renderer is used by all tests.
var renderer = render.New(nil)

func TestSizes(t *testing.T) {
	t.Parallel()
	f := func(round func(int) int, requested, want int) {
		t.Helper()
		testenv.Equal(t, round(requested), want, "requested %d: pixels", requested)
	}

	f(render.Flat.SizeOf, -1<<63, 8)
	f(render.Flat.SizeOf, 0, 8)
	f(render.Flat.SizeOf, 8, 8)
	f(render.Flat.SizeOf, 9, 16)
	f(render.Flat.SizeOf, 96, 96)
	f(render.Flat.SizeOf, 100, 104)
	f(render.Flat.SizeOf, 511, 512)
	f(render.Flat.SizeOf, 1<<63-1, 512)
	f(render.Flat.SizeOf, render.DefaultSize, render.DefaultSize)
	f(render.Preview.SizeOf, 0, 64)
	f(render.Preview.SizeOf, 65, 80)
	f(render.Preview.SizeOf, 1009, 1024)
	f(render.Preview.SizeOf, 1<<63-1, 1024)
	f(render.Preview.SizeOf, render.DefaultHeight, render.DefaultHeight)
	f(render.Bust.SizeOf, 100, 104)
	f(render.Bust.SizeOf, render.DefaultSize, render.DefaultSize)
	f(render.Body.SizeOf, 65, 80)
	f(render.Left.SizeOf, 5000, 1024)
}

func TestDrawRejectsViews(t *testing.T) {
	t.Parallel()
	skinSheet, capeSheet := skin.NewSheet(64, 64), skin.NewSheet(64, 32)
	for _, test := range []struct {
		name  string
		sheet skin.Sheet
		view  render.View
		want  string
	}{
		{"the face of a cape", capeSheet, render.View{Mode: render.Flat, Type: skin.Cape, Size: 64}, "A cape has no face."},
		{"the head of a cape", capeSheet, render.View{Mode: render.Isometric, Type: skin.Cape, Size: 64}, "A cape has no face."},
		{"no type", skinSheet, render.View{Mode: render.Flat, Size: 64}, "A texture of no known type cannot be drawn."},
		{"an unknown mode", skinSheet, render.View{Mode: render.ModeCount, Type: skin.Classic, Size: 64}, "A texture has no such mode."},
		{"the legacy sheet of a cape", capeSheet, render.View{Mode: render.LegacySheet, Type: skin.Cape, Size: 32}, "A cape has no face."},
		{"an unknown format", skinSheet, render.View{Type: skin.Classic, Size: 64, Format: render.WebP + 1}, "Pictures are PNG or WebP."},
		{"no size", skinSheet, render.View{Type: skin.Classic}, "The size is a multiple of 8 from 8 to 512 pixels."},
		{"an odd size", skinSheet, render.View{Type: skin.Classic, Size: 65}, "The size is a multiple of 8 from 8 to 512 pixels."},
		{"a huge head", skinSheet, render.View{Mode: render.Isometric, Type: skin.Classic, Size: 520}, "The size is a multiple of 8 from 8 to 512 pixels."},
		{"a tiny preview", skinSheet, render.View{Mode: render.Preview, Type: skin.Slim, Size: 48}, "The size is a multiple of 16 from 64 to 1024 pixels."},
		{"the body of a cape", capeSheet, render.View{Mode: render.Body, Type: skin.Cape, Size: 64}, "A cape has no face."},
		{"the front of a cape", capeSheet, render.View{Mode: render.Front, Type: skin.Cape, Size: 64}, "A cape has no face."},
		{"a turned face", skinSheet, render.View{Type: skin.Classic, Size: 64, Attitude: 1}, "This picture cannot be turned like that."},
		{"a turned preview", skinSheet, render.View{Mode: render.Preview, Type: skin.Classic, Size: 64, Attitude: 1}, "This picture cannot be turned like that."},
		{"an unknown attitude", skinSheet, render.View{Mode: render.Body, Type: skin.Classic, Size: 64, Attitude: render.AttitudeCount}, "This picture cannot be turned like that."},
		{"a face without light", skinSheet, render.View{Type: skin.Classic, Size: 64, Omit: render.OmitLight}, "This picture has nothing of that kind to leave out."},
		{"a preview without a hat", skinSheet, render.View{Mode: render.Preview, Type: skin.Classic, Size: 64, Omit: render.OmitHat}, "This picture has nothing of that kind to leave out."},
		{"an unknown omission", skinSheet, render.View{Mode: render.Body, Type: skin.Classic, Size: 64, Omit: 8}, "This picture has nothing of that kind to leave out."},
		{"a walking head", skinSheet, render.View{Mode: render.Isometric, Type: skin.Classic, Size: 64, Pose: render.Walk}, "This picture has no such pose."},
		{"an unknown pose", skinSheet, render.View{Mode: render.Body, Type: skin.Classic, Size: 64, Pose: render.PoseCount}, "This picture has no such pose."},
		{"a walking cape", capeSheet, render.View{Mode: render.Preview, Type: skin.Cape, Size: 64, Pose: render.Walk}, "This picture has no such pose."},
		{"a cape from the front", skinSheet, render.View{Mode: render.Front, Type: skin.Classic, Size: 64, Wear: render.WearCape}, "This picture cannot show such a thing on a player's back."},
		{"a cape with elytra", capeSheet, render.View{Mode: render.Preview, Type: skin.Cape, Size: 64, Wear: render.WearElytra}, "This picture cannot show such a thing on a player's back."},
		{"an unknown thing on the back", skinSheet, render.View{Mode: render.Body, Type: skin.Classic, Size: 64, Wear: render.WearElytra + 1}, "This picture cannot show such a thing on a player's back."},
		{"a body with a background", skinSheet, render.View{Mode: render.Body, Type: skin.Classic, Size: 64, Background: render.HasBackground}, "This picture has no such background."},
		{"an unknown background", skinSheet, render.View{Mode: render.Card, Type: skin.Classic, Size: 630, Background: 0x1f6b3a}, "This picture has no such background."},
		{"a small card", skinSheet, render.View{Mode: render.Card, Type: skin.Classic, Size: 315}, "The size is a multiple of 630 from 630 to 630 pixels."},
		{"a preview of odd height", capeSheet, render.View{Mode: render.Preview, Type: skin.Cape, Size: 72}, "The size is a multiple of 16 from 64 to 1024 pixels."},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := renderer.Draw(test.sheet, skin.Sheet{}, test.view)
			f, ok := errors.AsType[*fault.Error](err)
			testenv.Check(t, ok && f.Kind == fault.Invalid && f.Message == test.want,
				"Draw: %v; want the Invalid fault %q", err, test.want)
			if _, _, err := renderer.Render(test.sheet, skin.Sheet{}, test.view); fault.KindOf(err) != fault.Invalid {
				t.Errorf("Render: %v; want an Invalid fault", err)
			}
		})
	}
}

// Extent agrees with Draw, and is 0 for views that cannot be drawn.
func TestExtent(t *testing.T) {
	t.Parallel()
	for _, view := range views() {
		picture := mustDrawWorn(t, skintest.Noise(1, 64, 32), skintest.Noise(2, 64, 32), view)
		if width, height := view.Extent(); width != picture.Width || height != picture.Height {
			t.Errorf("%+v: %d × %d pixels; want %d × %d", view, width, height, picture.Width, picture.Height)
		}
	}
	for _, view := range []render.View{
		{},
		{Mode: render.Flat, Type: skin.Cape, Size: 64},
		{Mode: render.Preview, Type: skin.Classic, Size: 65},
	} {
		if width, height := view.Extent(); width != 0 || height != 0 {
			t.Errorf("%+v: %d × %d pixels, though it cannot be drawn", view, width, height)
		}
	}
}

// A sheet of a wrong shape is an internal error, not the caller's mistake.
func TestDrawRejectsSheets(t *testing.T) {
	t.Parallel()
	f := func(as skin.Type, width, height, bytes int) {
		t.Helper()
		sheet := skin.Sheet{Width: width, Height: height, Pix: make([]byte, bytes)}
		_, err := renderer.Draw(sheet, skin.Sheet{}, render.View{Mode: render.Preview, Type: as, Size: 64})
		testenv.Check(t, err != nil && fault.KindOf(err) == fault.Internal,
			"Draw(%d × %d %s in %d bytes): %v; want a plain error", width, height, as, bytes, err)
	}

	f(skin.Classic, 0, 0, 0)
	f(skin.Classic, 64, 64, 64*64*4-1)
	f(skin.Classic, 64, 48, 64*48*4)
	f(skin.Slim, 96, 96, 96*96*4)
	f(skin.Classic, -64, -64, 64*64*4)
	f(skin.Cape, 64, 64, 64*64*4)
	f(skin.Cape, 22, 17, 22*17*4)
	f(skin.Classic, 64*(skin.MaxScale+1), 64*(skin.MaxScale+1), 4*64*64*(skin.MaxScale+1)*(skin.MaxScale+1))

	// So is a worn sheet.
	for _, worn := range []skin.Sheet{{}, skin.NewSheet(64, 64), skin.NewSheet(22, 17), {Width: 64, Height: 32, Pix: make([]byte, 64*32*4-1)}} {
		_, err := renderer.Draw(skin.NewSheet(64, 64), worn, render.View{Mode: render.Body, Type: skin.Classic, Size: 64, Wear: render.WearCape})
		if err == nil || fault.KindOf(err) != fault.Internal {
			t.Errorf("Draw with a cape of %d × %d in %d bytes: %v; want a plain error", worn.Width, worn.Height, len(worn.Pix), err)
		}
	}
}

func TestDrawLeavesTheSheetAlone(t *testing.T) {
	t.Parallel()
	for _, view := range views() {
		sheet, worn := skintest.Noise(1, 64, 32), skintest.Noise(2, 64, 32)
		before, wornBefore := slices.Clone(sheet.Pix), slices.Clone(worn.Pix)
		mustDrawWorn(t, sheet, worn, view)
		testenv.Check(t, bytes.Equal(sheet.Pix, before) && bytes.Equal(worn.Pix, wornBefore),
			"%+v: Draw changed a sheet", view)
	}
}

// Decoded files of both formats have the pixels that were drawn, and no metadata.
func TestFormatsKeepEveryPixel(t *testing.T) {
	t.Parallel()
	for _, view := range views() {
		for seed := range uint64(3) {
			sheet, worn := skintest.Noise(seed, 64, 32), skintest.Noise(seed+3, 128, 64)
			picture := mustDrawWorn(t, sheet, worn, view)
			for i := 0; i < len(picture.Pix); i += 4 {
				if [4]byte(picture.Pix[i:]) != [4]byte{} && picture.Pix[i+3] == 0 {
					t.Fatalf("%+v: pixel %d is transparent, but not black", view, i/4)
				}
			}

			file := mustRenderWorn(t, sheet, worn, view)
			testenv.Check(t, !bytes.Contains(file, []byte("EXIF")) && !bytes.Contains(file, []byte("eXIf")),
				"%+v: the file contains metadata", view)
			decode := decodePNG
			if view.Format == render.WebP {
				decode = decodeWebP
			}
			testenv.Check(t, same(decode(t, file), picture), "%+v: the file shows another picture", view)
		}
	}
}

func TestEncodeRejects(t *testing.T) {
	t.Parallel()
	nothing := render.Picture{}
	pixel := render.Picture{Width: 1, Height: 1, Pix: make([]byte, 4)}
	wide := render.Picture{Width: 1<<14 + 1, Height: 1, Pix: make([]byte, 4<<14+4)}
	for _, rejected := range []struct {
		picture render.Picture
		format  render.Format
	}{{nothing, render.PNG}, {nothing, render.WebP}, {pixel, render.WebP + 1}, {wide, render.WebP}} {
		if _, err := renderer.Encode(rejected.picture, rejected.format); err == nil {
			t.Errorf("%d × %d pixels are encoded as %s", rejected.picture.Width, rejected.picture.Height, rejected.format)
		}
	}
}

func TestRevision(t *testing.T) {
	t.Parallel()
	got := renderer.Revision()
	testenv.Check(t, regexp.MustCompile(`^[0-9a-f]{12}$`).MatchString(got), "Revision: %q; want 12 digits", got)
}

// Pictures drawn concurrently, in reused memory, equal those drawn one by one in new memory.
func TestConcurrentRenders(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)

	type job struct {
		sheet skin.Sheet
		view  render.View
		want  []byte
	}
	var jobs []job
	worn := skintest.Noise(9, 64, 32)
	for i, sheet := range []skin.Sheet{skintest.Noise(7, 64, 32), skintest.Noise(8, 512, 256)} {
		for j, view := range views() {
			if j%(5+6*i) > 0 {
				continue // all take long with the race detector, larger ones longer
			}
			for _, size := range []int{view.Size, view.Size + 176} { // without a sample map for the larger sheet
				view.Size = view.Mode.SizeOf(size)
				want := testenv.Must(renderer.Encode(mustDrawWorn(t, sheet, worn, view), view.Format))(t)
				jobs = append(jobs, job{sheet, view, want})
			}
		}
	}

	var all sync.WaitGroup
	for worker := range 3 {
		all.Go(func() {
			for i := range len(jobs) {
				job := jobs[(5*i+worker)%len(jobs)] // smaller after larger, and vice versa
				got, _, err := renderer.Render(job.sheet, worn, job.view)
				testenv.Check(t, err == nil && bytes.Equal(got, job.want),
					"%+v of scale %d: another file, or %v", job.view, job.sheet.Scale(), err)
			}
		})
		runtime.Gosched()
	}
	all.Wait()
}

// views returns views of each mode, type, format, pose, and thing that is worn.
func views() []render.View {
	var all []render.View
	for _, format := range []render.Format{render.PNG, render.WebP} {
		for _, as := range []skin.Type{skin.Classic, skin.Slim} {
			all = append(all,
				render.View{Mode: render.Flat, Type: as, Size: 96, Format: format},
				render.View{Mode: render.Isometric, Type: as, Size: 96, Format: format},
				render.View{Mode: render.Preview, Type: as, Size: 128, Format: format},
				render.View{Mode: render.Isometric, Type: as, Size: 96, Format: format, Attitude: render.Isometric.Attitude(6, render.TiltLevel), Omit: render.OmitLight},
				render.View{Mode: render.Bust, Type: as, Size: 64, Format: format, Omit: render.OmitHat},
				render.View{Mode: render.Body, Type: as, Size: 128, Format: format},
				render.View{Mode: render.Body, Type: as, Size: 128, Format: format, Attitude: render.Body.Attitude(2, render.TiltIso), Omit: render.OmitLayers},
				render.View{Mode: render.Left, Type: as, Size: 96, Format: format, Omit: render.OmitLayers},
			)
			for pose := render.Walk; pose < render.PoseCount; pose++ {
				all = append(all, render.View{Mode: render.Body, Type: as, Size: 64, Format: format, Pose: pose, Wear: render.Wear(pose % 3)})
			}
			all = append(all,
				render.View{Mode: render.Body, Type: as, Size: 96, Format: format, Wear: render.WearCape},
				render.View{Mode: render.Bust, Type: as, Size: 64, Format: format, Pose: render.Wave, Wear: render.WearElytra, Omit: render.OmitLayers},
				render.View{Mode: render.Back, Type: as, Size: 80, Format: format, Wear: render.WearElytra},
				render.View{Mode: render.Right, Type: as, Size: 64, Format: format, Wear: render.WearCape},
				render.View{Mode: render.Card, Type: as, Size: 630, Format: format, Wear: render.WearCape},
			)
			for mode := render.Front; mode <= render.Right; mode++ {
				all = append(all, render.View{Mode: mode, Type: as, Size: 96, Format: format})
			}
		}
		all = append(all, render.View{Mode: render.Preview, Type: skin.Cape, Size: 128, Format: format})
	}
	return all
}

func mustDraw(tb testing.TB, sheet skin.Sheet, view render.View) render.Picture {
	tb.Helper()
	return mustDrawWorn(tb, sheet, skin.Sheet{}, view)
}

// mustDrawWorn draws a view with a worn sheet.
func mustDrawWorn(tb testing.TB, sheet, worn skin.Sheet, view render.View) render.Picture {
	tb.Helper()
	return testenv.Must(renderer.Draw(sheet, worn, view))(tb)
}

func mustRender(tb testing.TB, sheet skin.Sheet, view render.View) []byte {
	tb.Helper()
	return mustRenderWorn(tb, sheet, skin.Sheet{}, view)
}

// mustRenderWorn renders a view with a worn sheet.
func mustRenderWorn(tb testing.TB, sheet, worn skin.Sheet, view render.View) []byte {
	tb.Helper()
	file, _, err := renderer.Render(sheet, worn, view)
	testenv.Do(tb, err)
	return file
}

// decodePNG decodes a file with the standard library.
func decodePNG(tb testing.TB, file []byte) render.Picture {
	tb.Helper()
	img := testenv.Must(png.Decode(bytes.NewReader(file)))(tb)
	return pictureOf(tb, img)
}

func decodeWebP(tb testing.TB, file []byte) render.Picture {
	tb.Helper()
	img := testenv.Must(webp.Decode(bytes.NewReader(file)))(tb)
	return pictureOf(tb, img)
}

// pictureOf returns the exact pixels of a decoded file.
func pictureOf(tb testing.TB, img image.Image) render.Picture {
	tb.Helper()
	size := img.Bounds().Size()
	switch img := img.(type) {
	case *image.NRGBA:
		return render.Picture{Width: size.X, Height: size.Y, Pix: img.Pix}
	case *image.RGBA:
		// image/png decodes a file without an alpha channel to it.
		if img.Opaque() {
			return render.Picture{Width: size.X, Height: size.Y, Pix: img.Pix}
		}
	case *image.Gray, *image.Paletted:
		exact := image.NewNRGBA(img.Bounds())
		for y := range size.Y {
			for x := range size.X {
				exact.Set(x, y, img.At(x, y))
			}
		}
		return render.Picture{Width: size.X, Height: size.Y, Pix: exact.Pix}
	}
	tb.Fatalf("the file decodes to an unexpected %T", img)
	return render.Picture{}
}

func same(a, b render.Picture) bool {
	return a.Width == b.Width && a.Height == b.Height && bytes.Equal(a.Pix, b.Pix)
}
