package origin

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
)

var (
	filesFetched = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_objects_fetched_total", Help: "Files fetched from the texture store."})
	filesFailed  = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_objects_failed_total", Help: "Fetches from the texture store that failed."})
	// filesMissing should never move: core stores a file before it tells anybody of
	// it. It is what an alert watches.
	filesMissing = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_missing_objects_total", Help: "Files that core knows and the texture store lacks."})
)

const (
	// recheckDelay is how long a store may think about it that says that a file is missing.
	recheckDelay = 500 * time.Millisecond
	// maxRechecks is of how many files at once that is doubted: whoever waits takes a place of
	// those who fetch, and where many are missing it is no accident.
	maxRechecks = 4
)

// Store keeps texture files by hash; objects.Store does.
type Store interface {
	// Get returns objects.ErrNotFound only if there certainly is no such file.
	Get(ctx context.Context, hash skin.Hash) ([]byte, error)
}

var (
	_ Store      = (*blobstore.Store)(nil)
	_ edge.Files = Files{}
)

// Files fetches texture files.
type Files struct {
	store    Store
	rechecks chan struct{} // a token is a second question, or the wait for it
}

// NewFiles returns the files in a store.
func NewFiles(store Store) Files { return Files{store, make(chan struct{}, maxRechecks)} }

// File returns the texture file with a hash: a NotFound fault if it is missing for
// certain, which the store must say twice unless it says so of many, and an Unavailable
// one for any other trouble with the store.
func (f Files) File(ctx context.Context, hash skin.Hash) ([]byte, error) {
	filesFetched.Inc()
	file, err := f.store.Get(ctx, hash)
	if errors.Is(err, blobstore.ErrNotFound) {
		select {
		case f.rechecks <- struct{}{}:
			file, err = f.recheck(ctx, hash)
			<-f.rechecks
		default:
		}
	}
	switch {
	case errors.Is(err, blobstore.ErrNotFound):
		filesMissing.Inc()
		return nil, &fault.Error{Kind: fault.NotFound, Message: "The file of this texture is missing.", Cause: err}
	case err != nil:
		filesFailed.Inc()
		return nil, fault.NewUnavailable("texture store", err)
	}
	return file, nil
}

// recheck asks a second time for what is missing, a moment later. Core knows of the file, so
// it is there but for an accident, and a store may call missing what it cannot find just
// now: MinIO does where too few of its nodes agree on a file, as may be while they are
// restarted.
func (f Files) recheck(ctx context.Context, hash skin.Hash) ([]byte, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err() // said once, that is not certain
	case <-time.After(recheckDelay):
		return f.store.Get(ctx, hash)
	}
}
