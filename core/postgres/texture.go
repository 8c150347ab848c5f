package postgres

import (
	"context"
	"encoding/binary"
	"fmt"
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
	WHERE pixels = @pixels AND type = @type AND (public OR uploader = @uploader)
	ORDER BY tid LIMIT 1`

// selectQuota returns why a user cannot add a texture; an empty violation if they can.
var selectQuota = `
	SELECT u.uid, u.nickname, CASE
		WHEN ` + isRefused("@pixels") + ` THEN 'refused'
		WHEN u.score < @cost THEN 'score'
		WHEN @max_textures > 0 AND t.number >= @max_textures OR @max_bytes > 0 AND t.bytes + @bytes > @max_bytes THEN 'textures'
		WHEN @max_items > 0 AND (SELECT count(*) FROM closet_items c WHERE c.uid = u.uid) >= @max_items THEN 'closet'
		ELSE ''
	END AS violation
	FROM users u, LATERAL (SELECT count(*) AS number, coalesce(sum(bytes), 0) AS bytes FROM textures WHERE uploader = u.uid) t
	WHERE u.uid = @uploader`

// insertTexture inserts nothing if another upload of the same pixels commits first: it waits
// for that commit, after which the duplicate is visible.
var (
	insertTexture = `
	WITH quota AS (` + selectQuota + `
	), inserted AS (
		INSERT INTO textures (name, name_key, type, hash, pixels, bytes, uploader, public, likes, paid, refundable)
		SELECT @name, @name_key, @type, @hash, @pixels, @bytes, uid, @public, 1, nullif(@cost::bigint, 0), @refund FROM quota WHERE violation = ''
		ON CONFLICT DO NOTHING
		RETURNING *
	), inserted_item AS (
		INSERT INTO closet_items (uid, tid, cape, item_name, item_key) SELECT uploader, tid, type = 'cape', name, @item_key FROM inserted
	), change_events AS (
		INSERT INTO changes (keys) SELECT ARRAY['tid:' || tid, 'hash:' || encode(hash, 'hex')] FROM inserted
	)`

	insertPaidTexture = insertTexture + `, score_entries AS (
		SELECT 1 AS n, uploader AS uid, -@cost AS amount, 'upload' AS reason, 'texture:' || tid AS subject FROM inserted
		UNION ALL
		SELECT 2, uploader, @reward::bigint, 'upload_reward', 'texture:' || tid FROM inserted JOIN users u ON u.uid = uploader
		WHERE u.rewarded_textures <= (SELECT count(*) FROM textures WHERE uploader = @uploader)
	)` + applyScoreEntries

	selectInsertedTexture = `
	SELECT r.violation, a.tid, a.upload_at FROM quota r LEFT JOIN inserted a ON true`

	updateRewardedTextures = `
	UPDATE users SET rewarded_textures = t.number
	FROM (SELECT count(*) AS number FROM textures WHERE uploader = @uploader) t WHERE uid = @uploader AND rewarded_textures < t.number`
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

// args are the arguments of all statements of an upload.
func (c *uploadCheck) args() pgx.NamedArgs {
	t, quotas := c.texture, c.pricing.Quotas
	return pgx.NamedArgs{
		"uploader": t.Uploader, "name": t.Name, "name_key": NameKey(t.Name), "item_key": casefold.SearchKey(t.Name),
		"type": t.Type, "hash": t.Hash, "pixels": t.Pixels[:], "bytes": t.Bytes, "public": t.Public,
		"cost": c.pricing.Cost, "refund": c.pricing.Refund, "reward": c.pricing.Reward,
		"max_textures": quotas.Textures, "max_bytes": quotas.TextureBytes, "max_items": quotas.ClosetItems,
	}
}

// queue adds the statements of the check to a batch.
func (c *uploadCheck) queue(batch *pgx.Batch) {
	batch.Queue(selectDuplicate, c.args()).Query(collectInto(&c.duplicates))
	batch.Queue(selectQuota, c.args()).Query(collectInto(&c.quotas))
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
		insert := insertTexture
		if !pricing.Free() {
			insert = insertPaidTexture
		}
		batch.Queue(insert+selectInsertedTexture, check.args()).Query(collectInto(&after))
		if pricing.Reward > 0 {
			batch.Queue(updateRewardedTextures, check.args())
		}
		batch.Queue(selectDuplicate, check.args()).Query(collectInto(&winners))
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

// errConflictGone is the fault of an upload that lost a conflict with another one, whose texture
// has been deleted since.
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
	case "refused":
		return core.ErrRefusedPixels
	case "score":
		return core.ErrScoreTooLow(pricing.Cost)
	case "closet":
		return closetFull(pricing)
	default:
		return fault.New(fault.Refused, "You may have no more than %d textures, of %d bytes together.", pricing.Quotas.Textures, pricing.Quotas.TextureBytes)
	}
}

// textureColumns are the columns of a core.Texture, from the table textures as t. The nickname is a
// subquery and no join, so that it is looked up for the rows of the result only, and by the primary
// key.
const textureColumns = `t.tid AS id, t.name, t.type, t.hash, t.bytes, coalesce(t.uploader, 0) AS uploader, t.public, t.upload_at, t.likes,
	coalesce((SELECT nickname FROM users WHERE uid = t.uploader), '') AS uploader_nickname`

const selectTexture = `SELECT ` + textureColumns + ` FROM textures t WHERE tid = $1`

// Texture returns a texture.
func (db *DB) Texture(ctx context.Context, tid core.TextureID) (core.Texture, error) {
	textures, err := collect[core.Texture](ctx, db.reads, statement{selectTexture, []any{tid}})
	return one(textures, failure("read a texture", err), noTexture(tid))
}

// itemName is the name of a texture, from the table textures as t, in the closet of user $2; empty if it is not there.
const itemName = `coalesce((SELECT item_name FROM closet_items c WHERE c.uid = $2 AND c.tid = t.tid), '') AS item_name`

const selectLibraryTexture = `SELECT ` + textureColumns + `, ` + itemName + ` FROM textures t WHERE tid = $1`

// LibraryTexture returns a texture as a user sees it.
func (db *DB) LibraryTexture(ctx context.Context, user core.UserID, tid core.TextureID) (core.LibraryTexture, error) {
	textures, err := collect[core.LibraryTexture](ctx, db.reads, statement{selectLibraryTexture, []any{tid, user}})
	return one(textures, failure("read a texture", err), noTexture(tid))
}

const selectAnyTexture = `SELECT EXISTS (SELECT FROM textures) AS found`

// HasTextures reports whether there is any texture.
func (db *DB) HasTextures(ctx context.Context) (bool, error) {
	rows, err := collect[struct{ Found bool }](ctx, db.reads, statement{selectAnyTexture, nil})
	return len(rows) > 0 && rows[0].Found, failure("look for textures", err)
}
