package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/veneer-skins/veneer/core"
)

var _ core.SessionStore = (*DB)(nil)

// The update locks the user, so that parallel log-ins count each other's sessions, and a log-in
// either sees a concurrent change of the password or precedes it.
const updateSignIn = `UPDATE users SET last_sign_at = $3 WHERE uid = $1 AND password_hash = $2`

const deleteExcessSessions = `
	DELETE FROM sessions s USING users u
	WHERE s.uid = $1 AND u.uid = $1 AND u.password_hash = $2 AND s.sid NOT IN (
		SELECT sid FROM sessions
		WHERE uid = $1 AND refreshed_at > $3 AND created_at > $4
		ORDER BY created_at DESC, sid
		LIMIT nullif($5, 0) - 1
	)`

// insertSession stores the start of the session with the full precision of the clock, so that
// the oldest is known among tokens of one second. The token has whole seconds.
const insertSession = `
	WITH s AS (
		INSERT INTO sessions (sid, uid, created_at, refreshed_at, browser, system)
		SELECT $3, uid, $6, $6, $7, $8 FROM users WHERE uid = $1 AND password_hash = $2
		RETURNING sid
	)
	INSERT INTO session_tokens (jti, sid, issued_at) SELECT $4, sid, $5 FROM s
	RETURNING sid`

const upsertAddress = `
	INSERT INTO login_addresses (uid, address, signed_in)
	SELECT uid, $3, $4 FROM users WHERE uid = $1 AND password_hash = $2
	ON CONFLICT (uid, address) DO UPDATE SET signed_in = excluded.signed_in`

// deleteExcessAddresses leaves the user's 100 latest addresses, so that a client with many addresses
// writes no more rows.
const deleteExcessAddresses = `
	DELETE FROM login_addresses WHERE uid = $1 AND address IN (
		SELECT address FROM login_addresses WHERE uid = $1 ORDER BY signed_in DESC OFFSET 100
	)`

// OpenSession adds a session, and ends the user's that are expired or too many.
func (db *DB) OpenSession(ctx context.Context, s core.NewSession) error {
	user, hash := s.Token.User, s.Credentials.PasswordHash
	rows, err := collect[struct{ SID uuid.UUID }](ctx, db.writes,
		statement{updateSignIn, []any{user, hash, s.Window.Now}},
		statement{deleteExcessSessions, []any{user, hash, s.Window.RefreshedAfter, s.Window.CreatedAfter, s.PerUser}},
		statement{deleteAttempt, []any{s.Credentials.AttemptID}},
		statement{upsertAddress, []any{user, hash, s.From.Network, s.Window.Now}},
		statement{deleteExcessAddresses, []any{user}},
		statement{insertSession, []any{user, hash, s.Token.Session, s.Token.ID, s.Token.IssuedAt, s.Window.Now, s.From.Browser, s.From.System}},
	)
	if err != nil {
		return failure("open a session", err)
	}
	if len(rows) == 0 {
		return core.ErrPasswordChanged // the password was changed, or the user deleted
	}
	return nil
}

// A session look-up selects the users of tokens, each with the number of its token. One statement looks up
// all tokens of a batch, since starting a statement takes longer than reading its row: 16 tokens take two
// to three times as long as one. LIMIT makes each token a look-up by indexes, whatever the sizes of the tables
// were when the plan was made. The inner SELECT hides the number of tokens from the planner. The planner would
// otherwise plan each small batch anew, since a plan for few tokens looks cheaper than the generic one for ten;
// planning takes three times as long as the look-up.
const (
	selectSessionUsers           = sessionLookup + userColumns + fromSession
	selectSessionUsersWithUnread = sessionLookup + userFields + `, (` + countUnread + `) AS unread` + fromSession

	sessionLookup = `
	SELECT found.*, token.number
	FROM unnest((SELECT $1::uuid[]), $2::uuid[], $3::bigint[]) WITH ORDINALITY AS token (sid, jti, uid, number)
	CROSS JOIN LATERAL (
		SELECT `
	fromSession = `
		FROM sessions s
		JOIN session_tokens t ON t.sid = s.sid
		JOIN users u ON u.uid = s.uid
		WHERE s.sid = token.sid AND t.jti = token.jti AND s.uid = token.uid
			AND s.refreshed_at > $4 AND s.created_at > $5 AND (t.replaced_at IS NULL OR t.replaced_at > $6)
		LIMIT 1
	) found`
)

// countUnread counts by the index of unread notifications alone.
const countUnread = `
	SELECT count(*)::int FROM (
		SELECT 1 FROM notifications n WHERE n.uid = u.uid AND n.read_at IS NULL
		UNION ALL
		SELECT 1 FROM broadcasts b WHERE ` + inAudience + ` AND NOT EXISTS (SELECT FROM broadcast_reads r WHERE r.uid = u.uid AND r.mid = b.mid)
		LIMIT 99
	) counted`

// sessionQuery is a look-up of a token's user.
type sessionQuery struct {
	core.VerifiedToken

	withUnread bool
}

// queueSessions adds the statements for look-ups to a batch.
func queueSessions(batch *pgx.Batch, queries []*batchQuery[sessionQuery, core.User]) {
	var plain, withUnread []*batchQuery[sessionQuery, core.User]
	for _, q := range queries {
		if q.query.withUnread {
			withUnread = append(withUnread, q)
		} else {
			plain = append(plain, q)
		}
	}
	queueLookups(batch, selectSessionUsers, plain)
	queueLookups(batch, selectSessionUsersWithUnread, withUnread)
}

func queueLookups(batch *pgx.Batch, sql string, queries []*batchQuery[sessionQuery, core.User]) {
	if len(queries) == 0 {
		return
	}
	// Of arrays: pgx takes a uuid.UUID for a driver.Valuer first, and would format and parse it as text.
	sessions, tokens, users := make([][16]byte, len(queries)), make([][16]byte, len(queries)), make([]core.UserID, len(queries))
	for i, q := range queries {
		sessions[i], tokens[i], users[i] = q.query.Token.Session, q.query.Token.ID, q.query.Token.User
	}
	window := queries[len(queries)-1].query.Window // those of the others are up to some seconds older or newer
	batch.Queue(sql, sessions, tokens, users, window.RefreshedAfter, window.CreatedAfter, window.ReplacedAfter).Query(func(rows pgx.Rows) error {
		for row := (numberedRow{CollectableRow: rows}); rows.Next(); {
			user, err := pgx.RowToStructByName[core.User](&row)
			if err != nil {
				return err
			}
			queries[row.number-1].rows = []core.User{user}
		}
		return rows.Err()
	})
}

// numberedRow is a row without its last column, a number.
type numberedRow struct {
	pgx.CollectableRow

	number int
}

func (r *numberedRow) FieldDescriptions() []pgconn.FieldDescription {
	all := r.CollectableRow.FieldDescriptions()
	return all[:len(all)-1]
}

func (r *numberedRow) Scan(to ...any) error { return r.CollectableRow.Scan(append(to, &r.number)...) }

// The session look-ups of this core by result.
var (
	sessionLookups = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "veneer_session_lookups_total", Help: "Look-ups of sessions by result.",
	}, []string{"result"})
	lookupsLive   = sessionLookups.WithLabelValues("live")
	lookupsEnded  = sessionLookups.WithLabelValues("ended")
	lookupsBanned = sessionLookups.WithLabelValues("banned")
	lookupsFailed = sessionLookups.WithLabelValues("failed")
)

// checkSessionUser returns the user of a look-up, or a fault if the session has ended or the
// user is banned.
func checkSessionUser(users []core.User, err error) (core.User, error) {
	switch {
	case err != nil:
		lookupsFailed.Inc()
		return core.User{}, failure("read for a session", err)
	case len(users) == 0:
		lookupsEnded.Inc()
		return core.User{}, core.ErrSignedOut
	case users[0].Permission == core.Banned:
		lookupsBanned.Inc()
		return core.User{}, core.ErrBanned(users[0])
	default:
		lookupsLive.Inc()
		return users[0], nil
	}
}

// SessionUser returns the user of a token's session.
func (db *DB) SessionUser(ctx context.Context, verified core.VerifiedToken) (core.User, error) {
	return checkSessionUser(db.sessionBatcher.query(ctx, sessionQuery{verified, false}))
}

// SessionUserWithUnread returns the user of a token's session, with the number of unread notifications.
func (db *DB) SessionUserWithUnread(ctx context.Context, verified core.VerifiedToken) (core.User, error) {
	return checkSessionUser(db.sessionBatcher.query(ctx, sessionQuery{verified, true}))
}

// withSession runs the queries that queue adds to a batch for the user of a token, in the round trip
// of the session look-up. Their rows are void if it returns an error.
func withSession(ctx context.Context, db *DB, verified core.VerifiedToken, queue func(*pgx.Batch)) error {
	session := &batchQuery[sessionQuery, core.User]{query: sessionQuery{verified, false}}
	err := db.reads.run(ctx, func() error {
		var batch pgx.Batch
		session.rows = nil // of a try before
		queueLookups(&batch, selectSessionUsers, []*batchQuery[sessionQuery, core.User]{session})
		queue(&batch)
		return db.reads.SendBatch(ctx, &batch).Close()
	})
	_, err = checkSessionUser(session.rows, err)
	return err
}

// readWithSession runs a query as withSession does, and returns its rows.
func readWithSession[T any](ctx context.Context, db *DB, verified core.VerifiedToken, query statement) (rows []T, err error) {
	err = withSession(ctx, db, verified, func(batch *pgx.Batch) { query.queue(batch).Query(collectInto(&rows)) })
	if err != nil {
		return nil, err
	}
	return rows, nil
}

const lockSession = `SELECT sid FROM sessions WHERE sid = $1 FOR UPDATE`

// advanceSession runs after lockSession has been acquired, and so sees what parallel refreshes
// did. There are three cases: the token is current and gets a successor; it was replaced within
// the grace period and has one; or it is neither, and the session ends. A banned user's token
// gets no successor.
const advanceSession = `
	WITH live AS (
		SELECT s.sid, ` + effectivePermission + ` AS permission, ` + banColumns + ` FROM sessions s JOIN users u ON u.uid = s.uid
		WHERE s.sid = $1 AND s.uid = $3 AND s.refreshed_at > $5 AND s.created_at > $6
	), presented AS (
		SELECT t.sid, t.jti, t.issued_at, t.successor FROM session_tokens t JOIN live USING (sid)
		WHERE t.jti = $2 AND (t.replaced_at IS NULL OR t.replaced_at > $7)
	), replaced AS (
		UPDATE session_tokens t SET successor = $4, replaced_at = $8
		FROM presented p JOIN live USING (sid)
		WHERE t.jti = $2 AND p.successor IS NULL AND live.permission <> -1
		RETURNING t.sid
	), issued AS (
		INSERT INTO session_tokens (jti, sid, issued_at) SELECT $4, sid, $9 FROM replaced
		RETURNING jti, sid, issued_at
	), updated_session AS (
		UPDATE sessions s SET refreshed_at = $8 FROM replaced r WHERE s.sid = r.sid
	), deleted_tokens AS (
		DELETE FROM session_tokens t USING replaced r WHERE t.sid = r.sid AND t.replaced_at <= $7
	), deleted_session AS (
		DELETE FROM sessions s USING live l WHERE s.sid = l.sid AND NOT EXISTS (SELECT FROM presented)
	)
	SELECT l.permission, l.ban_reason, l.banned_until, coalesce(n.jti, p.jti) AS jti, coalesce(n.issued_at, p.issued_at) AS issued_at
	FROM live l
	JOIN presented p USING (sid)
	LEFT JOIN (
		SELECT sid, jti, issued_at FROM issued
		UNION ALL
		SELECT t.sid, t.jti, t.issued_at FROM session_tokens t JOIN presented p ON t.jti = p.successor
	) n USING (sid)`

// RefreshSession returns the successor of a token.
func (db *DB) RefreshSession(ctx context.Context, verified core.VerifiedToken, next core.Token) (core.Token, core.User, error) {
	token, window := verified.Token, verified.Window
	rows, err := collect[struct {
		Permission  core.Permission
		BanReason   string
		BannedUntil *time.Time
		JTI         uuid.UUID
		IssuedAt    time.Time
	}](ctx, db.writes,
		statement{lockSession, []any{token.Session}},
		statement{advanceSession, []any{
			token.Session, token.ID, token.User, next.ID, window.RefreshedAfter, window.CreatedAfter, window.ReplacedAfter, window.Now, next.IssuedAt,
		}},
	)
	switch {
	case err != nil:
		return core.Token{}, core.User{}, failure("refresh a session", err)
	case len(rows) == 0:
		return core.Token{}, core.User{}, core.ErrSignedOut
	}
	row := rows[0]
	next.ID, next.IssuedAt = row.JTI, row.IssuedAt
	return next, core.User{Permission: row.Permission, BanReason: row.BanReason, BannedUntil: row.BannedUntil}, nil
}

const deleteSession = `DELETE FROM sessions WHERE sid = $1`

// EndSession ends a session.
func (db *DB) EndSession(ctx context.Context, session uuid.UUID) error {
	_, err := db.writes.Exec(ctx, deleteSession, session)
	return failure("end a session", err)
}

const deleteExpiredSessions = `DELETE FROM sessions WHERE refreshed_at <= $1 OR created_at <= $2`

// deleteUnusedAddresses deletes addresses from which the user has not signed in for a year.
const deleteUnusedAddresses = `DELETE FROM login_addresses WHERE signed_in < $1::timestamptz - interval '1 year'`

// TrimSessions deletes expired sessions and returns how many. It also deletes addresses of
// log-ins that are over a year old.
func (db *DB) TrimSessions(ctx context.Context, window core.SessionWindow) (int, error) {
	if _, err := db.writes.Exec(ctx, deleteUnusedAddresses, window.Now); err != nil {
		return 0, failure("trim addresses of log-ins", err)
	}
	tag, err := db.writes.Exec(ctx, deleteExpiredSessions, window.RefreshedAfter, window.CreatedAfter)
	return int(tag.RowsAffected()), failure("trim sessions", err)
}
