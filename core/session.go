package core

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/shared/fault"
)

// SessionLimits bounds sessions.
// Its settings are CORE_TOKEN_TTL, CORE_SESSION_IDLE, CORE_SESSION_LONGEST, CORE_SESSIONS_PER_USER,
// CORE_REFRESH_GRACE.
type SessionLimits struct {
	TokenTTL time.Duration `env:"TOKEN_TTL" envDefault:"60m" min:"1s" help:"lifetime of a token"`
	Idle     time.Duration `env:"SESSION_IDLE" envDefault:"336h" min:"1s" help:"time after its last refresh at which a session ends"`
	MaxAge   time.Duration `env:"SESSION_LONGEST" envDefault:"2160h" min:"1s" help:"time after its log-in at which a session ends"`
	PerUser  int           `env:"SESSIONS_PER_USER" envDefault:"20" min:"0" help:"most live sessions of a user, beyond which the oldest end; 0 for any number"`
	Grace    time.Duration `env:"REFRESH_GRACE" envDefault:"30s" min:"0s" help:"how long a token still works after it was refreshed"`
}

// SessionWindow holds the earliest times at which a live session was refreshed and created, and at
// which a token that still works was replaced.
type SessionWindow struct {
	Now            time.Time
	RefreshedAfter time.Time
	CreatedAfter   time.Time
	ReplacedAfter  time.Time
}

func (l SessionLimits) window(now time.Time) SessionWindow {
	return SessionWindow{
		Now: now, RefreshedAfter: now.Add(-l.Idle), CreatedAfter: now.Add(-l.MaxAge), ReplacedAfter: now.Add(-l.Grace),
	}
}

// VerifiedToken is a token with a valid signature that had not expired, and the window as of then.
// Only the store knows whether its session is live.
type VerifiedToken struct {
	Token  Token
	Window SessionWindow
}

// NewSession describes a session to open.
type NewSession struct {
	Token       Token
	Credentials VerifiedCredentials
	From        Origin
	// PerUser bounds the sessions of a user, beyond which the oldest end; 0 stands for any number.
	PerUser int
	Window  SessionWindow
}

// SessionStore holds sessions and their tokens.
type SessionStore interface {
	// OpenSession adds a session with its first token, records the time and network of the log-in,
	// and ends the user's sessions that are outside the window or too many. It returns
	// ErrPasswordChanged, and opens nothing, unless the user still has the password hash that was
	// verified.
	OpenSession(ctx context.Context, session NewSession) error

	// SessionUser returns the user of a token, provided that its session is live and that it works
	// within the window. Otherwise it returns ErrSignedOut, or ErrBanned for a banned user. Methods
	// of other stores that take a VerifiedToken do the same, in the round trip in which they read.
	SessionUser(ctx context.Context, token VerifiedToken) (User, error)

	// SessionUserWithUnread does what SessionUser does, and counts the unread notifications in the same query.
	SessionUserWithUnread(ctx context.Context, token VerifiedToken) (User, error)

	// RefreshSession replaces a token, if it is the current one of its session, by next and returns
	// next with the user, of whom it has the permission and the ban. While the user is banned it replaces nothing. A token that
	// was replaced within the window gets the successor that it already has. Any other token of a
	// live session ends the session. Then, and without a live session, it returns ErrSignedOut.
	RefreshSession(ctx context.Context, token VerifiedToken, next Token) (Token, User, error)

	// EndSession ends a session if it exists.
	EndSession(ctx context.Context, session uuid.UUID) error

	// TrimSessions deletes sessions outside the window and returns how many.
	TrimSessions(ctx context.Context, window SessionWindow) (int, error)
}

// Sessions logs users in and out.
type Sessions struct {
	store  SessionStore
	logins *Logins
	tokens *Tokens
	limits SessionLimits
	now    Clock
}

// NewSessions returns the sessions of a store.
func NewSessions(store SessionStore, logins *Logins, tokens *Tokens, limits SessionLimits, now Clock) *Sessions {
	return &Sessions{store: store, logins: logins, tokens: tokens, limits: limits, now: now}
}

// SignedToken is a signed bearer token for a client.
type SignedToken struct {
	Token     string
	ExpiresIn time.Duration
}

// Caller is the user of a request's token, with its session.
type Caller struct {
	User
	Session uuid.UUID
}

// ErrPasswordChanged says that a user no longer has the password hash that was verified. Its
// message is the one of a wrong password.
var ErrPasswordChanged = fault.New(fault.Unauthenticated, "%s", errCredentials.Message)

// ErrSignedOut is the fault of a request without a live session.
var ErrSignedOut = fault.New(fault.Unauthenticated, "You are not signed in, or your session has ended. Please sign in.")

// BanNotice is the data of ErrBanned.
type BanNotice struct {
	Reason string `json:"reason,omitempty"`
	Until  string `json:"until,omitempty"` // in UTC; empty for ever
}

// ErrBanned returns the fault of a request of a banned user. Its message has all that its data has, for
// launchers, which show nothing else.
func ErrBanned(user User) error {
	notice := BanNotice{Reason: user.BanReason}
	message := "This account is banned."
	if user.BannedUntil != nil {
		notice.Until = user.BannedUntil.UTC().Format(time.DateTime)
		message = fmt.Sprintf("This account is banned until %s UTC.", notice.Until)
	}
	if notice.Reason != "" {
		message += " " + notice.Reason
	}
	err := &fault.Error{Kind: fault.Banned, Message: message}
	if notice != (BanNotice{}) {
		err.Data = notice
	}
	return err
}

// Login opens a session. An unknown e-mail and a wrong password return the same Unauthenticated
// fault after the same time; a banned user with the right password gets ErrBanned. After too many
// failures it returns a TooMany fault.
func (s *Sessions) Login(ctx context.Context, email, password string, from Origin) (SignedToken, error) {
	if !isPrintable(strings.TrimSpace(email)) {
		return SignedToken{}, fault.Field("email", "The e-mail address must be text without control characters.")
	}
	var signed SignedToken
	err := s.logins.withCredentials(ctx, email, password, from.Network, func(credentials VerifiedCredentials) (err error) {
		if credentials.Permission == Banned {
			failedBanned.Inc()
			return ErrBanned(credentials.User)
		}
		signed, err = s.Open(ctx, credentials, from)
		return err
	})
	return signed, err
}

// errNameOrPassword is errCredentials for users that may give the name of a player.
var errNameOrPassword = fault.New(fault.Unauthenticated, "The player name or e-mail address, or the password, is wrong.")

// LoginByName is Login for the e-mail address or the name of a player.
func (s *Sessions) LoginByName(ctx context.Context, username, password string, from Origin) (SignedToken, error) {
	email := username
	if isPrintable(strings.TrimSpace(username)) { // else Login says what is wrong
		var err error
		if email, _, err = s.logins.account(ctx, username); err != nil {
			return SignedToken{}, err
		}
	}
	token, err := s.Login(ctx, email, password, from)
	if fault.KindOf(err) == fault.Unauthenticated {
		err = errNameOrPassword
	}
	return token, err
}

// Open opens a session for a user with verified credentials.
func (s *Sessions) Open(ctx context.Context, credentials VerifiedCredentials, from Origin) (SignedToken, error) {
	token := s.newToken(credentials.ID, uuid.New())
	err := s.store.OpenSession(ctx, NewSession{
		Token: token, Credentials: credentials, From: from, PerUser: s.limits.PerUser, Window: s.limits.window(s.now()),
	})
	if err != nil {
		return SignedToken{}, err
	}
	return s.sign(token)
}

// VerifyToken verifies the signature and expiry of a token; an invalid one is an Unauthenticated
// fault. It does not query the store.
func (s *Sessions) VerifyToken(compact string) (VerifiedToken, error) {
	return s.verifyToken(compact, false)
}

func (s *Sessions) verifyToken(compact string, allowExpired bool) (VerifiedToken, error) {
	token, err := s.tokens.Verify(compact, allowExpired)
	if err != nil {
		// The reason would only help to forge tokens.
		return VerifiedToken{}, &fault.Error{Kind: fault.Unauthenticated, Message: ErrSignedOut.Message, Cause: err}
	}
	return VerifiedToken{Token: token, Window: s.limits.window(s.now())}, nil
}

// Authenticate returns the caller with a token. It queries the store each time, so that the end of
// a session takes effect on every core at once.
func (s *Sessions) Authenticate(ctx context.Context, token VerifiedToken) (Caller, error) {
	user, err := s.store.SessionUser(ctx, token)
	if err != nil {
		return Caller{}, err
	}
	return Caller{User: user, Session: token.Token.Session}, nil
}

// UserWithUnread returns the user of a token, with the number of unread notifications.
func (s *Sessions) UserWithUnread(ctx context.Context, token VerifiedToken) (User, error) {
	return s.store.SessionUserWithUnread(ctx, token)
}

// Refresh returns the successor of the current token of a live session; the token may have expired.
// A token that was replaced within the grace period gets the same successor again, in case the
// first response was lost. One that was replaced earlier was probably stolen, so it ends the
// session.
func (s *Sessions) Refresh(ctx context.Context, compact string) (SignedToken, error) {
	token, err := s.verifyToken(compact, true)
	if err != nil {
		return SignedToken{}, err
	}
	return s.refresh(ctx, token)
}

func (s *Sessions) refresh(ctx context.Context, token VerifiedToken) (SignedToken, error) {
	successor, user, err := s.store.RefreshSession(ctx, token, s.newToken(token.Token.User, token.Token.Session))
	if err != nil {
		return SignedToken{}, err
	}
	if user.Permission == Banned {
		return SignedToken{}, ErrBanned(user)
	}
	return s.sign(successor)
}

// maxResumeMargin bounds the remaining lifetime at which Resume replaces a token: 10 minutes of the
// default hour, so that pages of a browser ask about once an hour and never hold an expired one.
const maxResumeMargin = 10 * time.Minute

// Resume returns the token of a live session itself while it works for more than 10 minutes, or for
// more than a sixth of a lifetime that is shorter than an hour. Otherwise it returns the successor,
// as Refresh does.
func (s *Sessions) Resume(ctx context.Context, compact string) (SignedToken, error) {
	token, err := s.verifyToken(compact, true)
	if err != nil {
		return SignedToken{}, err
	}
	left := token.Token.IssuedAt.Add(s.limits.TokenTTL).Sub(s.now())
	if left <= min(maxResumeMargin, s.limits.TokenTTL/6) {
		return s.refresh(ctx, token)
	}
	if _, err := s.Authenticate(ctx, token); err != nil {
		return SignedToken{}, err
	}
	return SignedToken{Token: compact, ExpiresIn: left}, nil
}

// Idle returns the time after its last refresh at which a session ends.
func (s *Sessions) Idle() time.Duration { return s.limits.Idle }

// End ends the session of a token, which may have expired. An invalid token is an Unauthenticated
// fault.
func (s *Sessions) End(ctx context.Context, compact string) error {
	token, err := s.verifyToken(compact, true)
	if err != nil {
		return err
	}
	return s.store.EndSession(ctx, token.Token.Session)
}

// Replace ends the session of a replaced token, which may have expired, unless it is another token's.
func (s *Sessions) Replace(ctx context.Context, replaced string, by SignedToken) error {
	former, err := s.verifyToken(replaced, true)
	if err != nil {
		return err
	}
	current, err := s.verifyToken(by.Token, true)
	if err != nil || current.Token.Session == former.Token.Session {
		return err
	}
	return s.store.EndSession(ctx, former.Token.Session)
}

// Logout ends the caller's session.
func (s *Sessions) Logout(ctx context.Context, caller Caller) error {
	return s.store.EndSession(ctx, caller.Session)
}

func (s *Sessions) newToken(user UserID, session uuid.UUID) Token {
	// Tokens hold whole seconds; the store must return the same times.
	return Token{User: user, Session: session, ID: uuid.New(), IssuedAt: s.now().UTC().Truncate(time.Second)}
}

func (s *Sessions) sign(token Token) (SignedToken, error) {
	signed, err := s.tokens.Sign(token)
	if err != nil {
		return SignedToken{}, err
	}
	return SignedToken{Token: signed, ExpiresIn: s.limits.TokenTTL}, nil
}

// Trim deletes sessions that have ended and returns how many.
func (s *Sessions) Trim(ctx context.Context) (int, error) {
	return s.store.TrimSessions(ctx, s.limits.window(s.now()))
}
