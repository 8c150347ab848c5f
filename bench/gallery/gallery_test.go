package main

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	_ "image/png"
	"os"
	"strings"
	"testing"

	_ "golang.org/x/image/webp"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// The stored galleries are up to date, and small enough for a web page.
func TestGalleryIsFresh(t *testing.T) {
	t.Parallel()
	for _, layout := range layouts {
		path := layout.path
		file := testenv.Must(compose(render.New(nil), layout.rows(), layout.format))(t)
		const most = 300_000
		testenv.Check(t, len(file) <= most, "%s has %d bytes; want %d at most", path, len(file), most)
		stored := testenv.Must(os.ReadFile("../../" + path))(t)
		if got, want := decode(t, stored), decode(t, file); !got.Bounds().Eq(want.Bounds()) || !bytes.Equal(got.Pix, want.Pix) {
			t.Errorf("%s is stale: make gallery draws it anew", path)
		}
	}
}

// Every item has an area of its own, and is visible in it.
func TestItemsAreSeparateAndVisible(t *testing.T) {
	t.Parallel()
	for _, layout := range layouts {
		checkItems(t, render.New(nil), layout.rows())
	}
}

func checkItems(t *testing.T, renderer *render.Renderer, rows []row) {
	t.Helper()
	file := testenv.Must(compose(renderer, rows, render.PNG))(t)
	sheet, background := decode(t, file), image.NewNRGBA(image.Rect(0, 0, width, heightOf(rows)))
	drawBackground(background)
	var positions []image.Rectangle
	for i, row := range rows {
		all := testenv.Must(row.layOut(renderer))(t)
		for j, h := range all {
			if !h.position.In(background.Rect.Inset(margin / 2)) {
				t.Errorf("item %d of row %d reaches into the margin", j, i)
			}
			for _, other := range positions {
				testenv.Check(t, !h.position.Overlaps(other), "item %d of row %d overlaps another", j, i)
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

func TestDocumentsShowTheGalleries(t *testing.T) {
	t.Parallel()
	for _, layout := range layouts {
		text := testenv.Must(os.ReadFile("../../" + layout.shownBy))(t)
		path := layout.path
		if strings.HasPrefix(layout.shownBy, "docs/") {
			path = strings.TrimPrefix(path, "docs/")
		}
		testenv.Check(t, bytes.Contains(text, []byte("("+path+")")), "%s does not show %s", layout.shownBy, path)
	}
}

func decode(t *testing.T, file []byte) *image.NRGBA {
	t.Helper()
	img, _, err := image.Decode(bytes.NewReader(file))
	testenv.Do(t, err)
	all := image.NewNRGBA(img.Bounds())
	draw.Draw(all, all.Rect, img, image.Point{}, draw.Src)
	return all
}
