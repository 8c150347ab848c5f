package core

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"time"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/shared/fault"
)

// LauncherLimits bounds the tokens of launchers, and how often one may sign in.
// Its settings are CORE_YGGDRASIL_TOKENS, CORE_YGGDRASIL_TOKEN_TTL, CORE_YGGDRASIL_TOKEN_REFRESH,
// CORE_YGGDRASIL_LOGIN_INTERVAL, CORE_YGGDRASIL_REQUIRE_VERIFIED.
type LauncherLimits struct {
	Tokens          int           `env:"TOKENS" envDefault:"10" min:"0" help:"most live tokens of launchers of a user, beyond which the oldest end; 0 for any number"`
	TokenTTL        time.Duration `env:"TOKEN_TTL" envDefault:"360h" min:"1s" help:"how long a launcher's token is valid"`
	TokenRefresh    time.Duration `env:"TOKEN_REFRESH" envDefault:"720h" min:"0s" help:"how long after that it can still be refreshed"`
	LoginInterval   time.Duration `env:"LOGIN_INTERVAL" envDefault:"1s" min:"0s" max:"1h" help:"shortest time between two log-ins by launchers to one account from one client network; 0s for none"`
	RequireVerified bool          `env:"REQUIRE_VERIFIED" envDefault:"false" help:"only users with a verified e-mail address sign in with a launcher"`
}

// LauncherHash is the SHA-256 of a launcher's token. The token itself is not stored.
type LauncherHash [32]byte

// NamedPlayer is a player as launchers and game servers know it.
type NamedPlayer struct {
	UUID uuid.UUID
	Name string
}

// LauncherSession is what a launcher gets with a token.
type LauncherSession struct {
	Token       string
	ClientToken string
	User        uuid.UUID
	Players     []NamedPlayer // of the user, by pid
	Selected    *NamedPlayer  // the player that the token is bound to; nil for none
}

// LauncherUser is the user of a token, and the player that it is bound to.
type LauncherUser struct {
	User
	SignedIn time.Time // when the password was given for the token or one that it replaces
	Player   *Player   // nil for none
}

// NewLauncherToken describes a token to issue.
type NewLauncherToken struct {
	Hash        LauncherHash
	Credentials VerifiedCredentials
	Network     netip.Prefix // the client's
	ClientToken string
	// Player is the player to bind it to, if it is the user's; 0 for the only one that the user has.
	Player PlayerID
	// PerUser bounds the tokens of a user, beyond which the oldest end; 0 stands for any number.
	PerUser int
}

// LauncherTokenWindow says how old a token may be.
type LauncherTokenWindow struct {
	Valid       time.Duration // a valid one
	Refreshable time.Duration // one that can be refreshed
}

// LauncherRefresh describes the replacement of a token.
type LauncherRefresh struct {
	Old, New    LauncherHash
	ClientToken *string // what the old token must have been issued with; nil for any
	Selected    *uuid.UUID
	Window      LauncherTokenWindow
}

// LauncherTokenStore holds the tokens of launchers. Times are by the store's clock, since the clocks of
// cores may differ. A token is live while it can be refreshed, and the player that it is bound to is
// the user's. A live token is valid unless it is too old, or the player has another name by now.
type LauncherTokenStore interface {
	// IssueLauncherToken adds a token, and records the log-in as OpenSession does. It returns
	// ErrPasswordChanged, and adds nothing, unless the user still has the password hash that was
	// verified.
	IssueLauncherToken(ctx context.Context, token NewLauncherToken) (LauncherSession, error)

	// RefreshLauncherToken replaces a live token by a new one. It replaces nothing, and returns
	// ErrLauncherToken for any other token, ErrBanned for a banned user, ErrProfileAssigned for
	// the selection of a player if there is one or of an unknown one, and a Forbidden fault for that of
	// another user.
	RefreshLauncherToken(ctx context.Context, refresh LauncherRefresh) (LauncherSession, error)

	// LauncherTokenUser returns the user of a valid token, issued with the client token unless that is
	// nil. It returns ErrLauncherToken for any other token, and ErrBanned for a banned user.
	LauncherTokenUser(ctx context.Context, token LauncherHash, clientToken *string, window LauncherTokenWindow) (LauncherUser, error)

	// RevokeLauncherToken ends a token if it exists.
	RevokeLauncherToken(ctx context.Context, token LauncherHash) error

	// RevokeLauncherTokens ends all tokens of a user. It returns ErrPasswordChanged, and ends none,
	// unless the user still has the password hash that was verified.
	RevokeLauncherTokens(ctx context.Context, credentials VerifiedCredentials) error

	// TrimLauncherTokens deletes tokens that are no longer live and returns how many.
	TrimLauncherTokens(ctx context.Context, window LauncherTokenWindow) (int, error)
}

// PlayerAccountStore finds the accounts of players.
type PlayerAccountStore interface {
	// PlayerAccount returns the player with a comparison key and the key of its owner's e-mail; the id
	// 0 if there is none.
	PlayerAccount(ctx context.Context, nameKey string) (player PlayerID, emailKey string, err error)
}

// Faults of the tokens of launchers.
var (
	// ErrLauncherToken is the fault of a token that is unknown, expired or revoked, that belongs to
	// another client token, or that is bound to another player.
	ErrLauncherToken = fault.New(fault.Unauthenticated, "Invalid token.")
	// ErrProfileAssigned is the fault of the selection of a player for a token that is bound to one, and
	// of the selection of one that does not exist: the protocol has one message for both.
	ErrProfileAssigned = fault.New(fault.Invalid, "Access token already has a profile assigned.")
)

// LauncherTokens signs launchers in and out.
type LauncherTokens struct {
	store   LauncherTokenStore
	unknown *UnknownLimit
	logins  *Logins
	limits  LauncherLimits
}

// NewLauncherTokens returns the tokens of a store.
func NewLauncherTokens(store LauncherTokenStore, unknown *UnknownLimit, logins *Logins, limits LauncherLimits) *LauncherTokens {
	return &LauncherTokens{store: store, unknown: unknown, logins: logins.spaced(limits.LoginInterval), limits: limits}
}

// maxClientToken is the most bytes of a client token. Launchers send UUIDs.
const maxClientToken = 1024

// Authenticate issues a token to the user with an e-mail address or a player. By the name of a
// player the token is bound to that one, otherwise to the only one that the user has. Unless a
// client token is given, a random one is made. An unknown user and a wrong password return the same
// Unauthenticated fault after the same time; a banned user with the right password gets ErrBanned.
// After too many attempts it returns a TooMany fault.
func (t *LauncherTokens) Authenticate(ctx context.Context, username, password string, clientToken *string, from netip.Prefix) (LauncherSession, error) {
	if clientToken == nil {
		random := uuid.New()
		clientToken = new(hex.EncodeToString(random[:]))
	}
	if len(*clientToken) > maxClientToken {
		return LauncherSession{}, fault.Field("clientToken", "The clientToken has more than %d bytes.", maxClientToken)
	}
	var session LauncherSession
	err := t.withCredentials(ctx, username, password, from, func(credentials VerifiedCredentials, player PlayerID) (err error) {
		switch {
		case credentials.Permission == Banned:
			failedBanned.Inc()
			return ErrBanned(credentials.User)
		case t.limits.RequireVerified && !credentials.Verified:
			return fault.New(fault.Forbidden, "Please verify your e-mail address first.")
		}
		token, hash := newLauncherToken()
		session, err = t.store.IssueLauncherToken(ctx, NewLauncherToken{
			Hash: hash, Credentials: credentials, Network: from, ClientToken: *clientToken, Player: player, PerUser: t.limits.Tokens,
		})
		session.Token = token
		if err == nil {
			t.unknown.add(string(hash[:]))
		}
		return err
	})
	return session, err
}

// SignOut ends all tokens of a user. It verifies the password as Authenticate does.
func (t *LauncherTokens) SignOut(ctx context.Context, username, password string, from netip.Prefix) error {
	return t.withCredentials(ctx, username, password, from, func(credentials VerifiedCredentials, _ PlayerID) error {
		return t.store.RevokeLauncherTokens(ctx, credentials)
	})
}

// withCredentials runs work if the password of a user is right. player is the one that was named, 0
// if the user was named by e-mail address.
func (t *LauncherTokens) withCredentials(ctx context.Context, username, password string, from netip.Prefix, work func(VerifiedCredentials, PlayerID) error) error {
	if !isPrintable(trimAddress(username)) {
		return errCredentials
	}
	email, player, err := t.logins.account(ctx, username)
	if err != nil {
		return err
	}
	return t.logins.withCredentials(ctx, email, password, from, func(credentials VerifiedCredentials) error {
		return work(credentials, player)
	})
}

// Refresh replaces a token, and binds the new one to a player if one is selected and the old one is
// bound to none. clientToken, unless nil, must be the token's. If it fails the old token stays
// as it was.
func (t *LauncherTokens) Refresh(ctx context.Context, token string, clientToken *string, selected *uuid.UUID) (LauncherSession, error) {
	next, hash := newLauncherToken()
	session, err := t.store.RefreshLauncherToken(ctx, LauncherRefresh{
		Old: hashLauncherToken(token), New: hash, ClientToken: clientToken, Selected: selected, Window: t.limits.window(),
	})
	session.Token = next
	if err == nil {
		t.unknown.add(string(hash[:]))
	}
	return session, err
}

// Validate returns the user of a valid token. clientToken, unless nil, must be the token's.
func (t *LauncherTokens) Validate(ctx context.Context, token string, clientToken *string) (user LauncherUser, err error) {
	hash := hashLauncherToken(token)
	err = t.unknown.doOne(ctx, string(hash[:]), func() error {
		user, err = t.store.LauncherTokenUser(ctx, hash, clientToken, t.limits.window())
		return err
	})
	return user, err
}

// Invalidate ends a token if it exists.
func (t *LauncherTokens) Invalidate(ctx context.Context, token string) error {
	return t.store.RevokeLauncherToken(ctx, hashLauncherToken(token))
}

// Trim deletes tokens that are no longer live and returns how many.
func (t *LauncherTokens) Trim(ctx context.Context) (int, error) {
	return t.store.TrimLauncherTokens(ctx, t.limits.window())
}

func (l LauncherLimits) window() LauncherTokenWindow {
	return LauncherTokenWindow{Valid: l.TokenTTL, Refreshable: l.TokenTTL + l.TokenRefresh}
}

// newLauncherToken returns a random token of 256 bits and its hash. It has hexadecimal digits only,
// since it stands on the command line of the game, where it must not begin with a dash.
func newLauncherToken() (string, LauncherHash) {
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails
	token := hex.EncodeToString(random[:])
	return token, hashLauncherToken(token)
}

func hashLauncherToken(token string) LauncherHash { return sha256.Sum256([]byte(token)) }
