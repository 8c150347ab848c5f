package render

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/veneer-skins/veneer/edge/render/png"
	"github.com/veneer-skins/veneer/edge/render/raster"
	"github.com/veneer-skins/veneer/edge/render/webp"
)

// encoder encodes one file at a time. Its memory is reused from file to file.
type encoder struct {
	png  png.Encoder
	webp webp.Encoder
	file []byte // while its size is unknown
}

// Encode encodes a picture. The file contains nothing but pixels, and every pixel can be decoded
// unchanged, transparent ones too.
func (r *Renderer) Encode(picture raster.Picture, format Format) ([]byte, error) {
	e, ok := r.encoders.Get().(*encoder)
	if !ok {
		e = new(encoder)
	}
	defer r.encoders.Put(e)
	file, err := e.encode(picture, format)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", format, err)
	}
	return file, nil
}

func (e *encoder) encode(picture raster.Picture, format Format) (file []byte, err error) {
	switch format {
	case PNG:
		e.file, err = e.png.Append(e.file[:0], picture.Pix, picture.Width, picture.Height)
	case WebP:
		e.file, err = e.webp.Append(e.file[:0], picture.Pix, picture.Width, picture.Height)
	default:
		err = errors.New("no such format")
	}
	if err != nil {
		return nil, err
	}
	return bytes.Clone(e.file), nil
}

// revision is the version of the files that Encode writes. It must change whenever the same view of the
// same sheet becomes another file, because it is part of ETags and cache tags. TestRevisionGuard says when.
const revision = 4
