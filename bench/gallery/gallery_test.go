//go:build !race

package main

import (
	"bytes"
	"image"
	"image/color"
	_ "image/png"
	"os"
	"strings"
	"testing"

	_ "golang.org/x/image/webp"

	"github.com/veneer-skins/veneer/edge/render"
)

// paths are the pictures of the layouts, relative to the root of the repository, and shownBy the documents
// that show them.
var (
	paths   = []string{"docs/gallery.png", "docs/images/views.webp"}
	shownBy = []string{"README.md", "docs/pictures.md"}
)

// The stored galleries are up to date, and small enough for a web page.
func TestGalleryIsFresh(t *testing.T) {
	t.Parallel()

	for i, path := range paths {
		file, err := compose(start(t), layouts[i].rows(), layouts[i].format)
		if err != nil {
			t.Fatal(err)
		}
		const most = 300_000
		if len(file) > most {
			t.Errorf("%s has %d bytes; want %d at most", path, len(file), most)
		}
		stored, err := os.ReadFile("../../" + path)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := decode(t, stored), decode(t, file); !got.Bounds().Eq(want.Bounds()) || !bytes.Equal(got.Pix, want.Pix) {
			t.Errorf("%s is stale: make gallery draws it anew", path)
		}
	}
}

// Every item has an area of its own, and is visible in it.
func TestItemsAreSeparateAndVisible(t *testing.T) {
	t.Parallel()

	for _, layout := range layouts {
		checkItems(t, start(t), layout.rows())
	}
}

func checkItems(t *testing.T, renderer *render.Renderer, rows []row) {
	t.Helper()
	file, err := compose(renderer, rows, render.PNG)
	if err != nil {
		t.Fatal(err)
	}
	sheet, background := decode(t, file), image.NewNRGBA(image.Rect(0, 0, width, heightOf(rows)))
	drawBackground(background)
	var positions []image.Rectangle
	for i, row := range rows {
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
			if area := h.position.Dx() * h.position.Dy(); 4*covered < area || len(colours) < 8 {
				t.Errorf("item %d of row %d shows %d colours on %d of %d pixels", j, i, len(colours), covered, area)
			}
		}
	}
}

func TestRunRequiresFiles(t *testing.T) {
	t.Parallel()

	for _, args := range [][]string{nil, {"one.png"}, {"one.png", "two.png", "three.png"}} {
		if err := run(args); err == nil {
			t.Errorf("a gallery with %d files", len(args))
		}
	}
}

func TestDocumentsShowTheGalleries(t *testing.T) {
	t.Parallel()

	for i, document := range shownBy {
		text, err := os.ReadFile("../../" + document)
		if err != nil {
			t.Fatal(err)
		}
		path := paths[i]
		if strings.HasPrefix(document, "docs/") {
			path = strings.TrimPrefix(path, "docs/")
		}
		if !bytes.Contains(text, []byte("("+path+")")) {
			t.Errorf("%s does not show %s", document, path)
		}
	}
}

// start starts a renderer for a test. It stays open: once all of a process are closed, no other can
// be started.
func start(t *testing.T) *render.Renderer {
	t.Helper()
	return render.New(new(render.NativeEncoder), nil)
}

// decode returns the pixels of a PNG or WebP file.
func decode(t *testing.T, file []byte) *image.NRGBA {
	t.Helper()
	img, _, err := image.Decode(bytes.NewReader(file))
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
