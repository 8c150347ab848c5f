package core

import (
	"context"
	"errors"
	"net/netip"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/shared/casefold"
	"github.com/veneer-skins/veneer/shared/fault"
)

// PasswordChange replaces the password of a user.
type PasswordChange struct {
	User UserID
	// OldHash, unless empty, is the hash that the user must still have.
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
	Email, EmailKey string
	// Notify sends a notice to the old address and a verification link to the new one. A change of
	// case alone sends neither.
	Notify bool
}

// AccountStore holds what users change of their own accounts. Methods that take VerifiedCredentials
// return ErrPasswordChanged, and change nothing of the account, unless the user still has that
// password hash. The others return ErrSignedOut when the user is gone.
type AccountStore interface {
	// SetNickname replaces the nickname of a user.
	SetNickname(ctx context.Context, user UserID, nickname string) (User, error)

	// SetAvatar makes a texture the avatar of a user; 0 removes the avatar. The texture must exist
	// (NotFound), be no cape (Invalid), and be public, uploaded by the user or in the user's closet
	// (Forbidden).
	SetAvatar(ctx context.Context, user UserID, texture TextureID) (User, error)

	// SetEmail replaces the e-mail address of a user. The new address is unverified unless it
	// differs only in case. A taken address is a Duplicate fault with the field email.
	SetEmail(ctx context.Context, credentials VerifiedCredentials, change EmailChange) (User, error)

	// QueueEmail queues an e-mail with a link that makes an address the user's. It does the same
	// whether or not another account has the address.
	QueueEmail(ctx context.Context, credentials VerifiedCredentials, email, emailKey string) error

	// SetPassword replaces the hash of a password and ends sessions.
	SetPassword(ctx context.Context, change PasswordChange) error

	// DeleteUser deletes a user with their sessions, players, closet, notifications and private
	// textures, which are taken off all players. Public textures stay, without an uploader.
	DeleteUser(ctx context.Context, credentials VerifiedCredentials) error
}

// accountStore is the store that Accounts needs.
type accountStore interface {
	AccountStore
	UserAdminStore
	UserDirectoryStore
}

// Accounts changes accounts: users their own, administrators those of others.
type Accounts struct {
	store     accountStore
	logins    *Logins
	passwords *Passwords
	mail      bool
}

// NewAccounts returns the accounts of a store. With mail, changes of an e-mail address or a
// password are announced by e-mail.
func NewAccounts(store accountStore, logins *Logins, passwords *Passwords, mail bool) *Accounts {
	return &Accounts{store: store, logins: logins, passwords: passwords, mail: mail}
}

// Rename replaces the nickname of the caller.
func (a *Accounts) Rename(ctx context.Context, caller Caller, nickname string) (User, error) {
	nickname, err := validateName("nickname", nickname)
	if err != nil {
		return User{}, err
	}
	return a.store.SetNickname(ctx, caller.ID, nickname)
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
		user, err = a.store.SetEmail(ctx, credentials, EmailChange{Email: address, EmailKey: casefold.Key(address), Notify: a.mail})
		return err
	})
	return user, err
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
		return a.store.QueueEmail(ctx, credentials, address, casefold.Key(address))
	})
}

// ChangePassword replaces the password of the caller and ends their other sessions. A wrong
// password is an Invalid fault with the field current_password.
func (a *Accounts) ChangePassword(ctx context.Context, caller Caller, current, newPassword string, from netip.Prefix) error {
	if err := checkPassword("new_password", newPassword); err != nil {
		return err
	}
	return a.withPassword(ctx, caller, "current_password", current, from, func(credentials VerifiedCredentials) error {
		hash, err := a.passwords.Hash(ctx, newPassword)
		if err != nil {
			return err
		}
		return a.store.SetPassword(ctx, PasswordChange{
			User: credentials.ID, OldHash: credentials.PasswordHash, NewHash: hash, AttemptID: credentials.AttemptID, KeepSession: caller.Session, Notify: a.mail,
		})
	})
}

// hashPassword returns the hash of a valid password.
func (a *Accounts) hashPassword(ctx context.Context, password string) (string, error) {
	if err := checkPassword("password", password); err != nil {
		return "", err
	}
	return a.passwords.Hash(ctx, password)
}

// Delete deletes the account of the caller. A wrong password is an Invalid fault with the field
// password. A super administrator gets a Forbidden fault: the site could be left without one.
func (a *Accounts) Delete(ctx context.Context, caller Caller, password string, from netip.Prefix) error {
	if caller.Permission == SuperAdministrator {
		return fault.New(fault.Forbidden, "A super administrator cannot delete their own account.")
	}
	return a.withPassword(ctx, caller, "password", password, from, func(credentials VerifiedCredentials) error {
		return a.store.DeleteUser(ctx, credentials)
	})
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
