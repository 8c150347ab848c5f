package origin

import (
	"context"
	"errors"
	"fmt"

	"github.com/VictoriaMetrics/metrics"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/objects"
	"github.com/veneer-skins/veneer/shared/skin"
)

var (
	filesFetched = metrics.NewCounter("veneer_edge_objects_fetched_total")
	filesFailed  = metrics.NewCounter("veneer_edge_objects_failed_total")
	// filesMissing should never move: core stores a file before it tells anybody of
	// it. It is what an alert watches.
	filesMissing = metrics.NewCounter("veneer_edge_missing_objects_total")
)

// Files keeps texture files by hash; objects.Store does.
type Files interface {
	// Get returns objects.ErrNotFound only if there certainly is no such file.
	Get(ctx context.Context, hash skin.Hash) ([]byte, error)
}

var (
	_ Files       = (*objects.Store)(nil)
	_ edge.Sheets = Sheets{}
)

// Sheets fetches texture files and decodes them.
type Sheets struct{ files Files }

// NewSheets returns the sheets in a store of files.
func NewSheets(files Files) Sheets { return Sheets{files: files} }

// Sheet returns the texture with a hash: a NotFound fault if its file is missing
// for certain, and an Unavailable one for any other trouble with the store.
func (s Sheets) Sheet(ctx context.Context, hash skin.Hash) (skin.Sheet, error) {
	file, err := s.File(ctx, hash)
	if err != nil {
		return skin.Sheet{}, err
	}
	sheet, err := skin.Decode(file)
	if err != nil {
		// Its hash is right, so it was stored like that: that is ours to mend.
		return skin.Sheet{}, fmt.Errorf("texture %s: %w", hash, err)
	}
	return sheet, nil
}

// File returns the file of the texture with a hash, and faults as Sheet does.
func (s Sheets) File(ctx context.Context, hash skin.Hash) ([]byte, error) {
	filesFetched.Inc()
	file, err := s.files.Get(ctx, hash)
	switch {
	case errors.Is(err, objects.ErrNotFound):
		filesMissing.Inc()
		return nil, &fault.Error{Kind: fault.NotFound, Message: "The file of this texture is missing.", Cause: err}
	case err != nil:
		filesFailed.Inc()
		return nil, fault.Down("texture store", err)
	}
	return file, nil
}
