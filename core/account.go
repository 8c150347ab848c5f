package core

import (
	"context"
	"errors"
	"net/netip"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/shared/casefold"
	"github.com/veneer-skins/veneer/shared/fault"
)

// PasswordChange is a password that takes the place of another.
type PasswordChange struct {
	User UserID
	// Old, unless it is empty, is the hash that must still be there.
	OldHash, NewHash string
	// AttemptID is the one that the old password was shown in; 0 for none.
	AttemptID int64
	// KeepSession is the session that goes on; all others of the user end.
	KeepSession uuid.UUID
	// Notify has the user told by e-mail.
	Notify bool
}

// EmailChange is an e-mail address that takes the place of another.
type EmailChange struct {
	Email, EmailKey string
	// Notify has the address before told of it, and the fresh one asked to be verified; of
	// a change of case nothing is told.
	Notify bool
}

// AccountStore changes what users change of their own accounts. Methods that take
// a proof return ErrPasswordChanged, and change nothing of the account, unless the
// password is still the one that was shown; methods that take none return
// ErrSignedOut when the user is gone.
type AccountStore interface {
	// SetNickname gives a user another nickname.
	SetNickname(ctx context.Context, user UserID, nickname string) (User, error)

	// SetAvatar makes a texture the user's avatar; 0 stands for none. It must exist
	// (NotFound), be no cape (Invalid), and be public, the user's own or in the user's
	// closet (Forbidden).
	SetAvatar(ctx context.Context, user UserID, texture TextureID) (User, error)

	// SetEmail gives a user another e-mail address, which is not verified then, unless
	// it differs only in case. It returns a Duplicate fault that names the
	// field email when it is taken.
	SetEmail(ctx context.Context, credentials VerifiedCredentials, change EmailChange) (User, error)

	// QueueEmail has a link sent to an address that makes it the user's. It does the
	// same whether or not somebody else has it.
	QueueEmail(ctx context.Context, credentials VerifiedCredentials, email, emailKey string) error

	// SetPassword replaces a password's hash and ends sessions.
	SetPassword(ctx context.Context, change PasswordChange) error

	// DeleteUser deletes a user with their sessions, players, closet, notifications
	// and private textures, which everybody takes off. Public textures stay, without
	// an uploader.
	DeleteUser(ctx context.Context, credentials VerifiedCredentials) error
}

// accountStore is all that is needed to change accounts.
type accountStore interface {
	AccountStore
	UserAdminStore
	UserDirectoryStore
}

// Accounts are what users change of their own accounts, and administrators of
// others'.
type Accounts struct {
	store     accountStore
	logins    *Logins
	passwords *Passwords
	mail      bool
}

// NewAccounts returns the accounts kept in a store. With mail, changes of an e-mail
// address and of a password are told by e-mail.
func NewAccounts(store accountStore, logins *Logins, passwords *Passwords, mail bool) *Accounts {
	return &Accounts{store: store, logins: logins, passwords: passwords, mail: mail}
}

// Rename gives the caller another nickname.
func (a *Accounts) Rename(ctx context.Context, caller Caller, nickname string) (User, error) {
	nickname, err := validateName("nickname", nickname)
	if err != nil {
		return User{}, err
	}
	return a.store.SetNickname(ctx, caller.ID, nickname)
}

// SetAvatar makes a texture the caller's avatar; 0 stands for none.
func (a *Accounts) SetAvatar(ctx context.Context, caller Caller, texture TextureID) (User, error) {
	if texture < 0 {
		return User{}, fault.Field("tid", "A TID is at least 1; 0 stands for no avatar.")
	}
	return a.store.SetAvatar(ctx, caller.ID, texture)
}

// ChangeEmail gives the caller another e-mail address. It returns an Invalid fault
// about the field password if that is wrong. A site that sends e-mail tells the
// address before, and asks for the fresh one to be verified.
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

// RequestEmailChange has a link sent to an address that makes it the caller's. Whether somebody
// else has it does not show; they are told by e-mail. It returns an Invalid fault
// about the field password if that is wrong.
func (a *Accounts) RequestEmailChange(ctx context.Context, caller Caller, address, password string, from netip.Prefix) error {
	address, err := validateEmail(address)
	if err != nil {
		return err
	}
	return a.withPassword(ctx, caller, "password", password, from, func(credentials VerifiedCredentials) error {
		return a.store.QueueEmail(ctx, credentials, address, casefold.Key(address))
	})
}

// ChangePassword gives the caller another password and ends their other sessions.
// It returns an Invalid fault about the field current_password if that is wrong.
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

// hashPassword returns the hash of a password that is fit to be one.
func (a *Accounts) hashPassword(ctx context.Context, password string) (string, error) {
	if err := checkPassword("password", password); err != nil {
		return "", err
	}
	return a.passwords.Hash(ctx, password)
}

// Delete deletes the caller's account. It returns an Invalid fault about the field
// password if that is wrong, and a Forbidden one for a super administrator, who
// could leave nobody in charge.
func (a *Accounts) Delete(ctx context.Context, caller Caller, password string, from netip.Prefix) error {
	if caller.Permission == SuperAdministrator {
		return fault.New(fault.Forbidden, "A super administrator cannot delete their own account.")
	}
	return a.withPassword(ctx, caller, "password", password, from, func(credentials VerifiedCredentials) error {
		return a.store.DeleteUser(ctx, credentials)
	})
}

// withPassword does work for a caller who shows their password in a field. It is
// guessing like any other, so it counts with the failed log-ins.
func (a *Accounts) withPassword(ctx context.Context, caller Caller, field, password string, from netip.Prefix, work func(VerifiedCredentials) error) error {
	err := a.logins.withCredentials(ctx, caller.Email, password, from, func(credentials VerifiedCredentials) error {
		if credentials.ID != caller.ID {
			return errCredentials // the address is somebody else's by now
		}
		return work(credentials)
	})
	if errors.Is(err, errCredentials) || errors.Is(err, ErrPasswordChanged) {
		return fault.Field(field, "The password is wrong.")
	}
	return err
}
