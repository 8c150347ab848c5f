package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/fault"
)

var _ core.NotificationStore = (*DB)(nil)

const selectUnread = `
	SELECT n.id, m.title FROM notifications n JOIN messages m USING (mid)
	WHERE n.uid = $1 AND n.read_at IS NULL
	ORDER BY n.mid DESC`

// Unread lists unread notifications.
func (db *DB) Unread(ctx context.Context, ticket core.Ticket) ([]core.UnreadNotification, error) {
	return readFor[core.UnreadNotification](ctx, db, ticket, statement{selectUnread, []any{ticket.Token.User}})
}

const readNotification = `
	WITH marked AS (
		UPDATE notifications SET read_at = now() WHERE id = $2 AND uid = $1 AND read_at IS NULL
	)
	SELECT m.title, m.content, m.sent_at FROM notifications n JOIN messages m USING (mid)
	WHERE n.id = $2 AND n.uid = $1`

// ReadNotification returns a notification and marks it read.
func (db *DB) ReadNotification(ctx context.Context, user core.UserID, id uuid.UUID) (core.Notification, error) {
	found, err := collect[core.Notification](ctx, db.pool, statement{readNotification, []any{user, id}})
	return only(found, failure("read a notification", err), fault.New(fault.NotFound, "There is no such notification."))
}

// insertNotifications keeps those whom it tells from being deleted meanwhile, and
// leaves out those who are. A message for nobody is not kept.
const insertNotifications = `
	WITH receivers AS (
		SELECT uid FROM users WHERE $3 OR uid = ANY ($4) FOR KEY SHARE
	), message AS (
		INSERT INTO messages (title, content) SELECT $1, $2 WHERE EXISTS (SELECT FROM receivers)
		RETURNING mid
	)
	INSERT INTO notifications (uid, mid) SELECT uid, mid FROM receivers, message`

// Notify gives users an unread notification.
func (db *DB) Notify(ctx context.Context, users []core.UserID, title, content string) (int, error) {
	tag, err := db.pool.Exec(ctx, insertNotifications, title, content, false, users)
	return int(tag.RowsAffected()), failure("notify users", err)
}

// NotifyAll gives all users an unread notification.
func (db *DB) NotifyAll(ctx context.Context, title, content string) (int, error) {
	tag, err := db.pool.Exec(ctx, insertNotifications, title, content, true, nil)
	return int(tag.RowsAffected()), failure("notify all users", err)
}

const selectNotified = `SELECT EXISTS (SELECT FROM notifications WHERE uid = $1)`

// Notified reports whether a user has any notification.
func (db *DB) Notified(ctx context.Context, user core.UserID) (notified bool, err error) {
	err = db.pool.QueryRow(ctx, selectNotified, user).Scan(&notified)
	return notified, failure("look for notifications", err)
}

const deleteMessagesBefore = `DELETE FROM messages WHERE sent_at < $1`

// TrimNotifications deletes what was sent before a time; notifications go with
// their message.
func (db *DB) TrimNotifications(ctx context.Context, before time.Time) (int, error) {
	tag, err := db.pool.Exec(ctx, deleteMessagesBefore, before)
	return int(tag.RowsAffected()), failure("trim notifications", err)
}
