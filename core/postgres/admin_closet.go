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
		err = db.reads.read(ctx, func() error {
			var batch pgx.Batch
			batch.Queue(selectUserID, user).Query(into(&users))
			selectedCloset(user, query).queue(&batch).Query(into(&rows))
			return db.reads.SendBatch(ctx, &batch).Close()
		})
		_, err = only(users, failure("list a closet", err), noUser(user))
		return rows, err
	})
}

// closetNote is what the audit log says of an act on a closet.
type closetNote struct {
	Email string         `json:"email"` // the closet's user's
	TID   core.TextureID `json:"tid"`
	Name  string         `json:"name,omitempty"` // the item's
}

// actOnCloset does an act on a closet whose user the actor may act on, or on the
// actor's own, and notes it.
func (db *DB) actOnCloset(ctx context.Context, by core.Authority, user core.UserID, action string, said closetNote, do func(pgx.Tx) error) error {
	return db.act(ctx, action, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockUsersAndUploader, []core.UserID{by.Actor, user}, said.TID); err != nil {
			return err
		}
		by, users, err := authorise(ctx, tx, by, user)
		if err != nil {
			return err
		}
		owner, ok := users[user]
		if !ok {
			return noUser(user)
		}
		if err := by.OverThingsOf(owner); err != nil {
			return err
		}
		if err := do(tx); err != nil {
			return err
		}
		said.Email = owner.Email
		return note(ctx, tx, by, action, userSubject(user), said)
	})
}

// AddClosetItemBy adds a texture to a user's closet.
func (db *DB) AddClosetItemBy(
	ctx context.Context, by core.Authority, user core.UserID, texture core.TextureID, name string, terms core.Terms,
) error {
	return db.actOnCloset(ctx, by, user, "closet.add", closetNote{TID: texture, Name: name}, func(tx pgx.Tx) error {
		return addClosetItem(ctx, tx, user, texture, name, terms)
	})
}

// RemoveClosetItemBy removes an item from a user's closet.
func (db *DB) RemoveClosetItemBy(ctx context.Context, by core.Authority, user core.UserID, texture core.TextureID) error {
	return db.actOnCloset(ctx, by, user, "closet.remove", closetNote{TID: texture}, func(tx pgx.Tx) error {
		return removeClosetItem(ctx, tx, user, texture)
	})
}
