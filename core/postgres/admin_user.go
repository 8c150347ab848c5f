package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/casefold"
)

var (
	_ core.UserAdminStore     = (*DB)(nil)
	_ core.UserDirectoryStore = (*DB)(nil)
)

// userDetails are the details of a user action in the audit log: address and nickname before
// it, and the changed value.
type userDetails struct {
	Email    string `json:"email"`
	Nickname string `json:"nickname"`
	From     any    `json:"from,omitempty"`
	To       any    `json:"to,omitempty"`
	// Report is the one that a ban has settled.
	Report core.ReportID `json:"report,omitempty"`
}

// userAction is an administrator's action on a user.
type userAction struct {
	action string
	// loggedValue returns the value that the action changes; nil if it must not be logged, as a
	// password, or there is none.
	loggedValue func(core.User) any
	do          func(tx pgx.Tx, admin core.Actor, before core.User) (core.User, error)
	// lock, if set, is the first statement: it locks the administrator, the user and others.
	lock statement
}

// runUserAction runs an action on a user that the administrator may moderate, and logs it.
func (db *DB) runUserAction(ctx context.Context, admin core.Actor, user core.UserID, a userAction) (after core.User, err error) {
	err = db.adminTx(ctx, a.action, func(tx pgx.Tx) error {
		if a.lock.sql != "" {
			if _, err := tx.Exec(ctx, a.lock.sql, a.lock.args...); err != nil {
				return err
			}
		}
		admin, users, err := authorise(ctx, tx, admin, user)
		if err != nil {
			return err
		}
		before, ok := users[user]
		if !ok {
			return noUser(user)
		}
		if err := admin.CanModerate(before); err != nil {
			return err
		}
		if after, err = a.do(tx, admin, before); err != nil {
			return err
		}
		details := userDetails{Email: before.Email, Nickname: before.Nickname}
		if a.loggedValue != nil {
			details.From, details.To = a.loggedValue(before), a.loggedValue(after)
		}
		return writeAudit(ctx, tx, admin, a.action, userSubject(user), details)
	})
	return after, err
}

// CreateUserBy adds a user, with a first player if one is named.
func (db *DB) CreateUserBy(ctx context.Context, admin core.Actor, user core.NewUser) (added core.User, err error) {
	err = db.adminTx(ctx, "user.add", func(tx pgx.Tx) error {
		admin, _, err := authorise(ctx, tx, admin)
		if err != nil {
			return err
		}
		if err := admin.CanGrant(user.Permission); err != nil {
			return err
		}
		if added, err = addUser(ctx, tx, user); err != nil {
			return err
		}
		return writeAudit(ctx, tx, admin, "user.add", userSubject(added.ID), userDetails{Email: added.Email, Nickname: added.Nickname, To: added.Permission})
	})
	return added, err
}

// userSubject names a user in the audit log.
func userSubject(user core.UserID) string { return fmt.Sprintf("user:%d", user) }

// SetNicknameBy changes a user's nickname.
func (db *DB) SetNicknameBy(ctx context.Context, admin core.Actor, user core.UserID, nickname string) (core.User, error) {
	return db.runUserAction(ctx, admin, user, userAction{
		action:      "user.nickname",
		loggedValue: func(u core.User) any { return u.Nickname },
		do: func(tx pgx.Tx, _ core.Actor, _ core.User) (core.User, error) {
			return setNickname(ctx, tx, user, nickname)
		},
	})
}

// SetEmailBy changes a user's e-mail address.
func (db *DB) SetEmailBy(ctx context.Context, admin core.Actor, user core.UserID, change core.EmailChange) (core.User, error) {
	return db.runUserAction(ctx, admin, user, userAction{
		action:      "user.email",
		loggedValue: func(u core.User) any { return u.Email },
		do: func(tx pgx.Tx, _ core.Actor, before core.User) (core.User, error) {
			return setEmail(ctx, tx, core.VerifiedCredentials{Credentials: core.Credentials{User: before}}, change)
		},
	})
}

// SetPasswordBy replaces a user's password hash.
func (db *DB) SetPasswordBy(ctx context.Context, admin core.Actor, change core.PasswordChange) (core.User, error) {
	return db.runUserAction(ctx, admin, change.User, userAction{
		action: "user.password",
		do: func(tx pgx.Tx, _ core.Actor, before core.User) (core.User, error) {
			return before, setPassword(ctx, tx, change)
		},
	})
}

const updateVerified = `UPDATE users u SET verified = $2 WHERE uid = $1 RETURNING ` + userColumns

// SetVerifiedBy sets whether a user's e-mail address is verified.
func (db *DB) SetVerifiedBy(ctx context.Context, admin core.Actor, user core.UserID, verified bool) (core.User, error) {
	return db.runUserAction(ctx, admin, user, userAction{
		action:      "user.verified",
		loggedValue: func(u core.User) any { return u.Verified },
		do: func(tx pgx.Tx, _ core.Actor, _ core.User) (core.User, error) {
			users, err := collect[core.User](ctx, tx, statement{updateVerified, []any{user, verified}})
			return one(users, err, noUser(user))
		},
	})
}

// SetScoreBy sets a user's score.
func (db *DB) SetScoreBy(ctx context.Context, admin core.Actor, user core.UserID, score int64) (core.User, error) {
	return db.runUserAction(ctx, admin, user, userAction{
		action:      "user.score",
		loggedValue: func(u core.User) any { return u.Score },
		do: func(tx pgx.Tx, _ core.Actor, before core.User) (core.User, error) {
			return setScore(ctx, tx, before, score)
		},
	})
}

// setScore sets the score of a locked user.
func setScore(ctx context.Context, tx pgx.Tx, user core.User, score int64) (core.User, error) {
	err := charge(ctx, tx, user.ID, user.Score-score, "administrator", "")
	user.Score = score
	return user, err
}

// SetPermissionBy sets a user's permission.
func (db *DB) SetPermissionBy(ctx context.Context, admin core.Actor, user core.UserID, permission core.Permission) (core.User, error) {
	return db.runUserAction(ctx, admin, user, userAction{
		action:      "user.permission",
		loggedValue: func(u core.User) any { return u.Permission },
		do: func(tx pgx.Tx, admin core.Actor, _ core.User) (core.User, error) {
			if err := admin.CanGrant(permission); err != nil {
				return core.User{}, err
			}
			return setPermission(ctx, tx, user, permission)
		},
	})
}

// DeleteUserBy deletes a user with their players, private textures and closet.
func (db *DB) DeleteUserBy(ctx context.Context, admin core.Actor, user core.UserID) error {
	_, err := db.runUserAction(ctx, admin, user, userAction{
		action: "user.delete",
		lock:   statement{lockUserAndItemOwners, []any{user, admin.ID}},
		do: func(tx pgx.Tx, _ core.Actor, before core.User) (core.User, error) {
			return before, deleteUserOf(ctx, tx, core.VerifiedCredentials{Credentials: core.Credentials{User: before}})
		},
	})
	return err
}

const selectUsers = `SELECT ` + userColumns + ` FROM users u WHERE u.uid = ANY ($1) ORDER BY u.uid DESC`

// FindUsers lists users, the latest first. Search texts are not patterns.
func (db *DB) FindUsers(ctx context.Context, query core.UserQuery) (core.Page[core.User], error) {
	var f filter
	if query.ID != 0 {
		f.add("u.uid = $%d", query.ID)
	}
	if query.Email != "" {
		f.add("strpos(u.email_key, $%d) > 0", casefold.Key(query.Email))
	}
	if query.Nickname != "" {
		if err := db.fillForSearch(ctx, nicknameKeys); err != nil {
			return core.Page[core.User]{}, err
		}
		f.add("strpos(u.nickname_key, $%d) > 0", casefold.Key(query.Nickname))
	}
	result := core.Page[core.User]{}
	total, more, ids, err := db.find(ctx, "u.uid", "users u", f, query.Page, query.PerPage)
	if err == nil {
		result.Total, result.More = total, more
		result.Items, err = collect[core.User](ctx, db.reads, statement{selectUsers, []any{ids}})
	}
	return result, failure("find users", err)
}
