package postgres

import (
	"context"
	"encoding/binary"
	"math"
	"net/netip"
	"time"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/fault"
)

var _ core.LoginStore = (*DB)(nil)

// lockAttempts serialises the attempts on an account and those from a network, so that
// concurrent ones count each other. The first key of a lock is the oid of the index that is
// counted in, so that accounts, which are locked first, and networks have different locks.
const lockAttempts = `
	SELECT pg_advisory_xact_lock('login_failures_account'::regclass::int, $1), pg_advisory_xact_lock('login_failures_address'::regclass::int, $2)`

// insertAttempt runs after lockAttempts has been acquired, and so sees all attempts before it.
// until is when the last of the exhausted limits allows an attempt again. After a reset of the
// password by mail, failures from that address with other e-mail addresses do not count, for as
// long as any from before the reset would. An attempt that exceeds a limit only by attempts
// still in progress may be repeated after a second, since those may succeed. Spaced attempts are
// timed by the clock of the server, since the clocks of cores may differ by more than the spacing.
const insertAttempt = `
	WITH owner AS (
		SELECT * FROM users WHERE email_key = $1
	), recent AS MATERIALIZED (
		SELECT failed_at, settled, account = $2 AS same_account, address = $3 AND failed_at > $4::timestamptz - $5::interval AS same_address
		FROM login_failures
		WHERE (account = $2 AND failed_at > $4 - greatest($5, $6::interval) OR address = $3 AND failed_at > $4 - $5)
			AND (settled OR failed_at > $4 - $11::interval)
	), known_network AS (
		SELECT a.reset_at FROM login_addresses a JOIN owner o USING (uid) WHERE a.address = $3
	), unknown_network AS (
		SELECT WHERE NOT EXISTS (SELECT FROM known_network)
	), network_limited AS (
		SELECT WHERE NOT EXISTS (SELECT FROM known_network WHERE reset_at > $4 - $6)
	), exhausted (until) AS (
		(SELECT failed_at + $5 FROM recent WHERE settled AND same_account AND same_address AND $7 > 0
			ORDER BY failed_at DESC OFFSET greatest($7 - 1, 0) LIMIT 1)
		UNION ALL
		(SELECT failed_at + $5 FROM recent, network_limited WHERE settled AND same_address AND $8 > 0
			ORDER BY failed_at DESC OFFSET greatest($8 - 1, 0) LIMIT 1)
		UNION ALL
		(SELECT max(failed_at) + least($10::interval, interval '1 second' * power(2, least(count(*) - $9, 30)))
			FROM recent, unknown_network WHERE settled AND same_account AND failed_at > $4 - $6 AND $9 > 0
			HAVING count(*) >= $9)
		UNION ALL
		(SELECT $4 + interval '1 second' FROM recent
			HAVING count(*) FILTER (WHERE same_account AND same_address) >= nullif($7, 0)
				OR count(*) FILTER (WHERE same_address) >= nullif($8, 0) AND EXISTS (SELECT FROM network_limited))
		UNION ALL
		(SELECT $4 + interval '1 second' FROM recent, unknown_network
			WHERE same_account AND failed_at > $4 - $6
			HAVING count(*) >= nullif($9, 0) AND NOT bool_and(settled))
		UNION ALL
		(SELECT $4 + (attempted_at + $12::interval - clock_timestamp()) FROM launcher_attempts
			WHERE $12 > interval '0' AND account = $2 AND address = $3 AND attempted_at > clock_timestamp() - $12)
	), retry AS (
		SELECT max(until) AS until FROM exhausted WHERE until > $4
	), inserted AS (
		INSERT INTO login_failures (failed_at, account, address) SELECT $4, $2, $3 FROM retry WHERE until IS NULL
		RETURNING id
	), spaced AS (
		INSERT INTO launcher_attempts (account, address, attempted_at)
		SELECT $2, $3, clock_timestamp() FROM inserted WHERE $12 > interval '0'
		ON CONFLICT (account, address) DO UPDATE SET attempted_at = excluded.attempted_at
	)
	SELECT v.until, coalesce(c.id, 0) AS attempt, coalesce(u.uid, 0) AS id, coalesce(u.email, '') AS email,
		coalesce(` + effectivePermission + `, 0) AS permission, ` + banColumns + `, coalesce(u.verified, false) AS verified, coalesce(u.password_hash, '') AS password_hash
	FROM retry v LEFT JOIN inserted c ON true LEFT JOIN owner u ON true`

// BeginAttempt counts an attempt, and returns its user. The fault is TooMany, with RetryAfter,
// if a limit is exhausted.
func (db *DB) BeginAttempt(ctx context.Context, a core.LoginAttempt) (core.VerifiedCredentials, error) {
	rows, err := collect[struct {
		Until        *time.Time
		Attempt      int64
		ID           core.UserID
		Email        string
		Permission   core.Permission
		BanReason    string
		BannedUntil  *time.Time
		Verified     bool
		PasswordHash string
	}](ctx, db.writes,
		statement{lockAttempts, []any{int32(binary.BigEndian.Uint32(a.EmailHash[:])), networkLock(a.Network)}},
		statement{insertAttempt, []any{
			a.EmailKey, a.EmailHash[:], a.Network, a.Now, a.PairWindow, a.AccountWindow,
			a.Limits.PerPair, a.Limits.PerAddress, a.Limits.PerAccount, a.MaxDelay, a.MaxDuration, a.Spacing,
		}},
	)
	if err != nil {
		return core.VerifiedCredentials{}, failure("count a log-in attempt", err)
	}
	row := rows[0]
	if row.Until != nil {
		return core.VerifiedCredentials{}, &fault.Error{
			Kind: fault.TooMany, Message: "There were too many attempts to log in. Please wait before you try again.",
			RetryAfter: row.Until.Sub(a.Now),
		}
	}
	return core.VerifiedCredentials{
		Credentials: core.Credentials{PasswordHash: row.PasswordHash, User: core.User{
			ID: row.ID, Email: row.Email, Permission: row.Permission, Verified: row.Verified, BanReason: row.BanReason, BannedUntil: row.BannedUntil,
		}},
		AttemptID: row.Attempt,
	}, nil
}

// networkLock returns the lock key of a network. Two networks with the same key only wait for
// each other.
func networkLock(network netip.Prefix) int32 {
	lock := uint32(network.Bits())
	for _, b := range network.Addr().AsSlice() {
		lock = lock*math.MaxUint16 + uint32(b)
	}
	return int32(lock)
}

const failAttempt = `UPDATE login_failures SET settled = true WHERE id = $1`

// FailAttempt marks an attempt as failed.
func (db *DB) FailAttempt(ctx context.Context, attempt int64) error {
	_, err := db.writes.Exec(ctx, failAttempt, attempt)
	return failure("mark a log-in attempt as failed", err)
}

const deleteAttempt = `DELETE FROM login_failures WHERE id = $1`

// CancelAttempt deletes an attempt, which then does not count.
func (db *DB) CancelAttempt(ctx context.Context, attempt int64) error {
	_, err := db.writes.Exec(ctx, deleteAttempt, attempt)
	return failure("cancel a log-in attempt", err)
}

const updateHash = `UPDATE users SET password_hash = $3 WHERE uid = $1 AND password_hash = $2`

// Rehash replaces the hash of a password, unless it changed meanwhile.
func (db *DB) Rehash(ctx context.Context, user core.UserID, oldHash, newHash string) error {
	_, err := db.writes.Exec(ctx, updateHash, user, oldHash, newHash)
	return failure("replace a password hash", err)
}

const (
	deleteAttemptsBefore = `DELETE FROM login_failures WHERE failed_at < $1`

	deleteSpacedAttempts = `DELETE FROM launcher_attempts WHERE attempted_at < $1`
)

// TrimAttempts deletes failed attempts from before a time, and returns how many.
func (db *DB) TrimAttempts(ctx context.Context, before time.Time) (int, error) {
	if _, err := db.writes.Exec(ctx, deleteSpacedAttempts, before); err != nil {
		return 0, failure("trim log-in attempts of launchers", err)
	}
	tag, err := db.writes.Exec(ctx, deleteAttemptsBefore, before)
	return int(tag.RowsAffected()), failure("trim log-in attempts", err)
}
