package core

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/shared/fault"
)

// SessionLimits bounds sessions.
type SessionLimits struct {
	TokenTTL time.Duration `env:"TOKEN_TTL" envDefault:"60m" help:"how long a token works"`
	Idle     time.Duration `env:"SESSION_IDLE" envDefault:"336h" help:"a session ends this long after its last refresh"`
	MaxAge   time.Duration `env:"SESSION_LONGEST" envDefault:"2160h" help:"a session ends this long after its log-in"`
	PerUser  int           `env:"SESSIONS_PER_USER" envDefault:"20" help:"most live sessions of a user; the oldest end; 0 for any number"`
	Grace    time.Duration `env:"REFRESH_GRACE" envDefault:"30s" help:"how long a token still works after it was refreshed"`
}

// SessionWindow is what a session's times must satisfy at a moment for it to
// live, and a replaced token's for it to work.
type SessionWindow struct {
	Now            time.Time
	RefreshedAfter time.Time
	CreatedAfter   time.Time
	ReplacedAfter  time.Time
}

// Check returns an error that names a limit which makes no sense.
func (l SessionLimits) Check() error {
	for name, value := range map[string]time.Duration{
		"TOKEN_TTL": l.TokenTTL, "SESSION_IDLE": l.Idle, "SESSION_LONGEST": l.MaxAge,
	} {
		if value < time.Second {
			return fmt.Errorf("%s is %s, but must be at least 1s", name, value)
		}
	}
	if l.Grace < 0 {
		return fmt.Errorf("REFRESH_GRACE is %s, but must not be negative", l.Grace)
	}
	if l.PerUser < 0 {
		return fmt.Errorf("SESSIONS_PER_USER is %d, but must not be negative", l.PerUser)
	}
	return nil
}

func (l SessionLimits) window(now time.Time) SessionWindow {
	return SessionWindow{
		Now: now, RefreshedAfter: now.Add(-l.Idle), CreatedAfter: now.Add(-l.MaxAge), ReplacedAfter: now.Add(-l.Grace),
	}
}

// VerifiedToken is a token that we signed and that has not expired, at the moment when
// it was shown. Whether its session lives only the store can tell.
type VerifiedToken struct {
	Token  Token
	Window SessionWindow
}

// NewSession is what a session is made of.
type NewSession struct {
	Token       Token
	Credentials VerifiedCredentials
	// Network is where the user signs in.
	Network netip.Prefix
	// PerUser is how many sessions a user may have; the oldest beyond end. 0 stands
	// for any number.
	PerUser int
	Window  SessionWindow
}

// SessionStore keeps sessions and which of their tokens work.
type SessionStore interface {
	// OpenSession adds a session with its first token, notes that the user signed in
	// and from where, and ends the user's sessions that are out of the window or too
	// many. It returns ErrPasswordChanged, and opens nothing, unless the hash of the
	// user's password is still the one that was verified.
	OpenSession(ctx context.Context, session NewSession) error

	// SessionUser returns the user whose live session the ticket belongs to, provided
	// that its token works within the window. Else it returns ErrSignedOut, or
	// ErrBanned when the user is banned. Other stores' methods that take a ticket do
	// the same, in the round trip in which they read.
	SessionUser(ctx context.Context, token VerifiedToken) (User, error)

	// RefreshSession replaces the ticket's token, if it is the current one, by fresh
	// and returns fresh, with the user's permission. While the user is banned it
	// replaces nothing. A token that was replaced within the window gets the
	// successor it already has. Any other token of a live session ends that session;
	// then, and when there is none, it returns ErrSignedOut.
	RefreshSession(ctx context.Context, token VerifiedToken, next Token) (Token, Permission, error)

	// EndSession ends a session. There need be none.
	EndSession(ctx context.Context, session uuid.UUID) error

	// TrimSessions deletes sessions that are out of the window and returns how many.
	TrimSessions(ctx context.Context, window SessionWindow) (int, error)
}

// Sessions signs people in and out.
type Sessions struct {
	store  SessionStore
	logins *Logins
	tokens *Tokens
	limits SessionLimits
	now    Clock
}

// NewSessions returns the sessions kept in a store.
func NewSessions(store SessionStore, logins *Logins, tokens *Tokens, limits SessionLimits, now Clock) *Sessions {
	return &Sessions{store: store, logins: logins, tokens: tokens, limits: limits, now: now}
}

// SignedToken is a signed token for a client.
type SignedToken struct {
	Token     string
	ExpiresIn time.Duration
}

// Caller is who makes a request, and with which session.
type Caller struct {
	User
	Session uuid.UUID
}

// ErrPasswordChanged says that the hash of a user's password is no longer the one
// that was verified. To people it is a wrong password.
var ErrPasswordChanged = fault.New(fault.Unauthenticated, "%s", errCredentials.Message)

// ErrSignedOut is the fault of a request whose token belongs to no live session.
var ErrSignedOut = fault.New(fault.Unauthenticated, "You are not signed in, or your session has ended. Please sign in.")

// ErrBanned is the fault of whatever a banned user asks for.
var ErrBanned = fault.New(fault.Banned, "This account is banned.")

// Login opens a session for somebody at an address. An unknown e-mail and a wrong
// password return the same Unauthenticated fault after the same time; a banned
// user with the right password gets ErrBanned. After too many failures it returns
// a TooMany fault.
func (s *Sessions) Login(ctx context.Context, email, password string, from netip.Prefix) (SignedToken, error) {
	if !isPrintable(strings.TrimSpace(email)) {
		return SignedToken{}, fault.Field("email", "The e-mail address must be text without control characters.")
	}
	var signed SignedToken
	err := s.logins.withCredentials(ctx, email, password, from, func(credentials VerifiedCredentials) (err error) {
		if credentials.Permission == Banned {
			failedBanned.Inc()
			return ErrBanned
		}
		signed, err = s.Open(ctx, credentials, from)
		return err
	})
	return signed, err
}

// Open opens a session for a user who has proved who they are.
func (s *Sessions) Open(ctx context.Context, credentials VerifiedCredentials, from netip.Prefix) (SignedToken, error) {
	token := s.newToken(credentials.ID, uuid.New())
	err := s.store.OpenSession(ctx, NewSession{
		Token: token, Credentials: credentials, Network: from, PerUser: s.limits.PerUser, Window: s.limits.window(s.now()),
	})
	if err != nil {
		return SignedToken{}, err
	}
	return s.sign(token)
}

// VerifiedToken returns what a token stands for if we signed it and it has not expired,
// else an Unauthenticated fault. It asks no store.
func (s *Sessions) VerifyToken(compact string) (VerifiedToken, error) {
	return s.verifyToken(compact, false)
}

func (s *Sessions) verifyToken(compact string, allowExpired bool) (VerifiedToken, error) {
	token, err := s.tokens.Verify(compact, allowExpired)
	if err != nil {
		// Why a token is refused helps only those who forge them.
		return VerifiedToken{}, &fault.Error{Kind: fault.Unauthenticated, Message: ErrSignedOut.Message, Cause: err}
	}
	return VerifiedToken{Token: token, Window: s.limits.window(s.now())}, nil
}

// Authenticate returns whose ticket this is. It asks the store each time, so
// that an end of the session shows at once on every core.
func (s *Sessions) Authenticate(ctx context.Context, token VerifiedToken) (Caller, error) {
	user, err := s.store.SessionUser(ctx, token)
	if err != nil {
		return Caller{}, err
	}
	return Caller{User: user, Session: token.Token.Session}, nil
}

// Refresh returns the successor of a session's current token, which may have
// expired while its session lives. A token that was replaced a moment ago gets
// the same successor again, so that a lost answer strands nobody. One that was
// replaced before that is in the wrong hands, so it ends the session.
func (s *Sessions) Refresh(ctx context.Context, compact string) (SignedToken, error) {
	token, err := s.verifyToken(compact, true)
	if err != nil {
		return SignedToken{}, err
	}
	successor, permission, err := s.store.RefreshSession(ctx, token, s.newToken(token.Token.User, token.Token.Session))
	if err != nil {
		return SignedToken{}, err
	}
	if permission == Banned {
		return SignedToken{}, ErrBanned
	}
	return s.sign(successor)
}

// Logout ends the caller's session.
func (s *Sessions) Logout(ctx context.Context, caller Caller) error {
	return s.store.EndSession(ctx, caller.Session)
}

func (s *Sessions) newToken(user UserID, session uuid.UUID) Token {
	// A token's times are whole seconds; the store must give back the same ones.
	return Token{User: user, Session: session, ID: uuid.New(), IssuedAt: s.now().UTC().Truncate(time.Second)}
}

func (s *Sessions) sign(token Token) (SignedToken, error) {
	signed, err := s.tokens.Sign(token)
	if err != nil {
		return SignedToken{}, err
	}
	return SignedToken{Token: signed, ExpiresIn: s.limits.TokenTTL}, nil
}

// Trim deletes the sessions that are over and returns how many.
func (s *Sessions) Trim(ctx context.Context) (int, error) {
	return s.store.TrimSessions(ctx, s.limits.window(s.now()))
}
