package core

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"github.com/veneer-skins/veneer/shared/casefold"
	"github.com/veneer-skins/veneer/shared/fault"
)

// LinkStore keeps what links in e-mails stand for, and has them sent. Methods that
// take the hash of a token return ErrLink, and change nothing, unless it is of that
// purpose, has not expired, and the user still has the address and the password
// that they had when it was sent. What a method does makes the token, and all like
// it, work no longer.
type LinkStore interface {
	// QueueReset has a link sent that resets the password of whoever has an e-mail
	// address, if anybody has. It does the same whether or not.
	QueueReset(ctx context.Context, email, emailKey string) error

	// QueueVerification has a link sent that verifies the address which a user has,
	// unless it is verified. It returns a TooMany fault when as many went there in the
	// last hour as may; 0 stands for any number.
	QueueVerification(ctx context.Context, user UserID, perHour int, now time.Time) error

	// VerifyEmail marks a user's address as verified. One that the user wants to have
	// becomes theirs, which the one before is told; it returns a Duplicate fault when
	// somebody else has it by now.
	VerifyEmail(ctx context.Context, token LinkHash, now time.Time) error

	// CheckReset changes nothing.
	CheckReset(ctx context.Context, token LinkHash, now time.Time) error

	// ResetPassword replaces the hash of a user's password, ends all their sessions
	// and marks the address as verified: they have read its mail. It is told by mail. The
	// limits of log-ins know the network from then on, and forgive what has failed there.
	ResetPassword(ctx context.Context, token LinkHash, hash string, from netip.Prefix, now time.Time) error
}

// RegistrationStore keeps registrations until their address is confirmed. Its methods
// return ErrLink, as those of LinkStore do.
type RegistrationStore interface {
	// Registration returns what a registration keeps of its user, and changes nothing.
	Registration(ctx context.Context, token LinkHash, now time.Time) (NewUser, error)

	// ConfirmRegistration adds the user of a registration. It returns a Duplicate fault
	// that names the field email or player_name, and changes nothing, when that is taken
	// by now.
	ConfirmRegistration(ctx context.Context, token LinkHash, user NewUser, now time.Time) (User, error)
}

// linkStore is all that is needed of what links stand for.
type linkStore interface {
	LinkStore
	RegistrationStore
}

// ErrLink is the fault of a link that does not work, for whatever reason.
var ErrLink = fault.New(fault.NotFound, "This link does not work: it was used, or has expired, or the e-mail address or the password has changed since. Please ask for another one.")

// ErrNoMail is the fault of whatever needs e-mail, at a site that sends none.
var ErrNoMail = fault.New(fault.Refused, "This site sends no e-mail.")

// Links let people do by e-mail what takes proof that they read the mail of an
// address: verify it, get another password, or bring an account to life. A nil
// *Links is of a site that sends no e-mail: all methods return ErrNoMail.
type Links struct {
	store     linkStore
	passwords *Passwords
	names     *PlayerNames
	config    MailConfig
	scores    Scores
	now       Clock
}

// NewLinks returns the links kept in a store.
func NewLinks(store linkStore, passwords *Passwords, names *PlayerNames, config MailConfig, scores Scores, now Clock) *Links {
	return &Links{store: store, passwords: passwords, names: names, config: config, scores: scores, now: now}
}

// RequestVerification has a link sent that verifies the caller's address.
func (l *Links) RequestVerification(ctx context.Context, caller Caller) error {
	switch {
	case l == nil:
		return ErrNoMail
	case caller.Verified:
		return fault.New(fault.Refused, "Your e-mail address is verified already.")
	default:
		return l.store.QueueVerification(ctx, caller.ID, l.config.PerHour, l.now())
	}
}

// Confirmation is what is sent with the token of a link to an address. All but the token
// is for a registration.
type Confirmation struct {
	Token string
	// Password is that of the account. Nickname and PlayerName replace those that were
	// registered; nil leaves them as they are. An empty PlayerName stands for no player.
	Password, Nickname, PlayerName *string
}

// Verify does what a link is for that was sent to an address: it verifies the
// address, or makes the account that was registered with it, and returns its user; the
// zero value for an address. The registration may be anybody's, so the password is that
// of the confirmation. It returns an Invalid fault that names every wrong field, or a
// Duplicate fault when the e-mail or the player's name is taken; the link still works
// then.
func (l *Links) Verify(ctx context.Context, c Confirmation) (Credentials, error) {
	if l == nil {
		return Credentials{}, ErrNoMail
	}
	names, err := l.validate(c)
	if err != nil {
		return Credentials{}, err
	}
	token := hashLinkToken(c.Token)
	if err := l.store.VerifyEmail(ctx, token, l.now()); fault.KindOf(err) != fault.NotFound {
		return Credentials{}, err
	}
	user, err := l.store.Registration(ctx, token, l.now())
	if err != nil {
		return Credentials{}, err
	}
	if c.Password == nil {
		return Credentials{}, fault.Field("password", "Please choose a password: the account is made with it.")
	}
	if c.Nickname != nil {
		user.Nickname = names.Nickname
	}
	if c.PlayerName != nil {
		user.Player = names.Player
	}
	user.Score, user.Verified = l.scores.Registration, true
	if user.PasswordHash, err = l.passwords.Hash(ctx, *c.Password); err != nil {
		return Credentials{}, err
	}
	added, err := l.store.ConfirmRegistration(ctx, token, user, l.now())
	return Credentials{User: added, PasswordHash: user.PasswordHash}, err
}

// validate checks what is confirmed, and returns the names that are.
func (l *Links) validate(c Confirmation) (user NewUser, err error) {
	var wrong fieldFaults
	if c.Password != nil {
		wrong.add(checkPassword("password", *c.Password))
	}
	if c.Nickname != nil {
		user.Nickname, err = validateName("nickname", *c.Nickname)
		wrong.add(err)
	}
	if c.PlayerName != nil {
		user.Player, err = l.names.optional("player_name", *c.PlayerName)
		wrong.add(err)
	}
	return user, wrong.fault()
}

// hashLinkToken returns what is kept of a token that was sent to us. White space around it is
// cut off: people copy tokens out of mails.
func hashLinkToken(token string) LinkHash { return hashToken(strings.TrimSpace(token)) }

// RequestReset has a link sent that resets the password of whoever has an e-mail
// address. Whether anybody has shows neither in what it returns nor in the time it
// takes.
func (l *Links) RequestReset(ctx context.Context, address string) error {
	if l == nil {
		return ErrNoMail
	}
	address, err := validateEmail(address)
	if err != nil {
		return err
	}
	return l.store.QueueReset(ctx, address, casefold.Key(address))
}

// ResetPassword gives the owner of a link another password, and ends all their
// sessions. They can sign in from that network then, whatever log-ins have failed.
func (l *Links) ResetPassword(ctx context.Context, token, newPassword string, from netip.Prefix) error {
	if l == nil {
		return ErrNoMail
	}
	if err := checkPassword("password", newPassword); err != nil {
		return err
	}
	// A hash takes long, so nobody gets one for a token that was made up.
	if err := l.store.CheckReset(ctx, hashLinkToken(token), l.now()); err != nil {
		return err
	}
	hash, err := l.passwords.Hash(ctx, newPassword)
	if err != nil {
		return err
	}
	return l.store.ResetPassword(ctx, hashLinkToken(token), hash, from, l.now())
}
