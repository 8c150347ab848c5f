package core

import (
	"context"

	"github.com/veneer-skins/veneer/shared/casefold"
	"github.com/veneer-skins/veneer/shared/fault"
)

// UserAdminStore changes users for administrators. Each method first makes sure of
// the authority, which must be over the user, else it returns a Forbidden fault;
// NotFound without such a user. With the change it writes one entry of the audit
// log, and with a failure none.
type UserAdminStore interface {
	// SetNicknameBy gives a user another nickname.
	SetNicknameBy(ctx context.Context, by Actor, user UserID, nickname string) (User, error)

	// SetEmailBy gives a user another e-mail address, as SetEmail does.
	SetEmailBy(ctx context.Context, by Actor, user UserID, change EmailChange) (User, error)

	// SetPasswordBy replaces the hash of a user's password, as SetPassword does.
	SetPasswordBy(ctx context.Context, by Actor, change PasswordChange) (User, error)

	// SetVerifiedBy says whether a user's e-mail address is verified.
	SetVerifiedBy(ctx context.Context, by Actor, user UserID, verified bool) (User, error)

	// SetScoreBy sets a user's score.
	SetScoreBy(ctx context.Context, by Actor, user UserID, score int64) (User, error)

	// SetPermissionBy changes what a user may do, to what the authority grants. When it
	// lifts a ban it ends the user's sessions.
	SetPermissionBy(ctx context.Context, by Actor, user UserID, permission Permission) (User, error)
}

// UserDirectoryStore finds users for administrators, and removes them.
type UserDirectoryStore interface {
	// FindUsers lists users, those who registered last first.
	FindUsers(ctx context.Context, query UserQuery) (Page[User], error)

	// DeleteUserBy deletes a user as DeleteUser does, and else is as the methods of
	// UserAdminStore are.
	DeleteUserBy(ctx context.Context, by Actor, user UserID) error
}

// UserQuery says which users an administrator looks for. What is zero or empty
// asks for any.
type UserQuery struct {
	ID UserID
	// Email and Nickname are parts of what a user has, in any case.
	Email, Nickname string
	Page, PerPage   int
}

// Find returns a page of the users that a query finds. A page past the end is
// empty.
func (a *Accounts) Find(ctx context.Context, query UserQuery) (Page[User], error) {
	var wrong fieldFaults
	wrong.addPage(query.Page, query.PerPage, MaxSearchPage)
	wrong.addPart("email", &query.Email, maxEmail)
	wrong.addPart("nickname", &query.Nickname, maxName)
	if err := wrong.fault(); err != nil {
		return Page[User]{}, err
	}
	return a.store.FindUsers(ctx, query)
}

// RenameBy has an administrator give a user another nickname.
func (a *Accounts) RenameBy(ctx context.Context, by Actor, user UserID, nickname string) (User, error) {
	nickname, err := validateName("nickname", nickname)
	if err != nil {
		return User{}, err
	}
	return a.store.SetNicknameBy(ctx, by, user, nickname)
}

// ChangeEmailBy has an administrator give a user another e-mail address. A site that
// sends e-mail tells of it as of a change of the user's own.
func (a *Accounts) ChangeEmailBy(ctx context.Context, by Actor, user UserID, address string) (User, error) {
	address, err := validateEmail(address)
	if err != nil {
		return User{}, err
	}
	return a.store.SetEmailBy(ctx, by, user, EmailChange{Email: address, EmailKey: casefold.Key(address), Notify: a.mail})
}

// ResetPasswordBy has an administrator give a user another password, and ends all
// their sessions. A site that sends e-mail tells of it as of a change of the user's own.
func (a *Accounts) ResetPasswordBy(ctx context.Context, by Actor, user UserID, newPassword string) (User, error) {
	hash, err := a.hashPassword(ctx, newPassword)
	if err != nil {
		return User{}, err
	}
	return a.store.SetPasswordBy(ctx, by, PasswordChange{User: user, NewHash: hash, Notify: a.mail})
}

// SetVerifiedBy has an administrator say whether a user's e-mail address is
// verified.
func (a *Accounts) SetVerifiedBy(ctx context.Context, by Actor, user UserID, verified bool) (User, error) {
	return a.store.SetVerifiedBy(ctx, by, user, verified)
}

// maxScore leaves room for all rewards that a user may ever earn beside it.
const maxScore = 1_000_000_000_000

// SetScoreBy has an administrator set a user's score.
func (a *Accounts) SetScoreBy(ctx context.Context, by Actor, user UserID, score int64) (User, error) {
	if score < 0 || score > maxScore {
		return User{}, fault.Field("score", "The score is %d, but must be 0 to %d.", score, maxScore)
	}
	return a.store.SetScoreBy(ctx, by, user, score)
}

// SetPermissionBy has an administrator ban a user, lift a ban, or make or unmake
// an administrator. A banned user is refused from the next request on, and told why;
// with the ban end the sessions that they had. Only Terminal makes super
// administrators.
func (a *Accounts) SetPermissionBy(ctx context.Context, by Actor, user UserID, permission int64) (User, error) {
	if permission < int64(Banned) || permission > int64(Administrator) && by != CLIActor {
		return User{}, fault.Field("permission", "The permission is %d, but must be -1, 0 or 1.", permission)
	}
	return a.store.SetPermissionBy(ctx, by, user, Permission(permission))
}

// DeleteBy has an administrator delete a user.
func (a *Accounts) DeleteBy(ctx context.Context, by Actor, user UserID) error {
	return a.store.DeleteUserBy(ctx, by, user)
}
