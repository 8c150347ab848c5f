package render

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/veneer-skins/veneer/edge/render/png"
	"github.com/veneer-skins/veneer/edge/render/webp"
)

// Encoder is what encodes pictures.
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

// Encode encodes a picture. The file contains nothing but pixels, and every pixel can be
// decoded unchanged; only the colour of transparent ones is up to libvips.
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

// nativeEncoders is the scratch memory of encoding one file at a time: the encoders with
// theirs, and the file while its size is unknown.
type nativeEncoders struct {
	png  png.Encoder
	webp webp.Encoder
	file []byte
}

// encodeNative encodes with the packages png and webp. BenchmarkRender compares that with
// libvips.
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
