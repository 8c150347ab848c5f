// Package objects keeps texture files by their hash, in a bucket of an S3 store
// or in a directory.
//
// Both kinds of place look the same: the file with hash abcdef… is named
// ab/abcdef….png, and beside the files lies a marker, .veneer, that proves the
// place to be Veneer's. Whoever mistypes a bucket's name, or forgets to mount a
// disk, finds every file missing; the marker is what tells such a mistake from
// a file that is truly gone.
package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/veneer-skins/veneer/shared/breaker"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/tracing"
)

// The answers of a Store that are no trouble with the place itself. Any such
// trouble is an Unavailable fault.
var (
	// ErrNotFound says that there is no such file. It is as certain as the place
	// is: the place has said so itself, and it holds the marker.
	ErrNotFound = errors.New("no such texture file")
	// ErrCorrupt says that the file is there, but is not what its name promises.
	ErrCorrupt = errors.New("texture file does not have its hash")
	// ErrReadOnly says that the Store was opened for reading only.
	ErrReadOnly = errors.New("texture store is open for reading only")
)

// MaxSize is the size in bytes of the largest file that is kept. It is far above
// the largest texture, and bounds what a foreign file can cost in memory.
const MaxSize = 16 << 20

const (
	dependency    = "texture store" // as faults and metrics call it
	marker        = ".veneer"
	markerContent = "This is a texture store of Veneer. Without this file, nothing here is believed to be missing.\n"
)

// Trouble that may pass is waited for with pauses, each twice the one before, and no
// longer than people wait for an upload: a cluster of MinIO refuses some of what is
// written while a node of it starts.
const (
	shortestPause  = 100 * time.Millisecond
	longestPause   = time.Second
	longestPassing = 4 * time.Second
)

// passing is trouble with a place that may have passed in a moment.
type passing struct{ error }

func (p passing) Unwrap() error { return p.error }

// ErrUnprepared is why an absent file is not reported as such.
var ErrUnprepared = errors.New("the file " + marker + " is missing there")

// absentError says that nothing is there, as there is no place.
type absentError string

const (
	errNoDirectory absentError = "the directory does not exist"
	errNoS3        absentError = "it answers, but not as S3 does"
)

func (a absentError) Error() string { return string(a) }

// Is reports that there is neither the marker nor any other file.
func (a absentError) Is(target error) bool {
	return target == ErrUnprepared || target == fs.ErrNotExist
}

// errOrder ends a listing that would otherwise go on for ever: not everything
// that calls itself S3 continues where it is told to.
var errOrder = errors.New("it lists names out of their order")

// Object is a file in a listing.
type Object struct {
	Hash skin.Hash
	Size int64
	// Modified is when the file was last put. Putting it again renews it.
	Modified time.Time
}

// Store keeps texture files by hash. Every call ends at the deadline of its
// context, or after the configured time if that is sooner. It fails at once while
// the place is known to be away, or has more to do than it can.
type Store struct {
	place    place
	url      string // as it is shown
	timeout  time.Duration
	readOnly bool
	pool     *pool
	breaker  *breaker.Breaker
}

// place is where the files are: it knows names and bytes, and leaves to Store
// what they mean. It honours the deadline of every context.
type place interface {
	// prepare makes the place, unless it exists.
	prepare(ctx context.Context) error
	// read returns the first MaxSize bytes of a file. The error is fs.ErrNotExist
	// only if the place has said that there is no such file.
	read(ctx context.Context, name string) ([]byte, error)
	// write makes or replaces a file: at once, and for good.
	write(ctx context.Context, name string, file []byte) error
	// remove removes a file, or finds none.
	remove(ctx context.Context, name string) error
	// page returns some of the files whose names follow after, in the order of
	// their names, and none at the end.
	page(ctx context.Context, after string) ([]entry, error)
	// leftovers returns what writes that were cut off have left behind, and removes
	// it if told to.
	leftovers(ctx context.Context, remove bool) ([]entry, error)
}

// entry is what a place says of one file.
type entry struct {
	name     string
	size     int64
	modified time.Time
}

// Prepare makes the place, unless it exists, and marks it as Veneer's.
func (s *Store) Prepare(ctx context.Context) error {
	if s.readOnly {
		return ErrReadOnly
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := s.try(ctx, "prepare", func() error { return s.place.prepare(ctx) }); err != nil {
		return err
	}
	// The marker comes last: it vouches for all the rest.
	return s.try(ctx, "write marker", func() error { return s.place.write(ctx, marker, []byte(markerContent)) })
}

// Check reports whether the place can be reached and is Veneer's.
func (s *Store) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	content, err := s.read(ctx, "read marker", marker)
	if absent, ok := errors.AsType[absentError](err); ok {
		return down("check", absent)
	}
	if errors.Is(err, fs.ErrNotExist) || err == nil && string(content) != markerContent {
		return down("check", ErrUnprepared)
	}
	return err
}

// Get returns the file with a hash: ErrNotFound if there is none, ErrCorrupt if
// what lies there is another.
func (s *Store) Get(ctx context.Context, hash skin.Hash) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	file, err := s.read(ctx, "get texture "+hash.String(), nameOf(hash))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := s.Check(ctx); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("get texture %s: %w", hash, ErrNotFound)
	case err != nil:
		return nil, err
	case skin.HashOf(file) != hash:
		return nil, fmt.Errorf("get texture %s: %w", hash, ErrCorrupt)
	}
	return file, nil
}

// Put keeps a file under its hash, for good once it returns nil. It writes the
// file even if it is there: that mends a corrupt one. After an error the file
// may be there or not, or appear later; putting it again is always right, and so it
// is tried again for some seconds where the trouble may pass.
func (s *Store) Put(ctx context.Context, hash skin.Hash, file []byte) error {
	switch {
	case s.readOnly:
		return fmt.Errorf("put texture %s: %w", hash, ErrReadOnly)
	case len(file) > MaxSize:
		return fmt.Errorf("BUG: put texture %s: %d bytes are more than %d", hash, len(file), MaxSize)
	case skin.HashOf(file) != hash:
		return fmt.Errorf("BUG: put texture %s: the file's hash is another", hash)
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	// A disk or a connection may still be reading the bytes when a call that was
	// abandoned at its deadline has given the caller its buffer back.
	file = bytes.Clone(file)
	write := func() error { return s.place.write(ctx, nameOf(hash), file) }
	began := time.Now()
	var trouble error // the place's own
	for pause := shortestPause; ; pause = min(2*pause, longestPause) {
		err := s.try(ctx, "put texture "+hash.String(), write)
		_, passes := errors.AsType[passing](err)
		switch {
		case passes:
			trouble = err
		case trouble != nil && errors.Is(err, breaker.ErrOpen): // after others' trouble, and this one's
			err = trouble
		default:
			return err
		}
		if time.Since(began)+pause > longestPassing {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

// Delete removes the file with a hash, if there is one. After an error the file
// may be there or not, or vanish later, even if it is put again meanwhile.
func (s *Store) Delete(ctx context.Context, hash skin.Hash) error {
	if s.readOnly {
		return fmt.Errorf("delete texture %s: %w", hash, ErrReadOnly)
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.try(ctx, "delete texture "+hash.String(), func() error { return s.place.remove(ctx, nameOf(hash)) })
}

// List goes through all files in the order of their hashes, whatever else lies
// beside them. An error ends it. A file put or deleted meanwhile may be listed
// or not. The configured time holds for every page of the listing, not for the
// whole.
func (s *Store) List(ctx context.Context) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		if err := s.Check(ctx); err != nil {
			yield(Object{}, err)
			return
		}
		after := ""
		for {
			page, err := s.page(ctx, after)
			if err != nil {
				yield(Object{}, err)
				return
			}
			if len(page) == 0 {
				return
			}
			for _, e := range page {
				after = e.name
				hash, ok := hashOf(e.name)
				if ok && !yield(Object{Hash: hash, Size: e.size, Modified: e.modified}, nil) {
					return
				}
			}
		}
	}
}

// CleanTemp counts the unfinished files that puts have left behind which were cut off
// long ago, and their size, and removes them if told to. Only a directory has any:
// S3 keeps the whole of a file or nothing.
func (s *Store) CleanTemp(ctx context.Context, remove bool) (files int, size int64, err error) {
	if remove && s.readOnly {
		return 0, 0, fmt.Errorf("tidy up: %w", ErrReadOnly)
	}
	if err := s.Check(ctx); err != nil {
		return 0, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	var found []entry
	err = s.try(ctx, "tidy up", func() (err error) { found, err = s.place.leftovers(ctx, remove); return err })
	for _, e := range found {
		size += e.size
	}
	return len(found), size, err
}

func (s *Store) page(ctx context.Context, after string) (page []entry, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	attempt := "list after " + after
	err = s.try(ctx, attempt, func() (err error) { page, err = s.place.page(ctx, after); return err })
	if err != nil {
		return nil, err
	}
	for _, e := range page {
		if e.name <= after {
			return nil, down(attempt, errOrder)
		}
		after = e.name
	}
	return page, nil
}

// read returns a file of the place: fs.ErrNotExist if the place says that there
// is none, which is no trouble with the place.
func (s *Store) read(ctx context.Context, attempt, name string) (file []byte, err error) {
	var missing error
	err = s.try(ctx, attempt, func() (err error) {
		file, err = s.place.read(ctx, name)
		if errors.Is(err, fs.ErrNotExist) {
			missing = err
			return nil
		}
		return err
	})
	if missing != nil {
		return nil, missing
	}
	return file, err
}

// try has the place do something, unless it is known to be away or has too much
// to do. Any trouble with it is an Unavailable fault.
func (s *Store) try(ctx context.Context, attempt string, do func() error) (err error) {
	verb, _, _ := strings.Cut(attempt, " ")
	_, span := tracing.Start(ctx, dependency+": "+verb, trace.WithSpanKind(trace.SpanKindClient))
	defer tracing.End(span, &err)
	if err := s.pool.enter(ctx); err != nil {
		return down(attempt, err)
	}
	defer s.pool.leave()
	return s.breaker.Call(func() error {
		if err := do(); err != nil {
			return down(attempt, err)
		}
		return nil
	})
}

// nameOf returns the name of the file with a hash. The files are spread over 256
// directories, as some file systems are slow with a million names in one.
func nameOf(hash skin.Hash) string {
	text := hash.String()
	return text[:2] + "/" + text + ".png"
}

// hashOf returns the hash of the file with a name, and false for the names of
// other things.
func hashOf(name string) (skin.Hash, bool) {
	_, base, _ := strings.Cut(name, "/")
	hash, err := skin.ParseHash(strings.TrimSuffix(base, ".png"))
	return hash, err == nil && nameOf(hash) == name
}

// down says that the place did not do what was attempted.
func down(attempt string, cause error) error {
	return fault.Down(dependency, fmt.Errorf("%s: %w", attempt, cause))
}

// readSome reads as much of a file as any texture may hold. The rest of a larger
// one is not missed: its hash cannot be right.
func readSome(r io.Reader) ([]byte, error) { return io.ReadAll(io.LimitReader(r, MaxSize)) }
