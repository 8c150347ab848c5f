package baseline

import (
	"bytes"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"net/http"
	"testing"

	"github.com/veneer-skins/veneer/edge/origin/origintest"
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

func storeSkins(t *testing.T, skins []artwork.NamedSheet) (directory string, hashes []skin.Hash) {
	t.Helper()
	directory = t.TempDir()
	store := blobstoretest.Open(t, blobstore.Config{URL: "file://" + directory, Timeout: timeout})
	testenv.Do(t, store.Init(t.Context()))
	for _, s := range skins {
		file := origintest.File(t, s.Sheet, s.Type)
		hashes = append(hashes, skin.HashOf(file))
		testenv.Do(t, store.Put(t.Context(), skin.HashOf(file), file))
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
	renderer := render.New(nil)

	for name, start := range map[string]func(t *testing.T) *Server{
		"image-png": func(t *testing.T) *Server { t.Helper(); return ImagePNG.Start(t, directory) },
		"sharp": func(t *testing.T) *Server {
			t.Helper()
			requireProgram(t, Sharp(modules))
			return StartSharp(t, directory, modules)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			for _, size := range []int{8, 64, 136} {
				for i, named := range skins {
					want := testenv.Must(renderer.Draw(named.Sheet, skin.Sheet{}, render.View{Mode: render.Flat, Type: named.Type, Size: size}))(t)
					got := decodePNG(t, get(t, s.Address, FlatTarget(size, hashes[i]), "", http.StatusOK).Body())
					testenv.Equal(t, difference(named.Sheet, want, got), "", "%s at %d: its difference", named.Name, size)
				}
			}
			get(t, s.Address, FlatTarget(64, skin.Hash{}), "", http.StatusNotFound)
		})
	}
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
				if difference := int(want.Pix[c]) - int(got.Pix[c]); max(difference, -difference) > tolerance {
					return fmt.Sprintf("at %d, %d it is %v; the edge's is %v", x, y, got.Pix[at:at+4], want.Pix[at:at+4])
				}
			}
		}
	}
	return ""
}

func decodePNG(t *testing.T, file []byte) *image.NRGBA {
	t.Helper()
	picture := testenv.Must(png.Decode(bytes.NewReader(file)))(t)
	straight := image.NewNRGBA(picture.Bounds())
	draw.Draw(straight, straight.Bounds(), picture, image.Point{}, draw.Src)
	return straight
}
