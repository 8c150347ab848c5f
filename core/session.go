package core

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/fold"
)

// SessionLimits bounds sessions.
type SessionLimits struct {
	TokenTTL time.Duration `env:"TOKEN_TTL" envDefault:"60m" help:"how long a token works"`
	Idle     time.Duration `env:"SESSION_IDLE" envDefault:"336h" help:"a session ends this long after its last refresh"`
	Longest  time.Duration `env:"SESSION_LONGEST" envDefault:"2160h" help:"a session ends this long after its log-in"`
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
		"TOKEN_TTL": l.TokenTTL, "SESSION_IDLE": l.Idle, "SESSION_LONGEST": l.Longest,
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
		Now: now, RefreshedAfter: now.Add(-l.Idle), CreatedAfter: now.Add(-l.Longest), ReplacedAfter: now.Add(-l.Grace),
	}
}

// SessionStore keeps sessions and which of their tokens work.
type SessionStore interface {
	// OpenSession adds a session with its first token, notes that the user signed
	// in, and ends the user's sessions that are out of the window and the oldest
	// beyond perUser (0: any number). It returns ErrPasswordChanged, and does nothing,
	// unless the hash of the user's password is still the one that was verified.
	OpenSession(ctx context.Context, token Token, passwordHash string, perUser int, window SessionWindow) error

	// SessionUser returns the user whose live session the token belongs to, provided
	// that the token works within the window; else an Unauthenticated fault.
	SessionUser(ctx context.Context, token Token, window SessionWindow) (User, error)

	// RefreshSession replaces the current token by fresh and returns fresh, with the
	// user's permission. While the user is banned it replaces nothing. A token that
	// was replaced within the window gets the successor it already has. Any other
	// token of a live session ends that session; then, and when there is none, the
	// fault is Unauthenticated.
	RefreshSession(ctx context.Context, token, fresh Token, window SessionWindow) (Token, Permission, error)

	// EndSession ends a session. There need be none.
	EndSession(ctx context.Context, session uuid.UUID) error

	// TrimSessions deletes sessions that are out of the window and returns how many.
	TrimSessions(ctx context.Context, window SessionWindow) (int, error)
}

// Sessions signs people in and out.
type Sessions struct {
	store     SessionStore
	users     UserStore
	passwords *Passwords
	tokens    *Tokens
	limits    SessionLimits
	now       Clock
}

// NewSessions returns the sessions kept in a store.
func NewSessions(store SessionStore, users UserStore, passwords *Passwords, tokens *Tokens, limits SessionLimits, now Clock) *Sessions {
	return &Sessions{store: store, users: users, passwords: passwords, tokens: tokens, limits: limits, now: now}
}

// Bearer is a signed token for a client.
type Bearer struct {
	Token     string
	ExpiresIn time.Duration
}

// Caller is who makes a request, and with which session.
type Caller struct {
	User
	Session uuid.UUID
}

// errCredentials is the fault of a log-in with an unknown e-mail or a wrong
// password: it does not tell which.
var errCredentials = fault.New(fault.Unauthenticated, "The e-mail address or the password is wrong.")

// ErrPasswordChanged says that the hash of a user's password is no longer the one
// that was verified. To people it is a wrong password.
var ErrPasswordChanged = fault.New(fault.Unauthenticated, "%s", errCredentials.Message)

// ErrSignedOut is the fault of a request whose token belongs to no live session.
var ErrSignedOut = fault.New(fault.Unauthenticated, "You are not signed in, or your session has ended. Please sign in.")

var errBanned = fault.New(fault.Banned, "This account is banned.")

// Login opens a session. An unknown e-mail and a wrong password return the same
// Unauthenticated fault after the same time; a banned user with the right
// password gets a Banned fault.
func (s *Sessions) Login(ctx context.Context, email, password string) (Bearer, error) {
	email = strings.TrimSpace(email)
	if !plain(email) {
		return Bearer{}, fault.Field("email", "The e-mail address must be text without control characters.")
	}
	bearer, err := s.login(ctx, email, password)
	if errors.Is(err, ErrPasswordChanged) {
		// Perhaps only its hash, which another log-in has made anew.
		bearer, err = s.login(ctx, email, password)
	}
	return bearer, err
}

func (s *Sessions) login(ctx context.Context, email, password string) (Bearer, error) {
	user, err := s.users.UserByEmail(ctx, fold.Key(email))
	if err != nil && fault.KindOf(err) != fault.NotFound {
		return Bearer{}, err
	}
	right, fresh, err := s.passwords.Verify(ctx, user.PasswordHash, password)
	switch {
	case err != nil:
		return Bearer{}, err
	case !right:
		return Bearer{}, errCredentials
	case user.Permission == Banned:
		return Bearer{}, errBanned
	}
	if fresh != "" {
		if err := s.users.Rehash(ctx, user.ID, user.PasswordHash, fresh); err != nil {
			return Bearer{}, err
		}
		user.PasswordHash = fresh
	}
	return s.Open(ctx, user)
}

// Open opens a session for a user who has proved who they are by the password
// with that hash.
func (s *Sessions) Open(ctx context.Context, user Credentials) (Bearer, error) {
	token := s.token(user.ID, uuid.New())
	if err := s.store.OpenSession(ctx, token, user.PasswordHash, s.limits.PerUser, s.limits.window(s.now())); err != nil {
		return Bearer{}, err
	}
	return s.bearer(token)
}

// Authenticate returns whose token this is. It asks the store each time, so
// that an end of the session shows at once on every core.
func (s *Sessions) Authenticate(ctx context.Context, compact string) (Caller, error) {
	token, err := s.verify(compact, false)
	if err != nil {
		return Caller{}, err
	}
	user, err := s.store.SessionUser(ctx, token, s.limits.window(s.now()))
	if err != nil {
		return Caller{}, err
	}
	if user.Permission == Banned {
		return Caller{}, errBanned
	}
	return Caller{User: user, Session: token.Session}, nil
}

// Refresh returns the successor of a session's current token, which may have
// expired while its session lives. A token that was replaced a moment ago gets
// the same successor again, so that a lost answer strands nobody. One that was
// replaced before that is in the wrong hands, so it ends the session.
func (s *Sessions) Refresh(ctx context.Context, compact string) (Bearer, error) {
	token, err := s.verify(compact, true)
	if err != nil {
		return Bearer{}, err
	}
	successor, permission, err := s.store.RefreshSession(ctx, token, s.token(token.User, token.Session), s.limits.window(s.now()))
	if err != nil {
		return Bearer{}, err
	}
	if permission == Banned {
		return Bearer{}, errBanned
	}
	return s.bearer(successor)
}

// Logout ends the caller's session.
func (s *Sessions) Logout(ctx context.Context, caller Caller) error {
	return s.store.EndSession(ctx, caller.Session)
}

func (s *Sessions) token(user UserID, session uuid.UUID) Token {
	// A token's times are whole seconds; the store must give back the same ones.
	return Token{User: user, Session: session, ID: uuid.New(), IssuedAt: s.now().UTC().Truncate(time.Second)}
}

func (s *Sessions) bearer(token Token) (Bearer, error) {
	signed, err := s.tokens.Sign(token)
	if err != nil {
		return Bearer{}, err
	}
	return Bearer{Token: signed, ExpiresIn: s.limits.TokenTTL}, nil
}

func (s *Sessions) verify(compact string, evenExpired bool) (Token, error) {
	token, err := s.tokens.Verify(compact, evenExpired)
	if err != nil {
		// Why a token is refused helps only those who forge them.
		return Token{}, &fault.Error{Kind: fault.Unauthenticated, Message: ErrSignedOut.Message, Cause: err}
	}
	return token, nil
}

// Trim deletes the sessions that are over and returns how many.
func (s *Sessions) Trim(ctx context.Context) (int, error) {
	return s.store.TrimSessions(ctx, s.limits.window(s.now()))
}
