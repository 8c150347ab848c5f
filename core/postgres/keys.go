package postgres

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/casefold"
	"github.com/veneer-skins/veneer/shared/fault"
)

const (
	// keyBatch is how many keys are made in one transaction.
	keyBatch = 1000
	// searchBatches is how many batches a search makes at most. Only cores of the previous
	// release write names without keys, so few are missing once core migrate has run.
	searchBatches = 2
)

var errKeysMissing = &fault.Error{
	Kind: fault.Unavailable, Message: "The names are being prepared for searches. Please try again.", RetryAfter: time.Second,
	Cause: errors.New("more search keys are missing than a search makes; core migrate makes all"),
}

// noLimit is the number of batches, the last user and the last texture where none is given.
const noLimit = math.MaxInt64

// keyColumn is a column of search keys: the statement that selects rows without a key, by
// primary key, the one that writes keys, and the function that makes them.
type keyColumn struct {
	selectUnkeyed, update string
	key                   func(name string) string
}

var (
	nicknameKeys = keyColumn{selectUnkeyedUsers, updateNicknameKeys, casefold.Key}
	itemKeys     = keyColumn{selectUnkeyedItems, updateItemKeys, casefold.Key}
	textureKeys  = keyColumn{selectUnkeyedTextures, updateNameKeys, NameKey}
)

const (
	selectUnkeyedUsers = `
	SELECT uid, 0::bigint AS tid, nickname AS name FROM users WHERE nickname_key IS NULL AND uid > $1 AND $2::bigint = 0 AND uid <= $3
	ORDER BY uid LIMIT $4`

	updateNicknameKeys = `
	UPDATE users u SET nickname_key = k.key FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[]) AS k (uid, tid, name, key)
	WHERE u.uid = k.uid AND u.nickname = k.name AND u.nickname_key IS NULL`

	selectUnkeyedItems = `
	SELECT uid, tid, item_name AS name FROM closet_items WHERE item_key IS NULL AND (uid, tid) > ($1, $2) AND uid <= $3
	ORDER BY uid, tid LIMIT $4`

	updateItemKeys = `
	UPDATE closet_items c SET item_key = k.key FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[]) AS k (uid, tid, name, key)
	WHERE c.uid = k.uid AND c.tid = k.tid AND c.item_name = k.name AND c.item_key IS NULL`

	selectUnkeyedTextures = `
	SELECT 0::bigint AS uid, tid, name FROM textures WHERE name_key IS NULL AND $1::bigint = 0 AND tid > $2 AND $3::bigint >= 0
	ORDER BY tid LIMIT $4`

	updateNameKeys = `
	UPDATE textures t SET name_key = k.key FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[]) AS k (uid, tid, name, key)
	WHERE t.tid = k.tid AND t.name = k.name AND t.name_key IS NULL`
)

// FillKeys makes all missing search keys, and returns how many.
func (db *DB) FillKeys(ctx context.Context) (filled int, err error) {
	for _, column := range []keyColumn{nicknameKeys, itemKeys, textureKeys} {
		n, err := db.fillKeys(ctx, column, 0, noLimit, noLimit)
		if filled += n; err != nil {
			return filled, err
		}
	}
	return filled, nil
}

// fillForSearch makes the missing keys of a column before a search. It returns an Unavailable
// fault if more are missing than searchBatches; the next search continues.
func (db *DB) fillForSearch(ctx context.Context, column keyColumn) error {
	_, err := db.fillKeys(ctx, column, 0, noLimit, searchBatches)
	return err
}

// fillItemKeys makes the missing keys of one closet, as fillForSearch does.
func (db *DB) fillItemKeys(ctx context.Context, user core.UserID) error {
	_, err := db.fillKeys(ctx, itemKeys, user, user, searchBatches)
	return err
}

// fillKeys makes the missing keys of a column for users uid to last, unless the name has
// changed meanwhile. Each batch is a transaction. It returns errKeysMissing if keys are still
// missing after maxBatches.
func (db *DB) fillKeys(ctx context.Context, column keyColumn, uid, last core.UserID, maxBatches int) (filled int, err error) {
	var tid core.TextureID // with uid, the last row of the previous batch
	for batch := 0; ; batch++ {
		rows, err := collect[struct {
			UID  core.UserID
			TID  core.TextureID
			Name string
		}](ctx, db.reads, statement{column.selectUnkeyed, []any{uid, tid, last, keyBatch}})
		if err != nil || len(rows) == 0 {
			return filled, failure("read names without a search key", err)
		}
		if batch == maxBatches {
			return filled, errKeysMissing
		}
		uids, tids := make([]core.UserID, len(rows)), make([]core.TextureID, len(rows))
		names, keys := make([]string, len(rows)), make([]string, len(rows))
		for i, row := range rows {
			uids[i], tids[i], names[i], keys[i] = row.UID, row.TID, row.Name, column.key(row.Name)
		}
		tag, err := db.writes.Exec(ctx, column.update, uids, tids, names, keys)
		if err != nil {
			return filled, failure("write search keys", err)
		}
		filled += int(tag.RowsAffected())
		uid, tid = rows[len(rows)-1].UID, rows[len(rows)-1].TID
	}
}
