package postgres

import (
	"context"

	"github.com/veneer-skins/veneer/core"
)

var _ core.NotificationStore = (*DB)(nil)

const insertNotifications = `
	WITH message AS (
		INSERT INTO messages (title, content) VALUES ($2, $3) RETURNING mid
	)
	INSERT INTO notifications (uid, mid) SELECT uid, mid FROM users, message WHERE uid = ANY ($1)`

// Notify gives users an unread notification.
func (db *DB) Notify(ctx context.Context, users []core.UserID, title, content string) error {
	_, err := db.pool.Exec(ctx, insertNotifications, users, title, content)
	return failure("notify users", err)
}

const selectNotified = `SELECT EXISTS (SELECT FROM notifications WHERE uid = $1)`

// Notified reports whether a user has any notification.
func (db *DB) Notified(ctx context.Context, user core.UserID) (notified bool, err error) {
	err = db.pool.QueryRow(ctx, selectNotified, user).Scan(&notified)
	return notified, failure("look for notifications", err)
}
