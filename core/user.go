package core

import (
	"context"
	"net/mail"
	"strings"
	"time"

	"github.com/veneer-skins/veneer/shared/fault"
)

// Permission is the role of a user.
type Permission int16

// The permissions.
const (
	Banned             Permission = -1
	Normal             Permission = 0
	Administrator      Permission = 1
	SuperAdministrator Permission = 2
)

// User is a user with an account.
type User struct {
	ID         UserID
	Email      string
	Nickname   string
	Avatar     TextureID // 0 when none is set
	Score      int64
	Permission Permission
	LastSignAt time.Time
	NextSignAt time.Time // from when on a daily sign-in is possible
	RegisterAt time.Time
	Verified   bool
	// Unread is the number of unread notifications, at most MaxUnread; nil where it was not counted.
	Unread *int

	// Why, and until when, a banned user is banned; empty for no reason, nil for ever.
	BanReason   string
	BannedUntil *time.Time
}

// Ban is why to ban a user, and until when.
type Ban struct {
	Reason string     // empty for none
	Until  *time.Time // nil for ever
}

// check returns an Invalid fault for an invalid ban, and trims the reason.
func (b *Ban) check() error {
	var wrong fieldFaults
	if b.Reason = strings.TrimSpace(b.Reason); b.Reason != "" {
		var err error
		b.Reason, err = validateText("reason", b.Reason, MaxReason)
		wrong.add(err)
	}
	if b.Until != nil && !b.Until.After(time.Now()) {
		wrong.add(fault.Field("until", "The end of a ban must be in the future."))
	}
	return wrong.fault()
}

// MaxUnread is up to where unread notifications are counted.
const MaxUnread = 99

// NewUser describes a user to add.
type NewUser struct {
	Email        string
	EmailKey     string // made by EmailKey
	Nickname     string
	PasswordHash string
	Permission   Permission
	Score        int64
	Verified     bool
	Verify       bool // queue an e-mail with a link that verifies the address
	// Player is the name of a first player, created with the user; empty for none.
	Player NewPlayer
	// TermsVersion is the version of the terms that the user has accepted; empty for none.
	TermsVersion string
}

// Credentials is a user with their password hash.
type Credentials struct {
	User
	PasswordHash string
}

// UserStore holds users.
type UserStore interface {
	emailKeys

	// CreateUser adds a user and, if named, their first player: both or neither. A taken e-mail or
	// player name is a Duplicate fault with the field email or player_name. An administrator must be
	// able to grant the permission (Forbidden).
	CreateUser(ctx context.Context, by Actor, user NewUser) (User, error)

	// UserByEmail returns the user with the comparison key of an e-mail, or a NotFound fault.
	UserByEmail(ctx context.Context, emailKey string) (Credentials, error)

	// QueueRegistration stores a registration without a password, and queues an e-mail with the
	// link that adds the user. It does the same whether or not the address is taken. A taken player
	// name is a Duplicate fault with the field player_name.
	QueueRegistration(ctx context.Context, user NewUser) error
}

// Users registers users.
type Users struct {
	store     UserStore
	passwords *Passwords
	names     *PlayerNames
	prices    ScorePrices
	pages     *SitePages
	mail      bool
}

// NewUsers returns the users of a store. A registration accepts the terms in pages. With mail, new
// users get a link that verifies their address.
func NewUsers(store UserStore, passwords *Passwords, names *PlayerNames, prices ScorePrices, pages *SitePages, mail bool) *Users {
	return &Users{store: store, passwords: passwords, names: names, prices: prices, pages: pages, mail: mail}
}

// Registration is the form that creates an account.
type Registration struct {
	Email, Password, Nickname string
	PlayerName                string // empty for none
	Verified                  bool
	TermsVersion              string // the terms that the user accepts
}

// Register adds a user. It returns an Invalid fault that names every wrong field, or a Duplicate
// fault when the e-mail or the player's name is taken.
func (u *Users) Register(ctx context.Context, r Registration) (Credentials, error) {
	texts := u.pages.Texts()
	newUser, err := u.newUser(ctx, r, texts.checkConsent(r.TermsVersion))
	if err != nil {
		return Credentials{}, err
	}
	newUser.TermsVersion = texts.TermsVersion()
	user, err := u.store.CreateUser(ctx, Registrant, newUser)
	return Credentials{User: user, PasswordHash: newUser.PasswordHash}, err
}

// Add adds a user for an administrator, as Register does, with a permission that the actor
// can grant.
func (u *Users) Add(ctx context.Context, by Actor, r Registration, permission Permission) (User, error) {
	newUser, err := u.newUser(ctx, r, nil)
	if err != nil {
		return User{}, err
	}
	newUser.Permission = permission
	return u.store.CreateUser(ctx, by, newUser)
}

// RequestRegistration queues an e-mail with a link that adds the user; the password is chosen then.
// Neither result nor duration reveals whether an account has the address; its user is told by
// e-mail. It returns an Invalid fault that names every wrong field, or a Duplicate fault when the
// player's name is taken.
func (u *Users) RequestRegistration(ctx context.Context, r Registration) error {
	var wrong fieldFaults
	newUser := u.validate(r, &wrong)
	if err := wrong.fault(); err != nil {
		return err
	}
	return u.store.QueueRegistration(ctx, newUser)
}

// newUser validates a registration, and returns the user to add. Its fault has the fields of others, a fault of the caller, as well.
func (u *Users) newUser(ctx context.Context, r Registration, others error) (NewUser, error) {
	var wrong fieldFaults
	newUser := u.validate(r, &wrong)
	wrong.add(others)
	wrong.add(u.passwords.Check("password", r.Password, r.Email))
	if err := wrong.fault(); err != nil {
		return NewUser{}, err
	}
	var err error
	newUser.PasswordHash, err = u.passwords.Hash(ctx, r.Password)
	newUser.Score, newUser.Verified, newUser.Verify = u.prices.Registration, r.Verified, u.mail && !r.Verified
	return newUser, err
}

// validate returns the user to add without a password, and adds faults to wrong.
func (u *Users) validate(r Registration, wrong *fieldFaults) NewUser {
	address, err := validateEmail(r.Email)
	wrong.add(err)
	nickname, err := validateName("nickname", r.Nickname)
	wrong.add(err)
	player, err := u.names.optional("player_name", r.PlayerName)
	wrong.add(err)
	return NewUser{Email: address, EmailKey: EmailKey(address), Nickname: nickname, Player: player}
}

// ByEmail returns the user with an e-mail address, case-insensitively, or a NotFound fault.
func (u *Users) ByEmail(ctx context.Context, email string) (User, error) {
	key, err := accountKey(ctx, u.store, email)
	if err != nil {
		return User{}, err
	}
	user, err := u.store.UserByEmail(ctx, key)
	return user.User, err
}

// maxEmail is the most bytes of an address in SMTP (RFC 5321, section 4.5.3.1.3).
const maxEmail = 254

// validateEmail validates an e-mail address and returns it trimmed.
func validateEmail(text string) (string, error) {
	text = trimAddress(text)
	parsed, err := mail.ParseAddress(text)
	if err != nil || parsed.Address != text || len(text) > maxEmail || !isPrintable(text) || !isLegible(text) {
		return "", fault.Field("email", "This is no e-mail address.")
	}
	return text, nil
}

// fieldFaults collects the faults of several fields into one.
type fieldFaults struct {
	all *fault.Error
	err error
}

// add adds a fault. Any fault but an Invalid one ends the collection.
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
