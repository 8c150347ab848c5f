package core

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/fold"
)

// UserAdminStore changes users for administrators. Each method first makes sure of
// the authority, which must be over the user, else it returns a Forbidden fault;
// NotFound without such a user. With the change it writes one entry of the audit
// log, and with a failure none.
type UserAdminStore interface {
	// SetNicknameBy gives a user another nickname.
	SetNicknameBy(ctx context.Context, by Authority, user UserID, nickname string) (User, error)

	// SetEmailBy gives a user another e-mail address, as SetEmail does.
	SetEmailBy(ctx context.Context, by Authority, user UserID, change EmailChange) (User, error)

	// SetPasswordBy replaces the hash of a user's password, and ends all their
	// sessions.
	SetPasswordBy(ctx context.Context, by Authority, user UserID, hash string) (User, error)

	// SetVerifiedBy says whether a user's e-mail address is verified.
	SetVerifiedBy(ctx context.Context, by Authority, user UserID, verified bool) (User, error)

	// SetScoreBy sets a user's score.
	SetScoreBy(ctx context.Context, by Authority, user UserID, score int64) (User, error)

	// SetPermissionBy changes what a user may do, as SetPermission does, to what the
	// authority grants.
	SetPermissionBy(ctx context.Context, by Authority, user UserID, permission Permission) (User, error)
}

// UserDirectoryStore finds users for administrators, and removes them.
type UserDirectoryStore interface {
	// FindUsers lists users, those who registered last first.
	FindUsers(ctx context.Context, query UserQuery) (Found[User], error)

	// DeleteUserBy deletes a user as DeleteUser does, and else is as the methods of
	// UserAdminStore are.
	DeleteUserBy(ctx context.Context, by Authority, user UserID) error
}

// UserQuery says which users an administrator looks for. What is zero or empty
// asks for any.
type UserQuery struct {
	ID UserID
	// Email and Nickname are parts of what a user has, in any case.
	Email, Nickname string
	Page, PerPage   int
}

// Found is a page of what a search has found.
type Found[T any] struct {
	Items []T
	// Total is how many there are on all pages, which reach no further than MostFound;
	// More, whether there are others.
	Total int
	More  bool
}

// MostFound is how many things a search finds: whoever gets so many looks for
// something else than the last of them.
const MostFound = 10_000

// Bounds of a page of a search, and the last one of the library's; how many items are
// on one has the bounds of a closet's page.
const (
	DefaultFoundPerPage = 20
	MaxFoundPage        = 1000
)

// checkFound notes what is wrong with the page that is wanted of a search.
func (f *fieldFaults) checkFound(page, perPage int) {
	if page < 1 || page > MaxFoundPage {
		f.add(fault.Field("page", "The page must be at least 1, and no more than %d.", MaxFoundPage))
	}
	if perPage < 1 || perPage > maxPerPage {
		f.add(fault.Field("perPage", "There may be 1 to %d items on a page.", maxPerPage))
	}
}

// checkPart notes what is wrong with a part of a text to look for, and trims it.
func (f *fieldFaults) checkPart(field string, part *string, most int) {
	*part = strings.TrimSpace(*part)
	if !plain(*part) || utf8.RuneCountInString(*part) > most {
		f.add(fault.Field(field, "Look for text of no more than %d characters, without control characters.", most))
	}
}

// Find returns a page of the users that a query finds. A page past the end is
// empty.
func (a *Accounts) Find(ctx context.Context, query UserQuery) (Found[User], error) {
	var wrong fieldFaults
	wrong.checkFound(query.Page, query.PerPage)
	wrong.checkPart("email", &query.Email, maxEmail)
	wrong.checkPart("nickname", &query.Nickname, maxName)
	if err := wrong.fault(); err != nil {
		return Found[User]{}, err
	}
	return a.store.FindUsers(ctx, query)
}

// RenameBy has an administrator give a user another nickname.
func (a *Accounts) RenameBy(ctx context.Context, by Authority, user UserID, nickname string) (User, error) {
	nickname, err := name("nickname", nickname)
	if err != nil {
		return User{}, err
	}
	return a.store.SetNicknameBy(ctx, by, user, nickname)
}

// ChangeEmailBy has an administrator give a user another e-mail address. A site that
// sends e-mail tells of it as of a change of the user's own.
func (a *Accounts) ChangeEmailBy(ctx context.Context, by Authority, user UserID, address string) (User, error) {
	address, err := email(address)
	if err != nil {
		return User{}, err
	}
	return a.store.SetEmailBy(ctx, by, user, EmailChange{Email: address, EmailKey: fold.Key(address), Tell: a.mail})
}

// ResetPasswordBy has an administrator give a user another password, and ends all
// their sessions.
func (a *Accounts) ResetPasswordBy(ctx context.Context, by Authority, user UserID, fresh string) (User, error) {
	hash, err := a.hash(ctx, fresh)
	if err != nil {
		return User{}, err
	}
	return a.store.SetPasswordBy(ctx, by, user, hash)
}

// SetVerifiedBy has an administrator say whether a user's e-mail address is
// verified.
func (a *Accounts) SetVerifiedBy(ctx context.Context, by Authority, user UserID, verified bool) (User, error) {
	return a.store.SetVerifiedBy(ctx, by, user, verified)
}

// maxScore leaves room for all rewards that a user may ever earn beside it.
const maxScore = 1_000_000_000_000

// SetScoreBy has an administrator set a user's score.
func (a *Accounts) SetScoreBy(ctx context.Context, by Authority, user UserID, score int64) (User, error) {
	if score < 0 || score > maxScore {
		return User{}, fault.Field("score", "The score is %d, but must be 0 to %d.", score, maxScore)
	}
	return a.store.SetScoreBy(ctx, by, user, score)
}

// SetPermissionBy has an administrator ban a user, lift a ban, or make or unmake
// an administrator. Nobody becomes a super administrator this way.
func (a *Accounts) SetPermissionBy(ctx context.Context, by Authority, user UserID, permission int64) (User, error) {
	if permission < int64(Banned) || permission > int64(Administrator) {
		return User{}, fault.Field("permission", "The permission is %d, but must be -1, 0 or 1.", permission)
	}
	return a.store.SetPermissionBy(ctx, by, user, Permission(permission))
}

// DeleteBy has an administrator delete a user.
func (a *Accounts) DeleteBy(ctx context.Context, by Authority, user UserID) error {
	return a.store.DeleteUserBy(ctx, by, user)
}
