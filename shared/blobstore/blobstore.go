// Package objects keeps texture files by their hash, in a bucket of an S3 store
// or in a directory.
//
// Both kinds of place look the same: the file with hash abcdef… is named
// ab/abcdef….png, and beside the files lies a marker, .veneer, that proves the
// place to be Veneer's. Whoever mistypes a bucket's name, or forgets to mount a
// disk, finds every file missing; the marker is what tells such a mistake from
// a file that is truly gone.
package blobstore

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
	minRetryPause = 100 * time.Millisecond
	maxRetryPause = time.Second
	maxRetryTime  = 4 * time.Second
)

// transientError is trouble with a place that may have passed in a moment.
type transientError struct{ error }

func (p transientError) Unwrap() error { return p.error }

// ErrNotInitialized is why an absent file is not reported as such.
var ErrNotInitialized = errors.New("the file " + marker + " is missing there")

// noStoreError says that nothing is there, as there is no place.
type noStoreError string

const (
	errNoDirectory noStoreError = "the directory does not exist"
	errNotS3       noStoreError = "it answers, but not as S3 does"
)

func (a noStoreError) Error() string { return string(a) }

// Is reports that there is neither the marker nor any other file.
func (a noStoreError) Is(target error) bool {
	return target == ErrNotInitialized || target == fs.ErrNotExist
}

// errListOrder ends a listing that would otherwise go on for ever: not everything
// that calls itself S3 continues where it is told to.
var errListOrder = errors.New("it lists names out of their order")

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
	backend  backend
	url      string // as it is shown
	timeout  time.Duration
	readOnly bool
	limiter  *callLimiter
	breaker  *breaker.Breaker
}

// backend is where the files are: it knows names and bytes, and leaves to Store
// what they mean. It honours the deadline of every context.
type backend interface {
	// create makes the place, unless it exists.
	create(ctx context.Context) error
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
	// tempFiles returns what writes that were cut off have left behind, and removes
	// it if told to.
	tempFiles(ctx context.Context, remove bool) ([]entry, error)
}

// entry is what a place says of one file.
type entry struct {
	name     string
	size     int64
	modified time.Time
}

// Init makes the place, unless it exists, and marks it as Veneer's.
func (s *Store) Init(ctx context.Context) error {
	if s.readOnly {
		return ErrReadOnly
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := s.call(ctx, "prepare", func() error { return s.backend.create(ctx) }); err != nil {
		return err
	}
	// The marker comes last: it vouches for all the rest.
	return s.call(ctx, "write marker", func() error { return s.backend.write(ctx, marker, []byte(markerContent)) })
}

// Check reports whether the place can be reached and is Veneer's.
func (s *Store) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	content, err := s.read(ctx, "read marker", marker)
	if absent, ok := errors.AsType[noStoreError](err); ok {
		return unavailableError("check", absent)
	}
	if errors.Is(err, fs.ErrNotExist) || err == nil && string(content) != markerContent {
		return unavailableError("check", ErrNotInitialized)
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
	write := func() error { return s.backend.write(ctx, nameOf(hash), file) }
	began := time.Now()
	var transient error // the place's own
	for pause := minRetryPause; ; pause = min(2*pause, maxRetryPause) {
		err := s.call(ctx, "put texture "+hash.String(), write)
		_, isTransient := errors.AsType[transientError](err)
		switch {
		case isTransient:
			transient = err
		case transient != nil && errors.Is(err, breaker.ErrOpen): // after others' trouble, and this one's
			err = transient
		default:
			return err
		}
		if time.Since(began)+pause > maxRetryTime {
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
	return s.call(ctx, "delete texture "+hash.String(), func() error { return s.backend.remove(ctx, nameOf(hash)) })
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
	var temps []entry
	err = s.call(ctx, "tidy up", func() (err error) { temps, err = s.backend.tempFiles(ctx, remove); return err })
	for _, e := range temps {
		size += e.size
	}
	return len(temps), size, err
}

func (s *Store) page(ctx context.Context, after string) (page []entry, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	operation := "list after " + after
	err = s.call(ctx, operation, func() (err error) { page, err = s.backend.page(ctx, after); return err })
	if err != nil {
		return nil, err
	}
	for _, e := range page {
		if e.name <= after {
			return nil, unavailableError(operation, errListOrder)
		}
		after = e.name
	}
	return page, nil
}

// read returns a file of the place: fs.ErrNotExist if the place says that there
// is none, which is no trouble with the place.
func (s *Store) read(ctx context.Context, operation, name string) (file []byte, err error) {
	var missing error
	err = s.call(ctx, operation, func() (err error) {
		file, err = s.backend.read(ctx, name)
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

// call has the place do something, unless it is known to be away or has too much
// to do. Any trouble with it is an Unavailable fault.
func (s *Store) call(ctx context.Context, operation string, do func() error) (err error) {
	verb, _, _ := strings.Cut(operation, " ")
	_, span := tracing.Start(ctx, dependency+": "+verb, trace.WithSpanKind(trace.SpanKindClient))
	defer tracing.End(span, &err)
	if err := s.limiter.acquire(ctx); err != nil {
		return unavailableError(operation, err)
	}
	defer s.limiter.release()
	return s.breaker.Call(func() error {
		if err := do(); err != nil {
			return unavailableError(operation, err)
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

// unavailableError says that the place did not do what was attempted.
func unavailableError(operation string, cause error) error {
	return fault.NewUnavailable(dependency, fmt.Errorf("%s: %w", operation, cause))
}

// readCapped reads as much of a file as any texture may hold. The rest of a larger
// one is not missed: its hash cannot be right.
func readCapped(r io.Reader) ([]byte, error) { return io.ReadAll(io.LimitReader(r, MaxSize)) }
