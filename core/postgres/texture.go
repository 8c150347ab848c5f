package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/skin"
)

var _ core.TextureStore = (*DB)(nil)

// lockHash is shared among uploads, which do not disturb each other; the sweep
// takes it for itself.
const lockHash = `SELECT pg_advisory_xact_lock_shared($1)`

// hashLock returns the number of the lock on a texture file.
func hashLock(hash skin.Hash) int64 { return int64(binary.BigEndian.Uint64(hash[:])) }

const selectDuplicate = `
	SELECT tid FROM textures
	WHERE pixels = $1 AND type = $2 AND (public OR uploader = $3)
	ORDER BY tid LIMIT 1`

const insertTexture = `
	WITH added AS (
		INSERT INTO textures (name, type, hash, pixels, bytes, uploader, public, likes)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 1)
		RETURNING *
	), kept AS (
		INSERT INTO closet_items (uid, tid, item_name) SELECT uploader, tid, name FROM added
	), noted AS (
		INSERT INTO changes (keys) SELECT ARRAY['tid:' || tid, 'hash:' || encode(hash, 'hex')] FROM added
	)
	SELECT tid, upload_at, likes FROM added`

// AddTexture records a texture whose file put stores.
func (db *DB) AddTexture(ctx context.Context, texture core.NewTexture, put func(context.Context) error) (core.Texture, error) {
	duplicate := statement{selectDuplicate, []any{texture.Pixels[:], texture.Type.String(), texture.Uploader}}
	added := core.Texture{
		Name: texture.Name, Type: texture.Type, Hash: texture.Hash, Bytes: texture.Bytes, Uploader: texture.Uploader, Public: texture.Public,
	}

	err := pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error {
		var tid core.TextureID
		var batch pgx.Batch
		batch.Queue(lockHash, hashLock(texture.Hash))
		batch.Queue(duplicate.sql, duplicate.args...).QueryRow(func(row pgx.Row) error { return row.Scan(&tid) })
		switch err := tx.SendBatch(ctx, &batch).Close(); {
		case err == nil:
			return core.Exists(tid)
		case !errors.Is(err, pgx.ErrNoRows):
			return fmt.Errorf("look for the same pixels: %w", err)
		}
		if err := put(ctx); err != nil {
			return err
		}
		return tx.QueryRow(ctx, insertTexture,
			texture.Name, texture.Type.String(), texture.Hash[:], texture.Pixels[:], texture.Bytes, texture.Uploader, texture.Public,
		).Scan(&added.ID, &added.UploadAt, &added.Likes)
	})
	switch violates(err) {
	case "textures_public_pixels", "textures_uploader_pixels":
		// Another upload of the same pixels won.
		won, err := collect[struct{ TID core.TextureID }](ctx, db.pool, duplicate)
		if err != nil {
			return core.Texture{}, failure("look for the same pixels", err)
		}
		if len(won) == 0 {
			return core.Texture{}, errors.New("the texture that an upload collided with is gone")
		}
		return core.Texture{}, core.Exists(won[0].TID)
	case "textures_uploader_fkey", "closet_items_uid_fkey":
		return core.Texture{}, core.ErrSignedOut
	}
	if err != nil {
		return core.Texture{}, failure("add a texture", err)
	}
	db.ring()
	return added, nil
}

const selectAnyTexture = `SELECT EXISTS (SELECT FROM textures)`

// HasTextures reports whether there is any texture.
func (db *DB) HasTextures(ctx context.Context) (has bool, err error) {
	err = db.pool.QueryRow(ctx, selectAnyTexture).Scan(&has)
	return has, failure("look for textures", err)
}
