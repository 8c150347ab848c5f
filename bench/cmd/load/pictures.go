package main

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

	"github.com/veneer-skins/veneer/bench/load"
	"github.com/veneer-skins/veneer/edge/render/libwebp"
)

// What can be wrong with a picture.
const (
	// wrongPicture does not decode.
	wrongPicture load.Fault = "picture"
	// wrongSize is another one than was asked for.
	wrongSize load.Fault = "dimensions"
)

// mostKept is how many bytes of pictures are kept until the end.
const mostKept = 256 << 20

// samples are pictures that are kept, each once, to be decoded when nothing is measured
// any more.
type samples struct {
	paths   []string
	seed    maphash.Seed
	kept    map[sampleKey]*sample
	room    int   // in bytes
	leftOut int64 // as there was no room
}

type sampleKey struct {
	height int // that was asked for; 0 if none was
	hash   uint64
}

type sample struct {
	path string // of the first request that it answers
	file []byte
	n    int64 // how many it answers of those that were looked at
}

// newSamples returns the samples of one of so many threads.
func newSamples(paths []string, threads int) *samples {
	return &samples{paths: paths, seed: maphash.MakeSeed(), kept: map[sampleKey]*sample{}, room: mostKept / threads}
}

// look keeps a picture.
func (s *samples) look(request, status int, body []byte) error {
	if status != fasthttp.StatusOK {
		return nil
	}
	path := s.paths[request]
	key := sampleKey{heightOf(path), maphash.Bytes(s.seed, body)}
	if known := s.kept[key]; known != nil {
		known.n++
		return nil
	}
	if s.room < len(body) {
		s.leftOut++
		return nil
	}
	s.room -= len(body)
	s.kept[key] = &sample{path, bytes.Clone(body), 1}
	return nil
}

// heightOf returns the size that a path asks for, 0 if it asks for none.
func heightOf(path string) int {
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

// pictures are what became of the samples.
type pictures struct {
	// Decoded is how many answers, Different how many different bodies they had.
	Decoded   int64 `json:"decoded"`
	Different int   `json:"different"`
	// LeftOut is how many were not kept, as there was no room.
	LeftOut int64 `json:"left_out"`
}

// addPictures decodes the samples of all threads, and counts those that are wrong.
func (s *summary) addPictures(threads []*samples) {
	s.Pictures = new(pictures)
	var mu sync.Mutex
	var decoders errgroup.Group
	decoders.SetLimit(runtime.GOMAXPROCS(0))
	for _, thread := range threads {
		s.Pictures.LeftOut += thread.leftOut
		for key, kept := range thread.kept {
			s.Pictures.Decoded += kept.n
			s.Pictures.Different++
			decoders.Go(func() error {
				fault, err := kept.decode(key.height)
				if err != nil {
					mu.Lock()
					defer mu.Unlock()
					s.wrong(fault, kept.n, fmt.Errorf("%w in the answer to %s", err, kept.path))
				}
				return nil
			})
		}
	}
	_ = decoders.Wait() // which counted what failed
}

var (
	pngBegins  = []byte("\x89PNG\r\n\x1a\n")
	riffBegins = []byte("RIFF")
)

// decode reads all of a picture, and returns what is wrong with it.
func (s *sample) decode(height int) (load.Fault, error) {
	var got int
	var err error
	switch {
	case bytes.HasPrefix(s.file, pngBegins):
		img, failed := png.Decode(bytes.NewReader(s.file))
		if err = failed; err == nil {
			got = img.Bounds().Dy()
		}
	case bytes.HasPrefix(s.file, riffBegins):
		_, _, got, err = libwebp.Decode(s.file)
	default:
		err = errors.New("it is neither PNG nor WebP")
	}
	switch {
	case err != nil:
		return wrongPicture, fmt.Errorf("no picture is read from %d bytes: %w", len(s.file), err)
	case height > 0 && got != height:
		return wrongSize, fmt.Errorf("a picture of height %d, and not %d, is", got, height)
	}
	return "", nil
}
