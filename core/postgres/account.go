package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/casefold"
)

var _ core.AccountStore = (*DB)(nil)

const updateNickname = `UPDATE users u SET nickname = $2, nickname_key = $3 WHERE uid = $1 RETURNING ` + userColumns

// SetNickname changes a user's nickname.
func (db *DB) SetNickname(ctx context.Context, by core.Actor, user core.UserID, nickname string) (core.User, error) {
	return db.changeUser(ctx, by, user, userChange{
		action:      core.AuditUserNickname,
		loggedValue: func(u core.User) any { return u.Nickname },
		do: func(q querier, _ core.Actor, _ core.User) (core.User, error) {
			users, err := collect[core.User](ctx, q, statement{updateNickname, []any{user, nickname, casefold.SearchKey(nickname)}})
			return one(users, failure("change a nickname", err), core.ErrSignedOut)
		},
	})
}

// userDetails are the details of a user action in the audit log: address and nickname before
// it, and the changed value.
type userDetails struct {
	Email    string `json:"email"`
	Nickname string `json:"nickname"`
	From     any    `json:"from,omitempty"`
	To       any    `json:"to,omitempty"`
	// Report is the one that a ban has settled.
	Report core.ReportID `json:"report,omitempty"`
	// Reason and Until are of a ban.
	Reason string `json:"reason,omitempty"`
	Until  string `json:"until,omitempty"`
}

// setBan adds a ban to the details.
func (d *userDetails) setBan(ban core.Ban) {
	if d.Reason = ban.Reason; ban.Until != nil {
		d.Until = ban.Until.UTC().Format(time.DateTime)
	}
}

// userChange is a change of a user.
type userChange struct {
	action core.AuditAction
	// loggedValue returns the value that the action changes; nil if it must not be logged, as a
	// password, or there is none.
	loggedValue func(core.User) any
	// do gets the actor and the user as they are in the transaction of an administrator.
	do  func(q querier, by core.Actor, before core.User) (core.User, error)
	ban core.Ban
	// lock, if set, is an administrator's first statement: it locks them, the user and others.
	lock statement
}

// changeUser runs a change of a user by themselves, or by an administrator.
func (db *DB) changeUser(ctx context.Context, by core.Actor, user core.UserID, c userChange) (core.User, error) {
	if by.Owns(user) {
		return c.do(db.writes, by, core.User{ID: user})
	}
	return db.moderateUser(ctx, by, user, c)
}

// moderateUser runs a change of a user that the administrator may moderate, and logs it.
func (db *DB) moderateUser(ctx context.Context, by core.Actor, user core.UserID, c userChange) (after core.User, err error) {
	err = db.adminTx(ctx, string(c.action), func(tx pgx.Tx) error {
		if c.lock.sql != "" {
			if _, err := tx.Exec(ctx, c.lock.sql, c.lock.args...); err != nil {
				return err
			}
		}
		admin, users, err := authorise(ctx, tx, by, user)
		if err != nil {
			return err
		}
		before, ok := users[user]
		if !ok {
			return noUser(user)
		}
		if err := admin.CanModerate(before); err != nil {
			return err
		}
		if after, err = c.do(tx, admin, before); err != nil {
			return err
		}
		details := userDetails{Email: before.Email, Nickname: before.Nickname}
		details.setBan(c.ban)
		if c.loggedValue != nil {
			details.From, details.To = c.loggedValue(before), c.loggedValue(after)
		}
		return writeAudit(ctx, tx, admin, c.action, userSubject(user), details)
	})
	return after, err
}

// userSubject names a user in the audit log.
func userSubject(user core.UserID) string { return fmt.Sprintf("user:%d", user) }

// one returns the first of rows, or the error missing where there is none.
func one[T any](rows []T, err, missing error) (T, error) {
	var none T
	switch {
	case err != nil:
		return none, err
	case len(rows) == 0:
		return none, missing
	default:
		return rows[0], nil
	}
}

const updateAvatar = `
	WITH requested AS (
		SELECT t.type, t.public OR coalesce(t.uploader = $1, false) OR EXISTS (
			SELECT FROM closet_items c WHERE c.uid = $1 AND c.tid = t.tid
		) AS allowed
		FROM textures t WHERE t.tid = $2
	), validation AS (
		SELECT CASE
			WHEN $2 = 0 THEN ''
			WHEN g.type IS NULL THEN 'missing'
			WHEN g.type = 'cape' THEN 'wrong_type'
			WHEN NOT g.allowed THEN 'private'
			ELSE ''
		END AS violation
		FROM (VALUES (1)) one (row) LEFT JOIN requested g ON true
	), u AS (
		UPDATE users SET avatar = $2 FROM validation WHERE uid = $1 AND violation = '' AND avatar <> $2
		RETURNING users.*
	), change_events AS (
		INSERT INTO changes (keys) SELECT ARRAY['uid:' || uid] FROM u
	)
	SELECT ` + userColumns + `, violation FROM u, validation
	UNION ALL
	SELECT ` + userColumns + `, violation FROM users u, validation WHERE u.uid = $1 AND NOT EXISTS (SELECT FROM u)`

// SetAvatar makes a texture the user's avatar.
func (db *DB) SetAvatar(ctx context.Context, user core.UserID, texture core.TextureID) (core.User, error) {
	rows, err := collect[struct {
		core.User
		Violation string
	}](ctx, db.writes,
		statement{lockUser, []any{user}},
		statement{lockTextures, []any{texture, nil}},
		statement{updateAvatar, []any{user, texture}},
	)
	row, err := one(rows, failure("set an avatar", err), core.ErrSignedOut)
	if err != nil {
		return core.User{}, err
	}
	if err := violationError("tid", row.Violation, &texture, "a skin, whose face could be an avatar", "your closet"); err != nil {
		return core.User{}, err
	}
	db.onChange()
	return row.User, nil
}

// clearLostAvatars clears the avatars of at most $2 users, those after user $1.
const clearLostAvatars = `
	WITH lost_avatars AS (
		SELECT u.uid FROM users u JOIN textures t ON t.tid = u.avatar
		WHERE u.uid > $1 AND u.avatar <> 0 AND NOT t.public AND t.uploader IS DISTINCT FROM u.uid
			AND NOT EXISTS (SELECT FROM closet_items c WHERE c.uid = u.uid AND c.tid = t.tid)
		ORDER BY u.uid LIMIT $2 FOR NO KEY UPDATE OF u
	), cleared AS (
		UPDATE users u SET avatar = 0 FROM lost_avatars l WHERE u.uid = l.uid
		RETURNING u.uid
	), change_events AS (
		INSERT INTO changes (keys) SELECT ARRAY['uid:' || uid] FROM cleared
	)
	SELECT uid FROM cleared ORDER BY uid`

// ClearLostAvatars clears avatars that their users are no longer allowed to use, and returns
// how many. Cores of the previous release leave such avatars behind. Each batch of 1,000 users
// is a transaction.
func (db *DB) ClearLostAvatars(ctx context.Context) (cleared int, err error) {
	const batch = 1000
	for last := core.UserID(0); ; {
		users, err := collect[struct{ UID core.UserID }](ctx, db.writes, statement{clearLostAvatars, []any{last, batch}})
		if err != nil || len(users) == 0 {
			return cleared, failure("clear avatars", err)
		}
		db.onChange()
		cleared += len(users)
		last = users[len(users)-1].UID
	}
}

// updateEmail runs after the user and the new address are locked. It changes nothing where
// another user has the address. An empty password hash skips the check of the password, here
// and below: administrators need none.
const updateEmail = `
	WITH before AS (
		SELECT uid, email, email_key, EXISTS (SELECT FROM users o WHERE o.email_key = $4 AND o.uid <> $1) AS taken
		FROM users WHERE uid = $1 AND password_hash = coalesce(nullif($2, ''), password_hash)
	), u AS (
		UPDATE users u SET email = $3, email_key = $4, verified = verified AND u.email_key = $4
		FROM before b WHERE u.uid = b.uid AND NOT b.taken
		RETURNING u.*
	), ` + queueChangeMails + `
	SELECT ` + userColumns + `, false AS taken FROM u
	UNION ALL
	SELECT ` + userColumns + `, true FROM before b JOIN users u USING (uid) WHERE b.taken`

// queueChangeMails queues the mails of a change of address if $5 says so: a notice to the old
// address (CTE before), and a verification link to the new one (CTE u). A change of case alone
// is not a new address, but it voids the links sent before.
const queueChangeMails = `queued_mails AS (
		INSERT INTO mails (purpose, email, email_key)
		SELECT 'change', b.email, b.email_key FROM before b JOIN u USING (uid) WHERE $5 AND u.email_key <> b.email_key
		UNION ALL
		SELECT 'verification', u.email, u.email_key FROM before b JOIN u USING (uid) WHERE $5 AND u.email <> b.email AND NOT u.verified
	)`

// SetEmail changes a user's e-mail address.
func (db *DB) SetEmail(ctx context.Context, by core.Actor, c core.EmailChange) (core.User, error) {
	return db.changeUser(ctx, by, c.User, userChange{
		action:      core.AuditUserEmail,
		loggedValue: func(u core.User) any { return u.Email },
		do: func(q querier, _ core.Actor, _ core.User) (core.User, error) {
			rows, err := collect[struct {
				core.User
				Taken bool
			}](ctx, q,
				statement{deleteAttempt, []any{c.AttemptID}},
				statement{lockUserToDelete, []any{c.User}}, // FOR UPDATE, as for any change of a key column
				statement{lockEmail, []any{c.EmailKey}},
				statement{updateEmail, []any{c.User, c.PasswordHash, c.Email, c.EmailKey, c.Notify}},
			)
			row, err := one(rows, failure("change an e-mail address", uniqueFault(err, errNameTaken)), core.ErrPasswordChanged)
			if err == nil && row.Taken {
				err = errEmailTaken
			}
			return row.User, err
		},
	})
}

const insertAddress = `
	INSERT INTO mails (purpose, uid, bound, email, email_key)
	SELECT 'address', uid, ` + linkBinding + `, $3, $4 FROM users u WHERE uid = $1 AND password_hash = $2
	RETURNING uid`

// QueueEmail queues a link that makes an address the user's. It reads no other account, so that
// the response does not tell whether the address is in use.
func (db *DB) QueueEmail(ctx context.Context, credentials core.VerifiedCredentials, email, emailKey string) error {
	queued, err := collect[struct{ UID core.UserID }](ctx, db.writes,
		statement{deleteAttempt, []any{credentials.AttemptID}},
		statement{insertAddress, []any{credentials.ID, credentials.PasswordHash, email, emailKey}},
	)
	_, err = one(queued, failure("queue a change of address", err), core.ErrPasswordChanged)
	return err
}

const updatePassword = `
	WITH updated_user AS (
		UPDATE users SET password_hash = $3 WHERE uid = $1 AND password_hash = coalesce(nullif($2, ''), password_hash)
		RETURNING uid, email, email_key
	), deleted_sessions AS (
		DELETE FROM sessions s USING updated_user c WHERE s.uid = c.uid AND s.sid <> $4
	), revoked_tokens AS (
		DELETE FROM launcher_tokens t USING updated_user c WHERE t.uid = c.uid
	), queued_mail AS (` + insertChangeNotice + ` FROM updated_user WHERE $5
	)
	SELECT uid FROM updated_user`

// SetPassword replaces a password hash, ends the user's sessions, and revokes the tokens of launchers.
func (db *DB) SetPassword(ctx context.Context, by core.Actor, c core.PasswordChange) (core.User, error) {
	return db.changeUser(ctx, by, c.User, userChange{
		action: core.AuditUserPassword,
		do: func(q querier, _ core.Actor, before core.User) (core.User, error) {
			changed, err := collect[struct{ UID core.UserID }](ctx, q,
				statement{deleteAttempt, []any{c.AttemptID}},
				// The lock waits for a concurrent log-in with the old password, so that its session is
				// ended, too.
				statement{lockUser, []any{c.User}},
				statement{updatePassword, []any{c.User, c.OldHash, c.NewHash, c.KeepSession, c.Notify}},
			)
			_, err = one(changed, failure("change a password", err), core.ErrPasswordChanged)
			return before, err
		},
	})
}

const updateVerified = `UPDATE users u SET verified = $2 WHERE uid = $1 RETURNING ` + userColumns

// SetVerified sets whether a user's e-mail address is verified.
func (db *DB) SetVerified(ctx context.Context, admin core.Actor, user core.UserID, verified bool) (core.User, error) {
	return db.moderateUser(ctx, admin, user, userChange{
		action:      core.AuditUserVerified,
		loggedValue: func(u core.User) any { return u.Verified },
		do: func(q querier, _ core.Actor, _ core.User) (core.User, error) {
			users, err := collect[core.User](ctx, q, statement{updateVerified, []any{user, verified}})
			return one(users, err, noUser(user))
		},
	})
}

// SetScore sets a user's score.
func (db *DB) SetScore(ctx context.Context, admin core.Actor, user core.UserID, score int64) (core.User, error) {
	return db.moderateUser(ctx, admin, user, userChange{
		action:      core.AuditUserScore,
		loggedValue: func(u core.User) any { return u.Score },
		do: func(q querier, _ core.Actor, after core.User) (core.User, error) {
			err := charge(ctx, q, user, after.Score-score, "administrator", "")
			after.Score = score
			return after, err
		},
	})
}

// SetPermission sets a user's permission.
func (db *DB) SetPermission(ctx context.Context, admin core.Actor, user core.UserID, permission core.Permission, ban core.Ban) (core.User, error) {
	return db.moderateUser(ctx, admin, user, userChange{
		action:      core.AuditUserPermission,
		ban:         ban,
		loggedValue: func(u core.User) any { return u.Permission },
		do: func(q querier, admin core.Actor, _ core.User) (core.User, error) {
			if err := admin.CanGrant(permission); err != nil {
				return core.User{}, err
			}
			return setPermission(ctx, q, admin, user, permission, ban)
		},
	})
}

// Deleting a user takes locks in the order that all transactions use: users, textures, players.
// Public textures are locked, too, since each loses a like or its uploader.
const (
	lockUserToDelete = `SELECT uid FROM users WHERE uid = $1 FOR UPDATE`

	// Users with a private texture of the deleted user in their closet get its cost back. $2 is
	// the administrator that deletes the user.
	lockUserAndItemOwners = `
	SELECT uid FROM users WHERE uid IN ($1, $2) OR uid IN (
		SELECT c.uid FROM closet_items c JOIN textures t USING (tid) WHERE t.uploader = $1 AND NOT t.public AND c.refund > 0
	)
	ORDER BY uid FOR UPDATE`

	lockTexturesOfUser = `
	SELECT tid FROM textures WHERE tid IN (
		SELECT tid FROM textures WHERE uploader = $1
		UNION
		SELECT tid FROM closet_items WHERE uid = $1
	)
	ORDER BY tid FOR UPDATE`

	lockPlayersOfUser = `
	WITH private_textures AS (
		SELECT tid FROM textures WHERE uploader = $1 AND NOT public
	), ` + playersWearing + `
	SELECT pid FROM players WHERE pid IN (
		SELECT pid FROM wearing_players
		UNION
		SELECT pid FROM players WHERE uid = $1
	)
	ORDER BY pid FOR UPDATE`
)

// playersWearing selects the players that wear a private texture. Each column has a query of
// its own: for a condition on both, PostgreSQL reads all players.
const playersWearing = `wearing_players AS (
		SELECT p.pid FROM players p JOIN private_textures t ON p.tid_skin = t.tid
		UNION
		SELECT p.pid FROM players p JOIN private_textures t ON p.tid_cape = t.tid
	)`

// deleteUser leaves rows that no other user sees to the foreign keys: sessions, addresses,
// notifications, and, after the likes are decremented, the user's closet items. Messages that
// no other user has received are deleted.
const deleteUser = `
	WITH target_user AS (
		SELECT uid FROM users WHERE uid = $1 AND password_hash = coalesce(nullif($2, ''), password_hash)
	), private_textures AS (
		SELECT t.tid, t.hash FROM textures t JOIN target_user d ON t.uploader = d.uid WHERE NOT t.public
	), ` + playersWearing + `, decremented_likes AS (
		UPDATE textures t SET likes = likes - 1
		FROM closet_items c JOIN target_user USING (uid)
		WHERE t.tid = c.tid AND t.tid NOT IN (SELECT tid FROM private_textures)
	), all_deleted_items AS (
		DELETE FROM closet_items WHERE tid IN (SELECT tid FROM private_textures)
		RETURNING uid, tid, refund
	), deleted_items AS (
		SELECT * FROM all_deleted_items WHERE uid <> $1
	), score_entries AS (` + itemRefunds + `
	)` + applyScoreEntries + `, deleted_players AS (
		DELETE FROM players p USING target_user d WHERE p.uid = d.uid
		RETURNING p.pid, p.name_key, p.uuid
	), cleared_players AS (
		UPDATE players SET
			tid_skin = CASE WHEN tid_skin IN (SELECT tid FROM private_textures) THEN NULL ELSE tid_skin END,
			tid_cape = CASE WHEN tid_cape IN (SELECT tid FROM private_textures) THEN NULL ELSE tid_cape END,
			last_modified = clock_timestamp()
		WHERE uid <> $1 AND pid IN (SELECT pid FROM wearing_players)
		RETURNING pid, name_key, uuid
	), deleted_textures AS (
		DELETE FROM textures WHERE tid IN (SELECT tid FROM private_textures)
	), deleted_messages AS (
		DELETE FROM messages m USING notifications n JOIN target_user USING (uid)
		WHERE m.mid = n.mid AND NOT EXISTS (SELECT FROM notifications o WHERE o.mid = n.mid AND o.uid <> n.uid)
	), change_events AS (
		INSERT INTO changes (keys)
		SELECT ARRAY['uid:' || uid] FROM target_user
		UNION ALL
		SELECT ` + playerKeys + ` FROM deleted_players
		UNION ALL
		SELECT ` + playerKeys + ` FROM cleared_players
		UNION ALL
		SELECT ARRAY['tid:' || tid, 'hash:' || encode(hash, 'hex')] FROM private_textures
		UNION ALL
		SELECT ARRAY['uid:' || u.uid] FROM users u JOIN private_textures p ON u.avatar = p.tid WHERE u.avatar <> 0 AND u.uid <> $1
	)
	DELETE FROM users u USING target_user d WHERE u.uid = d.uid
	RETURNING u.uid`

// DeleteUser deletes a user with their players, private textures and closet.
func (db *DB) DeleteUser(ctx context.Context, by core.Actor, credentials core.VerifiedCredentials) error {
	user := credentials.ID
	_, err := db.changeUser(ctx, by, user, userChange{
		action: core.AuditUserDelete,
		lock:   statement{lockUserAndItemOwners, []any{user, by.ID}},
		do: func(q querier, _ core.Actor, before core.User) (core.User, error) {
			deleted, err := collect[struct{ UID core.UserID }](ctx, q,
				statement{deleteAttempt, []any{credentials.AttemptID}},
				statement{lockUserAndItemOwners, []any{user, 0}},
				statement{lockTexturesOfUser, []any{user}},
				statement{lockPlayersOfUser, []any{user}},
				statement{deleteUser, []any{user, credentials.PasswordHash}},
			)
			_, err = one(deleted, failure("delete a user", err), core.ErrPasswordChanged)
			return before, err
		},
	})
	if err == nil && by.Owns(user) {
		db.onChange()
	}
	return err
}

const selectUsersNamed = `
	SELECT uid FROM users WHERE email_key = $1
	UNION
	SELECT uid FROM users WHERE nickname_key = $2
	UNION
	SELECT uid FROM players WHERE name_key = $3
	LIMIT 2`

// UsersNamed returns users by e-mail address, nickname or player.
func (db *DB) UsersNamed(ctx context.Context, emailKey, name string) ([]core.UserID, error) {
	if err := db.fillForSearch(ctx, nicknameKeys); err != nil {
		return nil, err
	}
	rows, err := db.reads.Query(ctx, selectUsersNamed, emailKey, casefold.SearchKey(name), casefold.Key(name))
	if err != nil {
		return nil, failure("find a user", err)
	}
	users, err := pgx.CollectRows(rows, pgx.RowTo[core.UserID])
	return users, failure("find a user", err)
}

const selectUsers = `SELECT ` + userColumns + ` FROM users u WHERE u.uid = ANY ($1) ORDER BY u.uid DESC`

// FindUsers lists users, the latest first. Search texts are not patterns.
func (db *DB) FindUsers(ctx context.Context, query core.UserQuery) (core.Page[core.User], error) {
	var f filter
	if query.ID != 0 {
		f.add("u.uid = $%d", query.ID)
	}
	if query.Email != "" {
		f.add("(strpos(u.email_key, $%[1]d) > 0 OR strpos(lower(u.email), $%[1]d) > 0)", casefold.Key(query.Email))
	}
	if query.Nickname != "" {
		if err := db.fillForSearch(ctx, nicknameKeys); err != nil {
			return core.Page[core.User]{}, err
		}
		f.add("strpos(u.nickname_key, $%d) > 0", casefold.SearchKey(query.Nickname))
	}
	result := core.Page[core.User]{}
	total, more, ids, err := db.find(ctx, "u.uid", "users u", f, query.Page, query.PerPage)
	if err == nil {
		result.Total, result.More = total, more
		result.Items, err = collect[core.User](ctx, db.reads, statement{selectUsers, []any{ids}})
	}
	return result, failure("find users", err)
}
