package core

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"github.com/veneer-skins/veneer/shared/fault"
)

// LinkStore holds the tokens of links in e-mails, and queues those e-mails. Methods that take the
// hash of a token return ErrLink, and change nothing, unless the token has that purpose, has not
// expired, and the user still has the address and password from when it was sent. A method that
// succeeds invalidates the token and the user's other tokens of that purpose; a reset invalidates
// all of them.
type LinkStore interface {
	emailKeys

	// QueueReset queues an e-mail with a link that resets the password of the account with an
	// address. It does the same whether or not there is such an account.
	QueueReset(ctx context.Context, email, emailKey string) error

	// QueueVerification queues an e-mail with a link that verifies the address of a user, unless it
	// is verified. It returns a TooMany fault when perHour such e-mails went there in the last
	// hour; 0 stands for any number.
	QueueVerification(ctx context.Context, user UserID, perHour int, now time.Time) error

	// VerifyEmail marks the address of a user as verified. An address that the user asked to change
	// to replaces the old one, which gets a notice; it is a Duplicate fault when another account
	// has it by now.
	VerifyEmail(ctx context.Context, token LinkHash, now time.Time) error

	// CheckReset returns the address of the account whose password a token resets, and changes nothing.
	CheckReset(ctx context.Context, token LinkHash, now time.Time) (address string, err error)

	// ResetPassword replaces the password hash of a user, ends all their sessions, marks the
	// address as verified, since its mail was read, and queues a notice. Log-in limits then treat
	// the network as known to the user, and forget its failures.
	ResetPassword(ctx context.Context, token LinkHash, hash string, from netip.Prefix, now time.Time) error
}

// RegistrationStore holds registrations until their address is confirmed. Its methods return
// ErrLink, as the methods of LinkStore do.
type RegistrationStore interface {
	// Registration returns the registered user, and changes nothing.
	Registration(ctx context.Context, token LinkHash, now time.Time) (NewUser, error)

	// ConfirmRegistration adds the user of a registration. A taken address or player name is a
	// Duplicate fault with the field email or player_name; then nothing is changed.
	ConfirmRegistration(ctx context.Context, token LinkHash, user NewUser, now time.Time) (User, error)
}

// linkStore is the store that Links needs.
type linkStore interface {
	LinkStore
	RegistrationStore
}

// ErrLink is the fault of a link that does not work, for any reason.
var ErrLink = fault.New(fault.NotFound, "This link does not work: it was used, or has expired, or the e-mail address or the password has changed since. Please ask for another one.")

// ErrNoMail is the fault of a request that needs e-mail, on a site that sends none.
var ErrNoMail = fault.New(fault.Refused, "This site sends no e-mail.")

// Links handles links in e-mails, which prove that the user reads the mail of an address: they
// verify it, reset a password or complete a registration. A nil *Links belongs to a site that sends
// no e-mail: all methods return ErrNoMail.
type Links struct {
	store     linkStore
	passwords *Passwords
	names     *PlayerNames
	config    MailConfig
	prices    ScorePrices
	pages     *SitePages
	now       Clock
}

// NewLinks returns the links of a store.
func NewLinks(store linkStore, passwords *Passwords, names *PlayerNames, config MailConfig, prices ScorePrices, pages *SitePages, now Clock) *Links {
	return &Links{store: store, passwords: passwords, names: names, config: config, prices: prices, pages: pages, now: now}
}

// RequestVerification queues an e-mail with a link that verifies the caller's address.
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

// Confirmation is sent back with the token of a link to an address. The other fields are for
// registrations.
type Confirmation struct {
	Token string
	// Password is the account's. Nickname and PlayerName replace the registered ones; nil keeps
	// those. An empty PlayerName stands for no player.
	Password, Nickname, PlayerName *string
	TermsVersion                   string // the terms that the user accepts
}

// Verify redeems a link that was sent to an address. It verifies the address and returns the zero
// Credentials, or creates the account that was registered with it and returns its user. Another
// person may have sent the registration, so the password comes with the confirmation. Verify
// returns an Invalid fault that names every wrong field, or a Duplicate fault when the e-mail or
// the player's name is taken; the link then still works.
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
	if err := l.passwords.Check("password", *c.Password, user.Email); err != nil {
		return Credentials{}, err
	}
	texts := l.pages.Texts()
	if err := texts.checkConsent(c.TermsVersion); err != nil {
		return Credentials{}, err
	}
	user.TermsVersion = texts.TermsVersion()
	if c.Nickname != nil {
		user.Nickname = names.Nickname
	}
	if c.PlayerName != nil {
		user.Player = names.Player
	}
	user.Score, user.Verified = l.prices.Registration, true
	if user.PasswordHash, err = l.passwords.Hash(ctx, *c.Password); err != nil {
		return Credentials{}, err
	}
	added, err := l.store.ConfirmRegistration(ctx, token, user, l.now())
	return Credentials{User: added, PasswordHash: user.PasswordHash}, err
}

// validate checks a confirmation, and returns a user with its names.
func (l *Links) validate(c Confirmation) (user NewUser, err error) {
	var wrong fieldFaults
	if c.Password != nil {
		wrong.add(l.passwords.Check("password", *c.Password))
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

// hashLinkToken returns the hash of a token that a client sent. It trims white space, which gets
// copied from e-mails along with the token.
func hashLinkToken(token string) LinkHash { return hashToken(strings.TrimSpace(token)) }

// RequestReset queues an e-mail with a link that resets the password of the account with an
// address. Neither result nor duration reveals whether there is such an account.
func (l *Links) RequestReset(ctx context.Context, address string) error {
	if l == nil {
		return ErrNoMail
	}
	address, err := validateEmail(address)
	if err != nil {
		return err
	}
	key, err := accountKey(ctx, l.store, address)
	if err != nil {
		return err
	}
	return l.store.QueueReset(ctx, address, key)
}

// ResetPassword replaces the password of the user of a link, and ends all their sessions. The user
// can then log in from that network even if many log-ins have failed there.
func (l *Links) ResetPassword(ctx context.Context, token, newPassword string, from netip.Prefix) error {
	if l == nil {
		return ErrNoMail
	}
	if err := l.passwords.Check("password", newPassword); err != nil {
		return err
	}
	// A hash is expensive, so made-up tokens are rejected before it.
	address, err := l.store.CheckReset(ctx, hashLinkToken(token), l.now())
	if err != nil {
		return err
	}
	if err := l.passwords.Check("password", newPassword, address); err != nil {
		return err
	}
	hash, err := l.passwords.Hash(ctx, newPassword)
	if err != nil {
		return err
	}
	return l.store.ResetPassword(ctx, hashLinkToken(token), hash, from, l.now())
}
