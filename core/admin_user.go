package core

import (
	"context"

	"github.com/veneer-skins/veneer/shared/casefold"
	"github.com/veneer-skins/veneer/shared/fault"
)

// UserAdminStore changes users for administrators. Each method first checks Actor.CanModerate
// (Forbidden). It writes one entry of the audit log with the change, and none with a failure. An
// unknown user is a NotFound fault.
type UserAdminStore interface {
	// SetNicknameBy replaces the nickname of a user.
	SetNicknameBy(ctx context.Context, by Actor, user UserID, nickname string) (User, error)

	// SetEmailBy replaces the e-mail address of a user, as SetEmail does.
	SetEmailBy(ctx context.Context, by Actor, user UserID, change EmailChange) (User, error)

	// SetPasswordBy replaces the password hash of a user, as SetPassword does.
	SetPasswordBy(ctx context.Context, by Actor, change PasswordChange) (User, error)

	// SetVerifiedBy sets whether the e-mail address of a user is verified.
	SetVerifiedBy(ctx context.Context, by Actor, user UserID, verified bool) (User, error)

	// SetScoreBy sets the score of a user.
	SetScoreBy(ctx context.Context, by Actor, user UserID, score int64) (User, error)

	// SetPermissionBy sets the permission of a user, to one that the actor can grant. Lifting a ban
	// ends the user's sessions.
	SetPermissionBy(ctx context.Context, by Actor, user UserID, permission Permission) (User, error)
}

// UserDirectoryStore finds and deletes users for administrators.
type UserDirectoryStore interface {
	// FindUsers lists users, the latest registration first.
	FindUsers(ctx context.Context, query UserQuery) (Page[User], error)

	// DeleteUserBy deletes a user as DeleteUser does, with the checks of UserAdminStore.
	DeleteUserBy(ctx context.Context, by Actor, user UserID) error
}

// UserQuery selects users for an administrator. Zero values select all.
type UserQuery struct {
	ID UserID
	// Email and Nickname are case-insensitive substrings.
	Email, Nickname string
	Page, PerPage   int
}

// Find returns a page of the users that match a query. A page past the end is empty.
func (a *Accounts) Find(ctx context.Context, query UserQuery) (Page[User], error) {
	var wrong fieldFaults
	wrong.addPage(query.Page, query.PerPage, MaxSearchPage)
	wrong.addPart("email", &query.Email, maxEmail)
	wrong.addPart("nickname", &query.Nickname, MaxName)
	if err := wrong.fault(); err != nil {
		return Page[User]{}, err
	}
	return a.store.FindUsers(ctx, query)
}

// RenameBy replaces the nickname of a user, for an administrator.
func (a *Accounts) RenameBy(ctx context.Context, by Actor, user UserID, nickname string) (User, error) {
	nickname, err := validateName("nickname", nickname)
	if err != nil {
		return User{}, err
	}
	return a.store.SetNicknameBy(ctx, by, user, nickname)
}

// ChangeEmailBy replaces the e-mail address of a user, for an administrator. The user gets the same
// e-mails as for a change of their own.
func (a *Accounts) ChangeEmailBy(ctx context.Context, by Actor, user UserID, address string) (User, error) {
	address, err := validateEmail(address)
	if err != nil {
		return User{}, err
	}
	return a.store.SetEmailBy(ctx, by, user, EmailChange{Email: address, EmailKey: casefold.Key(address), Notify: a.mail})
}

// ResetPasswordBy replaces the password of a user and ends all their sessions, for an
// administrator. The user gets the same e-mail as for a change of their own.
func (a *Accounts) ResetPasswordBy(ctx context.Context, by Actor, user UserID, newPassword string) (User, error) {
	hash, err := a.hashPassword(ctx, newPassword)
	if err != nil {
		return User{}, err
	}
	return a.store.SetPasswordBy(ctx, by, PasswordChange{User: user, NewHash: hash, Notify: a.mail})
}

// SetVerifiedBy sets whether the e-mail address of a user is verified, for an administrator.
func (a *Accounts) SetVerifiedBy(ctx context.Context, by Actor, user UserID, verified bool) (User, error) {
	return a.store.SetVerifiedBy(ctx, by, user, verified)
}

// maxScore leaves room for all rewards that a user may ever earn on top of it.
const maxScore = 1_000_000_000_000

// SetScoreBy sets the score of a user, for an administrator.
func (a *Accounts) SetScoreBy(ctx context.Context, by Actor, user UserID, score int64) (User, error) {
	if score < 0 || score > maxScore {
		return User{}, fault.Field("score", "The score is %d, but must be 0 to %d.", score, maxScore)
	}
	return a.store.SetScoreBy(ctx, by, user, score)
}

// SetPermissionBy bans a user, lifts a ban, or sets whether a user is an administrator. From the
// next request on a banned user gets ErrBanned. Lifting the ban ends the sessions from before it.
// Only CLIActor makes super administrators.
func (a *Accounts) SetPermissionBy(ctx context.Context, by Actor, user UserID, permission int64) (User, error) {
	if permission < int64(Banned) || permission > int64(Administrator) && by != CLIActor {
		return User{}, fault.Field("permission", "The permission is %d, but must be -1, 0 or 1.", permission)
	}
	return a.store.SetPermissionBy(ctx, by, user, Permission(permission))
}

// DeleteBy deletes a user, for an administrator.
func (a *Accounts) DeleteBy(ctx context.Context, by Actor, user UserID) error {
	return a.store.DeleteUserBy(ctx, by, user)
}
