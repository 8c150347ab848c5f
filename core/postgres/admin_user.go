package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
)

var _ core.UserAdminStore = (*DB)(nil)

// userNote is what the audit log says of an act on a user: what they were called
// before, and what changed.
type userNote struct {
	Email    string `json:"email"`
	Nickname string `json:"nickname"`
	From     any    `json:"from,omitempty"`
	To       any    `json:"to,omitempty"`
}

// userAct is an act on a user.
type userAct struct {
	action string
	// changed is what of a user changes; nil where the log must not, or need not, say.
	changed func(core.User) any
	do      func(tx pgx.Tx, by core.Authority, was core.User) (core.User, error)
}

// actOnUser does an act on a user who the actor may act on, and notes it.
func (db *DB) actOnUser(ctx context.Context, by core.Authority, user core.UserID, a userAct) (now core.User, err error) {
	err = db.act(ctx, a.action, func(tx pgx.Tx) error {
		by, users, err := authorise(ctx, tx, by, user)
		if err != nil {
			return err
		}
		was, ok := users[user]
		if !ok {
			return noUser(user)
		}
		if err := by.Over(was); err != nil {
			return err
		}
		if now, err = a.do(tx, by, was); err != nil {
			return err
		}
		said := userNote{Email: was.Email, Nickname: was.Nickname}
		if a.changed != nil {
			said.From, said.To = a.changed(was), a.changed(now)
		}
		return note(ctx, tx, by, a.action, fmt.Sprintf("user:%d", user), said)
	})
	return now, err
}

// SetPermissionBy changes what a user may do.
func (db *DB) SetPermissionBy(ctx context.Context, by core.Authority, user core.UserID, permission core.Permission) (core.User, error) {
	return db.actOnUser(ctx, by, user, userAct{
		"user.permission",
		func(u core.User) any { return u.Permission },
		func(tx pgx.Tx, by core.Authority, _ core.User) (core.User, error) {
			if err := by.Grants(permission); err != nil {
				return core.User{}, err
			}
			return setPermission(ctx, tx, user, permission)
		},
	})
}
