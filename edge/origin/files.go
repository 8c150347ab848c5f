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
	// filesMissing should stay 0, as core stores a file before it publishes the texture. An
	// alert watches it.
	filesMissing = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_missing_objects_total", Help: "Files of textures that are missing in the texture store."})
)

const (
	// recheckDelay is the time before a missing file is requested again.
	recheckDelay = 500 * time.Millisecond
	// maxRechecks bounds concurrent rechecks: each occupies a fetch, and when many files are
	// missing the cause is not transient.
	maxRechecks = 4
)

// Store reads texture files by hash. blobstore.Store is one.
type Store interface {
	// Get returns blobstore.ErrNotFound only if the store has reported that there is no
	// such file.
	Get(ctx context.Context, hash skin.Hash) ([]byte, error)
}

var (
	_ Store      = (*blobstore.Store)(nil)
	_ edge.Files = Files{}
)

// Files fetches texture files.
type Files struct {
	store    Store
	rechecks chan struct{} // semaphore of rechecks, including their delay
}

// NewFiles returns a Files that fetches from a store.
func NewFiles(store Store) Files { return Files{store, make(chan struct{}, maxRechecks)} }

// File returns the texture file with a hash. It returns a NotFound fault if the store reports
// twice that the file is missing (once if it reports so of many files), and an Unavailable
// fault for any other error of the store.
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

// recheck fetches a missing file again after recheckDelay. Core has stored the file, so the
// report may be wrong: MinIO returns "not found" when too few of its nodes agree on a file,
// which happens while nodes are restarted.
func (f Files) recheck(ctx context.Context, hash skin.Hash) ([]byte, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err() // one report is not enough
	case <-time.After(recheckDelay):
		return f.store.Get(ctx, hash)
	}
}
