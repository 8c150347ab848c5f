package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/fault"
)

var (
	_ core.LauncherTokenStore = (*DB)(nil)
	_ core.PlayerAccountStore = (*DB)(nil)
)

const selectPlayerAccount = `SELECT p.pid, u.email_key FROM players p JOIN users u USING (uid) WHERE p.name_key = $1`

// PlayerAccount returns the player with a name, and the e-mail key of its owner.
func (db *DB) PlayerAccount(ctx context.Context, nameKey string) (core.PlayerID, string, error) {
	rows, err := collect[struct {
		PID      core.PlayerID
		EmailKey string
	}](ctx, db.reads, statement{selectPlayerAccount, []any{nameKey}})
	if err != nil || len(rows) == 0 {
		return 0, "", failure("read the owner of a player", err)
	}
	return rows[0].PID, rows[0].EmailKey, nil
}

const (
	// updateLauncherSignIn locks the user, as updateSignIn does.
	updateLauncherSignIn = `
	UPDATE users SET last_sign_at = now(), account_uuid = coalesce(account_uuid, gen_random_uuid()) WHERE uid = $1 AND password_hash = $2`

	deleteExcessLaunchers = `
	DELETE FROM launcher_tokens t USING users u
	WHERE t.uid = $1 AND u.uid = $1 AND u.password_hash = $2 AND $3 > 0 AND t.token NOT IN (
		SELECT token FROM launcher_tokens WHERE uid = $1 ORDER BY issued_at DESC, token LIMIT greatest($3 - 1, 0)
	)`

	upsertLauncherAddress = `
	INSERT INTO login_addresses (uid, address, signed_in)
	SELECT uid, $3, now() FROM users WHERE uid = $1 AND password_hash = $2
	ON CONFLICT (uid, address) DO UPDATE SET signed_in = excluded.signed_in`

	insertLauncher = `
	WITH u AS (
		SELECT uid, account_uuid FROM users WHERE uid = $1 AND password_hash = $2
	), bound AS (
		SELECT pid, name FROM players WHERE uid = $1 AND CASE WHEN $5 <> 0 THEN pid = $5 ELSE (SELECT count(*) FROM players WHERE uid = $1) = 1 END
	), issued AS (
		INSERT INTO launcher_tokens (token, uid, client_token, pid, player_name, issued_at, signed_in_at)
		SELECT $3, u.uid, $4, b.pid, b.name, clock_timestamp(), clock_timestamp() FROM u LEFT JOIN bound b ON true
		RETURNING uid, client_token, pid
	)` + selectLauncherSession

	// selectLauncherSession returns a row for each player, or one without a player, from the tables
	// u and issued.
	selectLauncherSession = `
	SELECT u.account_uuid AS user, i.client_token, coalesce(p.pid, 0) AS pid, p.uuid AS player, p.name, coalesce(p.pid = i.pid, false) AS selected
	FROM issued i JOIN u USING (uid) LEFT JOIN players p USING (uid)
	ORDER BY p.pid`
)

type launcherSessionRow struct {
	User        uuid.UUID
	ClientToken []byte
	PID         core.PlayerID
	Player      *uuid.UUID
	Name        *string
	Selected    bool
}

// launcherSession returns the session of at least one row.
func launcherSession(rows []launcherSessionRow) core.LauncherSession {
	session := core.LauncherSession{User: rows[0].User, ClientToken: string(rows[0].ClientToken), Players: make([]core.NamedPlayer, 0, len(rows))}
	for _, row := range rows {
		if row.Player == nil {
			continue
		}
		player := core.NamedPlayer{UUID: *row.Player, Name: *row.Name}
		session.Players = append(session.Players, player)
		if row.Selected {
			session.Selected = &player
		}
	}
	return session
}

// IssueLauncherToken adds a token, and ends the user's that are too many.
func (db *DB) IssueLauncherToken(ctx context.Context, t core.NewLauncherToken) (core.LauncherSession, error) {
	user, hash := t.Credentials.ID, t.Credentials.PasswordHash
	rows, err := collect[launcherSessionRow](ctx, db.writes,
		statement{updateLauncherSignIn, []any{user, hash}},
		statement{deleteExcessLaunchers, []any{user, hash, t.PerUser}},
		statement{deleteAttempt, []any{t.Credentials.AttemptID}},
		statement{upsertLauncherAddress, []any{user, hash, t.Network}},
		statement{deleteExcessAddresses, []any{user}},
		statement{insertLauncher, []any{user, hash, t.Hash[:], []byte(t.ClientToken), t.Player}},
	)
	if err != nil {
		return core.LauncherSession{}, failure("issue a token to a launcher", err)
	}
	if len(rows) == 0 {
		return core.LauncherSession{}, core.ErrPasswordChanged // or the user was deleted
	}
	return launcherSession(rows), nil
}

// Whether a token is valid, and whether it is live. t is launcher_tokens, and p the user's player that
// it is bound to. $1 is how long it is valid and $2 how long it is live.
const (
	launcherIsValid = `(t.issued_at > now() - $1::interval AND (t.pid IS NULL OR p.name = t.player_name))`
	launcherIsLive  = `(t.issued_at > now() - $2::interval AND (t.pid IS NULL OR p.pid IS NOT NULL))`
)

// presentedLauncher selects a live token with its user and its player. $3 is its hash, and $4 the
// client token or NULL.
const presentedLauncher = `
	SELECT t.token, t.client_token, coalesce(t.signed_in_at, t.issued_at) AS signed_in_at, t.pid, u.uid, u.account_uuid, ` + effectivePermission + ` AS permission, ` + launcherIsValid + ` AS valid
	FROM launcher_tokens t JOIN users u USING (uid) LEFT JOIN players p ON p.pid = t.pid AND p.uid = t.uid
	WHERE t.token = $3 AND t.client_token = coalesce($4::bytea, t.client_token) AND ` + launcherIsLive

// presentedArgs returns the arguments of presentedLauncher.
func presentedArgs(token core.LauncherHash, clientToken *string, window core.LauncherTokenWindow, others ...any) []any {
	var client []byte
	if clientToken != nil {
		client = append([]byte{}, *clientToken...)
	}
	return append([]any{window.Valid, window.Refreshable, token[:], client}, others...)
}

const (
	// lockLauncherUser serialises the refreshes of a user's tokens with what revokes them: the new
	// token would otherwise survive a concurrent change of the password.
	lockLauncherUser = `
	SELECT FROM users WHERE uid = (SELECT uid FROM launcher_tokens WHERE token = $1) FOR NO KEY UPDATE`

	// refreshLauncher runs after lockLauncherUser has been acquired. $5 is the new token and $6
	// the player that is selected, or NULL.
	refreshLauncher = `
	WITH presented AS (` + presentedLauncher + `
	), selected AS (
		SELECT pid, uid, name FROM players WHERE uuid = $6
	), verdict AS (
		SELECT CASE
			WHEN t.permission = -1 THEN 'banned'
			WHEN $6::uuid IS NULL THEN ''
			WHEN t.pid IS NOT NULL THEN 'assigned'
			WHEN s.pid IS NULL THEN 'unknown'
			WHEN s.uid <> t.uid THEN 'foreign'
			ELSE ''
		END AS violation
		FROM presented t LEFT JOIN selected s ON true
	), u AS (
		SELECT uid, account_uuid FROM presented
	), replaced AS (
		DELETE FROM launcher_tokens t USING presented, verdict WHERE t.token = presented.token AND violation = ''
		RETURNING t.uid, t.pid, t.client_token, coalesce(t.signed_in_at, t.issued_at) AS signed_in_at
	), issued AS (
		INSERT INTO launcher_tokens (token, uid, client_token, pid, player_name, issued_at, signed_in_at)
		SELECT $5, r.uid, r.client_token, p.pid, p.name, clock_timestamp(), r.signed_in_at
		FROM replaced r LEFT JOIN players p ON p.pid = coalesce(r.pid, (SELECT pid FROM selected))
		RETURNING uid, client_token, pid
	), session AS (` + selectLauncherSession + `
	)
	SELECT v.violation, s.user, s.client_token, coalesce(s.pid, 0) AS pid, s.player, s.name, coalesce(s.selected, false) AS selected
	FROM verdict v LEFT JOIN session s ON true
	ORDER BY s.pid`
)

// RefreshLauncherToken replaces a token.
func (db *DB) RefreshLauncherToken(ctx context.Context, r core.LauncherRefresh) (core.LauncherSession, error) {
	rows, err := collect[struct {
		Violation   string
		User        *uuid.UUID
		ClientToken []byte
		PID         core.PlayerID
		Player      *uuid.UUID
		Name        *string
		Selected    bool
	}](ctx, db.writes,
		statement{lockLauncherUser, []any{r.Old[:]}},
		statement{refreshLauncher, presentedArgs(r.Old, r.ClientToken, r.Window, r.New[:], r.Selected)},
	)
	if err != nil {
		return core.LauncherSession{}, failure("refresh a launcher's token", err)
	}
	if len(rows) == 0 {
		return core.LauncherSession{}, core.ErrLauncherToken
	}
	if err := refreshFault(rows[0].Violation); err != nil {
		return core.LauncherSession{}, err
	}
	session := make([]launcherSessionRow, len(rows))
	for i, row := range rows {
		session[i] = launcherSessionRow{*row.User, row.ClientToken, row.PID, row.Player, row.Name, row.Selected}
	}
	return launcherSession(session), nil
}

// refreshFault returns the fault of a violation that refreshLauncher returned.
func refreshFault(violation string) error {
	switch violation {
	case "banned":
		return core.ErrBanned(core.User{})
	case "assigned", "unknown":
		return core.ErrProfileAssigned
	case "foreign":
		return fault.New(fault.Forbidden, "This player is somebody else's.")
	default:
		return nil
	}
}

const selectLauncherUser = `
	WITH presented AS (` + presentedLauncher + `
	)
	SELECT ` + userColumns + `, t.signed_in_at, t.pid, p.uuid, p.name, p.last_modified
	FROM presented t JOIN users u USING (uid) LEFT JOIN players p ON p.pid = t.pid
	WHERE t.valid`

// LauncherTokenUser returns the user of a valid token.
func (db *DB) LauncherTokenUser(ctx context.Context, token core.LauncherHash, clientToken *string, window core.LauncherTokenWindow) (core.LauncherUser, error) {
	rows, err := collect[struct {
		core.User
		SignedInAt   time.Time
		PID          *core.PlayerID
		UUID         *uuid.UUID
		Name         *string
		LastModified *time.Time
	}](ctx, db.reads, statement{selectLauncherUser, presentedArgs(token, clientToken, window)})
	row, err := one(rows, failure("read a launcher's token", err), core.ErrLauncherToken)
	switch {
	case err != nil:
		return core.LauncherUser{}, err
	case row.Permission == core.Banned:
		return core.LauncherUser{}, core.ErrBanned(row.User)
	}
	user := core.LauncherUser{User: row.User, SignedIn: row.SignedInAt}
	if row.PID != nil {
		user.Player = &core.Player{ID: *row.PID, Owner: row.ID, UUID: *row.UUID, Name: *row.Name, LastModified: *row.LastModified}
	}
	return user, nil
}

const revokeLauncher = `DELETE FROM launcher_tokens WHERE token = $1`

// RevokeLauncherToken deletes a token.
func (db *DB) RevokeLauncherToken(ctx context.Context, token core.LauncherHash) error {
	_, err := db.writes.Exec(ctx, revokeLauncher, token[:])
	return failure("revoke a launcher's token", err)
}

// revokeLaunchers runs after lockUser, which waits for a concurrent refresh.
const revokeLaunchers = `
	WITH owner AS (
		SELECT uid FROM users WHERE uid = $1 AND password_hash = $2
	), revoked AS (
		DELETE FROM launcher_tokens t USING owner o WHERE t.uid = o.uid
	)
	SELECT uid FROM owner`

// RevokeLauncherTokens deletes all tokens of a user.
func (db *DB) RevokeLauncherTokens(ctx context.Context, credentials core.VerifiedCredentials) error {
	rows, err := collect[struct{ UID core.UserID }](ctx, db.writes,
		statement{deleteAttempt, []any{credentials.AttemptID}},
		statement{lockUser, []any{credentials.ID}},
		statement{revokeLaunchers, []any{credentials.ID, credentials.PasswordHash}},
	)
	_, err = one(rows, failure("revoke the tokens of launchers", err), core.ErrPasswordChanged)
	return err
}

const deleteOldLaunchers = `DELETE FROM launcher_tokens WHERE issued_at <= now() - $1::interval`

// TrimLauncherTokens deletes tokens that can no longer be refreshed.
func (db *DB) TrimLauncherTokens(ctx context.Context, window core.LauncherTokenWindow) (int, error) {
	tag, err := db.writes.Exec(ctx, deleteOldLaunchers, window.Refreshable)
	return int(tag.RowsAffected()), failure("trim the tokens of launchers", err)
}
