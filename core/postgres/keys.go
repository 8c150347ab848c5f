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

// keyColumn is a column of search keys: the statement that selects rows without a key, by primary
// key, the one that selects rows with names in Unicode's compatibility characters, whose key is
// another one in the release before, the one that writes keys, and the function that makes them.
type keyColumn struct {
	selectUnkeyed, selectCompatible, update string
	key                                     func(name string) string
}

var (
	nicknameKeys = keyColumn{nicknamesWhere("nickname_key IS NULL"), nicknamesWhere(isCompatible("nickname")), updateNicknameKeys, casefold.SearchKey}
	itemKeys     = keyColumn{itemsWhere("item_key IS NULL"), itemsWhere(isCompatible("item_name")), updateItemKeys, casefold.SearchKey}
	textureKeys  = keyColumn{textureNamesWhere("name_key IS NULL"), textureNamesWhere(isCompatible("name")), updateNameKeys, NameKey}
)

// isCompatible is the condition that a name is not in Unicode's form NFKC, or has a my, whose key was the
// sign for micro, a letter that is expanded, or two spaces.
func isCompatible(column string) string {
	return "(" + column + " IS NOT NFKC NORMALIZED OR " + column + " ~ '[μΜßẞİ]|  ')"
}

func nicknamesWhere(where string) string {
	return `
	SELECT uid, 0::bigint AS tid, nickname AS name, nickname_key AS key FROM users WHERE ` + where + ` AND uid > $1 AND $2::bigint = 0 AND uid <= $3
	ORDER BY uid LIMIT $4`
}

func itemsWhere(where string) string {
	return `
	SELECT uid, tid, item_name AS name, item_key AS key FROM closet_items WHERE ` + where + ` AND (uid, tid) > ($1, $2) AND uid <= $3
	ORDER BY uid, tid LIMIT $4`
}

func textureNamesWhere(where string) string {
	return `
	SELECT 0::bigint AS uid, tid, name, name_key AS key FROM textures WHERE ` + where + ` AND $1::bigint = 0 AND tid > $2 AND $3::bigint >= 0
	ORDER BY tid LIMIT $4`
}

const (
	updateNicknameKeys = `
	UPDATE users u SET nickname_key = k.key FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[]) AS k (uid, tid, name, key)
	WHERE u.uid = k.uid AND u.nickname = k.name AND u.nickname_key IS DISTINCT FROM k.key`

	updateItemKeys = `
	UPDATE closet_items c SET item_key = k.key FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[]) AS k (uid, tid, name, key)
	WHERE c.uid = k.uid AND c.tid = k.tid AND c.item_name = k.name AND c.item_key IS DISTINCT FROM k.key`

	updateNameKeys = `
	UPDATE textures t SET name_key = k.key FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[]) AS k (uid, tid, name, key)
	WHERE t.tid = k.tid AND t.name = k.name AND t.name_key IS DISTINCT FROM k.key`
)

// FillKeys makes all missing search keys, and anew the keys that a core of the release before has written
// for names in compatibility characters. It returns how many keys it has made.
func (db *DB) FillKeys(ctx context.Context) (filled int, err error) {
	for _, column := range []keyColumn{nicknameKeys, itemKeys, textureKeys} {
		for _, names := range []string{column.selectUnkeyed, column.selectCompatible} {
			n, err := db.fillKeys(ctx, column, names, 0, noLimit, noLimit)
			if filled += n; err != nil {
				return filled, err
			}
		}
	}
	return filled, nil
}

// fillForSearch makes the missing keys of a column before a search. It returns an Unavailable
// fault if more are missing than searchBatches; the next search continues.
func (db *DB) fillForSearch(ctx context.Context, column keyColumn) error {
	_, err := db.fillKeys(ctx, column, column.selectUnkeyed, 0, noLimit, searchBatches)
	return err
}

// fillItemKeys makes the missing keys of one closet, as fillForSearch does.
func (db *DB) fillItemKeys(ctx context.Context, user core.UserID) error {
	_, err := db.fillKeys(ctx, itemKeys, itemKeys.selectUnkeyed, user, user, searchBatches)
	return err
}

// fillKeys makes the keys of the names that a statement selects, of users uid to last, unless the name
// has changed meanwhile. Each batch is a transaction. It returns errKeysMissing if keys are still
// missing after maxBatches.
func (db *DB) fillKeys(ctx context.Context, column keyColumn, names string, uid, last core.UserID, maxBatches int) (filled int, err error) {
	var tid core.TextureID // with uid, the last row of the previous batch
	for batch := 0; ; batch++ {
		rows, err := collect[struct {
			UID  core.UserID
			TID  core.TextureID
			Name string
			Key  *string
		}](ctx, db.reads, statement{names, []any{uid, tid, last, keyBatch}})
		if err != nil || len(rows) == 0 {
			return filled, failure("read names without a search key", err)
		}
		if batch == maxBatches {
			return filled, errKeysMissing
		}
		uid, tid = rows[len(rows)-1].UID, rows[len(rows)-1].TID
		var uids []core.UserID
		var tids []core.TextureID
		var of, keys []string
		for _, row := range rows {
			if key := column.key(row.Name); row.Key == nil || *row.Key != key {
				uids, tids, of, keys = append(uids, row.UID), append(tids, row.TID), append(of, row.Name), append(keys, key)
			}
		}
		if len(keys) == 0 {
			continue
		}
		tag, err := db.writes.Exec(ctx, column.update, uids, tids, of, keys)
		if err != nil {
			return filled, failure("write search keys", err)
		}
		filled += int(tag.RowsAffected())
	}
}

const (
	selectMappedEmails = `SELECT uid, email, email_key FROM users WHERE email ~ '[^ -~]' OR email ILIKE '%xn--%' ORDER BY uid`

	updateEmailKey = `
	UPDATE users SET email_key = $2 WHERE uid = $1 AND email_key = $3 AND NOT EXISTS (SELECT FROM users WHERE email_key = $2)`
)

// RekeyEmails makes the keys of e-mail addresses anew whose domains are not plain ASCII, and returns how
// many have changed. Of accounts whose addresses have become equal, one gets the key: the newer if it has it already,
// otherwise the older. The others keep theirs, and are returned.
func (db *DB) RekeyEmails(ctx context.Context) (changed int, equal []core.User, err error) {
	rows, err := collect[struct {
		UID             core.UserID
		Email, EmailKey string
	}](ctx, db.reads, statement{selectMappedEmails, nil})
	if err != nil {
		return 0, nil, failure("read e-mail addresses with mapped domains", err)
	}
	for _, row := range rows {
		key := core.EmailKey(row.Email)
		if key == row.EmailKey {
			continue
		}
		tag, err := db.writes.Exec(ctx, updateEmailKey, row.UID, key, row.EmailKey)
		if err != nil {
			return changed, equal, failure("write the key of an e-mail address", err)
		}
		if changed += int(tag.RowsAffected()); tag.RowsAffected() == 0 {
			equal = append(equal, core.User{ID: row.UID, Email: row.Email})
		}
	}
	return changed, equal, nil
}
