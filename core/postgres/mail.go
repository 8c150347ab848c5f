package postgres

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/fault"
)

var _ core.OutboxStore = (*DB)(nil)

// insertChangeNotice is completed by a FROM clause with the address of the user of a changed
// password. Cores of the previous release claim mails by due_at alone and do not know this
// purpose, hence infinity.
const insertChangeNotice = `
		INSERT INTO mails (purpose, email, email_key, due_at, password_due_at) SELECT 'password', email, email_key, 'infinity', now()`

// setDue postpones a mail m by $2.
const setDue = `
	UPDATE mails m SET
		due_at = CASE WHEN m.password_due_at IS NULL THEN now() + $2::interval ELSE m.due_at END,
		password_due_at = CASE WHEN m.password_due_at IS NOT NULL THEN now() + $2::interval END`

// isUnconfirmed is whether a mail asks its user to confirm the address.
const isUnconfirmed = `purpose IN ('registration', 'verification', 'address')`

// claimMails skips mails that other cores are claiming.
const claimMails = `
	WITH due_mails AS (
		SELECT id FROM mails WHERE (due_at <= now() OR password_due_at <= now()) AND purpose = ANY ($3)
			AND (NOT ` + isUnconfirmed + ` OR coalesce((
				SELECT count(*) < nullif($4, 0) FROM mails_sent WHERE ` + isUnconfirmed + ` AND sent_at > now() - interval '1 hour'
			), true) OR EXISTS (SELECT FROM mails_sent s WHERE s.id = mails.id)) -- it counts already, and is tried again
		ORDER BY ` + isUnconfirmed + `, least(due_at, password_due_at) LIMIT $1 FOR UPDATE SKIP LOCKED
	)` + setDue + ` FROM due_mails WHERE m.id = due_mails.id
	RETURNING m.id, m.purpose, m.email_key, now() - m.queued_at AS age`

// ClaimMails returns due mails, and postpones them by the lease.
func (db *DB) ClaimMails(ctx context.Context, claim core.MailClaim) ([]core.QueuedMail, error) {
	mails, err := collect[core.QueuedMail](ctx, db.writes, statement{claimMails, []any{claim.Limit, claim.Lease, claim.Purposes, claim.UnconfirmedPerHour}})
	return mails, failure("claim mails", err)
}

// lockAccountMail serialises the mails to an address, so that concurrent ones count each other.
// The first key of the lock is the oid of the index that is counted in.
const lockAccountMail = `SELECT pg_advisory_xact_lock('mails_sent_account'::regclass::int, $1)`

// linkBinding is the hash that links to user u are bound to: they are void once the address or
// the password changes.
const linkBinding = `sha256(convert_to(u.email || chr(10) || u.password_hash, 'UTF8'))`

// prepareMail runs after lockAccountMail has been acquired, and so sees what was counted
// before. If there is an account, it uses the address as stored there, not as typed. A mail
// that is sent again counts once.
const prepareMail = `
	WITH mail AS (
		SELECT m.*, o.uid AS owner, o.email AS owner_email, o.uid <> coalesce(m.uid, 0) AND m.purpose IN ('registration', 'address') AS taken
		FROM mails m LEFT JOIN users o USING (email_key) WHERE m.id = $1
	), prepared AS (
		SELECT m.id, m.purpose, m.registration, m.email_key, u.uid, ` + linkBinding + ` AS bound,
			CASE WHEN m.taken THEN 'owner' ELSE m.purpose END AS sent_purpose,
			CASE WHEN m.taken OR m.purpose = 'reset' THEN m.owner_email ELSE m.email END AS email
		FROM mail m LEFT JOIN users u ON u.uid = coalesce(m.uid, m.owner)
		WHERE CASE m.purpose
				WHEN 'verification' THEN u.email = m.email AND NOT u.verified
				WHEN 'address' THEN m.bound = ` + linkBinding + `
				WHEN 'reset' THEN u.uid IS NOT NULL
				ELSE true
			END
			AND coalesce((
				SELECT count(*) < nullif($6, 0) FROM mails_sent s
				WHERE s.account = $2 AND s.purpose = m.purpose AND s.sent_at > $4::timestamptz - interval '1 hour' AND s.id <> m.id
			), true)
	), inserted_count AS (
		INSERT INTO mails_sent (id, account, purpose, sent_at) SELECT id, $2, purpose, $4 FROM prepared
		ON CONFLICT (id) DO NOTHING
	), inserted_token AS (
		INSERT INTO mail_tokens (hash, expires_at, purpose, email, email_key, uid, bound, registration)
		SELECT $3, $5, sent_purpose, email, email_key, uid, bound, registration FROM prepared WHERE sent_purpose IN ('verification', 'address', 'reset', 'registration')
	)
	SELECT sent_purpose AS purpose, email FROM prepared`

// PrepareMail returns the recipient of a mail, and stores its token. The fault is NotFound if
// the mail is void or over the limit.
func (db *DB) PrepareMail(ctx context.Context, params core.MailParams) (core.PreparedMail, error) {
	rows, err := collect[core.PreparedMail](ctx, db.writes,
		statement{lockAccountMail, []any{int32(binary.BigEndian.Uint32(params.EmailHash[:]))}},
		statement{prepareMail, []any{params.Mail.ID, params.EmailHash[:], params.Token[:], params.Now, params.Expires, params.PerHour}},
	)
	return one(rows, failure("prepare a mail", err), fault.New(fault.NotFound, "This mail is void."))
}

const deleteMail = `DELETE FROM mails WHERE id = $1`

// DeleteMail removes a mail from the outbox.
func (db *DB) DeleteMail(ctx context.Context, id uuid.UUID) error {
	_, err := db.writes.Exec(ctx, deleteMail, id)
	return failure("delete a mail", err)
}

const deferMail = setDue + ` WHERE id = $1`

// DeferMail postpones a mail by delay.
func (db *DB) DeferMail(ctx context.Context, id uuid.UUID, delay time.Duration) error {
	_, err := db.writes.Exec(ctx, deferMail, id, delay)
	return failure("defer a mail", err)
}

const selectBacklog = `SELECT count(*) AS count, coalesce(now() - min(queued_at), interval '0') AS oldest FROM mails`

// MailBacklog returns the number and the age of queued mails.
func (db *DB) MailBacklog(ctx context.Context) (core.MailBacklog, error) {
	rows, err := collect[core.MailBacklog](ctx, db.reads, statement{selectBacklog, nil})
	return one(rows, failure("count mails", err), nil)
}

const (
	deleteSentBefore = `DELETE FROM mails_sent WHERE sent_at <= $1::timestamptz - interval '1 hour'`

	deleteExpiredTokens = `DELETE FROM mail_tokens WHERE expires_at <= $1`

	// A registration has a mail from the beginning, and a token before the mail is deleted.
	deleteUnusedRegistrations = `
	DELETE FROM registrations r
	WHERE NOT EXISTS (SELECT FROM mails m WHERE m.registration = r.rid)
		AND NOT EXISTS (SELECT FROM mail_tokens t WHERE t.registration = r.rid)`
)

// TrimMails deletes expired tokens, old counts, and registrations without mail or token. It
// returns how many tokens and registrations.
func (db *DB) TrimMails(ctx context.Context, now time.Time) (int, error) {
	if _, err := db.writes.Exec(ctx, deleteSentBefore, now); err != nil {
		return 0, failure("trim the count of mails", err)
	}
	tokens, err := db.writes.Exec(ctx, deleteExpiredTokens, now)
	if err != nil {
		return 0, failure("trim tokens of mails", err)
	}
	registrations, err := db.writes.Exec(ctx, deleteUnusedRegistrations)
	return int(tokens.RowsAffected() + registrations.RowsAffected()), failure("trim registrations", err)
}
