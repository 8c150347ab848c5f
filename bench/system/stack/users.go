package stack

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
)

// SignedInUser is a user with a live session.
type SignedInUser struct {
	core.Token
	Bearer string // the signed token
}

const insertUsers = `
	WITH new_users AS (
		INSERT INTO users (email, email_key, nickname, password_hash, verified)
		SELECT 'person' || n || '@example.com', 'person' || n || '@example.com', 'Person ' || n, 'none', true
		FROM (SELECT count(*) FROM users) AS existing (total), generate_series(total + 1, total + $1) AS n
		RETURNING uid
	), new_sessions AS (
		INSERT INTO sessions (sid, uid, created_at, refreshed_at)
		SELECT gen_random_uuid(), uid, now(), now() FROM new_users
		RETURNING sid, uid
	), new_tokens AS (
		INSERT INTO session_tokens (jti, sid, issued_at)
		SELECT gen_random_uuid(), sid, date_trunc('second', now()) FROM new_sessions
		RETURNING jti, sid, issued_at
	)
	SELECT uid AS "user", sid AS session, jti AS id, issued_at FROM new_tokens JOIN new_sessions USING (sid)`

// SignIn inserts new users, each with a live session, into the database of a core: logging them in
// one by one would take a password hash each. The tables are vacuumed and analysed afterwards, as
// in normal operation.
func (p *Process) SignIn(tb testing.TB, count int) []SignedInUser {
	tb.Helper()
	var ring core.KeyRing
	if err := ring.UnmarshalText([]byte(p.Setting("CORE_TOKEN_KEYS"))); err != nil {
		tb.Fatal(err)
	}
	signer := core.NewTokens(ring, "veneer", time.Hour, time.Now)

	conn := postgrestest.Conn(tb, p.Setting("CORE_DATABASE_URL"))
	rows, _ := conn.Query(tb.Context(), insertUsers, count) // CollectRows reports the error
	tokens, err := pgx.CollectRows(rows, pgx.RowToStructByName[core.Token])
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := conn.Exec(tb.Context(), "VACUUM ANALYZE users, sessions, session_tokens"); err != nil {
		tb.Fatal(err)
	}
	users := make([]SignedInUser, len(tokens))
	for i, token := range tokens {
		users[i].Token = token
		if users[i].Bearer, err = signer.Sign(token); err != nil {
			tb.Fatal(err)
		}
	}
	return users
}
