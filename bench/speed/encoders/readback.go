package main

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"image/png"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/edge/render/vips/libwebp"
)

// readBack checks that a file decodes to the picture. Colours under alpha 0, which are invisible,
// do not count.
func readBack(file []byte, format render.Format, picture render.Picture) error {
	read, err := decode(file, format)
	if err != nil {
		return fmt.Errorf("read back %s: %w", format, err)
	}
	for i := 3; i < len(read.Pix); i += 4 {
		if read.Pix[i] == 0 {
			clear(read.Pix[i-3 : i])
		}
	}
	if read.Width != picture.Width || read.Height != picture.Height || !bytes.Equal(read.Pix, picture.Pix) {
		return errors.New("the file decodes to another picture")
	}
	return nil
}

func decode(file []byte, format render.Format) (picture render.Picture, err error) {
	if format == render.WebP {
		picture.Pix, picture.Width, picture.Height, err = libwebp.Decode(file)
		return picture, err
	}
	img, err := png.Decode(bytes.NewReader(file))
	if err != nil {
		return render.Picture{}, err
	}
	area := img.Bounds()
	picture = render.Picture{Width: area.Dx(), Height: area.Dy()}
	for y := range picture.Height {
		for x := range picture.Width {
			c := color.NRGBAModel.Convert(img.At(area.Min.X+x, area.Min.Y+y)).(color.NRGBA) //nolint:errcheck // the model's own type
			picture.Pix = append(picture.Pix, c.R, c.G, c.B, c.A)
		}
	}
	return picture, nil
}
