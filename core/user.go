package core

import (
	"context"
	"net/mail"
	"strings"
	"time"

	"github.com/veneer-skins/veneer/shared/casefold"
	"github.com/veneer-skins/veneer/shared/fault"
)

// Permission is what a user may do.
type Permission int16

// The permissions.
const (
	Banned             Permission = -1
	Normal             Permission = 0
	Administrator      Permission = 1
	SuperAdministrator Permission = 2
)

// User is a person with an account.
type User struct {
	ID         UserID
	Email      string
	Nickname   string
	Avatar     TextureID // 0 when none is set
	Score      int64
	Permission Permission
	LastSignAt time.Time
	RegisterAt time.Time
	Verified   bool
}

// NewUser is what a user is made of.
type NewUser struct {
	Email        string
	EmailKey     string // made by fold.Key
	Nickname     string
	PasswordHash string
	Permission   Permission
	Score        int64
	Verified     bool
	Verify       bool // whether to have a link sent that verifies the address
	// Player is the name of a first player, made together with the user; empty for
	// none.
	Player NewPlayer
}

// Credentials is a user with what proves that somebody is that user.
type Credentials struct {
	User
	PasswordHash string
}

// UserStore keeps users.
type UserStore interface {
	// CreateUser adds a user, with its first player if one is named: both, or
	// neither. It returns a Duplicate fault that names the field email or
	// player_name when that is taken.
	CreateUser(ctx context.Context, user NewUser) (User, error)

	// CreateUserBy does so on an administrator's authority, and writes an entry of the
	// audit log.
	CreateUserBy(ctx context.Context, by Actor, user NewUser) (User, error)

	// UserByEmail returns the user with that e-mail's comparison key, or a NotFound
	// fault.
	UserByEmail(ctx context.Context, emailKey string) (Credentials, error)

	// QueueRegistration keeps a user, but for the password, who is not added before a link
	// is opened that it has sent to their address. It does the same whether or not that is taken, and
	// returns a Duplicate fault that names the field player_name when that is taken.
	QueueRegistration(ctx context.Context, user NewUser) error
}

// Users registers people.
type Users struct {
	store     UserStore
	passwords *Passwords
	names     *PlayerNames
	scores    Scores
	mail      bool
}

// NewUsers returns the users kept in a store. Where the site sends e-mail, those who
// register are sent a link that verifies their address.
func NewUsers(store UserStore, passwords *Passwords, names *PlayerNames, scores Scores, mail bool) *Users {
	return &Users{store: store, passwords: passwords, names: names, scores: scores, mail: mail}
}

// Registration is what somebody says of themself to get an account.
type Registration struct {
	Email, Password, Nickname string
	PlayerName                string // empty for none
	Verified                  bool
}

// Register adds a user. It returns an Invalid fault that names every wrong
// field, or a Duplicate fault when the e-mail or the player's name is taken.
func (u *Users) Register(ctx context.Context, r Registration) (Credentials, error) {
	newUser, err := u.newUser(ctx, r)
	if err != nil {
		return Credentials{}, err
	}
	user, err := u.store.CreateUser(ctx, newUser)
	return Credentials{User: user, PasswordHash: newUser.PasswordHash}, err
}

// RegisterBy has an administrator add a user, as Register does, who may have any
// permission that the authority grants.
func (u *Users) RegisterBy(ctx context.Context, by Actor, r Registration, permission Permission) (User, error) {
	newUser, err := u.newUser(ctx, r)
	if err != nil {
		return User{}, err
	}
	newUser.Permission = permission
	return u.store.CreateUserBy(ctx, by, newUser)
}

// RequestRegistration has a link sent to an address that adds the user, with a password that is chosen
// then. Whether an account has the address shows neither in what it returns nor in the
// time it takes; its user is told by e-mail. It returns an Invalid fault that names every wrong field, or a
// Duplicate fault when the player's name is taken.
func (u *Users) RequestRegistration(ctx context.Context, r Registration) error {
	var wrong fieldFaults
	newUser := u.validate(r, &wrong)
	if err := wrong.fault(); err != nil {
		return err
	}
	return u.store.QueueRegistration(ctx, newUser)
}

// newUser checks what somebody says of themself, and makes a user of it.
func (u *Users) newUser(ctx context.Context, r Registration) (NewUser, error) {
	var wrong fieldFaults
	newUser := u.validate(r, &wrong)
	wrong.add(checkPassword("password", r.Password))
	if err := wrong.fault(); err != nil {
		return NewUser{}, err
	}
	var err error
	newUser.PasswordHash, err = u.passwords.Hash(ctx, r.Password)
	newUser.Score, newUser.Verified, newUser.Verify = u.scores.Registration, r.Verified, u.mail && !r.Verified
	return newUser, err
}

// validate returns a user of what somebody is to be called, and takes note of what is wrong
// with it.
func (u *Users) validate(r Registration, wrong *fieldFaults) NewUser {
	address, err := validateEmail(r.Email)
	wrong.add(err)
	nickname, err := validateName("nickname", r.Nickname)
	wrong.add(err)
	player, err := u.names.optional("player_name", r.PlayerName)
	wrong.add(err)
	return NewUser{Email: address, EmailKey: casefold.Key(address), Nickname: nickname, Player: player}
}

// ByEmail returns the user with an e-mail address, in any case, or a NotFound
// fault.
func (u *Users) ByEmail(ctx context.Context, email string) (User, error) {
	user, err := u.store.UserByEmail(ctx, casefold.Key(strings.TrimSpace(email)))
	return user.User, err
}

// maxEmail is the most bytes of an address that SMTP can carry (RFC 5321, section
// 4.5.3.1.3).
const maxEmail = 254

// validateEmail checks an e-mail address and returns it trimmed.
func validateEmail(text string) (string, error) {
	text = strings.TrimSpace(text)
	parsed, err := mail.ParseAddress(text)
	if err != nil || parsed.Address != text || len(text) > maxEmail || !isPrintable(text) || !legible(text) {
		return "", fault.Field("email", "This is no e-mail address.")
	}
	return text, nil
}

// fieldFaults gathers what is wrong with several fields into one fault.
type fieldFaults struct {
	all *fault.Error
	err error
}

// add takes note of a fault. Anything but an Invalid fault ends the check.
func (f *fieldFaults) add(err error) {
	if err == nil || f.err != nil {
		return
	}
	wrong := fault.Of(err)
	switch {
	case wrong.Kind != fault.Invalid:
		f.err = err
	case f.all == nil:
		f.all = wrong
	default:
		for field, sentences := range wrong.Fields {
			f.all.Fields[field] = append(f.all.Fields[field], sentences...)
		}
	}
}

func (f *fieldFaults) fault() error {
	switch {
	case f.err != nil:
		return f.err
	case f.all != nil:
		return f.all
	default:
		return nil
	}
}
