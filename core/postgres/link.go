package postgres

import (
	"context"
	"crypto/sha256"
	"net/netip"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/fault"
)

var (
	_ core.LinkStore         = (*DB)(nil)
	_ core.RegistrationStore = (*DB)(nil)
)

const insertReset = `INSERT INTO mails (purpose, email, email_key) VALUES ('reset', $1, $2)`

// QueueReset queues a link that resets a password. It reads no account, so that the response
// does not tell whether there is one.
func (db *DB) QueueReset(ctx context.Context, email, emailKey string) error {
	_, err := db.writes.Exec(ctx, insertReset, email, emailKey)
	return failure("queue a reset", err)
}

const selectUnverified = `SELECT email_key FROM users WHERE uid = $1 AND NOT verified`

// insertVerification counts queued mails as if they were sent now. Two concurrent requests may
// both be below the limit; the outbox counts again.
const insertVerification = `
	WITH recent AS (
		SELECT sent_at FROM mails_sent WHERE account = $2 AND purpose = 'verification' AND sent_at > $3::timestamptz - interval '1 hour'
		UNION ALL
		SELECT $3 FROM mails m JOIN users u USING (email_key)
		WHERE u.uid = $1 AND m.purpose = 'verification' AND m.id NOT IN (SELECT id FROM mails_sent WHERE account = $2)
	), queued AS (
		INSERT INTO mails (purpose, email, email_key)
		SELECT 'verification', email, email_key FROM users
		WHERE uid = $1 AND NOT verified AND coalesce((SELECT count(*) < nullif($4, 0) FROM recent), true)
		RETURNING id
	)
	SELECT EXISTS (SELECT FROM queued) AS queued, (SELECT min(sent_at) FROM recent) AS oldest`

// QueueVerification queues a link that verifies a user's address.
func (db *DB) QueueVerification(ctx context.Context, user core.UserID, perHour int, now time.Time) error {
	users, err := collect[struct{ EmailKey string }](ctx, db.reads, statement{selectUnverified, []any{user}})
	if err != nil || len(users) == 0 {
		return failure("read an address to verify", err)
	}
	account := sha256.Sum256([]byte(users[0].EmailKey))
	rows, err := collect[struct {
		Queued bool
		Oldest *time.Time
	}](ctx, db.writes, statement{insertVerification, []any{user, account[:], now, perHour}})
	if err != nil {
		return failure("queue a verification", err)
	}
	if row := rows[0]; !row.Queued && row.Oldest != nil {
		return &fault.Error{
			Kind: fault.TooMany, Message: "There were too many e-mails to your address. Please wait before you ask for another one.",
			RetryAfter: max(time.Second, row.Oldest.Add(time.Hour).Sub(now)),
		}
	}
	return nil
}

// validLink selects a user's unexpired link by the hash of its token and its purposes.
const validLink = `
	mail_tokens t JOIN users u ON u.uid = t.uid AND ` + linkBinding + ` = t.bound
	WHERE t.hash = $1 AND t.purpose = ANY ($2) AND t.expires_at > $3`

// lockUserOfLink serialises the uses of a user's links. It is FOR UPDATE, since verifyEmail
// changes email_key, which is a key of the user.
const lockUserOfLink = `
	SELECT FROM users WHERE uid = (SELECT uid FROM mail_tokens WHERE hash = $1) FOR UPDATE`

// lockEmailOfLink locks the address that a link was sent to.
const lockEmailOfLink = `
	SELECT pg_advisory_xact_lock('users_email_key'::regclass::int, hashtext(email_key)) FROM mail_tokens WHERE hash = $1`

// Both run after lockUserOfLink has been acquired, and so do not find a token that a concurrent
// use has deleted.
const (
	// verifyEmail verifies the user's address, or changes it to the link's. Nothing
	// changes where another user has the address.
	verifyEmail = `
	WITH link AS (
		SELECT u.uid, u.email, u.email_key, t.email AS new_email, t.email_key AS new_email_key,
			EXISTS (SELECT FROM users o WHERE o.email_key = t.email_key AND o.uid <> u.uid) AS taken
		FROM ` + validLink + `
	), valid_link AS (
		SELECT * FROM link WHERE NOT taken
	), deleted_tokens AS (
		DELETE FROM mail_tokens t USING valid_link b WHERE t.uid = b.uid AND t.purpose = ANY ($2)
	), queued_mail AS (
		INSERT INTO mails (purpose, email, email_key) SELECT 'change', email, email_key FROM valid_link WHERE email_key <> new_email_key
	), updated_user AS (
		UPDATE users u SET email = b.new_email, email_key = b.new_email_key, verified = true FROM valid_link b WHERE u.uid = b.uid
	)
	SELECT uid, taken FROM link`

	// resetPassword also deletes the log-in failures of the client's network for this account,
	// so that the user can sign in at once.
	resetPassword = `
	WITH link AS (
		SELECT u.uid, u.email, u.email_key FROM ` + validLink + `
	), deleted_tokens AS (
		DELETE FROM mail_tokens t USING link g WHERE t.uid = g.uid
	), queued_mail AS (` + insertChangeNotice + ` FROM link
	), deleted_sessions AS (
		DELETE FROM sessions s USING link g WHERE s.uid = g.uid
	), revoked_tokens AS (
		DELETE FROM launcher_tokens t USING link g WHERE t.uid = g.uid
	), known_address AS (
		INSERT INTO login_addresses (uid, address, signed_in, reset_at) SELECT uid, $5, $3, $3 FROM link
		ON CONFLICT (uid, address) DO UPDATE SET signed_in = excluded.signed_in, reset_at = excluded.reset_at
	), deleted_failures AS (
		DELETE FROM login_failures f USING link g WHERE f.account = sha256(convert_to(g.email_key, 'UTF8')) AND f.address = $5
	)
	UPDATE users u SET password_hash = $4, verified = true FROM link g WHERE u.uid = g.uid
	RETURNING u.uid`
)

// VerifyEmail marks the address of a link as verified, and makes it the user's.
func (db *DB) VerifyEmail(ctx context.Context, token core.LinkHash, now time.Time) error {
	links, err := collect[struct {
		UID   core.UserID
		Taken bool
	}](ctx, db.writes,
		statement{lockUserOfLink, []any{token[:]}},
		statement{lockEmailOfLink, []any{token[:]}},
		statement{verifyEmail, []any{token[:], []core.Purpose{core.ForVerification, core.ForAddress}, now}},
	)
	link, err := one(links, failure("verify an address", uniqueFault(err, errNameTaken)), core.ErrLink)
	if err == nil && link.Taken {
		err = errEmailTaken
	}
	return err
}

const selectReset = `SELECT u.uid, u.email FROM ` + validLink

// CheckReset returns the address of the account whose password a token resets.
func (db *DB) CheckReset(ctx context.Context, token core.LinkHash, now time.Time) (address string, err error) {
	users, err := collect[struct {
		UID   core.UserID
		Email string
	}](ctx, db.reads, statement{selectReset, []any{token[:], []core.Purpose{core.ForReset}, now}})
	user, err := one(users, failure("look for a reset", err), core.ErrLink)
	return user.Email, err
}

// ResetPassword replaces a password hash and ends all sessions of the user.
func (db *DB) ResetPassword(ctx context.Context, token core.LinkHash, hash string, from netip.Prefix, now time.Time) error {
	users, err := collect[struct{ UID core.UserID }](ctx, db.writes,
		statement{lockUserOfLink, []any{token[:]}},
		statement{resetPassword, []any{token[:], []core.Purpose{core.ForReset}, now, hash, from}},
	)
	_, err = one(users, failure("reset a password", err), core.ErrLink)
	return err
}

// insertRegistration reads no account, so that the response does not tell whether there is one.
const insertRegistration = `
	WITH inserted AS (
		INSERT INTO registrations (email, email_key, nickname, player, player_key)
		SELECT $1, $2, $3, $4, $5 WHERE NOT EXISTS (SELECT FROM players WHERE name_key = $5)
			AND NOT EXISTS (SELECT FROM deleted_players d WHERE name_key = $5 AND ` + restorable + `)
		RETURNING rid, email, email_key
	)
	INSERT INTO mails (purpose, registration, email, email_key) SELECT 'registration', rid, email, email_key FROM inserted
	RETURNING registration AS rid`

// QueueRegistration stores a registration and queues the link that confirms it.
func (db *DB) QueueRegistration(ctx context.Context, user core.NewUser) error {
	rows, err := collect[struct{ RID int64 }](ctx, db.writes, statement{insertRegistration, []any{
		user.Email, user.EmailKey, user.Nickname, user.Player.Name, user.Player.Key,
	}})
	_, err = one(rows, failure("store a registration", err), errPlayerTaken)
	return err
}

const (
	selectRegistration = `
	SELECT r.email, r.email_key, r.nickname, r.player, r.player_key
	FROM registrations r JOIN mail_tokens t ON t.registration = r.rid
	WHERE t.hash = $1 AND t.expires_at > $2`

	// lockRegistrations locks all registrations of the address, by rid: the first that is
	// confirmed deletes the others.
	lockRegistrations = `
	SELECT rid FROM registrations
	WHERE email_key = (SELECT r.email_key FROM registrations r JOIN mail_tokens t ON t.registration = r.rid WHERE t.hash = $1)
	ORDER BY rid FOR UPDATE`

	deleteRegistrations = `DELETE FROM registrations WHERE email_key = $1`
)

// Registration returns the user that a registration would add.
func (db *DB) Registration(ctx context.Context, token core.LinkHash, now time.Time) (core.NewUser, error) {
	return registration(ctx, db.reads, statement{selectRegistration, []any{token[:], now}})
}

// registration returns the user of the registration that the last statement selects.
func registration(ctx context.Context, q querier, statements ...statement) (core.NewUser, error) {
	rows, err := collect[struct {
		Email, EmailKey, Nickname, Player, PlayerKey string
	}](ctx, q, statements...)
	r, err := one(rows, failure("read a registration", err), core.ErrLink)
	return core.NewUser{Email: r.Email, EmailKey: r.EmailKey, Nickname: r.Nickname, Player: core.NewPlayer{Name: r.Player, Key: r.PlayerKey}}, err
}

// ConfirmRegistration adds the user of a registration.
func (db *DB) ConfirmRegistration(ctx context.Context, token core.LinkHash, user core.NewUser, now time.Time) (added core.User, err error) {
	err = db.writes.transact(ctx, func(tx pgx.Tx) error {
		_, err := registration(ctx, tx, statement{lockRegistrations, []any{token[:]}}, statement{selectRegistration, []any{token[:], now}})
		if err != nil {
			return err
		}
		if added, err = addUser(ctx, tx, user); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, deleteRegistrations, user.EmailKey)
		return err
	})
	if err != nil {
		return core.User{}, failure("add the user of a registration", err)
	}
	db.onChange()
	return added, nil
}
