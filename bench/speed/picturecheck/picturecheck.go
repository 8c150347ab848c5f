// Package picturecheck samples pictures during a measurement, and decodes them after it.
package picturecheck

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"image/png"
	"net/url"
	"runtime"
	"strconv"
	"sync"

	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"

	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/edge/render/vips/libwebp"
)

// The faults of pictures.
const (
	// WrongPicture does not decode.
	WrongPicture load.Fault = "picture"
	// WrongSize is another height than was requested.
	WrongSize load.Fault = "dimensions"
)

// Sampler collects distinct pictures. It belongs to one thread until they are decoded.
type Sampler struct {
	path     func(request int) string
	seed     maphash.Seed
	pictures map[key]*picture
	budget   int   // remaining bytes
	skipped  int64 // over budget
}

type key struct {
	height int // that was requested; 0 for none
	hash   uint64
}

type picture struct {
	path string // of the first request
	file []byte
	n    int64 // number of inspected answers with it
}

// New returns a sampler. The path of a request must have size= where a height is expected.
func New(path func(request int) string) *Sampler {
	return &Sampler{path: path, seed: maphash.MakeSeed(), pictures: map[key]*picture{}, budget: 256 << 20}
}

// Inspect samples the picture of an answer, for load.Stream.
func (s *Sampler) Inspect(request, status int, body []byte) error {
	if status != fasthttp.StatusOK {
		return nil
	}
	path, height := s.path(request), 0
	if u, err := url.ParseRequestURI(path); err == nil {
		height, _ = strconv.Atoi(u.Query().Get("size"))
	}
	key := key{height, maphash.Bytes(s.seed, body)}
	if existing := s.pictures[key]; existing != nil {
		existing.n++
		return nil
	}
	if s.budget < len(body) {
		s.skipped++
		return nil
	}
	s.budget -= len(body)
	s.pictures[key] = &picture{path, bytes.Clone(body), 1}
	return nil
}

// Summary is the result of decoding.
type Summary struct {
	// Decoded is the number of answers, Different the number of distinct bodies.
	Decoded   int64 `json:"decoded"`
	Different int   `json:"different"`
	// Skipped is the number of answers over the byte budget.
	Skipped int64 `json:"left_out"`
}

// Decode decodes the pictures, and calls wrong with those that are wrong, one at a time, with their
// number of answers.
func (s *Sampler) Decode(wrong func(fault load.Fault, n int64, err error)) *Summary {
	p := &Summary{Different: len(s.pictures), Skipped: s.skipped}
	var mu sync.Mutex
	var decoders errgroup.Group
	decoders.SetLimit(runtime.GOMAXPROCS(0))
	for key, pic := range s.pictures {
		p.Decoded += pic.n
		decoders.Go(func() error {
			if fault, err := pic.decode(key.height); err != nil {
				mu.Lock()
				defer mu.Unlock()
				wrong(fault, pic.n, fmt.Errorf("%w in the answer to %s", err, pic.path))
			}
			return nil
		})
	}
	_ = decoders.Wait() // no decoder returns an error
	return p
}

var (
	pngMagic  = []byte("\x89PNG\r\n\x1a\n")
	riffMagic = []byte("RIFF")
)

// decode decodes all of a picture, and returns what is wrong with it.
func (p *picture) decode(height int) (load.Fault, error) {
	var got int
	var err error
	switch {
	case bytes.HasPrefix(p.file, pngMagic):
		img, failed := png.Decode(bytes.NewReader(p.file))
		if err = failed; err == nil {
			got = img.Bounds().Dy()
		}
	case bytes.HasPrefix(p.file, riffMagic):
		_, _, got, err = libwebp.Decode(p.file)
	default:
		err = errors.New("it is neither PNG nor WebP")
	}
	switch {
	case err != nil:
		return WrongPicture, fmt.Errorf("no picture is read from %d bytes: %w", len(p.file), err)
	case height > 0 && got != height:
		return WrongSize, fmt.Errorf("a picture of height %d, and not %d, is", got, height)
	}
	return "", nil
}
