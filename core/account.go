package core

import (
	"context"
	"errors"
	"net/netip"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/fold"
)

// PasswordChange is a password that takes the place of another.
type PasswordChange struct {
	User UserID
	// Old, unless it is empty, is the hash that must still be there.
	Old, Fresh string
	// Attempt is the one that the old password was shown in; 0 for none.
	Attempt int64
	// Keep is the session that goes on; all others of the user end.
	Keep uuid.UUID
	// Tell has the user told by e-mail.
	Tell bool
}

// EmailChange is an e-mail address that takes the place of another.
type EmailChange struct {
	Email, EmailKey string
	// Tell has the address before told of it, and the fresh one asked to be verified; of
	// a change of case nothing is told.
	Tell bool
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
	SetEmail(ctx context.Context, proof Proof, change EmailChange) (User, error)

	// QueueEmail has a link sent to an address that makes it the user's. It does the
	// same whether or not somebody else has it.
	QueueEmail(ctx context.Context, proof Proof, email, emailKey string) error

	// SetPassword replaces a password's hash and ends sessions.
	SetPassword(ctx context.Context, change PasswordChange) error

	// DeleteUser deletes a user with their sessions, players, closet, notifications
	// and private textures, which everybody takes off. Public textures stay, without
	// an uploader.
	DeleteUser(ctx context.Context, proof Proof) error
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
	nickname, err := name("nickname", nickname)
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
	address, err := email(address)
	if err != nil {
		return User{}, err
	}
	var user User
	err = a.withPassword(ctx, caller, "password", password, from, func(proof Proof) (err error) {
		user, err = a.store.SetEmail(ctx, proof, EmailChange{Email: address, EmailKey: fold.Key(address), Tell: a.mail})
		return err
	})
	return user, err
}

// AskEmail has a link sent to an address that makes it the caller's. Whether somebody
// else has it does not show; they are told by e-mail. It returns an Invalid fault
// about the field password if that is wrong.
func (a *Accounts) AskEmail(ctx context.Context, caller Caller, address, password string, from netip.Prefix) error {
	address, err := email(address)
	if err != nil {
		return err
	}
	return a.withPassword(ctx, caller, "password", password, from, func(proof Proof) error {
		return a.store.QueueEmail(ctx, proof, address, fold.Key(address))
	})
}

// ChangePassword gives the caller another password and ends their other sessions.
// It returns an Invalid fault about the field current_password if that is wrong.
func (a *Accounts) ChangePassword(ctx context.Context, caller Caller, current, fresh string, from netip.Prefix) error {
	if err := checkPassword("new_password", fresh); err != nil {
		return err
	}
	return a.withPassword(ctx, caller, "current_password", current, from, func(proof Proof) error {
		hash, err := a.passwords.Hash(ctx, fresh)
		if err != nil {
			return err
		}
		return a.store.SetPassword(ctx, PasswordChange{
			User: proof.ID, Old: proof.PasswordHash, Fresh: hash, Attempt: proof.Attempt, Keep: caller.Session, Tell: a.mail,
		})
	})
}

// hash returns the hash of a password that is fit to be one.
func (a *Accounts) hash(ctx context.Context, password string) (string, error) {
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
	return a.withPassword(ctx, caller, "password", password, from, func(proof Proof) error {
		return a.store.DeleteUser(ctx, proof)
	})
}

// withPassword does work for a caller who shows their password in a field. It is
// guessing like any other, so it counts with the failed log-ins.
func (a *Accounts) withPassword(ctx context.Context, caller Caller, field, password string, from netip.Prefix, work func(Proof) error) error {
	err := a.logins.with(ctx, caller.Email, password, from, func(proof Proof) error {
		if proof.ID != caller.ID {
			return errCredentials // the address is somebody else's by now
		}
		return work(proof)
	})
	if errors.Is(err, errCredentials) || errors.Is(err, ErrPasswordChanged) {
		return fault.Field(field, "The password is wrong.")
	}
	return err
}
