package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/casefold"
	"github.com/veneer-skins/veneer/shared/fault"
)

var _ core.ClosetStore = (*DB)(nil)

// closetItems selects items by category and by a substring of their search key, which is not a
// pattern.
const closetItems = `
	FROM closet_items
	WHERE uid = $1 AND cape = $2
		AND ($3 = '' OR strpos(item_key, $3) > 0)`

// closetColumns are the columns of a core.ClosetItem, the zero value where the table textures as t
// has no row.
const closetColumns = `coalesce(t.tid, 0) AS id, coalesce(t.name, '') AS name, t.type, t.hash, coalesce(t.bytes, 0) AS bytes,
	coalesce(t.uploader, 0) AS uploader, coalesce(t.public, false) AS public, coalesce(t.upload_at, 'epoch') AS upload_at, coalesce(t.likes, 0) AS likes,
	coalesce((SELECT nickname FROM users WHERE uid = t.uploader), '') AS uploader_nickname, coalesce(p.item_name, '') AS item_name`

var (
	selectClosetByTime = selectCloset("added_at DESC, tid DESC", "$3 <> ''")
	selectClosetByName = selectCloset("item_key COLLATE \"C\", tid", "true")
)

// selectCloset returns the total even if the page is empty, and whether an order or a search, which need
// search keys, may have missed items that lack one.
func selectCloset(order, needKeys string) string {
	return `
	WITH page AS (
		SELECT tid, added_at, item_name, item_key` + closetItems + `
		ORDER BY ` + order + ` LIMIT $4 OFFSET ($5::bigint - 1) * $4
	), totals AS (
		SELECT count(*) AS total` + closetItems + `
	)
	SELECT c.total, ` + needKeys + ` AND EXISTS (SELECT FROM closet_items WHERE uid = $1 AND item_key IS NULL) AS unkeyed, ` + closetColumns + `
	FROM totals c LEFT JOIN page p ON true LEFT JOIN textures t USING (tid)
	ORDER BY ` + order
}

type closetRow struct {
	Total   int
	Unkeyed bool
	core.ClosetItem
}

// Closet lists items of a closet.
func (db *DB) Closet(ctx context.Context, token core.VerifiedToken, query core.ClosetQuery) (core.ClosetPage, error) {
	user := token.Token.User
	return db.closetPage(ctx, user, func() ([]closetRow, error) {
		return readWithSession[closetRow](ctx, db, token, closetStatement(user, query))
	})
}

const selectUserID = `SELECT uid FROM users WHERE uid = $1`

// ClosetOf lists items of a user's closet.
func (db *DB) ClosetOf(ctx context.Context, user core.UserID, query core.ClosetQuery) (core.ClosetPage, error) {
	return db.closetPage(ctx, user, func() (rows []closetRow, err error) {
		var users []struct{ UID core.UserID }
		err = db.reads.run(ctx, func() error {
			var batch pgx.Batch
			batch.Queue(selectUserID, user).Query(collectInto(&users))
			closetStatement(user, query).queue(&batch).Query(collectInto(&rows))
			return db.reads.SendBatch(ctx, &batch).Close()
		})
		_, err = one(users, failure("list a closet", err), noUser(user))
		return rows, err
	})
}

func closetStatement(user core.UserID, query core.ClosetQuery) statement {
	sql := selectClosetByTime
	if query.ByName {
		sql = selectClosetByName
	}
	return statement{sql, []any{user, query.Capes, casefold.SearchKey(query.Name), query.PerPage, query.Page}}
}

// closetPage returns the page that read selects. If items lack search keys, it makes them and
// reads again.
func (db *DB) closetPage(ctx context.Context, user core.UserID, read func() ([]closetRow, error)) (core.ClosetPage, error) {
	rows, err := read()
	if err == nil && rows[0].Unkeyed {
		if err = db.fillItemKeys(ctx, user); err == nil {
			rows, err = read()
		}
	}
	if err != nil {
		return core.ClosetPage{}, err
	}
	return toClosetPage(rows), nil
}

func toClosetPage(rows []closetRow) core.ClosetPage {
	page := core.ClosetPage{Total: rows[0].Total}
	for _, row := range rows {
		if row.ID != 0 { // else the page is empty
			page.Items = append(page.Items, row.ClosetItem)
		}
	}
	return page
}

// A change of a closet locks the user, to count the items, and then the texture, to count the
// likes. Where likes are rewarded, the uploader is locked together with the user.
const (
	lockTexture = `SELECT tid FROM textures WHERE tid = $1 FOR NO KEY UPDATE`

	lockUsersAndUploader = `
	SELECT uid FROM users WHERE uid = ANY ($1) OR uid = (SELECT uploader FROM textures WHERE tid = $2) ORDER BY uid FOR NO KEY UPDATE`
)

const (
	insertClosetItem = `
	WITH validation AS (
		SELECT u.uid, t.type = 'cape' AS cape, CASE
			WHEN t.tid IS NULL THEN 'missing'
			WHEN NOT t.public AND t.uploader IS DISTINCT FROM u.uid AND ` + effectivePermission + ` < 1 THEN 'private'
			WHEN EXISTS (SELECT FROM closet_items c WHERE c.uid = u.uid AND c.tid = $2) THEN 'duplicate'
			WHEN $4 > 0 AND (SELECT count(*) FROM closet_items c WHERE c.uid = u.uid) >= $4 THEN 'quota'
			WHEN u.score < $5 THEN 'score'
			ELSE ''
		END AS violation
		FROM users u LEFT JOIN textures t ON t.tid = $2 WHERE u.uid = $1
	), inserted AS (
		INSERT INTO closet_items (uid, tid, cape, item_name, item_key, refund)
		SELECT uid, $2, cape, $3, $7, CASE WHEN $6 THEN nullif($5::bigint, 0) END FROM validation WHERE violation = ''
		RETURNING uid, tid
	)`

	addLike = `, updated_likes AS (
		UPDATE textures t SET likes = likes + 1 FROM inserted a WHERE t.tid = a.tid
	)`

	// The uploader's own like does not count. A like is rewarded only if the texture has more
	// likes than ever before.
	addRewardedLike = `, other_likes AS (
		SELECT t.tid, t.uploader, t.rewarded_likes, t.likes + 1 - (SELECT count(*) FROM closet_items c WHERE c.uid = t.uploader AND c.tid = t.tid) AS number
		FROM inserted a JOIN textures t USING (tid) WHERE $8::bigint > 0 AND t.uploader <> a.uid
	), updated_likes AS (
		UPDATE textures t SET likes = likes + 1, rewarded_likes = greatest(rewarded_likes, (SELECT number FROM other_likes)) FROM inserted a WHERE t.tid = a.tid
	), score_entries AS (
		SELECT 1 AS n, uid, -$5 AS amount, 'closet_item' AS reason, 'texture:' || tid AS subject FROM inserted
		UNION ALL
		SELECT 2, uploader, $8, 'like', 'texture:' || tid FROM other_likes WHERE number > rewarded_likes
	)` + applyScoreEntries

	selectViolation = `
	SELECT violation FROM validation`
)

// closetDetails are the details of a closet action in the audit log.
type closetDetails struct {
	Email string         `json:"email"` // of the closet's user
	TID   core.TextureID `json:"tid"`
	Name  string         `json:"name,omitempty"` // of the item
}

// changeCloset runs a change of a user's closet. An administrator's is logged, and requires that they
// may moderate the user's content.
func (db *DB) changeCloset(ctx context.Context, by core.Actor, user core.UserID, action core.AuditAction, details closetDetails, do func(querier) error) error {
	if by.Owns(user) {
		return do(db.writes)
	}
	return db.adminTx(ctx, string(action), func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockUsersAndUploader, []core.UserID{by.ID, user}, details.TID); err != nil {
			return err
		}
		admin, users, err := authorise(ctx, tx, by, user)
		if err != nil {
			return err
		}
		owner, ok := users[user]
		if !ok {
			return noUser(user)
		}
		if err := admin.CanModerateContentOf(owner); err != nil {
			return err
		}
		if err := do(tx); err != nil {
			return err
		}
		details.Email = owner.Email
		return writeAudit(ctx, tx, admin, action, userSubject(user), details)
	})
}

// AddClosetItem adds a texture to a closet.
func (db *DB) AddClosetItem(ctx context.Context, by core.Actor, user core.UserID, texture core.TextureID, name string, pricing core.Pricing) error {
	return db.changeCloset(ctx, by, user, core.AuditClosetAdd, closetDetails{TID: texture, Name: name}, func(q querier) error {
		return addClosetItem(ctx, q, user, texture, name, pricing)
	})
}

func addClosetItem(ctx context.Context, q querier, user core.UserID, texture core.TextureID, name string, pricing core.Pricing) error {
	args := []any{user, texture, name, pricing.Quotas.ClosetItems, pricing.Cost, pricing.Refund, casefold.SearchKey(name)}
	lock, add := statement{lockUser, []any{user}}, statement{insertClosetItem + addLike + selectViolation, args}
	if pricing.Reward > 0 {
		lock = statement{lockUsersAndUploader, []any{[]core.UserID{user}, texture}}
	}
	if !pricing.Free() {
		add = statement{insertClosetItem + addRewardedLike + selectViolation, append(args, pricing.Reward)}
	}
	results, err := collect[struct{ Violation string }](ctx, q, lock, statement{lockTexture, []any{texture}}, add)
	switch {
	case err != nil:
		return failure("add a closet item", err)
	case len(results) == 0:
		return core.ErrSignedOut
	}
	switch results[0].Violation {
	case "missing":
		return noTexture(texture)
	case "private":
		return fault.New(fault.Forbidden, "Texture %d is private, and somebody else's.", texture)
	case "duplicate":
		return duplicateFault("tid", "This texture is in the closet already.")
	case "quota":
		return closetFull(pricing)
	case "score":
		return core.ErrScoreTooLow(pricing.Cost)
	default:
		return nil
	}
}

func closetFull(pricing core.Pricing) error {
	return fault.New(fault.Refused, "The closet has %d items already, and may have no more.", pricing.Quotas.ClosetItems)
}

func noTexture(tid core.TextureID) error {
	return fault.New(fault.NotFound, "There is no texture %d.", tid)
}

var errNoItem = fault.New(fault.NotFound, "This texture is not in the closet.")

const updateClosetItem = `UPDATE closet_items SET item_name = $3, item_key = $4 WHERE uid = $1 AND tid = $2`

// RenameClosetItem renames an item.
func (db *DB) RenameClosetItem(ctx context.Context, user core.UserID, texture core.TextureID, name string) error {
	tag, err := db.writes.Exec(ctx, updateClosetItem, user, texture, name, casefold.SearchKey(name))
	switch {
	case err != nil:
		return failure("rename a closet item", err)
	case tag.RowsAffected() == 0:
		return errNoItem
	default:
		return nil
	}
}

const lockOwnPlayersWearing = `
	SELECT pid FROM players WHERE uid = $1 AND (tid_skin = $2 OR tid_cape = $2) ORDER BY pid FOR UPDATE`

// clearLostAvatar runs before the item is deleted. It is a separate statement, since one
// statement can update a row only once, and a refund updates the user's, too.
const clearLostAvatar = `
	WITH cleared AS (
		UPDATE users u SET avatar = 0 FROM closet_items c JOIN textures t USING (tid)
		WHERE u.uid = $1 AND c.uid = $1 AND c.tid = $2 AND u.avatar = t.tid AND NOT t.public AND t.uploader IS DISTINCT FROM $1
		RETURNING u.uid
	)
	INSERT INTO changes (keys) SELECT ARRAY['uid:' || uid] FROM cleared`

const deleteClosetItem = `
	WITH deleted_items AS (
		DELETE FROM closet_items WHERE uid = $1 AND tid = $2
		RETURNING uid, tid, refund
	), updated_textures AS (
		UPDATE textures t SET likes = likes - 1 FROM deleted_items r WHERE t.tid = r.tid
		RETURNING t.tid, NOT t.public AND t.uploader IS DISTINCT FROM $1 AS access_lost
	), cleared_players AS (
		UPDATE players p SET
			tid_skin = nullif(p.tid_skin, u.tid), tid_cape = nullif(p.tid_cape, u.tid), last_modified = clock_timestamp()
		FROM updated_textures u WHERE u.access_lost AND p.uid = $1 AND (p.tid_skin = u.tid OR p.tid_cape = u.tid)
		RETURNING p.pid, p.name_key, p.uuid
	), change_events AS (
		INSERT INTO changes (keys) SELECT ` + playerKeys + ` FROM cleared_players
	), score_entries AS (` + itemRefunds + `
	)` + applyScoreEntries + `
	SELECT tid FROM deleted_items`

// RemoveClosetItem removes an item.
func (db *DB) RemoveClosetItem(ctx context.Context, by core.Actor, user core.UserID, texture core.TextureID) error {
	err := db.changeCloset(ctx, by, user, core.AuditClosetRemove, closetDetails{TID: texture}, func(q querier) error {
		removed, err := collect[struct{ TID core.TextureID }](ctx, q,
			statement{lockUser, []any{user}},
			statement{lockTexture, []any{texture}},
			statement{lockOwnPlayersWearing, []any{user, texture}},
			statement{clearLostAvatar, []any{user, texture}},
			statement{deleteClosetItem, []any{user, texture}},
		)
		_, err = one(removed, failure("remove a closet item", err), errNoItem)
		return err
	})
	if err == nil && by.Owns(user) {
		db.onChange()
	}
	return err
}
