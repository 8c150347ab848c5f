package main

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/edge/render/vips/libwebp"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
)

// The size of an encoder's file is cached, by encoder and picture.
func TestResultsAreCached(t *testing.T) {
	t.Parallel()

	a := newTestCache(t)
	copied := encoder{name: "cp", args: []string{"IN", "OUT"}}
	picture := noise(1)
	var file bytes.Buffer
	if err := png.Encode(&file, imageOf(picture)); err != nil {
		t.Fatal(err)
	}
	f := func(encoder encoder, picture render.Picture, want int) {
		t.Helper()
		if got, err := a.size(t.Context(), encoder, picture); err != nil || got != want {
			t.Errorf("%s %q: %d bytes, %v; want %d", encoder.name, encoder.args, got, err, want)
		}
	}

	f(copied, picture, file.Len())
	stored, err := filepath.Glob(filepath.Join(a.cache, "cp-*"))
	if err != nil || len(stored) != 1 {
		t.Fatalf("cached %q, %v; want one file", stored, err)
	}
	if err := os.WriteFile(stored[0], []byte("7"), 0o600); err != nil {
		t.Fatal(err)
	}
	f(copied, picture, 7)
	f(encoder{name: "cp", args: []string{"-f", "IN", "OUT"}}, picture, file.Len())
	picture.Width, picture.Height = picture.Height, picture.Width
	file.Reset()
	if err := png.Encode(&file, imageOf(picture)); err != nil {
		t.Fatal(err)
	}
	f(copied, picture, file.Len())
}

func TestMissingEncoderIsNamed(t *testing.T) {
	t.Parallel()

	_, err := newTestCache(t).size(t.Context(), encoder{name: "no-such-tool", source: "its-package"}, noise(1))
	if want := "no-such-tool is missing: install Debian's package its-package"; err == nil || err.Error() != want {
		t.Errorf("%v; want %q", err, want)
	}
}

func TestReadBack(t *testing.T) {
	t.Parallel()

	picture := noise(2)
	for i := 3; i < len(picture.Pix); i += 4 {
		if picture.Pix[i] == 0 {
			clear(picture.Pix[i-3 : i])
		}
	}
	asWebP, err := libwebp.Encode(picture.Pix, picture.Width, picture.Height, 1, 20)
	if err != nil {
		t.Fatal(err)
	}
	var asPNG bytes.Buffer
	if err := png.Encode(&asPNG, imageOf(picture)); err != nil {
		t.Fatal(err)
	}
	for format, file := range map[render.Format][]byte{render.WebP: asWebP, render.PNG: asPNG.Bytes()} {
		if err := readBack(file, format, picture); err != nil {
			t.Errorf("%s: %v", format, err)
		}
		if err := readBack(file, format, noise(3)); err == nil {
			t.Errorf("%s: another picture passes", format)
		}
		if err := readBack(file[:len(file)/2], format, picture); err == nil {
			t.Errorf("%s: half a file passes", format)
		}
	}
}

func TestSum(t *testing.T) {
	t.Parallel()

	got := sum([]result{{"a", 102, 100}, {"b", 103, 100}, {"c", 95, 100}}, 1.02)
	want := total{result: result{ours: 300, theirs: 300}, worst: 1.03, above: []result{{"b", 103, 100}}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(total{}, result{})); diff != "" {
		t.Errorf("sum (-want +got):\n%s", diff)
	}
}

func newTestCache(t *testing.T) *resultCache {
	t.Helper()
	a, err := newResultCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.close)
	return a
}

func noise(seed uint64) render.Picture {
	sheet := skintest.Noise(seed, 24, 16)
	return render.Picture{Width: sheet.Width, Height: sheet.Height, Pix: sheet.Pix}
}
