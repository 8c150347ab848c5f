package main

import (
	"bytes"
	"image/color"
	"image/png"
	"os"
	"testing"

	"github.com/veneer-skins/veneer/edge/render"
)

// The sheet has room for all that hangs on it, shows something in every strip, and
// is light enough for a page.
func TestGallery(t *testing.T) {
	t.Parallel()

	renderer, err := render.Start(render.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(renderer.Close)
	file, err := compose(renderer)
	if err != nil {
		t.Fatal(err)
	}
	const most = 300_000
	if len(file) > most {
		t.Errorf("the file has %d bytes; want %d at most", len(file), most)
	}
	sheet, err := png.Decode(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	for i, strip := range strips() {
		colours := map[color.Color]bool{}
		for x := strip.left; x < strip.right; x++ {
			colours[sheet.At(x, strip.bottom-20)] = true
		}
		if len(colours) < 3 {
			t.Errorf("strip %d is empty", i)
		}
	}
}

func TestRunWantsAFile(t *testing.T) {
	t.Parallel()

	if err := run(nil); err == nil {
		t.Error("a gallery is drawn into no file")
	}
}

// The gallery that the README shows exists.
func TestGalleryIsShown(t *testing.T) {
	t.Parallel()

	const shown = "docs/gallery.png"
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(readme, []byte("("+shown+")")) {
		t.Errorf("README.md does not show %s", shown)
	}
	if _, err := os.Stat("../../" + shown); err != nil {
		t.Error(err)
	}
}
