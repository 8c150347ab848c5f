package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
)

var _ core.ScoreStore = (*DB)(nil)

// applyScoreEntries is the only statement that changes scores. It applies the rows of a CTE
// score_entries, negative amounts for charges, and ignores amounts of 0 or NULL. The entries of
// one user are applied in the order of n. The users must be locked before, by uid if they are
// several, by a statement that also checks that a charge is covered; the check constraints of
// the tables are the last resort.
//
// Statements that change no score leave it out: even without entries it takes longer to start.
const applyScoreEntries = `, updated_users AS (
		UPDATE users u SET score = u.score + d.total
		FROM (SELECT uid, sum(amount)::bigint AS total FROM score_entries WHERE amount <> 0 GROUP BY uid) d WHERE u.uid = d.uid
		RETURNING u.uid, u.score - d.total AS before
	), inserted_changes AS (
		INSERT INTO score_changes (uid, amount, balance, reason, subject)
		SELECT uid, amount, before + sum(amount) OVER (PARTITION BY uid ORDER BY n), reason, subject
		FROM score_entries JOIN updated_users USING (uid) WHERE amount <> 0 ORDER BY uid, n
	)`

const chargeUser = `
	WITH score_entries AS (
		SELECT 1 AS n, uid, -$2::bigint AS amount, $3::text AS reason, $4::text AS subject
		FROM users WHERE uid = $1 AND score >= $2
	)` + applyScoreEntries + `
	SELECT uid FROM updated_users`

// charge subtracts an amount from a user's score, or adds to it if the amount is negative. It
// locks the user, so a transaction that charges several does so in the order of uid, and before
// it locks textures or players. It returns ErrSignedOut if there is no such user, and
// ErrScoreTooLow if the score does not cover the amount; then nothing has changed.
func charge(ctx context.Context, q querier, user core.UserID, amount int64, reason, subject string) error {
	if amount == 0 {
		return nil
	}
	var scores []struct{ Score int64 }
	var paid []struct{ UID core.UserID }
	var batch pgx.Batch
	batch.Queue(lockUser, user).Query(collectInto(&scores))
	batch.Queue(chargeUser, user, amount, reason, subject).Query(collectInto(&paid))
	switch err := q.SendBatch(ctx, &batch).Close(); {
	case err != nil:
		return err
	case len(scores) == 0:
		return core.ErrSignedOut
	case len(paid) == 0:
		return core.ErrScoreTooLow(amount)
	default:
		return nil
	}
}

// A texture may be in many closets, so these statements take and return no list of users.
const (
	lockTextureUsers = `
	SELECT count(*) FROM (
		SELECT FROM users WHERE uid IN (
			SELECT uploader FROM textures WHERE tid = $1
			UNION
			SELECT uid FROM closet_items WHERE tid = $1 AND refund > 0
			UNION
			SELECT uid FROM users WHERE avatar = $1 AND avatar <> 0 AND $3
		) OR uid = ANY ($2)
		ORDER BY uid FOR NO KEY UPDATE
	) locked`

	refundPrice = `
	WITH score_entries AS (
		SELECT 1 AS n, uploader AS uid, paid AS amount, 'texture_refund' AS reason, 'texture:' || tid AS subject
		FROM textures WHERE tid = $1 AND refundable
	)` + applyScoreEntries + `
	SELECT count(*) FROM updated_users`

	refundItems = `
	WITH deleted_items AS (
		SELECT uid, tid, refund FROM closet_items WHERE tid = $1 AND uid IS DISTINCT FROM $2::bigint
	), score_entries AS (` + itemRefunds + `
	)` + applyScoreEntries + `
	SELECT count(*) FROM updated_users`

	// itemRefunds are the score entries of closet items in a CTE deleted_items.
	itemRefunds = `
		SELECT 1 AS n, uid, refund AS amount, 'closet_item_refund' AS reason, 'texture:' || tid AS subject FROM deleted_items`
)

// lockAffectedUsers locks the users that get or pay score when a texture is deleted or its
// visibility changes, and with them the other users of the transaction: all users of a
// transaction are locked at once, by uid. With avatars it also locks the users with the texture
// as avatar. It comes before the lock of the texture. If another transaction adds the texture
// to a closet in between, the two may deadlock, and one is retried.
func lockAffectedUsers(ctx context.Context, tx pgx.Tx, texture core.TextureID, avatars bool, others ...core.UserID) error {
	_, err := tx.Exec(ctx, lockTextureUsers, texture, others, avatars)
	return err
}

// refundClosets refunds the price of a texture's closet items, except one user's, if
// given, which stays. It runs after lockAffectedUsers and the lock of the texture, and before
// the items are deleted.
func refundClosets(ctx context.Context, tx pgx.Tx, texture core.TextureID, except *core.UserID) error {
	_, err := tx.Exec(ctx, refundItems, texture, except)
	return err
}

const updatePaid = `
	WITH prices AS (
		SELECT tid, uploader AS uid, coalesce(paid, 0) AS paid, refundable, (bytes + 1023) / 1024 * $3::bigint AS before, (bytes + 1023) / 1024 * $4::bigint AS after
		FROM textures WHERE tid = $1 AND public <> $2
	), costs AS (
		SELECT tid, uid, CASE WHEN after > before THEN greatest(least(after - paid, after - before), 0)
			WHEN refundable THEN least(greatest(after - paid, after - before), 0) ELSE 0 END AS cost
		FROM prices
	), covered_costs AS (
		SELECT m.* FROM costs m JOIN users USING (uid) WHERE cost <> 0 AND score >= cost
	), updated_texture AS (
		UPDATE textures t SET paid = nullif(coalesce(t.paid, 0) + c.cost, 0) FROM covered_costs c WHERE t.tid = c.tid
	), score_entries AS (
		SELECT 1 AS n, uid, -cost AS amount, 'visibility' AS reason, 'texture:' || tid AS subject FROM covered_costs
	)` + applyScoreEntries + `
	SELECT cost, EXISTS (SELECT FROM covered_costs) AS covered FROM costs WHERE uid > 0`

// chargeVisibilityChange charges or refunds the uploader of a texture that becomes public or
// private, so that the amount paid is today's price. The amount is at most the difference
// between the two prices of today, so that a texture that was cheap stays so. A refund is made
// only if a deletion would make one. Administrators change textures of others at no cost, and
// an uploader that reverts that neither pays nor gains. It runs after lockAffectedUsers and the
// lock of the texture, and before the change. It returns ErrScoreTooLow, and has changed
// nothing, if the score does not cover the cost.
func chargeVisibilityChange(ctx context.Context, tx pgx.Tx, texture core.TextureID, public bool, prices core.ScorePrices) error {
	rows, _ := tx.Query(ctx, updatePaid, texture, public, prices.TextureRate(!public), prices.TextureRate(public)) // CollectRows reports the error
	moves, err := pgx.CollectRows(rows, pgx.RowToStructByName[struct {
		Cost    int64
		Covered bool
	}])
	if err == nil && len(moves) > 0 && moves[0].Cost != 0 && !moves[0].Covered {
		return core.ErrScoreTooLow(moves[0].Cost)
	}
	return err
}

const selectScoreChanges = `
	WITH page AS (
		SELECT * FROM score_changes WHERE uid = $1 ORDER BY id DESC LIMIT $2 OFFSET ($3::bigint - 1) * $2
	), totals AS (
		SELECT count(*) AS total FROM score_changes WHERE uid = $1
	)
	SELECT c.total, p.changed_at AS at, coalesce(p.amount, 0) AS amount, coalesce(p.balance, 0) AS balance,
		coalesce(p.reason, '') AS reason, coalesce(p.subject, '') AS subject
	FROM totals c LEFT JOIN page p ON true
	ORDER BY p.id DESC`

// ScoreChanges lists changes of a user's score.
func (db *DB) ScoreChanges(ctx context.Context, token core.VerifiedToken, query core.ScoreQuery) (core.ScorePage, error) {
	rows, err := readWithSession[struct {
		Total           int
		At              *time.Time
		Amount, Balance int64
		Reason, Subject string
	}](ctx, db, token, statement{selectScoreChanges, []any{token.Token.User, query.PerPage, query.Page}})
	if err != nil {
		return core.ScorePage{}, err
	}
	page := core.ScorePage{Total: rows[0].Total}
	for _, row := range rows {
		if row.At == nil {
			break // the page is empty
		}
		page.Changes = append(page.Changes, core.ScoreChange{
			At: *row.At, Amount: row.Amount, Balance: row.Balance, Reason: row.Reason, Subject: row.Subject,
		})
	}
	return page, nil
}

// The reward is applied before the date is updated, since its condition is that the user has
// not signed in that day.
const (
	unsigned = `uid = $1 AND (signed_on IS NULL OR signed_on < $2::date)`

	rewardSign = `
	WITH score_entries AS (
		SELECT 1 AS n, uid, $3::bigint AS amount, 'sign' AS reason, '' AS subject FROM users WHERE ` + unsigned + `
	)` + applyScoreEntries + `
	SELECT FROM updated_users`

	updateSigned = `
	WITH updated_user AS (
		UPDATE users SET signed_on = $2, last_sign_at = $3 WHERE ` + unsigned + `
		RETURNING score, signed_on
	)
	SELECT score, signed_on, true AS signed_now FROM updated_user
	UNION ALL
	SELECT score, signed_on, false FROM users WHERE uid = $1 AND NOT EXISTS (SELECT FROM updated_user)`
)

// Sign records that a user signs in for the day.
func (db *DB) Sign(ctx context.Context, user core.UserID, now time.Time, reward int64) (core.SignIn, error) {
	statements := []statement{{lockUser, []any{user}}}
	if reward > 0 {
		statements = append(statements, statement{rewardSign, []any{user, now, reward}})
	}
	rows, err := collect[struct {
		Score     int64
		SignedOn  time.Time
		SignedNow bool
	}](ctx, db.writes, append(statements, statement{updateSigned, []any{user, now, now}})...)
	row, err := one(rows, failure("sign in for the day", err), core.ErrSignedOut)
	if err != nil {
		return core.SignIn{}, err
	}
	next := row.SignedOn.AddDate(0, 0, 1)
	if !row.SignedNow {
		return core.SignIn{}, core.ErrAlreadySigned(next)
	}
	return core.SignIn{Gained: reward, Score: row.Score, Next: next}, nil
}

// scoreTrimBatch is the maximum number of changes that one transaction reads.
const scoreTrimBatch = 1000

// trimScoreChanges replaces the old changes of a user by one: the last of them gets their sum,
// which is its balance. If that is 0, all are deleted.
const trimScoreChanges = `
	WITH old AS (
		SELECT uid, id FROM score_changes WHERE changed_at < $1 AND reason <> 'carried' ORDER BY changed_at LIMIT $2
	), last AS (
		SELECT uid, max(id) AS id FROM old GROUP BY uid
	), deleted AS (
		DELETE FROM score_changes c USING last l WHERE c.uid = l.uid AND (c.id < l.id OR c.id = l.id AND c.balance = 0)
		RETURNING c.id
	), carried AS (
		UPDATE score_changes c SET amount = c.balance, reason = 'carried', subject = '' FROM last l
		WHERE c.uid = l.uid AND c.id = l.id AND c.balance > 0
	)
	SELECT (SELECT count(*) FROM old) AS old, (SELECT count(*) FROM deleted) AS deleted`

// TrimScoreChanges replaces each user's changes before a time by one, and returns how many were
// deleted.
func (db *DB) TrimScoreChanges(ctx context.Context, before time.Time) (int, error) {
	total := 0
	for {
		rows, err := collect[struct{ Old, Deleted int }](ctx, db.writes, statement{trimScoreChanges, []any{before, scoreTrimBatch}})
		if err != nil {
			return total, failure("trim changes of scores", err)
		}
		total += rows[0].Deleted
		if rows[0].Old < scoreTrimBatch {
			return total, nil
		}
	}
}
