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

// galleryPath is the picture in the README, relative to the root of the repository.
const galleryPath = "docs/gallery.png"

// The stored gallery is up to date, and small enough for a web page.
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
	stored, err := os.ReadFile("../../" + galleryPath)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := decode(t, stored), decode(t, file); !got.Bounds().Eq(want.Bounds()) || !bytes.Equal(got.Pix, want.Pix) {
		t.Errorf("%s is stale: make gallery draws it anew", galleryPath)
	}
}

// Every item has an area of its own, and is visible in it.
func TestItemsAreSeparateAndVisible(t *testing.T) {
	t.Parallel()

	renderer := start(t)
	file, err := compose(renderer)
	if err != nil {
		t.Fatal(err)
	}
	sheet, background := decode(t, file), image.NewNRGBA(image.Rect(0, 0, width, height))
	drawBackground(background)
	var positions []image.Rectangle
	for i, row := range rows() {
		all, err := row.layOut(renderer)
		if err != nil {
			t.Fatal(err)
		}
		for j, h := range all {
			if !h.position.In(background.Rect.Inset(margin / 2)) {
				t.Errorf("item %d of row %d reaches into the margin", j, i)
			}
			for _, other := range positions {
				if h.position.Overlaps(other) {
					t.Errorf("item %d of row %d overlaps another", j, i)
				}
			}
			positions = append(positions, h.position)

			covered, colours := 0, map[color.Color]bool{}
			for y := h.position.Min.Y; y < h.position.Max.Y; y++ {
				for x := h.position.Min.X; x < h.position.Max.X; x++ {
					if c := sheet.At(x, y); c != background.At(x, y) {
						covered++
						colours[c] = true
					}
				}
			}
			if area := h.position.Dx() * h.position.Dy(); 2*covered < area || len(colours) < 8 {
				t.Errorf("item %d of row %d shows %d colours on %d of %d pixels", j, i, len(colours), covered, area)
			}
		}
	}
}

func TestRunRequiresAFile(t *testing.T) {
	t.Parallel()

	if err := run(nil); err == nil {
		t.Error("a gallery without a file")
	}
}

func TestReadmeShowsTheGallery(t *testing.T) {
	t.Parallel()

	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(readme, []byte("("+galleryPath+")")) {
		t.Errorf("README.md does not show %s", galleryPath)
	}
}

// start starts a renderer for a test. It stays open: once all of a process are closed, no other can
// be started.
func start(t *testing.T) *render.Renderer {
	t.Helper()
	return render.New(new(render.NativeEncoder), nil)
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
