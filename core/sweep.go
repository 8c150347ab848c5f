package core

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/skin"
)

// SweepStore holds the textures that a sweep compares with the files.
type SweepStore interface {
	// NewestTextures returns the hashes of the textures with the highest TIDs, at most limit, and
	// whether the database ever had a texture.
	NewestTextures(ctx context.Context, limit int) (hashes []skin.Hash, ever bool, err error)

	// TextureHashes iterates over the distinct hashes of all textures in order. An error ends it.
	// Textures that are added or deleted meanwhile may be included or not.
	TextureHashes(ctx context.Context) iter.Seq2[skin.Hash, error]

	// LockHashes takes the locks on hashes that uploads take too, and calls do with the hashes that
	// it locked and their textures, none for a file without a texture. It does not wait: hashes
	// locked elsewhere are left out. Until do returns, no texture with one of the hashes is added,
	// and no file of an upload stored. LockHashes returns do's error, or one of its own if the
	// locks may have been lost meanwhile.
	LockHashes(ctx context.Context, hashes []skin.Hash, do func(map[skin.Hash][]TextureID) error) error
}

// SweepFiles is the store of texture files.
type SweepFiles interface {
	// List iterates over all files in the order of their hashes.
	List(ctx context.Context) iter.Seq2[blobstore.Object, error]
	// Get returns blobstore.ErrNotFound if the file certainly does not exist.
	Get(ctx context.Context, hash skin.Hash) ([]byte, error)
	// Delete deletes a file. After an error the file may still disappear later.
	Delete(ctx context.Context, hash skin.Hash) error
	// CleanTemp counts the files of interrupted uploads, and deletes them if remove is set.
	CleanTemp(ctx context.Context, remove bool) (files int, size int64, err error)
}

// SweepOptions configures a sweep.
type SweepOptions struct {
	Before time.Time // only files last modified before this are deleted
	DryRun bool      // deletes nothing
	// OnMissing is called with every texture without a file, also concurrently.
	OnMissing func(TextureID, skin.Hash)
}

// SweepReport counts the findings of a sweep.
type SweepReport struct {
	Files       int // files
	Orphans     int // files without a texture, old enough to delete
	OrphanBytes int64
	Removed     int // orphans that were deleted
	FreedBytes  int64
	TooNew      int // files without a texture, too new to delete
	Locked      int // hashes locked by an upload or another sweep
	TempFiles   int // unfinished files of interrupted uploads
	Missing     int // textures without a file
}

// Sizes and times of a sweep.
const (
	// lockBatchSize is how many hashes are locked together. PostgreSQL has room for a few thousand
	// locks by default.
	lockBatchSize = 100
	// fileConcurrency is how many files are deleted or looked up at a time: few, since requests of
	// users use the same store.
	fileConcurrency = 8
	// deleteGrace is how long a lock is held after a file could not be deleted: the store may
	// execute the request late, and must not delete a file that an upload of the same pixels stores
	// in the meantime.
	deleteGrace = 10 * time.Second
	// sampleSize is how many of the newest textures are checked to see whether the files belong to
	// the database, and minSample how many there must be.
	sampleSize, minSample = 16, 4
)

// Sweep deletes files without a texture, and finds textures without a file. Any number of sweeps
// may run beside any number of cores.
//
// A sweep merges the list of all files with the hashes of all textures, both sorted, so it needs
// little memory. That comparison is outdated at once, since textures are added and deleted all the
// time. So the sweep checks every mismatch again under the lock that an upload holds from before
// its file is stored until its row is written. Under that lock a file without a texture does not
// belong to a running upload, and none can begin to use it.
type Sweep struct {
	store SweepStore
	files SweepFiles
	opts  SweepOptions

	mu     sync.Mutex
	report SweepReport
}

// NewSweep returns a sweep that does nothing until Run.
func NewSweep(store SweepStore, files SweepFiles, opts SweepOptions) *Sweep {
	return &Sweep{store: store, files: files, opts: opts}
}

// Report returns the progress of the sweep.
func (s *Sweep) Report() SweepReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.report
}

func (s *Sweep) count(count func(*SweepReport)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	count(&s.report)
}

// Run sweeps once. When ctx ends it stops after the deletions in progress; the next sweep does the
// rest. It returns an error if textures have no file, and if the files seem to belong to another
// database; then it deletes nothing.
func (s *Sweep) Run(ctx context.Context) error {
	problem, err := s.sanityCheck(ctx)
	if err == nil {
		s.opts.DryRun = s.opts.DryRun || problem != ""
		err = s.cleanTemp(ctx)
	}
	if err == nil {
		err = s.compare(ctx)
	}
	switch missing := s.Report().Missing; {
	case ctx.Err() != nil:
		return fmt.Errorf("stopped before the end, the next sweep does the rest: %w", context.Cause(ctx))
	case err != nil:
		return err
	case problem != "":
		return fmt.Errorf("nothing was removed: %s; is this the texture store of this database?", problem)
	case missing > 0:
		return fmt.Errorf("textures without a file: %d", missing)
	default:
		return nil
	}
}

// sanityCheck returns why the files seem to belong to another database, or nothing. With a wrong or
// empty database every file looks like an orphan.
func (s *Sweep) sanityCheck(ctx context.Context) (problem string, err error) {
	newest, ever, err := s.store.NewestTextures(ctx, sampleSize)
	if err != nil {
		return "", err
	}
	if !ever {
		return "the database never had a texture", nil
	}
	missing := 0
	err = s.store.LockHashes(ctx, newest, func(textures map[skin.Hash][]TextureID) error {
		for hash, tids := range textures {
			if len(tids) == 0 {
				continue // deleted since
			}
			switch exists, err := s.exists(ctx, hash); {
			case err != nil:
				return err
			case !exists:
				missing++
			}
		}
		return nil
	})
	if len(newest) >= minSample && 2*missing > len(newest) {
		problem = fmt.Sprintf("of the %d newest textures %d have no file", len(newest), missing)
	}
	return problem, err
}

func (s *Sweep) exists(ctx context.Context, hash skin.Hash) (bool, error) {
	_, err := s.files.Get(ctx, hash)
	switch {
	case errors.Is(err, blobstore.ErrNotFound):
		return false, nil
	case errors.Is(err, blobstore.ErrCorrupt):
		return true, nil // edges report those
	default:
		return err == nil, err
	}
}

func (s *Sweep) cleanTemp(ctx context.Context) error {
	files, size, err := s.files.CleanTemp(ctx, !s.opts.DryRun)
	s.count(func(r *SweepReport) {
		r.TempFiles = files
		if !s.opts.DryRun {
			r.FreedBytes += size
		}
	})
	return err
}

// mismatch is a hash that only a file or only textures have.
type mismatch struct {
	hash skin.Hash
	file bool
	size int64
}

// compare merges files and textures, and resolves mismatches.
func (s *Sweep) compare(ctx context.Context) error {
	next, stop := iter.Pull2(s.store.TextureHashes(ctx))
	defer stop()
	named, err, more := next()

	mismatches := make([]mismatch, 0, lockBatchSize)
	addMismatch := func(m mismatch) error {
		if mismatches = append(mismatches, m); len(mismatches) < lockBatchSize {
			return nil
		}
		err := s.resolve(ctx, mismatches)
		mismatches = mismatches[:0]
		return err
	}
	// skipWhile adds the textures with hashes that satisfy cond as mismatches.
	skipWhile := func(cond func(skin.Hash) bool) error {
		for more && err == nil && cond(named) {
			if err := addMismatch(mismatch{hash: named}); err != nil {
				return err
			}
			named, err, more = next()
		}
		return err
	}

	for file, listErr := range s.files.List(ctx) {
		if listErr != nil {
			return listErr
		}
		s.count(func(r *SweepReport) { r.Files++ })
		if err := skipWhile(func(hash skin.Hash) bool { return bytes.Compare(hash[:], file.Hash[:]) < 0 }); err != nil {
			return err
		}
		switch {
		case more && named == file.Hash:
			named, err, more = next()
		case !file.Modified.Before(s.opts.Before):
			s.count(func(r *SweepReport) { r.TooNew++ })
		default:
			if err := addMismatch(mismatch{hash: file.Hash, file: true, size: file.Size}); err != nil {
				return err
			}
		}
	}
	if err := skipWhile(func(skin.Hash) bool { return true }); err != nil {
		return err
	}
	return s.resolve(ctx, mismatches)
}

// resolve checks mismatches again under their locks, and acts on those that remain.
func (s *Sweep) resolve(ctx context.Context, mismatches []mismatch) error {
	if len(mismatches) == 0 {
		return nil
	}
	hashes := make([]skin.Hash, len(mismatches))
	for i, m := range mismatches {
		hashes[i] = m.hash
	}
	return s.store.LockHashes(ctx, hashes, func(textures map[skin.Hash][]TextureID) error {
		return forEach(ctx, mismatches, func(m mismatch) error {
			tids, locked := textures[m.hash]
			switch {
			case !locked:
				s.count(func(r *SweepReport) { r.Locked++ })
			case m.file && len(tids) == 0:
				return s.removeOrphan(ctx, m)
			case !m.file && len(tids) > 0:
				return s.checkMissing(ctx, m.hash, tids)
			}
			return nil
		})
	})
}

// removeOrphan deletes a file without a texture. The caller holds its lock.
func (s *Sweep) removeOrphan(ctx context.Context, orphan mismatch) error {
	s.count(func(r *SweepReport) {
		r.Orphans++
		r.OrphanBytes += orphan.size
	})
	if s.opts.DryRun {
		return nil
	}
	// The deletion must end while the lock is held.
	if err := s.files.Delete(context.WithoutCancel(ctx), orphan.hash); err != nil {
		<-time.After(deleteGrace)
		return err
	}
	s.count(func(r *SweepReport) {
		r.Removed++
		r.FreedBytes += orphan.size
	})
	return nil
}

// checkMissing looks for a file that was not listed, since it may have been stored later. The
// caller holds its lock.
func (s *Sweep) checkMissing(ctx context.Context, hash skin.Hash, tids []TextureID) error {
	exists, err := s.exists(ctx, hash)
	if exists || err != nil {
		return err
	}
	s.count(func(r *SweepReport) { r.Missing += len(tids) })
	for _, tid := range tids {
		s.opts.OnMissing(tid, hash)
	}
	return nil
}

// forEach calls do with mismatches, some concurrently, until one fails or ctx ends, and waits for
// the running calls.
func forEach(ctx context.Context, mismatches []mismatch, do func(mismatch) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	queue := make(chan mismatch)
	var workers sync.WaitGroup
	for range fileConcurrency {
		workers.Go(func() {
			for m := range queue {
				if err := do(m); err != nil {
					stop(err) // keeps the first error
				}
			}
		})
	}
	for _, m := range mismatches {
		if ctx.Err() != nil {
			break
		}
		queue <- m
	}
	close(queue)
	workers.Wait()
	return context.Cause(ctx)
}
