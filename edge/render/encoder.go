package render

import (
	"bytes"
	"errors"
	"sync"
	"time"

	"github.com/veneer-skins/veneer/edge/render/png"
	"github.com/veneer-skins/veneer/edge/render/webp"
)

// Encoder writes pictures as files. It is called concurrently.
type Encoder interface {
	// Encode encodes a picture. The file contains nothing but pixels, and every pixel can be
	// decoded unchanged, except for the colour of transparent ones.
	Encode(picture Picture, format Format) ([]byte, error)

	// Supports reports whether Encode can write a format.
	Supports(format Format) bool

	// Revision returns a token that differs whenever the same picture could become another file.
	Revision() string

	// Cost returns about how long Encode takes on one core of the reference machine.
	Cost(job EncodingJob) time.Duration
}

// EncodingJob is what the time to encode a picture depends on.
type EncodingJob struct {
	View   View
	Scale  int  // of the sheet
	Pixels int  // of the picture
	Crisp  bool // texels have hard edges; always true for flat heads and sides that are not reduced
}

// NativeEncoder encodes with the packages png and webp, which are made for pictures of texels. It
// supports both formats, and is safe for concurrent use. The zero value is ready.
type NativeEncoder struct {
	scratch sync.Pool // of *nativeScratch
}

// nativeScratch is the memory of encoding one file at a time: that of the encoders, and the file
// while its size is unknown.
type nativeScratch struct {
	png  png.Encoder
	webp webp.Encoder
	file []byte
}

// Encode encodes a picture. All pixels are kept, transparent ones too.
func (e *NativeEncoder) Encode(picture Picture, format Format) (file []byte, err error) {
	s, ok := e.scratch.Get().(*nativeScratch)
	if !ok {
		s = new(nativeScratch)
	}
	switch format {
	case PNG:
		s.file, err = s.png.Append(s.file[:0], picture.Pix, picture.Width, picture.Height)
	case WebP:
		s.file, err = s.webp.Append(s.file[:0], picture.Pix, picture.Width, picture.Height)
	default:
		return nil, errors.New("no such format")
	}
	if err == nil {
		file = bytes.Clone(s.file)
	}
	e.scratch.Put(s)
	return file, err
}

// Supports reports whether Encode can write a format.
func (*NativeEncoder) Supports(format Format) bool { return format <= WebP }

// Revision returns a constant, as the constant revision covers the packages png and webp.
func (*NativeEncoder) Revision() string { return "native" }
