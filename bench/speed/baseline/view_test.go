package baseline

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"net/http"
	"testing"

	"golang.org/x/image/webp"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
)

// storeSkins writes skins to a directory and returns it with their hashes.
func storeSkins(t *testing.T, skins []artwork.NamedSheet) (directory string, hashes []skin.Hash) {
	t.Helper()
	directory = t.TempDir()
	store, err := blobstore.New(blobstore.Config{URL: "file://" + directory, Timeout: startTimeout})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, s := range skins {
		file, err := s.Sheet.PNG()
		if err != nil {
			t.Fatal(err)
		}
		stored, err := skin.ParseUpload(file, s.Type.String(), skin.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Put(t.Context(), stored.Hash, stored.File); err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, stored.Hash)
	}
	return directory, hashes
}

// modules is where deploy/dev/node installs sharp. Tests install nothing.
const modules = "../../../.dev/node/sharp"

// The hand-written baselines render the same pictures as the edge, as far as they can. For a
// translucent texel of the hat they round down and the edge to the nearest. Translucent texels of
// the face they leave, while the edge makes them opaque, as the game does. Where texels are no
// whole number of pixels they sample the nearest and the edge averages, so there only the size is
// the same.
func TestFlat(t *testing.T) {
	t.Parallel()

	skins := skintest.Skins()
	directory, hashes := storeSkins(t, skins)
	renderer := render.New(new(render.NativeEncoder), nil)

	f := func(name string, run func(ctx context.Context, env Env) (*Server, error)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := start(t, run)
			for _, v := range []View{
				{"flat", 8, "png"},
				{"flat", 64, "png"},
				{"flat", 136, "png"},
				{"flat", 128, "webp"},
				{"flat", 520, "png"},
				{"isometric", 128, "png"},
				{"preview", 400, "webp"},
			} {
				for i, named := range skins {
					target := v.Target(hashes[i])
					if s.Unsupported(v) != "" {
						get(t, s.Address, target, "", http.StatusNotFound)
						break
					}
					want, err := renderer.Draw(named.Sheet, skin.Sheet{}, render.View{Mode: render.Flat, Type: named.Type, Size: v.Size})
					if err != nil {
						t.Fatal(err)
					}
					got := decodeImage(t, get(t, s.Address, target, "", http.StatusOK).Body(), v.Format)
					if message := difference(named.Sheet, want, got); message != "" {
						t.Errorf("%s at %d as %s: %s", named.Name, v.Size, v.Format, message)
					}
				}
			}
			get(t, s.Address, View{"flat", 64, "png"}.Target(skin.Hash{}), "", http.StatusNotFound)
		})
	}

	f("image-png", func(ctx context.Context, env Env) (*Server, error) { return StartImagePNG(ctx, env, directory) })
	f("sharp", func(ctx context.Context, env Env) (*Server, error) {
		return StartSharp(ctx, env, directory, modules)
	})
}

// difference describes how a picture of a face differs from the edge's by more than the tolerance.
func difference(sheet skin.Sheet, want render.Picture, got *image.NRGBA) string {
	side, texels := want.Width, 8*sheet.Scale()
	if got.Rect.Size() != image.Pt(side, side) {
		return fmt.Sprintf("it is of %v pixels", got.Rect.Size())
	}
	if side%texels != 0 {
		return ""
	}
	for y := range side {
		for x := range side {
			u, v, tolerance := x*texels/side, texels+y*texels/side, 0
			if sheet.Pix[sheet.At(texels+u, v)+3] != 255 {
				continue
			}
			if hat := sheet.Pix[sheet.At(5*texels+u, v)+3]; hat != 0 && hat != 255 {
				tolerance = 1
			}
			at := 4 * (y*side + x)
			for c := at; c < at+4; c++ {
				if absDiff(int(want.Pix[c]), int(got.Pix[c])) > tolerance {
					return fmt.Sprintf("at %d, %d it is %v; the edge's is %v", x, y, got.Pix[at:at+4], want.Pix[at:at+4])
				}
			}
		}
	}
	return ""
}

// decodeImage returns the picture in a file.
func decodeImage(t *testing.T, file []byte, format string) *image.NRGBA {
	t.Helper()
	decode := png.Decode
	if format == "webp" {
		decode = webp.Decode
	}
	picture, err := decode(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	straight := image.NewNRGBA(picture.Bounds())
	draw.Draw(straight, straight.Bounds(), picture, image.Point{}, draw.Src)
	return straight
}
