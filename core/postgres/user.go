package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/casefold"
	"github.com/veneer-skins/veneer/shared/fault"
)

var _ core.UserStore = (*DB)(nil)

// userColumns are the columns of a core.User, from the table users as u.
const userColumns = userFields + `, NULL::int AS unread`

// userFields are the columns of the user itself.
const userFields = `u.uid AS id, u.email, u.nickname, u.avatar, u.score, ` + effectivePermission + ` AS permission, u.last_sign_at, u.register_at, u.verified,
	coalesce((u.signed_on + 1)::timestamp AT TIME ZONE 'UTC', u.register_at) AS next_sign_at, ` + banColumns

// effectivePermission is the permission of a user, from the table users as u. A ban that has ended is none.
const effectivePermission = `CASE WHEN u.permission = -1 AND u.banned_until <= now() THEN coalesce(u.permission_before_ban, 0) ELSE u.permission END`

const banColumns = `coalesce(u.ban_reason, '') AS ban_reason, u.banned_until`

// insertUser runs after lockEmail and lockName. If the address or the player's name is taken,
// it inserts nothing, and returns the user that has it, with which of the two is taken.
const insertUser = `
	WITH conflicts AS (
		SELECT uid, 'email' AS taken FROM users WHERE email_key = @email_key
		UNION ALL
		SELECT uid, 'player' FROM players WHERE name_key = @player_key
		UNION ALL
		SELECT uid, 'player' FROM deleted_players d WHERE name_key = @player_key AND ` + restorable + `
	), u AS (
		INSERT INTO users (email, email_key, nickname, nickname_key, password_hash, permission, verified, score, terms_version)
		SELECT @email, @email_key, @nickname, @nickname_key, @password_hash, @permission, @verified, @score, @terms_version WHERE NOT EXISTS (SELECT FROM conflicts)
		RETURNING *
	), p AS (
		INSERT INTO players (uid, name, name_key)
		SELECT uid, @player, @player_key FROM u WHERE @player_key::text <> ''
		RETURNING *
	), inserted_change AS (
		INSERT INTO score_changes (uid, amount, balance, reason) SELECT uid, score, score, 'registration' FROM u WHERE score > 0
	), queued_mail AS (
		INSERT INTO mails (purpose, email, email_key) SELECT 'verification', email, email_key FROM u WHERE @verify
	), change_events AS (
		INSERT INTO changes (keys)
		SELECT ARRAY['uid:' || u.uid] || CASE WHEN p.pid IS NULL THEN '{}' ELSE ` + playerKeys + ` END
		FROM u LEFT JOIN p ON true
	)
	SELECT ` + userColumns + `, '' AS taken FROM u
	UNION ALL
	SELECT ` + userColumns + `, taken FROM conflicts JOIN users u USING (uid)
	ORDER BY taken LIMIT 1`

// addUser adds a user. The address is locked before the player's name.
func addUser(ctx context.Context, q querier, user core.NewUser) (core.User, error) {
	statements := []statement{{lockEmail, []any{user.EmailKey}}}
	if user.Player.Key != "" {
		statements = append(statements, statement{lockName, []any{user.Player.Key}})
	}
	rows, err := collect[struct {
		core.User
		Taken string
	}](ctx, q, append(statements, statement{insertUser, []any{pgx.NamedArgs{
		"email": user.Email, "email_key": user.EmailKey, "nickname": user.Nickname, "nickname_key": casefold.SearchKey(user.Nickname),
		"password_hash": user.PasswordHash, "permission": user.Permission, "verified": user.Verified, "score": user.Score, "verify": user.Verify,
		"player": user.Player.Name, "player_key": user.Player.Key, "terms_version": user.TermsVersion,
	}}})...)
	row, err := one(rows, failure("add a user", uniqueFault(err, errPlayerTaken)), errConflictGone)
	switch {
	case err != nil:
		return core.User{}, err
	case row.Taken == "email":
		return core.User{}, errEmailTaken
	case row.Taken == "player":
		return core.User{}, errPlayerTaken
	default:
		return row.User, nil
	}
}

// CreateUser adds a user, with a first player if one is named.
func (db *DB) CreateUser(ctx context.Context, by core.Actor, user core.NewUser) (added core.User, err error) {
	if by.Owner {
		if added, err = addUser(ctx, db.writes, user); err == nil {
			db.onChange()
		}
		return added, err
	}
	err = db.adminTx(ctx, "add a user", func(tx pgx.Tx) error {
		admin, _, err := authorise(ctx, tx, by)
		if err != nil {
			return err
		}
		if err := admin.CanGrant(user.Permission); err != nil {
			return err
		}
		if added, err = addUser(ctx, tx, user); err != nil {
			return err
		}
		details := userDetails{Email: added.Email, Nickname: added.Nickname, To: added.Permission}
		return writeAudit(ctx, tx, admin, core.AuditUserAdd, userSubject(added.ID), details)
	})
	return added, err
}

var (
	errEmailTaken  = duplicateFault("email", "There is an account with this e-mail address already.")
	errPlayerTaken = duplicateFault("player_name", "A player of this name exists already.")
)

// duplicateFault returns the Duplicate fault of a field with a value that is taken.
func duplicateFault(field, sentence string) error {
	return &fault.Error{Kind: fault.Duplicate, Message: sentence, Fields: map[string][]string{field: {sentence}}}
}

const selectUserByEmail = `SELECT ` + userColumns + `, u.password_hash FROM users u WHERE u.email_key = $1`

// HasEmailKey reports whether an account has an e-mail's key.
func (db *DB) HasEmailKey(ctx context.Context, key string) (bool, error) {
	var known bool
	err := db.reads.QueryRow(ctx, `SELECT EXISTS (SELECT FROM users WHERE email_key = $1)`, key).Scan(&known)
	return known, failure("look up an e-mail's key", err)
}

// UserByEmail returns the user with an e-mail's search key, or a NotFound fault.
func (db *DB) UserByEmail(ctx context.Context, emailKey string) (core.Credentials, error) {
	users, err := collect[core.Credentials](ctx, db.reads, statement{selectUserByEmail, []any{emailKey}})
	switch {
	case err != nil:
		return core.Credentials{}, failure("read a user by e-mail", err)
	case len(users) == 0:
		return core.Credentials{}, fault.New(fault.NotFound, "There is no user with this e-mail address.")
	default:
		return users[0], nil
	}
}

// updatePermission ends the sessions of a banned user when it lifts the ban. During a ban they
// only serve to report it, which a token without a session could not. Tokens of launchers end with
// the ban, and those that a core of the release before has left, when the ban is lifted. The former
// permission of a banned user, which comes back at the end of the ban, is at most $5.
const updatePermission = `
	WITH before AS (
		SELECT uid, ` + effectivePermission + ` AS permission, permission_before_ban FROM users u WHERE uid = $1
	), deleted_sessions AS (
		DELETE FROM sessions s USING before b WHERE s.uid = b.uid AND b.permission = -1 AND $2 <> -1
	), revoked_tokens AS (
		DELETE FROM launcher_tokens t USING before b WHERE t.uid = b.uid AND (b.permission = -1) <> ($2 = -1)
	)
	UPDATE users u SET permission = $2, ban_reason = nullif($3, ''), banned_until = $4,
		permission_before_ban = CASE WHEN $2 = -1 THEN least($5, CASE WHEN b.permission = -1 THEN coalesce(b.permission_before_ban, 0) ELSE b.permission END) END
	FROM before b WHERE u.uid = b.uid
	RETURNING ` + userColumns

// setPermission sets a user's permission for an actor.
func setPermission(ctx context.Context, q querier, by core.Actor, user core.UserID, permission core.Permission, ban core.Ban) (core.User, error) {
	users, err := collect[core.User](ctx, q,
		// The lock waits for a concurrent log-in, so that its session is ended, too.
		statement{lockUser, []any{user}},
		statement{updatePermission, []any{user, permission, ban.Reason, ban.Until, by.Permission - 1}},
	)
	return one(users, failure("change a permission", err), noUser(user))
}

func noUser(user core.UserID) error { return fault.New(fault.NotFound, "There is no user %d.", user) }
