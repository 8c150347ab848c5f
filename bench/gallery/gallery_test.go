//go:build !race

package main

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"os"
	"testing"

	"github.com/veneer-skins/veneer/edge/render"
)

// shown is the gallery that the README shows, from the top of the repository.
const shown = "docs/gallery.png"

// The gallery that is shown is what would be drawn now, and light enough for a page.
func TestGalleryIsFresh(t *testing.T) {
	t.Parallel()

	file, err := compose(start(t))
	if err != nil {
		t.Fatal(err)
	}
	const most = 250_000
	if len(file) > most {
		t.Errorf("the file has %d bytes; want %d at most", len(file), most)
	}
	kept, err := os.ReadFile("../../" + shown)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := decode(t, kept), decode(t, file); !got.Bounds().Eq(want.Bounds()) || !bytes.Equal(got.Pix, want.Pix) {
		t.Errorf("%s is stale: make gallery draws it anew", shown)
	}
}

// Every exhibit has a place of its own on the sheet, and shows something there.
func TestExhibits(t *testing.T) {
	t.Parallel()

	renderer := start(t)
	file, err := compose(renderer)
	if err != nil {
		t.Fatal(err)
	}
	sheet, bare := decode(t, file), image.NewNRGBA(image.Rect(0, 0, width, height))
	lay(bare)
	var places []image.Rectangle
	for i, strip := range strips() {
		all, err := strip.hang(renderer)
		if err != nil {
			t.Fatal(err)
		}
		for j, h := range all {
			if !h.place.In(bare.Rect.Inset(margin / 2)) {
				t.Errorf("exhibit %d of strip %d reaches over the margin", j, i)
			}
			for _, other := range places {
				if h.place.Overlaps(other) {
					t.Errorf("exhibit %d of strip %d hangs over another", j, i)
				}
			}
			places = append(places, h.place)

			covered, colours := 0, map[color.Color]bool{}
			for y := h.place.Min.Y; y < h.place.Max.Y; y++ {
				for x := h.place.Min.X; x < h.place.Max.X; x++ {
					if c := sheet.At(x, y); c != bare.At(x, y) {
						covered++
						colours[c] = true
					}
				}
			}
			if area := h.place.Dx() * h.place.Dy(); 2*covered < area || len(colours) < 8 {
				t.Errorf("exhibit %d of strip %d shows %d colours on %d of %d pixels", j, i, len(colours), covered, area)
			}
		}
	}
}

func TestRunWantsAFile(t *testing.T) {
	t.Parallel()

	if err := run(nil); err == nil {
		t.Error("a gallery is drawn into no file")
	}
}

func TestReadmeShowsTheGallery(t *testing.T) {
	t.Parallel()

	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(readme, []byte("("+shown+")")) {
		t.Errorf("README.md does not show %s", shown)
	}
}

// start starts a renderer for a test. It stays open: once all of a process are closed,
// no other can be started.
func start(t *testing.T) *render.Renderer {
	t.Helper()
	renderer, err := render.Start(render.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return renderer
}

// decode returns the pixels of a PNG file.
func decode(t *testing.T, file []byte) *image.NRGBA {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	all := image.NewNRGBA(img.Bounds())
	for y := range all.Rect.Dy() {
		for x := range all.Rect.Dx() {
			all.Set(x, y, img.At(x, y))
		}
	}
	return all
}
