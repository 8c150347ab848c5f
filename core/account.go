package core

import (
	"context"
	"errors"
	"net/netip"
	"strconv"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/shared/fault"
)

// PasswordChange replaces the password of a user.
type PasswordChange struct {
	User UserID
	// OldHash is the hash that the user must still have; empty for an administrator's change.
	OldHash, NewHash string
	// AttemptID is the log-in attempt that verified the old password; 0 for none.
	AttemptID int64
	// KeepSession is the session that stays open; all others of the user end.
	KeepSession uuid.UUID
	// Notify tells the user by e-mail.
	Notify bool
}

// EmailChange replaces the e-mail address of a user.
type EmailChange struct {
	User UserID
	// PasswordHash and AttemptID are OldHash and AttemptID of a PasswordChange.
	PasswordHash    string
	AttemptID       int64
	Email, EmailKey string
	// Notify sends a notice to the old address and a verification link to the new one. A change of
	// case alone sends neither.
	Notify bool
}

// AccountStore holds accounts. Methods that take an actor first check Actor.CanModerate the user
// (Forbidden), unless the actor is the owner; an unknown user is then a NotFound fault. For an owner
// those that change an address or a password, or delete the user, return ErrPasswordChanged, and
// change nothing of the account, unless the user still has the password hash. The others return
// ErrSignedOut when the user is gone.
type AccountStore interface { //nolint:interfacebloat // Accounts, its only user, calls each method
	emailKeys

	// SetNickname replaces the nickname of a user.
	SetNickname(ctx context.Context, by Actor, user UserID, nickname string) (User, error)

	// SetAvatar makes a texture the avatar of a user; 0 removes the avatar. The texture must exist
	// (NotFound), be no cape (Invalid), and be public, uploaded by the user or in the user's closet
	// (Forbidden).
	SetAvatar(ctx context.Context, user UserID, texture TextureID) (User, error)

	// SetEmail replaces the e-mail address of a user. The new address is unverified unless it
	// differs only in case. A taken address is a Duplicate fault with the field email.
	SetEmail(ctx context.Context, by Actor, change EmailChange) (User, error)

	// QueueEmail queues an e-mail with a link that makes an address the user's. It does the same
	// whether or not another account has the address.
	QueueEmail(ctx context.Context, credentials VerifiedCredentials, email, emailKey string) error

	// SetPassword replaces the hash of a password and ends sessions. It returns the user for an
	// administrator only.
	SetPassword(ctx context.Context, by Actor, change PasswordChange) (User, error)

	// DeleteUser deletes a user with their sessions, players, closet, notifications and private
	// textures, which are taken off all players. Public textures stay, without an uploader. An
	// administrator needs no credentials but the ID.
	DeleteUser(ctx context.Context, by Actor, credentials VerifiedCredentials) error

	// SetVerified sets whether the e-mail address of a user is verified, for an administrator.
	SetVerified(ctx context.Context, by Actor, user UserID, verified bool) (User, error)

	// SetScore sets the score of a user, for an administrator.
	SetScore(ctx context.Context, by Actor, user UserID, score int64) (User, error)

	// SetPermission sets the permission of a user, for an administrator, to one that the actor can
	// grant. Lifting a ban ends the user's sessions. At the end of a ban the user has the former
	// permission again, if the actor can grant it, and the sessions.
	SetPermission(ctx context.Context, by Actor, user UserID, permission Permission, ban Ban) (User, error)

	// UsersNamed returns at most two of the users with the key of an e-mail address, of a nickname,
	// or with a player of that name.
	UsersNamed(ctx context.Context, emailKey, name string) ([]UserID, error)

	// FindUsers lists users, the latest registration first.
	FindUsers(ctx context.Context, query UserQuery) (Page[User], error)
}

// UserQuery selects users for an administrator. Zero values select all.
type UserQuery struct {
	ID UserID
	// Email and Nickname are case-insensitive substrings.
	Email, Nickname string
	Page, PerPage   int
}

// Accounts changes accounts: users their own, administrators the accounts of other users.
type Accounts struct {
	store     AccountStore
	logins    *Logins
	passwords *Passwords
	mail      bool
}

// NewAccounts returns the accounts of a store. With mail, changes of an e-mail address or a
// password are announced by e-mail.
func NewAccounts(store AccountStore, logins *Logins, passwords *Passwords, mail bool) *Accounts {
	return &Accounts{store: store, logins: logins, passwords: passwords, mail: mail}
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

// Named returns the one user that an administrator names in a field: by uid, by e-mail address, by
// nickname, or by the name of a player. A uid need not exist; it is at least the given one.
func (a *Accounts) Named(ctx context.Context, field, text string, least UserID) (UserID, error) {
	var wrong fieldFaults
	wrong.addPart(field, &text, maxEmail)
	if err := wrong.fault(); err != nil {
		return 0, err
	}
	if uid, err := strconv.ParseInt(text, 10, 64); err == nil {
		if UserID(uid) < least {
			return 0, fault.Field(field, "A uid is at least 1.")
		}
		return UserID(uid), nil
	}
	key, err := accountKey(ctx, a.store, text)
	if err != nil {
		return 0, err
	}
	users, err := a.store.UsersNamed(ctx, key, text)
	switch {
	case err != nil:
		return 0, err
	case len(users) == 0:
		return 0, fault.Field(field, "No user has this number, e-mail address, nickname or player.")
	case len(users) > 1:
		return 0, fault.Field(field, "Several users have this nickname or player. Give the e-mail address or the number.")
	default:
		return users[0], nil
	}
}

// Rename replaces the nickname of a user.
func (a *Accounts) Rename(ctx context.Context, by Actor, user UserID, nickname string) (User, error) {
	nickname, err := validateName("nickname", nickname)
	if err != nil {
		return User{}, err
	}
	return a.store.SetNickname(ctx, by, user, nickname)
}

// SetAvatar makes a texture the avatar of the caller; 0 removes the avatar.
func (a *Accounts) SetAvatar(ctx context.Context, caller Caller, texture TextureID) (User, error) {
	if texture < 0 {
		return User{}, fault.Field("tid", "A TID is at least 1; 0 stands for no avatar.")
	}
	return a.store.SetAvatar(ctx, caller.ID, texture)
}

// ChangeEmail replaces the e-mail address of the caller. A wrong password is an Invalid fault with
// the field password. A site that sends e-mail sends a notice to the old address and a verification
// link to the new one.
func (a *Accounts) ChangeEmail(ctx context.Context, caller Caller, address, password string, from netip.Prefix) (User, error) {
	address, err := validateEmail(address)
	if err != nil {
		return User{}, err
	}
	var user User
	err = a.withPassword(ctx, caller, "password", password, from, func(credentials VerifiedCredentials) (err error) {
		user, err = a.store.SetEmail(ctx, caller.Owner(), EmailChange{
			User: credentials.ID, PasswordHash: credentials.PasswordHash, AttemptID: credentials.AttemptID,
			Email: address, EmailKey: EmailKey(address), Notify: a.mail,
		})
		return err
	})
	return user, err
}

// SetEmail replaces the e-mail address of a user, for an administrator. The user gets the same
// e-mails as for a change of their own.
func (a *Accounts) SetEmail(ctx context.Context, by Actor, user UserID, address string) (User, error) {
	address, err := validateEmail(address)
	if err != nil {
		return User{}, err
	}
	return a.store.SetEmail(ctx, by, EmailChange{User: user, Email: address, EmailKey: EmailKey(address), Notify: a.mail})
}

// RequestEmailChange queues an e-mail with a link that makes an address the caller's. The answer
// does not reveal whether another account has the address; its owner is told by e-mail. A wrong
// password is an Invalid fault with the field password.
func (a *Accounts) RequestEmailChange(ctx context.Context, caller Caller, address, password string, from netip.Prefix) error {
	address, err := validateEmail(address)
	if err != nil {
		return err
	}
	return a.withPassword(ctx, caller, "password", password, from, func(credentials VerifiedCredentials) error {
		return a.store.QueueEmail(ctx, credentials, address, EmailKey(address))
	})
}

// ChangePassword replaces the password of the caller and ends their other sessions. A wrong
// password is an Invalid fault with the field current_password.
func (a *Accounts) ChangePassword(ctx context.Context, caller Caller, current, newPassword string, from netip.Prefix) error {
	if err := a.passwords.Check("new_password", newPassword, caller.Email); err != nil {
		return err
	}
	return a.withPassword(ctx, caller, "current_password", current, from, func(credentials VerifiedCredentials) error {
		hash, err := a.passwords.Hash(ctx, newPassword)
		if err != nil {
			return err
		}
		_, err = a.store.SetPassword(ctx, caller.Owner(), PasswordChange{
			User: credentials.ID, OldHash: credentials.PasswordHash, NewHash: hash, AttemptID: credentials.AttemptID, KeepSession: caller.Session, Notify: a.mail,
		})
		return err
	})
}

// ResetPassword replaces the password of a user and ends all their sessions, for an administrator.
// The user gets the same e-mail as for a change of their own.
func (a *Accounts) ResetPassword(ctx context.Context, by Actor, user UserID, newPassword string) (User, error) {
	if err := a.passwords.Check("password", newPassword); err != nil {
		return User{}, err
	}
	hash, err := a.passwords.Hash(ctx, newPassword)
	if err != nil {
		return User{}, err
	}
	return a.store.SetPassword(ctx, by, PasswordChange{User: user, NewHash: hash, Notify: a.mail})
}

// SetVerified sets whether the e-mail address of a user is verified, for an administrator.
func (a *Accounts) SetVerified(ctx context.Context, by Actor, user UserID, verified bool) (User, error) {
	return a.store.SetVerified(ctx, by, user, verified)
}

// maxScore leaves room for all rewards that a user may ever earn on top of it.
const maxScore = 1_000_000_000_000

// SetScore sets the score of a user, for an administrator.
func (a *Accounts) SetScore(ctx context.Context, by Actor, user UserID, score int64) (User, error) {
	if score < 0 || score > maxScore {
		return User{}, fault.Field("score", "The score is %d, but must be 0 to %d.", score, maxScore)
	}
	return a.store.SetScore(ctx, by, user, score)
}

// PermissionChange is a new permission of a user, and the reason and the end of a ban.
type PermissionChange struct {
	Permission int64
	Ban
}

// SetPermission bans a user, lifts a ban, or sets whether a user is an administrator. From the next
// request on a banned user gets ErrBanned. Lifting the ban ends the sessions from before it. Only
// CLIActor makes super administrators.
func (a *Accounts) SetPermission(ctx context.Context, by Actor, user UserID, change PermissionChange) (User, error) {
	permission := change.Permission
	if permission < int64(Banned) || permission > int64(Administrator) && by != CLIActor {
		return User{}, fault.Field("permission", "The permission is %d, but must be -1, 0 or 1.", permission)
	}
	if permission != int64(Banned) && change.Ban != (Ban{}) {
		return User{}, fault.Field("permission", "Only a ban has a reason and an end.")
	}
	if err := change.check(); err != nil {
		return User{}, err
	}
	return a.store.SetPermission(ctx, by, user, Permission(permission), change.Ban)
}

// Delete deletes the account of the caller. A wrong password is an Invalid fault with the field
// password. A super administrator gets a Forbidden fault: the site could be left without one.
func (a *Accounts) Delete(ctx context.Context, caller Caller, password string, from netip.Prefix) error {
	if caller.Permission == SuperAdministrator {
		return fault.New(fault.Forbidden, "A super administrator cannot delete their own account.")
	}
	return a.withPassword(ctx, caller, "password", password, from, func(credentials VerifiedCredentials) error {
		return a.store.DeleteUser(ctx, caller.Owner(), credentials)
	})
}

// DeleteUser deletes a user, for an administrator.
func (a *Accounts) DeleteUser(ctx context.Context, by Actor, user UserID) error {
	return a.store.DeleteUser(ctx, by, VerifiedCredentials{Credentials: Credentials{User: User{ID: user}}})
}

// withPassword runs work once the caller's password, sent in a field, is verified. Failures count
// as failed log-ins, since this is another way to guess passwords.
func (a *Accounts) withPassword(ctx context.Context, caller Caller, field, password string, from netip.Prefix, work func(VerifiedCredentials) error) error {
	err := a.logins.withCredentials(ctx, caller.Email, password, from, func(credentials VerifiedCredentials) error {
		if credentials.ID != caller.ID {
			return errCredentials // another account has the address by now
		}
		return work(credentials)
	})
	if errors.Is(err, errCredentials) || errors.Is(err, ErrPasswordChanged) {
		return fault.Field(field, "The password is wrong.")
	}
	return err
}
