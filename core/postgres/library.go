package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/skin"
)

var _ core.LibraryStore = (*DB)(nil)

const selectLibraryMoment = `SELECT epoch::text, pg_current_snapshot()::text AS snapshot, now() AS at FROM feed`

const selectLibrary = `SELECT tid, coalesce(uploader, 0), likes, type, public, name FROM textures ORDER BY tid`

// ReadLibrary reads all textures. The moment and they come from one snapshot.
func (db *DB) ReadLibrary(ctx context.Context, add func(core.Listing) error) (core.LibraryMoment, error) {
	var moment core.LibraryMoment
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, db.reads, snapshot, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, selectLibraryMoment) // CollectExactlyOneRow reports the error
		var err error
		if moment, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[core.LibraryMoment]); err != nil {
			return err
		}
		rows, _ = tx.Query(ctx, selectLibrary) // ForEachRow reports the error
		var listing core.Listing
		var kind string
		_, err = pgx.ForEachRow(rows, []any{&listing.ID, &listing.Uploader, &listing.Likes, &kind, &listing.Public, &listing.Name}, func() (err error) {
			if listing.Type, err = skin.ParseType(kind); err != nil {
				return fmt.Errorf("texture %d: %w", listing.ID, err)
			}
			return add(listing)
		})
		return err
	})
	return moment, failure("read all textures", err)
}

// Limits of what a library is told.
const (
	mostListings   = 50_000
	oldestListings = core.KeepListings / 2
)

// selectLibraryChanges takes what was written by transactions that a snapshot did
// not see, as they began after it or had not ended, and that its own sees, as it sees
// their rows. However long another transaction takes, nothing is read twice. The
// limits, and the offset, have the planner use indexes, whatever it believes of the
// numbers. The row of the moment comes even when nothing has changed.
const selectLibraryChanges = `
	WITH logged AS (
		(SELECT tid FROM texture_changes WHERE xid >= pg_snapshot_xmax($1::text::pg_snapshot) ORDER BY xid LIMIT $2)
		UNION ALL
		(SELECT l.tid FROM pg_snapshot_xip($1::text::pg_snapshot) AS open (xid)
			CROSS JOIN LATERAL (SELECT tid FROM texture_changes WHERE xid BETWEEN open.xid AND open.xid ORDER BY xid LIMIT $2) l LIMIT $2)
	), changed AS (
		SELECT DISTINCT tid FROM logged
	)
	SELECT
		feed.epoch::text, pg_current_snapshot()::text AS snapshot, now() AS at, (SELECT count(*) FROM logged) AS logged,
		c.tid, coalesce(t.uploader, 0) AS uploader, t.likes, t.type, t.public, t.name
	FROM feed LEFT JOIN changed c ON true LEFT JOIN LATERAL (SELECT * FROM textures WHERE textures.tid = c.tid OFFSET 0) t ON true
	ORDER BY c.tid`

type libraryRow struct {
	core.LibraryMoment
	Logged int

	TID      *core.TextureID
	Uploader core.UserID
	Likes    *int64
	Type     *string
	Public   *bool
	Name     *string
}

// LibraryChanges returns the textures that changed since a moment. In another epoch
// the moment means nothing: its transactions may have been others.
func (db *DB) LibraryChanges(ctx context.Context, since core.LibraryMoment) ([]core.Listing, core.LibraryMoment, bool, error) {
	none := func(err error) ([]core.Listing, core.LibraryMoment, bool, error) {
		return nil, core.LibraryMoment{}, false, err
	}
	rows, err := collect[libraryRow](ctx, db.reads, statement{selectLibraryChanges, []any{since.Snapshot, mostListings}})
	if err != nil {
		return none(failure("read which textures changed", err))
	}
	now := rows[0].LibraryMoment
	if now.Epoch != since.Epoch || now.At.Sub(since.At) > oldestListings || rows[0].Logged >= mostListings {
		return none(nil)
	}
	var changed []core.Listing
	for _, row := range rows {
		switch {
		case row.TID == nil: // nothing has changed
		case row.Type == nil:
			changed = append(changed, core.Listing{ID: *row.TID})
		default:
			kind, err := skin.ParseType(*row.Type)
			if err != nil {
				return none(fmt.Errorf("texture %d: %w", *row.TID, err))
			}
			changed = append(changed, core.Listing{
				ID: *row.TID, Uploader: row.Uploader, Likes: *row.Likes, Type: kind, Public: *row.Public, Name: *row.Name,
			})
		}
	}
	return changed, now, true, nil
}

const selectTextures = `SELECT ` + textureColumns + ` FROM textures t WHERE tid = ANY ($1)`

// TexturesByID returns those of the textures that exist.
func (db *DB) TexturesByID(ctx context.Context, tids []core.TextureID) ([]core.Texture, error) {
	rows, err := collect[textureRow](ctx, db.reads, statement{selectTextures, []any{tids}})
	if err != nil {
		return nil, failure("read textures", err)
	}
	textures := make([]core.Texture, len(rows))
	for i, row := range rows {
		if textures[i], err = row.texture(); err != nil {
			return nil, err
		}
	}
	return textures, nil
}

const deleteTextureChanges = `DELETE FROM texture_changes WHERE at < $1`

// TrimLibrary forgets which textures changed before a time.
func (db *DB) TrimLibrary(ctx context.Context, before time.Time) (int, error) {
	tag, err := db.writes.Exec(ctx, deleteTextureChanges, before)
	return int(tag.RowsAffected()), failure("trim changes of textures", err)
}
