// Package libpng_test compares the PNGs that are accepted as textures with those that libpng decodes.
package libpng_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	govips "github.com/davidbyttow/govips/v2/vips"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

func TestMain(m *testing.M) {
	govips.LoggingSettings(func(string, govips.LogLevel, string) {}, govips.LogLevelCritical) // libpng warns of damage
	if err := govips.Startup(&govips.Config{ConcurrencyLevel: 1}); err != nil {
		fmt.Fprintln(os.Stderr, "start libvips:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// refused are parts of the refusals of files that libpng decodes: pictures that are no texture, and
// animations, whose other frames would be lost.
var refused = []string{"pixels; a skin has", "it is animated"}

// What libpng decodes whole is accepted with the same pixels, unless its refusal has a reason.
func TestAcceptedAsByLibpng(t *testing.T) {
	t.Parallel()
	files := slices.DeleteFunc(slices.Concat(skintest.Corpus(), skintest.Mutations()), func(file skintest.File) bool {
		return len(file.Data) > 64<<10 // bombs take minutes
	})
	var both, decoded, neither int
	reasons := map[string]int{}
	for _, file := range files {
		sheet, witness := decode(file.Data)
		texture, err := skin.ParseUpload(file.Data, file.Type, skin.DefaultLimits())
		switch {
		case err != nil && fault.KindOf(err) != fault.Invalid:
			t.Errorf("%s: %v; want a sentence for its user", file.Name, err)
		case witness != nil && err != nil:
			neither++
		case witness != nil:
			decoded++
		case err == nil:
			both++
			checkSame(t, file.Name, texture.Sheet, sheet)
		default:
			sentence := fault.Of(err).Fields["file"][0]
			at := slices.IndexFunc(refused, func(reason string) bool { return strings.Contains(sentence, reason) })
			if at < 0 {
				t.Errorf("%s: libpng decodes it; the upload is refused: %s", file.Name, sentence)
				continue
			}
			reasons[refused[at]]++
		}
	}
	testenv.Check(t, both >= 500 && neither >= 200,
		"%d files are decoded and %d refused by both; want more of each", both, neither)
	t.Logf("of %d files both decode %d, Veneer alone %d, neither %d; refused are %v", len(files), both, decoded, neither, reasons)
}

// checkSame compares a texture with the picture that libpng decodes, which is smaller than the sheet of an old cape.
func checkSame(t *testing.T, name string, texture, picture skin.Sheet) {
	t.Helper()
	for y := range picture.Height {
		row := 4 * picture.Width
		if got, want := texture.Pix[texture.At(0, y):][:row], picture.Pix[picture.At(0, y):][:row]; !bytes.Equal(got, want) {
			t.Errorf("%s: row %d has other pixels than libpng decodes", name, y)
			return
		}
	}
}

// decode returns the pixels of a PNG of at most 8 bits a channel as libpng decodes them.
func decode(file []byte) (skin.Sheet, error) {
	if !bytes.HasPrefix(file, []byte(skintest.Signature)) {
		return skin.Sheet{}, fmt.Errorf("only PNGs are compared")
	}
	image, err := govips.LoadImageFromBuffer(file, nil)
	if err != nil {
		return skin.Sheet{}, err
	}
	defer image.Close()
	if image.Width() > 1024 || image.Height() > 1024 || image.BandFormat() != govips.BandFormatUchar {
		return skin.Sheet{}, fmt.Errorf("it has %d × %d pixels of format %v", image.Width(), image.Height(), image.BandFormat())
	}
	samples, err := image.ToBytes()
	if err != nil {
		return skin.Sheet{}, err
	}
	sheet, bands := skin.NewSheet(image.Width(), image.Height()), image.Bands()
	for i := range len(sheet.Pix) / 4 {
		s, texel := samples[i*bands:][:bands], sheet.Pix[4*i:][:4]
		texel[3] = 255
		switch bands {
		case 1, 2:
			texel[0], texel[1], texel[2] = s[0], s[0], s[0]
			copy(texel[3:], s[1:])
		default:
			copy(texel, s)
		}
	}
	return sheet, nil
}
