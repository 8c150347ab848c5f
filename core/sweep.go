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

// SweepStore is what a sweep asks about textures.
type SweepStore interface {
	// NewestTextures returns the hashes of the textures with the highest TIDs, at
	// most limit, and whether there ever was a texture.
	NewestTextures(ctx context.Context, limit int) (hashes []skin.Hash, ever bool, err error)

	// TextureHashes goes through the hashes of all textures in their order, each
	// once. An error ends it. Textures that come or go meanwhile may be among them
	// or not.
	TextureHashes(ctx context.Context) iter.Seq2[skin.Hash, error]

	// LockHashes takes the locks on hashes, which uploads take too, and calls do with
	// those that it has got and their textures: none for a file that no texture
	// names. It waits for nobody, so a hash is left out while somebody else holds
	// its lock. Until do returns, no texture with one of the hashes is added, and no
	// file of an upload stored. LockHashes returns do's error, or one of its own when
	// the locks may have been lost meanwhile.
	LockHashes(ctx context.Context, hashes []skin.Hash, do func(map[skin.Hash][]TextureID) error) error
}

// SweepFiles is the store of texture files, as a sweep sees it.
type SweepFiles interface {
	// List goes through all files in the order of their hashes.
	List(ctx context.Context) iter.Seq2[blobstore.Object, error]
	// Get returns objects.ErrNotFound if there certainly is no such file.
	Get(ctx context.Context, hash skin.Hash) ([]byte, error)
	// Delete removes a file. When it fails, the file may still vanish later.
	Delete(ctx context.Context, hash skin.Hash) error
	// CleanTemp counts what cut-off uploads have left behind, and removes it if told to.
	CleanTemp(ctx context.Context, remove bool) (files int, size int64, err error)
}

// SweepOptions says what a sweep does.
type SweepOptions struct {
	Before time.Time // when a file must have been put last for it to be removed
	DryRun bool      // removes nothing
	// OnMissing is told of every texture without a file. It may be called by several
	// goroutines at once.
	OnMissing func(TextureID, skin.Hash)
}

// SweepReport counts what a sweep has come across.
type SweepReport struct {
	Files       int // files
	Orphans     int // files that no texture names, old enough to be removed
	OrphanBytes int64
	Removed     int // orphans that are gone
	FreedBytes  int64
	TooNew      int // files that no texture names, too young
	Locked      int // hashes that an upload or another sweep was at work on
	TempFiles   int // unfinished files of uploads that were cut off
	Missing     int // textures without a file
}

// Sizes and times of a sweep.
const (
	// lockBatchSize is how many hashes are looked at under their locks together.
	// PostgreSQL has room for a few thousand locks by default.
	lockBatchSize = 100
	// fileConcurrency is how many files are removed or looked for at once: few, since
	// visitors use the same store.
	fileConcurrency = 8
	// deleteGrace is how long uploads of the same pixels still have to wait when a file
	// could not be removed: the store may carry that out late, and must not remove
	// what was put since.
	deleteGrace = 10 * time.Second
	// sampleSize is how many of the newest textures tell whether the files belong to
	// them, and enough how many there must be for that.
	sampleSize, minSample = 16, 4
)

// Sweep removes the files that no texture names, and finds the textures whose
// file is missing. Any number of them may run beside any number of cores.
//
// It goes through all files and the hashes of all textures side by side, both in
// order, and so keeps little in memory however many there are. What it sees that
// way is out of date at once: textures are added and deleted all the time. So it
// looks again at whatever does not match, under the lock that an upload holds
// from before its file is stored until its row is written. Under that lock a file
// without a texture is no upload's, and none can become so while it is removed.
type Sweep struct {
	store SweepStore
	files SweepFiles
	opts  SweepOptions

	mu     sync.Mutex
	report SweepReport
}

// NewSweep returns a sweep that has not begun.
func NewSweep(store SweepStore, files SweepFiles, opts SweepOptions) *Sweep {
	return &Sweep{store: store, files: files, opts: opts}
}

// Report returns how far the sweep has come.
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

// Run sweeps once. When ctx ends it stops after the removals that are under way;
// the next sweep does the rest. That textures miss their files is an error, and so
// is a database that the files hardly belong to: then nothing is removed.
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

// problem says why the files hardly belong to the textures, if that is so. To a
// database that is the wrong one, or empty, every file looks like an orphan.
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
				continue // deleted meanwhile
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
		return true, nil // edges tell of those
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

// mismatch is a hash that only the files have, or only the textures.
type mismatch struct {
	hash skin.Hash
	file bool
	size int64
}

// compare goes through files and textures side by side, and settles what does not
// match.
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
	// skipWhile goes past the textures whose hash is in front of a file's.
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

// resolve looks at suspects again under their locks, and does what is to be done.
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

// removeOrphan removes a file that no texture names, whose lock is held.
func (s *Sweep) removeOrphan(ctx context.Context, orphan mismatch) error {
	s.count(func(r *SweepReport) {
		r.Orphans++
		r.OrphanBytes += orphan.size
	})
	if s.opts.DryRun {
		return nil
	}
	// What the store was asked for must come to an end while the lock is held.
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

// checkMissing looks for a file that was not listed, whose lock is held: it may have been
// put since.
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

// forEach does something to suspects, some at once, until one fails or ctx ends, and
// waits for those that are under way.
func forEach(ctx context.Context, mismatches []mismatch, do func(mismatch) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	queue := make(chan mismatch)
	var workers sync.WaitGroup
	for range fileConcurrency {
		workers.Go(func() {
			for m := range queue {
				if err := do(m); err != nil {
					stop(err) // the first one counts
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
