// Command kernels compares the kernels with which libvips can reduce pictures to exact sizes: by their
// error against the picture of exactly that size, and on a contact sheet.
//
//	go run ./bench/speed/kernels docs/images/kernels.png
package main

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"os"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/edge/render/vips"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
)

// modes are the pictures that are compared, each at sizes that plugins ask for.
var modes = []struct {
	mode    render.Mode
	largest int // that is drawn, from which the reference is averaged
	sizes   []int
}{
	{render.Flat, 512, []int{20, 25, 45, 100, 180}},
	{render.Isometric, 512, []int{20, 25, 45, 100, 180}},
	{render.Bust, 512, []int{25, 45, 100, 180}},
	{render.Body, 1024, []int{45, 90, 200, 360}},
	{render.Front, 1024, []int{45, 90, 200, 360}},
}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "kernels:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 1 {
		return errors.New("the argument is the file of the contact sheet")
	}
	reducer, err := vips.StartReducer(nil)
	if err != nil {
		return err
	}
	defer reducer.Close()
	renderer := render.New(new(render.NativeEncoder), nil)

	fmt.Fprintln(out, "error against the exact picture, in steps of 256, of all skins and sizes:")
	fmt.Fprintf(out, "%-10s", "")
	for _, k := range vips.Kernels {
		fmt.Fprintf(out, "%10s", k.Name)
	}
	fmt.Fprintln(out)
	for _, m := range modes {
		sums := make([]float64, len(vips.Kernels))
		count := 0
		for _, named := range artwork.Skins() {
			for _, size := range m.sizes {
				drawn, reference, err := draw(renderer, named, m.mode, size, m.largest)
				if err != nil {
					return err
				}
				for i, k := range vips.Kernels {
					reduced, err := vips.ReduceWith(k.Kernel, drawn, reference.Width, reference.Height)
					if err != nil {
						return err
					}
					sums[i] += difference(reduced, reference)
				}
				count++
			}
		}
		fmt.Fprintf(out, "%-10s", m.mode)
		for _, sum := range sums {
			fmt.Fprintf(out, "%10.2f", sum/float64(count))
		}
		fmt.Fprintln(out)
	}
	return writeSheet(renderer, args[0])
}

// draw returns the picture from which one of an exact size is reduced, and the picture of exactly that
// size: the average of a large one.
func draw(renderer *render.Renderer, of artwork.NamedSheet, mode render.Mode, exact, largest int) (drawn, reference render.Picture, err error) {
	size, reduced := mode.ExactOf(exact)
	if reduced == 0 {
		return drawn, reference, fmt.Errorf("%s is drawn at %d pixels", mode, exact)
	}
	if drawn, err = renderer.Draw(of.Sheet, skin.Sheet{}, render.View{Mode: mode, Type: of.Type, Size: size}); err != nil {
		return drawn, reference, err
	}
	large, err := renderer.Draw(of.Sheet, skin.Sheet{}, render.View{Mode: mode, Type: of.Type, Size: largest})
	if err != nil {
		return drawn, reference, err
	}
	width, height := render.View{Mode: mode, Type: of.Type, Size: size, Exact: reduced}.Extent()
	return drawn, average(large, width, height), nil
}

// average returns a picture of which each pixel is the average of the area that it covers, weighted by
// alpha.
func average(large render.Picture, width, height int) render.Picture {
	out := render.Picture{Width: width, Height: height, Pix: make([]byte, 4*width*height)}
	across, down := float64(large.Width)/float64(width), float64(large.Height)/float64(height)
	for y := range height {
		for x := range width {
			var sum [4]float64
			for v := int(float64(y) * down); float64(v) < float64(y+1)*down && v < large.Height; v++ {
				high := min(float64(v+1), float64(y+1)*down) - max(float64(v), float64(y)*down)
				for u := int(float64(x) * across); float64(u) < float64(x+1)*across && u < large.Width; u++ {
					weight := high * (min(float64(u+1), float64(x+1)*across) - max(float64(u), float64(x)*across))
					pixel := large.Pix[4*(v*large.Width+u):][:4]
					for c := range 3 {
						sum[c] += weight * float64(pixel[c]) * float64(pixel[3])
					}
					sum[3] += weight * float64(pixel[3])
				}
			}
			pixel := out.Pix[4*(y*width+x):][:4]
			if pixel[3] = byte(sum[3]/across/down + 0.5); pixel[3] == 0 {
				continue
			}
			for c := range 3 {
				pixel[c] = byte(sum[c]/sum[3] + 0.5)
			}
		}
	}
	return out
}

// difference returns the root of the mean square of the differences of two pictures, of premultiplied
// values.
func difference(a, b render.Picture) float64 {
	sum := 0.0
	for i := 0; i < len(a.Pix); i += 4 {
		for c := range 4 {
			value := func(p []byte) float64 {
				if c == 3 {
					return float64(p[i+3])
				}
				return float64(p[i+c]) * float64(p[i+3]) / 255
			}
			d := value(a.Pix) - value(b.Pix)
			sum += d * d
		}
	}
	return math.Sqrt(sum / float64(len(a.Pix)))
}

// sheetSizes are the sizes on the contact sheet.
var sheetSizes = []struct {
	mode  render.Mode
	exact int
}{
	{render.Flat, 20}, {render.Flat, 45}, {render.Flat, 100}, {render.Isometric, 25}, {render.Isometric, 45}, {render.Isometric, 100}, {render.Bust, 100}, {render.Body, 200}, {render.Front, 200},
}

// writeSheet writes the contact sheet: a row for each picture, a column for each kernel, and the exact
// picture last.
func writeSheet(renderer *render.Renderer, path string) error {
	const gap = 8
	column, height := 0, gap
	for _, s := range sheetSizes {
		width, high := render.View{Mode: s.mode, Type: skin.Classic, Size: sizeOf(s.mode, s.exact), Exact: s.exact}.Extent()
		column, height = max(column, width+gap), height+high+gap
	}
	sheet := image.NewNRGBA(image.Rect(0, 0, gap+column*(len(vips.Kernels)+1), height))
	for i := range sheet.Pix {
		sheet.Pix[i] = 255
	}
	top := gap
	named := artwork.NamedSheet{Type: skin.Classic, Sheet: artwork.Explorer()}
	for _, s := range sheetSizes {
		drawn, reference, err := draw(renderer, named, s.mode, s.exact, map[bool]int{true: 512, false: 1024}[s.mode == render.Flat || s.mode == render.Isometric || s.mode == render.Bust])
		if err != nil {
			return err
		}
		for i, k := range vips.Kernels {
			reduced, err := vips.ReduceWith(k.Kernel, drawn, reference.Width, reference.Height)
			if err != nil {
				return err
			}
			paste(sheet, reduced, gap+i*column, top)
		}
		paste(sheet, reference, gap+len(vips.Kernels)*column, top)
		top += reference.Height + gap
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join((&png.Encoder{CompressionLevel: png.BestCompression}).Encode(file, sheet), file.Close())
}

func sizeOf(mode render.Mode, exact int) int {
	size, _ := mode.ExactOf(exact)
	return size
}

// paste blends a picture over the sheet.
func paste(sheet *image.NRGBA, picture render.Picture, left, top int) {
	for y := range picture.Height {
		for x := range picture.Width {
			p := picture.Pix[4*(y*picture.Width+x):][:4]
			blend := func(c byte) byte { return byte((int(c)*int(p[3]) + 255*(255-int(p[3])) + 127) / 255) }
			sheet.SetNRGBA(left+x, top+y, color.NRGBA{blend(p[0]), blend(p[1]), blend(p[2]), 255})
		}
	}
}
