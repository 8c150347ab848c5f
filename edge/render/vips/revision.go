package vips

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"

	govips "github.com/davidbyttow/govips/v2/vips"

	"github.com/veneer-skins/veneer/edge/render"
)

// selfTest finds out which formats libvips can write, and the revision of its files.
//
// The version of libvips does not suffice for that: libvips does not report those of zlib, libspng
// and libwebp, which distributions update on their own and on which the bytes depend as well. So
// the files of sample pictures are part of the revision.
func (e *Encoder) selfTest() error {
	sum := sha256.New()
	for _, pixels := range []int{maxThoroughWebP, maxThoroughPNG, math.MaxInt} {
		fmt.Fprintf(sum, "%s %+v %+v ", govips.Version, *pngParams(pixels), *webpParams(pixels))
	}
	for i, picture := range samples() {
		file, err := e.Encode(picture, render.PNG)
		if err != nil {
			return fmt.Errorf("encode a sample as PNG: %w", err)
		}
		sum.Write(file)
		if i == 0 {
			_, err := e.Encode(picture, render.WebP)
			e.canWebP = err == nil
		}
		if !e.canWebP {
			continue
		}
		if file, err = e.Encode(picture, render.WebP); err != nil {
			return fmt.Errorf("encode a sample as WebP: %w", err)
		}
		sum.Write(file)
	}
	e.revision = fmt.Sprintf("%x", sum.Sum(nil)[:6])
	return nil
}

// samples returns pictures that the libraries treat differently: small ones and large ones on
// either side of the bounds of the settings, each opaque of few colours, translucent of many, and
// with gradients.
func samples() []render.Picture {
	var all []render.Picture
	for _, size := range []struct{ width, height, texel int }{
		{16, 16, 2}, {128, 128, 8}, {368, 400, 5}, {472, 512, 3}, {944, 1024, 12},
	} {
		for _, colour := range []func(x, y int) uint32{
			func(x, y int) uint32 { return noise(x/size.texel, y/size.texel)%12*0x1f3b5700 | 0xff },
			func(x, y int) uint32 { return noise(x/size.texel, y/size.texel) },
			func(x, y int) uint32 {
				return uint32(x*255/size.width)<<24 | uint32(y*255/size.height)<<16 | uint32(x*y)&0xff<<8 | uint32(min(255, 16*min(x, size.width-x)))
			},
		} {
			picture := render.Picture{Width: size.width, Height: size.height}
			for i := range size.width * size.height {
				picture.Pix = binary.BigEndian.AppendUint32(picture.Pix, colour(i%size.width, i/size.width))
			}
			all = append(all, picture)
		}
	}
	return all
}

// noise returns a number that looks random for each x and y.
func noise(x, y int) uint32 {
	n := uint32(x)*0x9e3779b1 ^ uint32(y)*0x85ebca6b
	n = (n ^ n>>15) * 0x2c1b3c6d
	n = (n ^ n>>12) * 0x297a2d39
	return n ^ n>>15
}
