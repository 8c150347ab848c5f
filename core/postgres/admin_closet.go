package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
)

var _ core.ClosetAdminStore = (*DB)(nil)

const selectUserID = `SELECT uid FROM users WHERE uid = $1`

// ClosetOf lists items of a user's closet.
func (db *DB) ClosetOf(ctx context.Context, user core.UserID, query core.ClosetQuery) (core.ClosetPage, error) {
	return db.closetPage(ctx, user, func() (rows []closetRow, err error) {
		var users []struct{ UID core.UserID }
		err = db.reads.run(ctx, func() error {
			var batch pgx.Batch
			batch.Queue(selectUserID, user).Query(collectInto(&users))
			closetStatement(user, query).queue(&batch).Query(collectInto(&rows))
			return db.reads.SendBatch(ctx, &batch).Close()
		})
		_, err = one(users, failure("list a closet", err), noUser(user))
		return rows, err
	})
}

// closetDetails are the details of a closet action in the audit log.
type closetDetails struct {
	Email string         `json:"email"` // of the closet's user
	TID   core.TextureID `json:"tid"`
	Name  string         `json:"name,omitempty"` // of the item
}

// runClosetAction runs an action on the administrator's own closet, or on that of a user that
// the administrator may moderate, and logs it.
func (db *DB) runClosetAction(ctx context.Context, admin core.Actor, user core.UserID, action string, details closetDetails, do func(pgx.Tx) error) error {
	return db.adminTx(ctx, action, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockUsersAndUploader, []core.UserID{admin.ID, user}, details.TID); err != nil {
			return err
		}
		admin, users, err := authorise(ctx, tx, admin, user)
		if err != nil {
			return err
		}
		owner, ok := users[user]
		if !ok {
			return noUser(user)
		}
		if err := admin.CanModerateContentOf(owner); err != nil {
			return err
		}
		if err := do(tx); err != nil {
			return err
		}
		details.Email = owner.Email
		return writeAudit(ctx, tx, admin, action, userSubject(user), details)
	})
}

// AddClosetItemBy adds a texture to a user's closet.
func (db *DB) AddClosetItemBy(
	ctx context.Context, admin core.Actor, user core.UserID, texture core.TextureID, name string, pricing core.Pricing,
) error {
	return db.runClosetAction(ctx, admin, user, "closet.add", closetDetails{TID: texture, Name: name}, func(tx pgx.Tx) error {
		return addClosetItem(ctx, tx, user, texture, name, pricing)
	})
}

// RemoveClosetItemBy removes an item from a user's closet.
func (db *DB) RemoveClosetItemBy(ctx context.Context, admin core.Actor, user core.UserID, texture core.TextureID) error {
	return db.runClosetAction(ctx, admin, user, "closet.remove", closetDetails{TID: texture}, func(tx pgx.Tx) error {
		return removeClosetItem(ctx, tx, user, texture)
	})
}
