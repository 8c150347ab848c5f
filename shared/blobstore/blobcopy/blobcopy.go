// Package blobcopy copies texture files between stores, and checks them, by a list of their hashes.
//
// A copy that was interrupted goes on where it ended: a file that the target has, and that has its
// hash, is not copied again.
package blobcopy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/skin"
)

// concurrency is how many files are copied or checked at a time: a disk syncs each, and a bucket
// takes some milliseconds.
const concurrency = 16

// Entry is a file of a list.
type Entry struct {
	Hash   skin.Hash `json:"hash"`
	Size   int64     `json:"bytes"`
	IsLost bool      `json:"lost,omitempty"` // no store had the file, so it has no size
}

// Source is a store that is read.
type Source interface {
	// Get returns blobstore.ErrNotFound if there is no such file, and blobstore.ErrCorrupt if its
	// content has another hash.
	Get(ctx context.Context, hash skin.Hash) ([]byte, error)
}

// Target is a store that is written.
type Target interface {
	Source
	// Put replaces a file that is there, durably.
	Put(ctx context.Context, hash skin.Hash, file []byte) error
}

// Copy copies the files with hashes that the target does not have. It returns their entries in the
// order of the hashes, and how many were copied. Each was read whole from the target, the copied ones
// after they were written. A file that neither store has whole is lost, which is no error. A store
// that cannot be read or written ends the copy.
func Copy(ctx context.Context, from Source, to Target, hashes []skin.Hash) (entries []Entry, copied int, err error) {
	entries = make([]Entry, len(hashes))
	isCopied := make([]bool, len(hashes))
	err = forEach(ctx, len(hashes), func(ctx context.Context, i int) error {
		hash := hashes[i]
		file, err := to.Get(ctx, hash)
		if isDamage(err) {
			if file, err = from.Get(ctx, hash); isDamage(err) {
				entries[i] = Entry{Hash: hash, IsLost: true}
				return nil
			}
			if err == nil {
				isCopied[i], err = true, to.Put(ctx, hash, file)
			}
			if err == nil {
				file, err = to.Get(ctx, hash)
			}
		}
		entries[i] = Entry{Hash: hash, Size: int64(len(file))}
		return err
	})
	for _, is := range isCopied {
		if is {
			copied++
		}
	}
	return entries, copied, err
}

// Check reads the files of a list, but for those that are lost. Its error counts the files that are
// missing, damaged or of another size, and names the first ones.
func Check(ctx context.Context, from Source, entries []Entry) error {
	var mu sync.Mutex
	var wrong []string
	const named = 10
	count := 0
	err := forEach(ctx, len(entries), func(ctx context.Context, i int) error {
		entry := entries[i]
		if entry.IsLost {
			return nil
		}
		file, err := from.Get(ctx, entry.Hash)
		switch {
		case err != nil && !isDamage(err):
			return err
		case err == nil && int64(len(file)) != entry.Size:
			err = fmt.Errorf("texture %s has %d bytes, and %d in the list", entry.Hash, len(file), entry.Size)
		}
		if err != nil {
			mu.Lock()
			defer mu.Unlock()
			if count++; count <= named {
				wrong = append(wrong, err.Error())
			}
		}
		return nil
	})
	if err == nil && count > 0 {
		err = fmt.Errorf("of %d texture files %d are missing or damaged: %s", len(entries), count, strings.Join(wrong, "; "))
	}
	return err
}

// isDamage reports whether an error says that a store does not have a file whole.
func isDamage(err error) bool {
	return errors.Is(err, blobstore.ErrNotFound) || errors.Is(err, blobstore.ErrCorrupt)
}

// forEach calls do with the numbers below n, some at a time, until one fails.
func forEach(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	for i := range n {
		if groupCtx.Err() != nil {
			break
		}
		group.Go(func() error { return do(groupCtx, i) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}
