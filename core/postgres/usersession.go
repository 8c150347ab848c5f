package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/fault"
)

var _ core.UserSessionStore = (*DB)(nil)

// launcherID makes the id of a launcher's token, a UUID of version 8 (RFC 9562, section 5.8), from the
// stored hash of the token. It is a hash again, so it does not reveal the stored one.
const launcherID = `overlay(overlay(left(encode(sha256(t.token), 'hex'), 32) PLACING '8' FROM 13) PLACING '8' FROM 17)::uuid`

const (
	selectUserSessions = `
	SELECT sid AS id, created_at, refreshed_at, sid = $2 AS current, browser, system FROM sessions
	WHERE uid = $1 AND refreshed_at > $3 AND created_at > $4
	ORDER BY created_at DESC, sid`

	selectUserLaunchers = `
	SELECT ` + launcherID + ` AS id, t.issued_at, ` + launcherIsValid + ` AS valid, coalesce(p.pid, 0) AS player, coalesce(p.name, '') AS player_name
	FROM launcher_tokens t LEFT JOIN players p ON p.pid = t.pid AND p.uid = t.uid
	WHERE t.uid = $3 AND ` + launcherIsLive + `
	ORDER BY t.issued_at DESC, t.token`
)

// SignIns lists the live sessions and launchers of a token's user.
func (db *DB) SignIns(ctx context.Context, verified core.VerifiedToken, launchers core.LauncherTokenWindow) (core.SignIns, error) {
	token, window := verified.Token, verified.Window
	var found core.SignIns
	err := withSession(ctx, db, verified, func(batch *pgx.Batch) {
		statement{selectUserSessions, []any{token.User, token.Session, window.RefreshedAfter, window.CreatedAfter}}.
			queue(batch).Query(collectInto(&found.Sessions))
		statement{selectUserLaunchers, []any{launchers.Valid, launchers.Refreshable, token.User}}.
			queue(batch).Query(collectInto(&found.Launchers))
	})
	if err != nil {
		return core.SignIns{}, err
	}
	return found, nil
}

// These run after lockUser, which waits for a concurrent log-in, and for the refresh of a launcher's
// token: its successor is ended, too.
const (
	endSignIns = `
	WITH ended_sessions AS (
		DELETE FROM sessions WHERE uid = $1 AND sid <> $2
	)
	DELETE FROM launcher_tokens WHERE uid = $1`

	endSignIn = `
	WITH ended_session AS (
		DELETE FROM sessions WHERE uid = $1 AND sid = $2 RETURNING uid
	), ended_launcher AS (
		DELETE FROM launcher_tokens t WHERE uid = $1 AND ` + launcherID + ` = $2 RETURNING uid
	)
	SELECT uid FROM ended_session UNION ALL SELECT uid FROM ended_launcher`
)

// EndSignIns deletes the sessions of a user but one, and all tokens of launchers.
func (db *DB) EndSignIns(ctx context.Context, user core.UserID, keep uuid.UUID) error {
	_, err := collect[struct{}](ctx, db.writes, statement{lockUser, []any{user}}, statement{endSignIns, []any{user, keep}})
	return failure("end sessions", err)
}

// EndSignIn deletes a session of a user, or the token of a launcher.
func (db *DB) EndSignIn(ctx context.Context, user core.UserID, id uuid.UUID) error {
	ended, err := collect[struct{ UID core.UserID }](ctx, db.writes, statement{lockUser, []any{user}}, statement{endSignIn, []any{user, id}})
	_, err = one(ended, failure("end a session", err), errNoSession)
	return err
}

var errNoSession = fault.New(fault.NotFound, "There is no such session.")
