package render

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/veneer-skins/veneer/edge/render/png"
	"github.com/veneer-skins/veneer/edge/render/webp"
)

// Encoder is who writes files.
type Encoder uint8

// The encoders.
const (
	Native  Encoder = iota // the packages png and webp, which know what pictures of texels are like
	Libvips                // libvips, with zlib and libwebp: slower, and its files are larger
)

// String returns native or libvips.
func (e Encoder) String() string {
	switch e {
	case Native:
		return "native"
	case Libvips:
		return "libvips"
	default:
		return "unknown"
	}
}

// UnmarshalText reads what String returns.
func (e *Encoder) UnmarshalText(text []byte) error {
	switch string(text) {
	case "native":
		*e = Native
	case "libvips":
		*e = Libvips
	default:
		return fmt.Errorf("is %.100q, but must be native or libvips", text)
	}
	return nil
}

// Encode writes a picture in a format. Nothing but pixels goes into the file, and
// every pixel can be read back as it was; only the colour of transparent ones,
// which nobody sees, libvips chooses to its liking.
func (r *Renderer) Encode(picture Picture, format Format) ([]byte, error) {
	encode := r.encodeNative
	if r.encoder == Libvips {
		encode = encodeLibvips
	}
	file, err := encode(picture, format)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", format, err)
	}
	return file, nil
}

// nativeEncoders are what it takes to write one file at a time: the writers with their
// memory, and where the file comes to be before its size is known.
type nativeEncoders struct {
	png  png.Encoder
	webp webp.Encoder
	file []byte
}

// encodeNative writes a picture by itself. BenchmarkRender measures what that saves.
func (r *Renderer) encodeNative(picture Picture, format Format) (file []byte, err error) {
	w, ok := r.encoderPool.Get().(*nativeEncoders)
	if !ok {
		w = new(nativeEncoders)
	}
	switch format {
	case PNG:
		w.file, err = w.png.Append(w.file[:0], picture.Pix, picture.Width, picture.Height)
	case WebP:
		w.file, err = w.webp.Append(w.file[:0], picture.Pix, picture.Width, picture.Height)
	default:
		return nil, errors.New("no such format")
	}
	if err == nil {
		file = bytes.Clone(w.file)
	}
	r.encoderPool.Put(w)
	return file, err
}
