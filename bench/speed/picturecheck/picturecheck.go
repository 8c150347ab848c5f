// Package sample keeps pictures that come in a run, and decodes them when nothing is
// measured any more.
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
	"github.com/veneer-skins/veneer/edge/render/libwebp"
)

// What can be wrong with a picture.
const (
	// WrongPicture does not decode.
	WrongPicture load.Fault = "picture"
	// WrongSize is another one than was asked for.
	WrongSize load.Fault = "dimensions"
)

// maxBytes is how many bytes of pictures are kept until the end.
const maxBytes = 256 << 20

// Sampler are pictures that are kept, each once. They belong to one thread until they are
// decoded.
type Sampler struct {
	path     func(request int) string
	seed     maphash.Seed
	pictures map[key]*picture
	budget   int   // in bytes
	skipped  int64 // as there was no room
}

type key struct {
	height int // that was asked for; 0 if none was
	hash   uint64
}

type picture struct {
	path string // of the first request that it answers
	file []byte
	n    int64 // how many it answers of those that were looked at
}

// New returns the samples of one of so many threads. The path of a request is to have
// size= where a height is wanted.
func New(path func(request int) string, threads int) *Sampler {
	return &Sampler{path: path, seed: maphash.MakeSeed(), pictures: map[key]*picture{}, budget: maxBytes / threads}
}

// Inspect keeps the picture of an answer, for load.Stream.
func (s *Sampler) Inspect(request, status int, body []byte) error {
	if status != fasthttp.StatusOK {
		return nil
	}
	path := s.path(request)
	key := key{requestedHeight(path), maphash.Bytes(s.seed, body)}
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

// requestedHeight returns the size that a path asks for, 0 if it asks for none.
func requestedHeight(path string) int {
	u, err := url.ParseRequestURI(path)
	if err != nil {
		return 0
	}
	size, err := strconv.Atoi(u.Query().Get("size"))
	if err != nil {
		return 0
	}
	return size
}

// Summary are what became of samples.
type Summary struct {
	// Decoded is how many answers, Different how many different bodies they had.
	Decoded   int64 `json:"decoded"`
	Different int   `json:"different"`
	// Skipped is how many were not kept, as there was no room.
	Skipped int64 `json:"left_out"`
}

// Decode decodes the samples of all threads, and hands on those that are wrong, one after
// the other, with how many answers they were.
func Decode(threads []*Sampler, wrong func(fault load.Fault, n int64, err error)) *Summary {
	p := new(Summary)
	var mu sync.Mutex
	var decoders errgroup.Group
	decoders.SetLimit(runtime.GOMAXPROCS(0))
	for _, thread := range threads {
		p.Skipped += thread.skipped
		for key, pic := range thread.pictures {
			p.Decoded += pic.n
			p.Different++
			decoders.Go(func() error {
				if fault, err := pic.decode(key.height); err != nil {
					mu.Lock()
					defer mu.Unlock()
					wrong(fault, pic.n, fmt.Errorf("%w in the answer to %s", err, pic.path))
				}
				return nil
			})
		}
	}
	_ = decoders.Wait() // none of which returns an error
	return p
}

var (
	pngMagic  = []byte("\x89PNG\r\n\x1a\n")
	riffMagic = []byte("RIFF")
)

// decode reads all of a picture, and returns what is wrong with it.
func (s *picture) decode(height int) (load.Fault, error) {
	var got int
	var err error
	switch {
	case bytes.HasPrefix(s.file, pngMagic):
		img, failed := png.Decode(bytes.NewReader(s.file))
		if err = failed; err == nil {
			got = img.Bounds().Dy()
		}
	case bytes.HasPrefix(s.file, riffMagic):
		_, _, got, err = libwebp.Decode(s.file)
	default:
		err = errors.New("it is neither PNG nor WebP")
	}
	switch {
	case err != nil:
		return WrongPicture, fmt.Errorf("no picture is read from %d bytes: %w", len(s.file), err)
	case height > 0 && got != height:
		return WrongSize, fmt.Errorf("a picture of height %d, and not %d, is", got, height)
	}
	return "", nil
}
