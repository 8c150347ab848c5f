// Package blobstore stores texture files by their hash, in a bucket of an S3 store or in a
// directory.
//
// Both backends have the same layout: the file with hash abcdef… is named ab/abcdef….png. A
// marker file, .veneer, identifies a texture store. With a wrong bucket name, or a disk that
// is not mounted, every file is missing; the marker distinguishes that from a file that does
// not exist.
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

// Errors of a Store that are not failures of its backend. A failure of the backend is an
// Unavailable fault.
var (
	// ErrNotFound says that there is no such file: the backend has said so, and it has the
	// marker.
	ErrNotFound = errors.New("no such texture file")
	// ErrCorrupt says that the file exists, but does not have the hash in its name.
	ErrCorrupt = errors.New("texture file does not have its hash")
	// ErrReadOnly says that the Store was opened for reading only.
	ErrReadOnly = errors.New("texture store is open for reading only")
)

// MaxSize is the size in bytes of the largest file. It is far above the largest texture, and
// bounds the memory that a foreign file can take.
const MaxSize = 16 << 20

const (
	dependency    = "texture store" // in faults and metrics
	marker        = ".veneer"
	markerContent = "This is a texture store of Veneer. Without this file, nothing here is believed to be missing.\n"
)

// A write that fails with a transientError is retried, with pauses that double, for as long
// as people wait for an upload: a MinIO cluster rejects some writes while one of its nodes
// starts.
const (
	minRetryPause = 100 * time.Millisecond
	maxRetryPause = time.Second
	maxRetryTime  = 4 * time.Second
)

// transientError is a failure of the backend that may be over in a moment.
type transientError struct{ error }

func (t transientError) Unwrap() error { return t.error }

// ErrNotInitialized says that the marker is missing, so that a missing file proves nothing.
var ErrNotInitialized = errors.New("the file " + marker + " is missing there")

// noStoreError says that the store itself does not exist.
type noStoreError string

const (
	errNoDirectory noStoreError = "the directory does not exist"
	errNotS3       noStoreError = "it responds, but not as S3"
)

func (n noStoreError) Error() string { return string(n) }

// Is reports a missing marker, and a missing file.
func (n noStoreError) Is(target error) bool {
	return target == ErrNotInitialized || target == fs.ErrNotExist
}

// errListOrder ends a listing that would otherwise never end: some S3 look-alikes ignore the
// start of a page.
var errListOrder = errors.New("it lists names out of order")

// Object is a file in a listing.
type Object struct {
	Hash skin.Hash
	Size int64
	// Modified is when the file was last put. Putting it again updates it.
	Modified time.Time
}

// Store stores texture files by hash. Every call ends at the deadline of its context, or
// after the configured timeout if that is sooner. It fails at once while the backend is known
// to be down, or has too many calls queued.
type Store struct {
	backend  backend
	url      string // redacted, for errors
	timeout  time.Duration
	readOnly bool
	limiter  *callLimiter
	breaker  *breaker.Breaker
}

// backend stores named files; their meaning is up to Store. It honours the deadline of every
// context.
type backend interface {
	// create creates the bucket or the directories, unless they exist.
	create(ctx context.Context) error
	// read returns the first MaxSize bytes of a file. The error is fs.ErrNotExist only if the
	// backend has said that there is no such file.
	read(ctx context.Context, name string) ([]byte, error)
	// write creates or replaces a file, atomically and durably.
	write(ctx context.Context, name string, file []byte) error
	// remove removes a file; it is no error if there is none.
	remove(ctx context.Context, name string) error
	// page returns some of the files with names behind after, in the order of their names,
	// and none at the end.
	page(ctx context.Context, after string) ([]entry, error)
	// tempFiles returns the files that interrupted writes have left, and removes them if
	// remove is set.
	tempFiles(ctx context.Context, remove bool) ([]entry, error)
}

// entry is a file of a backend.
type entry struct {
	name     string
	size     int64
	modified time.Time
}

// Init creates the store, unless it exists, and writes its marker.
func (s *Store) Init(ctx context.Context) error {
	if s.readOnly {
		return ErrReadOnly
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := s.call(ctx, "prepare", func() error { return s.backend.create(ctx) }); err != nil {
		return err
	}
	// The marker comes last: it confirms all the rest.
	return s.call(ctx, "write marker", func() error { return s.backend.write(ctx, marker, []byte(markerContent)) })
}

// Check returns an error if the backend cannot be reached or has no marker.
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

// Get returns the file with a hash. The error is ErrNotFound if there is none, ErrCorrupt if
// its content does not have that hash.
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

// Put stores a file under its hash, durably once it returns nil. An existing file is
// overwritten, which repairs a corrupt one. After an error the file may exist or not, or
// appear later. Put is idempotent, so transient failures are retried for some seconds.
func (s *Store) Put(ctx context.Context, hash skin.Hash, file []byte) error {
	switch {
	case s.readOnly:
		return fmt.Errorf("put texture %s: %w", hash, ErrReadOnly)
	case len(file) > MaxSize:
		return fmt.Errorf("BUG: put texture %s: %d bytes are more than %d", hash, len(file), MaxSize)
	case skin.HashOf(file) != hash:
		return fmt.Errorf("BUG: put texture %s: the file has another hash", hash)
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	// A disk or a connection may still read the bytes after a timed out call has returned the
	// buffer to the caller.
	file = bytes.Clone(file)
	write := func() error { return s.backend.write(ctx, nameOf(hash), file) }
	began := time.Now()
	var transient error // the last transient failure of this call
	for pause := minRetryPause; ; pause = min(2*pause, maxRetryPause) {
		err := s.call(ctx, "put texture "+hash.String(), write)
		_, isTransient := errors.AsType[transientError](err)
		switch {
		case isTransient:
			transient = err
		case transient != nil && errors.Is(err, breaker.ErrOpen): // opened by the failures of several calls
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

// Delete removes the file with a hash, if there is one. After an error the file may exist or
// not, or be removed later, even if it is put again meanwhile.
func (s *Store) Delete(ctx context.Context, hash skin.Hash) error {
	if s.readOnly {
		return fmt.Errorf("delete texture %s: %w", hash, ErrReadOnly)
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.call(ctx, "delete texture "+hash.String(), func() error { return s.backend.remove(ctx, nameOf(hash)) })
}

// List iterates over all files in the order of their hashes, and ignores other files. An
// error ends it. A file put or deleted meanwhile may be listed or not. The configured timeout
// applies to each page, not to the whole listing.
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

// CleanTemp counts the temporary files that interrupted writes left long ago, and their size
// in bytes, and removes them if remove is set. Only a directory has any: S3 writes are
// atomic.
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

// read returns a file of the backend. fs.ErrNotExist is not a failure of the backend.
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

// call calls the backend, unless it is known to be down or has too many calls queued. Its
// failures are Unavailable faults.
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

// nameOf returns the name of the file with a hash. The files are spread over 256 directories,
// as some file systems are slow with a million names in one.
func nameOf(hash skin.Hash) string {
	text := hash.String()
	return text[:2] + "/" + text + ".png"
}

// hashOf returns the hash of the file with a name, and false for other files.
func hashOf(name string) (skin.Hash, bool) {
	_, base, _ := strings.Cut(name, "/")
	hash, err := skin.ParseHash(strings.TrimSuffix(base, ".png"))
	return hash, err == nil && nameOf(hash) == name
}

// unavailableError returns the fault of a failed operation.
func unavailableError(operation string, cause error) error {
	return fault.NewUnavailable(dependency, fmt.Errorf("%s: %w", operation, cause))
}

// readCapped reads a file up to the largest size of a texture. The rest of a larger one is
// not needed: its hash cannot match.
func readCapped(r io.Reader) ([]byte, error) { return io.ReadAll(io.LimitReader(r, MaxSize)) }
