package compare

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/edge/render/vips/libwebp"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// tool is a program that encodes a picture as small as it can, and its Debian package. IN and OUT stand
// for the files.
type tool struct {
	name, source string
	args         []string
}

func cwebp(level string) tool {
	return tool{"cwebp", "webp", []string{"-quiet", "-lossless", "-z", level, "IN", "-o", "OUT"}}
}

var pngTools = []tool{
	{"optipng", "optipng", []string{"-quiet", "-o5", "IN", "-out", "OUT"}},
	{"zopflipng", "zopfli", []string{"IN", "OUT"}},
}

// BenchmarkSize compares the sizes of pictures of all textures of the corpus with the sizes of the best
// tools for the same pixels, the smaller file counting. Every file is read back, since a small file of
// other pixels is worth nothing. It names sums above the limits of docs/benchmarks.md. With -short there are
// ten times fewer textures. The tools for PNG take half an hour.
func BenchmarkSize(b *testing.B) {
	renderer := render.New(nil)
	for _, of := range []struct {
		format   render.Format
		name     string
		mode     render.Mode
		textures []artwork.NamedSheet
		limit    float64 // of the sum
		tools    []tool
	}{
		{render.WebP, "flat", render.Flat, skintest.Skins(), 1.02, []tool{cwebp("9")}},
		{render.WebP, "isometric", render.Isometric, skintest.Skins(), 1, []tool{cwebp("6")}},
		{render.WebP, "preview", render.Preview, skintest.Skins(), 1, []tool{cwebp("6")}},
		{render.WebP, "cape", render.Preview, skintest.Capes(), 1, []tool{cwebp("6")}},
		{render.PNG, "flat", render.Flat, skintest.Skins(), 1.05, pngTools},
		{render.PNG, "isometric", render.Isometric, skintest.Skins(), 1.15, pngTools},
		{render.PNG, "preview", render.Preview, skintest.Skins(), 1.15, pngTools},
		{render.PNG, "cape", render.Preview, skintest.Capes(), 1.15, pngTools},
	} {
		for _, size := range []int{64, 128, 256, 512} {
			b.Run(fmt.Sprintf("format=%s/view=%s/size=%d", of.format, of.name, size), func(b *testing.B) {
				for _, t := range of.tools {
					if _, err := exec.LookPath(t.name); err != nil {
						testenv.Skip(b, t.name+" is missing: install Debian's package "+t.source)
					}
				}
				var mu sync.Mutex
				var ours, theirs int
				worst, worstName := 0.0, ""
				var all errgroup.Group
				all.SetLimit(runtime.GOMAXPROCS(0))
				for i, texture := range of.textures {
					if testing.Short() && i%10 > 0 {
						continue
					}
					all.Go(func() error {
						own, other, err := compareSizes(b, renderer, texture, render.View{Mode: of.mode, Type: texture.Type, Size: size, Format: of.format}, of.tools)
						mu.Lock()
						defer mu.Unlock()
						ours, theirs = ours+own, theirs+other
						if ratio := float64(own) / float64(other); ratio > worst {
							worst, worstName = ratio, texture.Name
						}
						return err
					})
				}
				testenv.Do(b, all.Wait())
				ratio := float64(ours) / float64(theirs)
				b.Logf("%d and %d bytes; the worst is %s", ours, theirs, worstName)
				b.ReportMetric(ratio, "ratio")
				b.ReportMetric(worst, "worst-ratio")
				b.ReportMetric(0, "ns/op")
				if ratio > of.limit {
					b.Logf("it is to stay below %.2f", of.limit)
				}
			})
		}
	}
}

// compareSizes returns the size of a picture's file, and the size of the smallest file of the tools.
func compareSizes(b *testing.B, renderer *render.Renderer, texture artwork.NamedSheet, view render.View, tools []tool) (ours, theirs int, err error) {
	b.Helper()
	picture, err := renderer.Draw(texture.Sheet, skin.Sheet{}, view)
	if err != nil {
		return 0, 0, err
	}
	file, err := renderer.Encode(picture, view.Format)
	if err != nil {
		return 0, 0, err
	}
	if err := readBack(file, view.Format, picture); err != nil {
		return 0, 0, fmt.Errorf("%s of %s: %w", view.Format, texture.Name, err)
	}
	folder := b.TempDir()
	in, out := filepath.Join(folder, "in.png"), filepath.Join(folder, "out")
	var pixels bytes.Buffer
	if err := png.Encode(&pixels, &image.NRGBA{Pix: picture.Pix, Stride: 4 * picture.Width, Rect: image.Rect(0, 0, picture.Width, picture.Height)}); err != nil {
		return 0, 0, err
	}
	if err := os.WriteFile(in, pixels.Bytes(), 0o600); err != nil {
		return 0, 0, err
	}
	for _, t := range tools {
		args := slices.Clone(t.args)
		for i, arg := range args {
			args[i] = cmp.Or(map[string]string{"IN": in, "OUT": out}[arg], arg)
		}
		if output, err := exec.CommandContext(b.Context(), t.name, args...).CombinedOutput(); err != nil {
			return 0, 0, fmt.Errorf("%s: %w: %s", t.name, err, output)
		}
		written, err := os.Stat(out)
		if err != nil {
			return 0, 0, err
		}
		if size := int(written.Size()); theirs == 0 || size < theirs {
			theirs = size
		}
		if err := os.Remove(out); err != nil {
			return 0, 0, err
		}
	}
	return len(file), theirs, nil
}

// readBack checks that a file decodes to the picture. Colours under alpha 0, which are invisible, do
// not count.
func readBack(file []byte, format render.Format, picture render.Picture) (err error) {
	var read render.Picture
	if format == render.WebP {
		if read.Pix, read.Width, read.Height, err = libwebp.Decode(file); err != nil {
			return err
		}
	} else {
		img, err := png.Decode(bytes.NewReader(file))
		if err != nil {
			return err
		}
		read.Width, read.Height = img.Bounds().Dx(), img.Bounds().Dy()
		for i := range read.Width * read.Height {
			c := color.NRGBAModel.Convert(img.At(i%read.Width, i/read.Width)).(color.NRGBA) //nolint:errcheck // the model's own type
			read.Pix = append(read.Pix, c.R, c.G, c.B, c.A)
		}
	}
	for i := 3; i < len(read.Pix); i += 4 {
		if read.Pix[i] == 0 {
			clear(read.Pix[i-3 : i])
		}
	}
	if read.Width != picture.Width || read.Height != picture.Height || !bytes.Equal(read.Pix, picture.Pix) {
		return fmt.Errorf("the file decodes to another picture of %d by %d", read.Width, read.Height)
	}
	return nil
}
