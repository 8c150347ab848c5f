package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/fault"
)

var _ core.NotificationStore = (*DB)(nil)

// inAudience is the condition that a broadcast b is addressed to a user u.
const inAudience = `u.uid <= b.newest AND (b.audience = 'all' OR ` + effectivePermission + ` = 0)`

const selectUnread = `
	WITH unread AS (
		SELECT id, mid FROM notifications WHERE uid = $1 AND read_at IS NULL
		UNION ALL
		SELECT b.id, b.mid FROM broadcasts b JOIN users u ON u.uid = $1
		WHERE ` + inAudience + ` AND NOT EXISTS (SELECT FROM broadcast_reads r WHERE r.uid = $1 AND r.mid = b.mid)
	)
	SELECT unread.id, m.title FROM unread JOIN messages m USING (mid)
	ORDER BY mid DESC LIMIT 100`

// Unread lists the newest 100 unread notifications.
func (db *DB) Unread(ctx context.Context, token core.VerifiedToken) ([]core.UnreadNotification, error) {
	return readWithSession[core.UnreadNotification](ctx, db, token, statement{selectUnread, []any{token.Token.User}})
}

// received are all notifications of a user, also broadcasts that were read but are no longer addressed to the user.
const received = `
	WITH received AS (
		SELECT id, mid, read_at IS NOT NULL AS read FROM notifications WHERE uid = $1
		UNION ALL
		SELECT b.id, b.mid, r.mid IS NOT NULL FROM broadcasts b JOIN users u ON u.uid = $1 LEFT JOIN broadcast_reads r ON r.uid = $1 AND r.mid = b.mid
		WHERE ` + inAudience + ` OR r.mid IS NOT NULL
	)`

const selectReceived = received + `
	SELECT id, title, coalesce(kind, '') AS kind, parameters, sent_at, read FROM received JOIN messages USING (mid)
	ORDER BY mid DESC LIMIT $2 OFFSET $3`

const countReceived = received + ` SELECT count(*) AS total FROM received`

// Notifications lists all notifications of a session's user.
func (db *DB) Notifications(ctx context.Context, token core.VerifiedToken, page, perPage int) (core.Page[core.ListedNotification], error) {
	result := core.Page[core.ListedNotification]{}
	var counts []struct{ Total int }
	user := token.Token.User
	err := withSession(ctx, db, token, func(batch *pgx.Batch) {
		statement{countReceived, []any{user}}.queue(batch).Query(collectInto(&counts))
		statement{selectReceived, []any{user, perPage, (page - 1) * perPage}}.queue(batch).Query(collectInto(&result.Items))
	})
	if err == nil {
		result.Total = counts[0].Total
	}
	return result, err
}

// readNotification also returns a broadcast that the user has read before, but that is no
// longer addressed to them. It locks the user and the broadcast against deletion while it
// inserts the read mark.
const readNotification = `
	WITH own_notification AS (
		SELECT mid FROM notifications WHERE id = $2 AND uid = $1
	), broadcast AS (
		SELECT u.uid, b.mid FROM broadcasts b JOIN users u ON u.uid = $1
		WHERE b.id = $2 AND (` + inAudience + ` OR EXISTS (SELECT FROM broadcast_reads r WHERE r.uid = $1 AND r.mid = b.mid))
		FOR KEY SHARE OF u, b
	), updated_notification AS (
		UPDATE notifications SET read_at = now() WHERE id = $2 AND uid = $1 AND read_at IS NULL
	), inserted_read AS (
		INSERT INTO broadcast_reads (uid, mid) SELECT uid, mid FROM broadcast ON CONFLICT DO NOTHING
	)
	SELECT m.title, m.content, coalesce(m.kind, '') AS kind, m.parameters, m.sent_at FROM messages m
	WHERE m.mid = (SELECT mid FROM own_notification UNION ALL SELECT mid FROM broadcast)`

// ReadNotification returns a notification and marks it read.
func (db *DB) ReadNotification(ctx context.Context, user core.UserID, id uuid.UUID) (core.Notification, error) {
	rows, err := collect[core.Notification](ctx, db.writes, statement{readNotification, []any{user, id}})
	return one(rows, failure("read a notification", err), fault.New(fault.NotFound, "There is no such notification."))
}

// insertNotifications locks the receivers against deletion, and skips those being deleted. It
// inserts no message without a receiver.
const insertNotifications = `
	WITH receivers AS (
		SELECT uid FROM users WHERE uid = ANY ($3) OR email_key = $4 FOR KEY SHARE
	), message AS (
		INSERT INTO messages (title, content, kind, parameters) SELECT $1, $2, nullif($5, ''), $6::jsonb WHERE EXISTS (SELECT FROM receivers)
		RETURNING mid
	)
	INSERT INTO notifications (uid, mid) SELECT uid, mid FROM receivers, message
	RETURNING uid`

// insertBroadcast writes a constant number of rows, and locks no user.
const insertBroadcast = `
	WITH audience AS (
		SELECT count(*) FILTER (WHERE $3 = 'all' OR ` + effectivePermission + ` = 0) AS users, max(uid) AS newest FROM users u
	), message AS (
		INSERT INTO messages (title, content, kind, parameters) SELECT $1, $2, nullif($4, ''), $5::jsonb FROM audience WHERE users > 0
		RETURNING mid
	), inserted_broadcast AS (
		INSERT INTO broadcasts (mid, newest, audience) SELECT mid, newest, $3 FROM message, audience
	)
	SELECT users FROM audience`

// Notify adds an unread notification for users, and returns for how many.
func (db *DB) Notify(ctx context.Context, to core.Recipients, message core.Message) (int, error) {
	count, _, err := notify(ctx, db.writes, to, message)
	return count, failure("notify users", err)
}

// notify adds an unread notification for users. It returns how many, and their ids unless the
// recipients are an audience.
func notify(ctx context.Context, q querier, to core.Recipients, m core.Message) (count int, users []core.UserID, err error) {
	if to.Audience != "" {
		counts, err := collect[struct{ Users int }](ctx, q, statement{insertBroadcast, []any{m.Title, m.Content, to.Audience, m.Kind, m.Parameters}})
		if err != nil {
			return 0, nil, err
		}
		return counts[0].Users, nil, nil
	}
	rows, err := collect[struct{ UID core.UserID }](ctx, q, statement{insertNotifications, []any{m.Title, m.Content, to.Users, to.EmailKey, m.Kind, m.Parameters}})
	for _, user := range rows {
		users = append(users, user.UID)
	}
	return len(users), users, err
}

// Announce adds an unread notification for users as an administrator's action.
func (db *DB) Announce(ctx context.Context, admin core.Actor, to core.Recipients, title, content string) (count int, err error) {
	err = db.adminTx(ctx, "announce", func(tx pgx.Tx) error {
		admin, _, err := authorise(ctx, tx, admin)
		if err != nil {
			return err
		}
		var users []core.UserID
		if count, users, err = notify(ctx, tx, to, core.Message{Title: title, Content: content}); err != nil {
			return err
		}
		subject := "users:" + string(to.Audience)
		switch {
		case len(users) > 0:
			subject = userSubject(users[0])
		case to.Audience == "":
			return fault.New(fault.NotFound, "There is no such user.")
		}
		return writeAudit(ctx, tx, admin, core.AuditNotificationSend, subject, map[string]any{"title": title, "users": count})
	})
	return count, err
}

const selectHasNotifications = `
	SELECT EXISTS (SELECT FROM notifications WHERE uid = $1)
		OR EXISTS (SELECT FROM broadcasts b JOIN users u ON u.uid = $1 WHERE ` + inAudience + `) AS has_notifications`

// HasNotifications reports whether a user has any notification, read or not.
func (db *DB) HasNotifications(ctx context.Context, user core.UserID) (bool, error) {
	rows, err := collect[struct{ HasNotifications bool }](ctx, db.reads, statement{selectHasNotifications, []any{user}})
	return len(rows) > 0 && rows[0].HasNotifications, failure("look for notifications", err)
}

const deleteMessagesBefore = `DELETE FROM messages WHERE sent_at < $1`

// TrimNotifications deletes messages sent before a time, and with them their notifications.
func (db *DB) TrimNotifications(ctx context.Context, before time.Time) (int, error) {
	tag, err := db.writes.Exec(ctx, deleteMessagesBefore, before)
	return int(tag.RowsAffected()), failure("trim notifications", err)
}
