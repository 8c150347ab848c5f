package postgres

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/casefold"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
)

var _ core.TextureStore = (*DB)(nil)

// Uploads take the lock in shared mode. The sweep takes it exclusively.
const lockHash = `SELECT pg_advisory_xact_lock_shared($1)`

// hashLock returns the lock key of a texture file.
func hashLock(hash skin.Hash) int64 { return int64(binary.BigEndian.Uint64(hash[:])) }

const selectDuplicate = `
	SELECT tid FROM textures
	WHERE pixels = $1 AND type = $2 AND (public OR uploader = $3)
	ORDER BY tid LIMIT 1`

// selectQuota returns why a user cannot add a texture; an empty violation if they can.
const selectQuota = `
	SELECT u.uid, u.nickname, CASE
		WHEN u.score < $3 THEN 'score'
		WHEN $4 > 0 AND t.number >= $4 OR $5 > 0 AND t.bytes + $2 > $5 THEN 'textures'
		WHEN $6 > 0 AND (SELECT count(*) FROM closet_items c WHERE c.uid = u.uid) >= $6 THEN 'closet'
		ELSE ''
	END AS violation
	FROM users u, LATERAL (SELECT count(*) AS number, coalesce(sum(bytes), 0) AS bytes FROM textures WHERE uploader = u.uid) t
	WHERE u.uid = $1`

// insertTexture inserts nothing if another upload of the same pixels commits first: it waits
// for that commit, after which the duplicate is visible.
const (
	insertTexture = `
	WITH quota AS (` + selectQuota + `
	), inserted AS (
		INSERT INTO textures (name, name_key, type, hash, pixels, bytes, uploader, public, likes, paid, refundable)
		SELECT $7, $13, $8, $9, $10, $2, uid, $11, 1, nullif($3::bigint, 0), $12 FROM quota WHERE violation = ''
		ON CONFLICT DO NOTHING
		RETURNING *
	), inserted_item AS (
		INSERT INTO closet_items (uid, tid, cape, item_name, item_key) SELECT uploader, tid, type = 'cape', name, $14 FROM inserted
	), change_events AS (
		INSERT INTO changes (keys) SELECT ARRAY['tid:' || tid, 'hash:' || encode(hash, 'hex')] FROM inserted
	)`

	insertPaidTexture = insertTexture + `, score_entries AS (
		SELECT 1 AS n, uploader AS uid, -$3 AS amount, 'upload' AS reason, 'texture:' || tid AS subject FROM inserted
		UNION ALL
		SELECT 2, uploader, $15::bigint, 'upload_reward', 'texture:' || tid FROM inserted JOIN users u ON u.uid = uploader
		WHERE u.rewarded_textures <= (SELECT count(*) FROM textures WHERE uploader = $1)
	)` + applyScoreEntries

	selectInsertedTexture = `
	SELECT r.violation, a.tid, a.upload_at FROM quota r LEFT JOIN inserted a ON true`

	updateRewardedTextures = `
	UPDATE users SET rewarded_textures = t.number
	FROM (SELECT count(*) AS number FROM textures WHERE uploader = $1) t WHERE uid = $1 AND rewarded_textures < t.number`
)

// uploadCheck is what is checked before an upload's file is stored.
type uploadCheck struct {
	texture    core.NewTexture
	pricing    core.Pricing
	duplicates []struct{ TID core.TextureID }
	quotas     []struct {
		UID       core.UserID
		Nickname  string
		Violation string
	}
}

func (c *uploadCheck) duplicate() statement {
	return statement{selectDuplicate, []any{c.texture.Pixels[:], c.texture.Type.String(), c.texture.Uploader}}
}

// quotaArgs are the arguments of selectQuota.
func (c *uploadCheck) quotaArgs() []any {
	quotas := c.pricing.Quotas
	return []any{c.texture.Uploader, c.texture.Bytes, c.pricing.Cost, quotas.Textures, quotas.TextureBytes, quotas.ClosetItems}
}

// queue adds the statements of the check to a batch.
func (c *uploadCheck) queue(batch *pgx.Batch) {
	c.duplicate().queue(batch).Query(collectInto(&c.duplicates))
	statement{selectQuota, c.quotaArgs()}.queue(batch).Query(collectInto(&c.quotas))
}

// fault returns why the texture cannot be added; nil if it can.
func (c *uploadCheck) fault() error {
	switch {
	case len(c.duplicates) > 0:
		return core.ErrDuplicateTexture(c.duplicates[0].TID)
	case len(c.quotas) == 0:
		return core.ErrSignedOut
	case c.quotas[0].Violation != "":
		return quotaError(c.quotas[0].Violation, c.pricing)
	default:
		return nil
	}
}

// CheckTexture returns why a texture cannot be added; nil if it can.
func (db *DB) CheckTexture(ctx context.Context, texture core.NewTexture, pricing core.Pricing) error {
	check := uploadCheck{texture: texture, pricing: pricing}
	err := db.reads.run(ctx, func() error {
		var batch pgx.Batch
		check.queue(&batch)
		return db.reads.SendBatch(ctx, &batch).Close()
	})
	if err != nil {
		return failure("check an upload", err)
	}
	return check.fault()
}

// AddTexture calls put to store a texture's file, and records the texture. It takes two round
// trips, one before put and one after, in one transaction.
func (db *DB) AddTexture(ctx context.Context, texture core.NewTexture, pricing core.Pricing, put func(context.Context) error) (core.Texture, error) {
	added := core.Texture{
		Name: texture.Name, Type: texture.Type, Hash: texture.Hash, Bytes: texture.Bytes, Uploader: texture.Uploader, Public: texture.Public, Likes: 1,
	}

	record := func(conn *pgxpool.Conn) error {
		check := uploadCheck{texture: texture, pricing: pricing}
		var batch pgx.Batch
		batch.Queue("BEGIN")
		batch.Queue(lockHash, hashLock(texture.Hash))
		check.queue(&batch)
		if err := conn.SendBatch(ctx, &batch).Close(); err != nil {
			return fmt.Errorf("look for the same pixels: %w", err)
		}
		if err := check.fault(); err != nil {
			return err
		}
		if err := put(ctx); err != nil {
			return err
		}

		var after []struct {
			Violation string
			TID       *core.TextureID
			UploadAt  *time.Time
		}
		var winners []struct{ TID core.TextureID }
		batch = pgx.Batch{}
		batch.Queue(lockUser, texture.Uploader)
		args := slices.Concat(check.quotaArgs(), []any{texture.Name, texture.Type.String(), texture.Hash[:], texture.Pixels[:], texture.Public, pricing.Refund, NameKey(texture.Name), casefold.Key(texture.Name)})
		if pricing.Free() {
			batch.Queue(insertTexture+selectInsertedTexture, args...).Query(collectInto(&after))
		} else {
			batch.Queue(insertPaidTexture+selectInsertedTexture, append(args, pricing.Reward)...).Query(collectInto(&after))
		}
		if pricing.Reward > 0 {
			batch.Queue(updateRewardedTextures, texture.Uploader)
		}
		check.duplicate().queue(&batch).Query(collectInto(&winners))
		committed := false
		batch.Queue("COMMIT").Exec(func(pgconn.CommandTag) error {
			committed = true
			return nil
		})
		if err := conn.SendBatch(ctx, &batch).Close(); err != nil && !committed {
			return err
		}
		switch {
		case len(after) == 0:
			return core.ErrSignedOut
		case after[0].Violation != "":
			return quotaError(after[0].Violation, pricing)
		case after[0].TID == nil && len(winners) > 0:
			return core.ErrDuplicateTexture(winners[0].TID)
		case after[0].TID == nil:
			return errConflictGone
		}
		added.ID, added.UploadAt, added.UploaderNickname = *after[0].TID, *after[0].UploadAt, check.quotas[0].Nickname
		return nil
	}
	if err := db.writes.run(ctx, func() error { return db.withConn(ctx, record) }); err != nil {
		return core.Texture{}, failure("add a texture", err)
	}
	db.onChange()
	return added, nil
}

// errConflictGone is the fault of an upload that lost a conflict with another one, the texture
// of which has been deleted since.
var errConflictGone = &fault.Error{
	Kind: fault.Unavailable, Message: "Somebody uploaded the same texture at this moment, and deleted it. Please try again.", RetryAfter: time.Second,
}

// withConn calls work with one connection, and rolls back a transaction that work leaves open.
func (db *DB) withConn(ctx context.Context, work func(*pgxpool.Conn) error) error {
	conn, err := db.writes.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release() // pgxpool closes it if it is still in a transaction
	err = work(conn)
	if pg := conn.Conn().PgConn(); !pg.IsClosed() && pg.TxStatus() != 'I' {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_, _ = conn.Exec(ctx, "ROLLBACK")
	}
	return err
}

// quotaError returns the fault of a violation that selectQuota returned.
func quotaError(violation string, pricing core.Pricing) error {
	switch violation {
	case "score":
		return core.ErrScoreTooLow(pricing.Cost)
	case "closet":
		return closetFull(pricing)
	default:
		return fault.New(fault.Refused, "You may have no more than %d textures, of %d bytes together.", pricing.Quotas.Textures, pricing.Quotas.TextureBytes)
	}
}

// textureColumns are the columns of a textureRow, from the table textures as t. The nickname is a
// subquery and no join, so that it is looked up for the rows of the result only, and by the primary
// key.
const textureColumns = `t.tid, t.name, t.type, t.hash, t.bytes, coalesce(t.uploader, 0) AS uploader, t.public, t.upload_at, t.likes,
	coalesce((SELECT nickname FROM users WHERE uid = t.uploader), '') AS uploader_nickname`

type textureRow struct {
	TID      core.TextureID
	Name     string
	Type     string
	Hash     []byte
	Bytes    int
	Uploader core.UserID
	Public   bool
	UploadAt time.Time
	Likes    int64

	UploaderNickname string
}

func (r textureRow) texture() (core.Texture, error) {
	kind, err := skin.ParseType(r.Type)
	if err != nil {
		return core.Texture{}, fmt.Errorf("texture %d: %w", r.TID, err)
	}
	return core.Texture{
		ID: r.TID, Name: r.Name, Type: kind, Hash: skin.Hash(r.Hash), Bytes: r.Bytes, Uploader: r.Uploader,
		Public: r.Public, UploadAt: r.UploadAt, Likes: r.Likes, UploaderNickname: r.UploaderNickname,
	}, nil
}

// oneTexture returns the texture of the first row, or a NotFound fault.
func oneTexture(tid core.TextureID, rows []textureRow, err error) (core.Texture, error) {
	row, err := one(rows, err, noTexture(tid))
	if err != nil {
		return core.Texture{}, err
	}
	return row.texture()
}

const selectTexture = `SELECT ` + textureColumns + ` FROM textures t WHERE tid = $1`

// Texture returns a texture.
func (db *DB) Texture(ctx context.Context, tid core.TextureID) (core.Texture, error) {
	rows, err := collect[textureRow](ctx, db.reads, statement{selectTexture, []any{tid}})
	return oneTexture(tid, rows, failure("read a texture", err))
}

// inCloset tells whether a texture, from the table textures as t, is in the closet of user $2.
const inCloset = `EXISTS (SELECT FROM closet_items c WHERE c.uid = $2 AND c.tid = t.tid) AS in_closet`

type libraryRow struct {
	textureRow
	InCloset bool
}

func (r libraryRow) libraryTexture() (core.LibraryTexture, error) {
	texture, err := r.texture()
	return core.LibraryTexture{Texture: texture, InCloset: r.InCloset}, err
}

const selectLibraryTexture = `SELECT ` + textureColumns + `, ` + inCloset + ` FROM textures t WHERE tid = $1`

// LibraryTexture returns a texture as a user sees it.
func (db *DB) LibraryTexture(ctx context.Context, user core.UserID, tid core.TextureID) (core.LibraryTexture, error) {
	rows, err := collect[libraryRow](ctx, db.reads, statement{selectLibraryTexture, []any{tid, user}})
	row, err := one(rows, failure("read a texture", err), noTexture(tid))
	if err != nil {
		return core.LibraryTexture{}, err
	}
	return row.libraryTexture()
}

const selectAnyTexture = `SELECT EXISTS (SELECT FROM textures) AS found`

// HasTextures reports whether there is any texture.
func (db *DB) HasTextures(ctx context.Context) (bool, error) {
	rows, err := collect[struct{ Found bool }](ctx, db.reads, statement{selectAnyTexture, nil})
	return len(rows) > 0 && rows[0].Found, failure("look for textures", err)
}
