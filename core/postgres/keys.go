package postgres

import (
	"context"
	"math"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/fold"
)

// keyBatch is how many keys are made in one transaction.
const keyBatch = 1000

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
)

// FillKeys makes all search keys that are missing, and returns how many.
func (db *DB) FillKeys(ctx context.Context) (int, error) {
	nicknames, err := db.fillNicknameKeys(ctx)
	if err != nil {
		return nicknames, err
	}
	items, err := db.fillKeys(ctx, selectUnkeyedItems, updateItemKeys, 0, math.MaxInt64)
	return nicknames + items, err
}

// fillNicknameKeys makes the keys that nicknames lack.
func (db *DB) fillNicknameKeys(ctx context.Context) (int, error) {
	return db.fillKeys(ctx, selectUnkeyedUsers, updateNicknameKeys, 0, math.MaxInt64)
}

// fillItemKeys makes the keys that items of a closet lack.
func (db *DB) fillItemKeys(ctx context.Context, user core.UserID) error {
	_, err := db.fillKeys(ctx, selectUnkeyedItems, updateItemKeys, user, user)
	return err
}

// fillKeys makes the keys of rows that one statement selects, from one user to another,
// and another statement writes, unless the name has changed meanwhile. A batch is a
// transaction: what is done stays done.
func (db *DB) fillKeys(ctx context.Context, selectUnkeyed, update string, uid, last core.UserID) (filled int, err error) {
	var tid core.TextureID // with uid, of the last row that was done
	for {
		rows, err := collect[struct {
			UID  core.UserID
			TID  core.TextureID
			Name string
		}](ctx, db.reads, statement{selectUnkeyed, []any{uid, tid, last, keyBatch}})
		if err != nil || len(rows) == 0 {
			return filled, failure("read names without a search key", err)
		}
		uids, tids := make([]core.UserID, len(rows)), make([]core.TextureID, len(rows))
		names, keys := make([]string, len(rows)), make([]string, len(rows))
		for i, row := range rows {
			uids[i], tids[i], names[i], keys[i] = row.UID, row.TID, row.Name, fold.Key(row.Name)
		}
		tag, err := db.writes.Exec(ctx, update, uids, tids, names, keys)
		if err != nil {
			return filled, failure("write search keys", err)
		}
		filled += int(tag.RowsAffected())
		uid, tid = rows[len(rows)-1].UID, rows[len(rows)-1].TID
	}
}
