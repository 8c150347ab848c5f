package core

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/netip"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/veneer-skins/veneer/shared/casefold"
	"github.com/veneer-skins/veneer/shared/fault"
)

// LoginLimits bounds guesses at passwords. The store counts failures for all cores together. A
// limit of 0 is none.
// Its settings are CORE_LIMIT_LOGIN_FAILURES, CORE_LIMIT_LOGIN_FAILURES_PER_ADDRESS,
// CORE_LIMIT_LOGIN_FAILURES_PER_ACCOUNT.
type LoginLimits struct {
	PerPair    int `env:"LOGIN_FAILURES" envDefault:"10" min:"0" help:"most failed log-ins with one e-mail address from one IP address in 15 minutes; 0 for any number"`
	PerAddress int `env:"LOGIN_FAILURES_PER_ADDRESS" envDefault:"200" min:"0" help:"most failed log-ins from one IP address in 15 minutes; 0 for any number"`
	PerAccount int `env:"LOGIN_FAILURES_PER_ACCOUNT" envDefault:"100" min:"0" help:"failed log-ins with one e-mail address from anywhere in an hour, after which IP addresses that never signed in to that account wait longer after each failure; 0 for any number"`
}

// How long failed log-ins count, and how long an attempt may take.
const (
	pairWindow         = 15 * time.Minute
	accountWindow      = time.Hour // the bound of LauncherLimits.LoginInterval, too
	maxLoginDelay      = 15 * time.Minute
	maxAttemptDuration = time.Minute
)

// LoginAttempt is an attempt to verify a user's password.
type LoginAttempt struct {
	EmailKey  string   // made by EmailKey
	EmailHash [32]byte // SHA-256 of EmailKey: the address may be of a person without an account, so it is not stored
	// Network is the client's: an IPv4 address, or the /64 of an IPv6 address.
	Network netip.Prefix
	Now     time.Time

	Limits LoginLimits
	// Spacing is the shortest time since the last spaced attempt on the account from the network; 0
	// does not space attempts.
	Spacing time.Duration
	// PairWindow is how long failures count per network, with one e-mail or with any; AccountWindow
	// how long per e-mail, from any network.
	PairWindow, AccountWindow time.Duration
	// MaxDelay bounds the delay that doubles, from one second, with each failure beyond
	// Limits.PerAccount.
	MaxDelay time.Duration
	// MaxDuration is how long an attempt may take. One that was cut short stops counting then.
	MaxDuration time.Duration
}

// VerifiedCredentials is a user with the password hash that a log-in attempt has matched.
type VerifiedCredentials struct {
	Credentials
	// AttemptID is the attempt. It counts as a failure until the operation that takes the
	// credentials succeeds.
	AttemptID int64
}

// signInNames finds the account that a client names, by an e-mail address or a player.
type signInNames interface {
	emailKeys
	PlayerAccountStore
}

// LoginStore counts failed log-ins.
type LoginStore interface {
	signInNames

	// BeginAttempt counts an attempt before its outcome is known, so that concurrent ones cannot
	// all pass. It returns the user with that e-mail, or the id 0 and no password hash if there is
	// none; the caller verifies the password. When a limit is reached, by failures or for a moment
	// by concurrent attempts, it counts nothing and returns a TooMany fault with the time to wait.
	BeginAttempt(ctx context.Context, attempt LoginAttempt) (VerifiedCredentials, error)

	// FailAttempt records that an attempt has failed.
	FailAttempt(ctx context.Context, attempt int64) error

	// CancelAttempt stops counting an attempt.
	CancelAttempt(ctx context.Context, attempt int64) error

	// Rehash replaces the hash of a password by another of the same password, unless the password
	// was changed meanwhile.
	Rehash(ctx context.Context, user UserID, oldHash, newHash string) error

	// TrimAttempts deletes failures from before a time and returns how many.
	TrimAttempts(ctx context.Context, before time.Time) (int, error)
}

// Logins verifies passwords, and bounds guessing.
type Logins struct {
	store     LoginStore
	passwords *Passwords
	limits    LoginLimits
	spacing   time.Duration // LoginAttempt.Spacing
	now       Clock
}

// NewLogins returns a verifier of passwords.
func NewLogins(store LoginStore, passwords *Passwords, limits LoginLimits, now Clock) *Logins {
	return &Logins{store: store, passwords: passwords, limits: limits, now: now}
}

// spaced returns the same verifier with attempts that are spaced.
func (l *Logins) spaced(spacing time.Duration) *Logins {
	copied := *l
	copied.spacing = spacing
	return &copied
}

// errCredentials is the fault of a log-in with an unknown e-mail or a wrong password: it does not
// reveal which.
var errCredentials = fault.New(fault.Unauthenticated, "The e-mail address or the password is wrong.")

// Failed log-ins of this core by reason.
var (
	failedLogins = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "veneer_login_failures_total", Help: "Failed log-ins by reason.",
	}, []string{"reason"})
	failedCredentials = failedLogins.WithLabelValues("credentials")
	failedLimited     = failedLogins.WithLabelValues("limited")
	failedBanned      = failedLogins.WithLabelValues("banned")
)

// account returns the e-mail address of the account that a client names, by the address or by the name of a player, and
// the player, 0 for an address. An unknown name stands for an account that does not exist: the attempt takes as long and
// counts alike.
func (l *Logins) account(ctx context.Context, username string) (email string, player PlayerID, err error) {
	username = trimAddress(username)
	if strings.Contains(username, "@") {
		return username, 0, nil
	}
	player, emailKey, err := l.store.PlayerAccount(ctx, casefold.Key(username))
	if err != nil || player == 0 {
		return username, 0, err
	}
	return emailKey, player, nil
}

// withCredentials runs work if the password of the user with an e-mail is right. An unknown e-mail
// and a wrong password return errCredentials after the same computation, and count as failures; an
// error of work does not count.
func (l *Logins) withCredentials(ctx context.Context, email, password string, from netip.Prefix, work func(VerifiedCredentials) error) error {
	spacing := l.spacing
	for retried := false; ; retried, spacing = true, 0 {
		credentials, err := l.verify(ctx, email, password, from, spacing)
		if err != nil {
			return err
		}
		if err = work(credentials); err != nil {
			err = l.cancelAttempt(ctx, credentials, err)
		}
		if retried || !errors.Is(err, ErrPasswordChanged) {
			return err
		}
		// A concurrent log-in may have rehashed the same password.
	}
}

// verify returns the user of an e-mail and a password, or errCredentials.
func (l *Logins) verify(ctx context.Context, email, password string, from netip.Prefix, spacing time.Duration) (VerifiedCredentials, error) {
	// Admission comes first: a rejected caller must not count as an attempt, nor load the
	// database.
	leave, err := l.passwords.admit(ctx)
	if err != nil {
		return VerifiedCredentials{}, err
	}
	defer leave()
	key, err := accountKey(ctx, l.store, email)
	if err != nil {
		return VerifiedCredentials{}, err
	}
	credentials, err := l.store.BeginAttempt(ctx, LoginAttempt{
		EmailKey: key, EmailHash: sha256.Sum256([]byte(key)), Network: from, Now: l.now(),
		Limits: l.limits, Spacing: spacing, PairWindow: pairWindow, AccountWindow: accountWindow, MaxDelay: maxLoginDelay, MaxDuration: maxAttemptDuration,
	})
	if err != nil {
		if fault.KindOf(err) == fault.TooMany {
			failedLimited.Inc()
		}
		return VerifiedCredentials{}, err
	}
	ok, newHash, err := l.passwords.Verify(ctx, credentials.PasswordHash, password)
	if err != nil {
		// Whether the password was wrong is unknown.
		return VerifiedCredentials{}, l.cancelAttempt(ctx, credentials, err)
	}
	if !ok {
		failedCredentials.Inc()
		if err := l.store.FailAttempt(ctx, credentials.AttemptID); err != nil {
			return VerifiedCredentials{}, err
		}
		return VerifiedCredentials{}, errCredentials
	}
	if newHash != "" {
		if err := l.store.Rehash(ctx, credentials.ID, credentials.PasswordHash, newHash); err != nil {
			return VerifiedCredentials{}, l.cancelAttempt(ctx, credentials, err)
		}
		credentials.PasswordHash = newHash
	}
	return credentials, nil
}

// cancelAttempt stops counting an attempt, and returns the given error. It does so even after ctx
// has ended, since the attempt would count against the client.
func (l *Logins) cancelAttempt(ctx context.Context, credentials VerifiedCredentials, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = l.store.CancelAttempt(ctx, credentials.AttemptID) // at worst it counts for a while
	return err
}

// Trim deletes failures that no longer count and returns how many.
func (l *Logins) Trim(ctx context.Context) (int, error) {
	return l.store.TrimAttempts(ctx, l.now().Add(-max(pairWindow, accountWindow)))
}
