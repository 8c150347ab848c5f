package core

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/veneer-skins/veneer/shared/casefold"
	"github.com/veneer-skins/veneer/shared/fault"
)

// LoginLimits bounds guesses at passwords. Failed ones are counted by the store,
// for all cores together. A limit of 0 is none.
type LoginLimits struct {
	PerPair    int `env:"LOGIN_FAILURES" envDefault:"10" help:"most failed log-ins with an e-mail from an address in 15 minutes; 0 for any number"`
	PerAddress int `env:"LOGIN_FAILURES_PER_ADDRESS" envDefault:"200" help:"most failed log-ins from an address in 15 minutes; 0 for any number"`
	PerAccount int `env:"LOGIN_FAILURES_PER_ACCOUNT" envDefault:"100" help:"failed log-ins with an e-mail from anywhere in an hour, after which addresses that never signed in to it wait longer after each failure; 0 for any number"`
}

// Check returns an error that names a limit which makes no sense.
func (l LoginLimits) Check() error {
	return notNegative(map[string]int{
		"LOGIN_FAILURES": l.PerPair, "LOGIN_FAILURES_PER_ADDRESS": l.PerAddress, "LOGIN_FAILURES_PER_ACCOUNT": l.PerAccount,
	})
}

// notNegative returns an error that names a limit below 0.
func notNegative(limits map[string]int) error {
	for name, value := range limits {
		if value < 0 {
			return fmt.Errorf("%s is %d, but must not be negative", name, value)
		}
	}
	return nil
}

// How long failed log-ins count, and how long one may be under way.
const (
	pairWindow         = 15 * time.Minute
	accountWindow      = time.Hour
	maxLoginDelay      = 15 * time.Minute
	maxAttemptDuration = time.Minute
)

// LoginAttempt is a try at a user's password.
type LoginAttempt struct {
	EmailKey  string   // made by fold.Key
	EmailHash [32]byte // SHA-256 of EmailKey: what is counted may be anybody's address, so it is not kept in the clear
	// Network is the client's: an IPv4 address, or the /64 of an IPv6 one.
	Network netip.Prefix
	Now     time.Time

	Limits LoginLimits
	// Failures count this long: those of an address, with an e-mail or any, and
	// those with an e-mail from anywhere.
	PairWindow, AccountWindow time.Duration
	// MaxDelay bounds the delay that doubles, from one second, with each failure
	// beyond Limits.PerAccount.
	MaxDelay time.Duration
	// MaxDuration is how long an attempt may be under way. One that was cut short counts
	// no longer than that.
	MaxDuration time.Duration
}

// VerifiedCredentials is the password of a user as it was when somebody showed that they know
// it.
type VerifiedCredentials struct {
	Credentials
	// AttemptID counts until the store is told what the right password was used for.
	AttemptID int64
}

// LoginStore counts failed log-ins.
type LoginStore interface {
	// BeginAttempt counts an attempt before anybody knows whether it will fail, so
	// that many at once cannot all pass. It returns the user with that e-mail, who has
	// the id 0 and no password if there is none. It returns a TooMany fault that says
	// how long to wait, and counts nothing, when a limit is used up: by failures, or
	// for a moment by attempts that are under way.
	BeginAttempt(ctx context.Context, attempt LoginAttempt) (VerifiedCredentials, error)

	// FailAttempt says that an attempt has failed.
	FailAttempt(ctx context.Context, attempt int64) error

	// CancelAttempt no longer counts an attempt.
	CancelAttempt(ctx context.Context, attempt int64) error

	// Rehash replaces the hash of a password by another of the same password,
	// unless the password was changed meanwhile.
	Rehash(ctx context.Context, user UserID, oldHash, newHash string) error

	// TrimAttempts deletes failures from before a time and returns how many.
	TrimAttempts(ctx context.Context, before time.Time) (int, error)
}

// Logins checks who knows a password, and bounds guessing.
type Logins struct {
	store     LoginStore
	passwords *Passwords
	limits    LoginLimits
	now       Clock
}

// NewLogins returns a check of passwords.
func NewLogins(store LoginStore, passwords *Passwords, limits LoginLimits, now Clock) *Logins {
	return &Logins{store: store, passwords: passwords, limits: limits, now: now}
}

// errCredentials is the fault of a log-in with an unknown e-mail or a wrong
// password: it does not tell which.
var errCredentials = fault.New(fault.Unauthenticated, "The e-mail address or the password is wrong.")

// The failed log-ins of this core by reason.
var (
	failedLogins = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "veneer_login_failures_total", Help: "Failed log-ins by reason.",
	}, []string{"reason"})
	failedCredentials = failedLogins.WithLabelValues("credentials")
	failedLimited     = failedLogins.WithLabelValues("limited")
	failedBanned      = failedLogins.WithLabelValues("banned")
)

// withCredentials does work for whoever knows the password of the user with an e-mail. An
// unknown e-mail and a wrong password return errCredentials after the same work,
// and count; what the work itself fails of does not.
func (l *Logins) withCredentials(ctx context.Context, email, password string, from netip.Prefix, work func(VerifiedCredentials) error) error {
	for retried := false; ; retried = true {
		credentials, err := l.verify(ctx, email, password, from)
		if err != nil {
			return err
		}
		if err = work(credentials); err != nil {
			err = l.cancelAttempt(ctx, credentials, err)
		}
		if retried || !errors.Is(err, ErrPasswordChanged) {
			return err
		}
		// Perhaps it is the same password, whose hash somebody else at once has made anew.
	}
}

// verify returns whose password it is, or errCredentials.
func (l *Logins) verify(ctx context.Context, email, password string, from netip.Prefix) (VerifiedCredentials, error) {
	// Whom there is no place for must not have counted, nor asked the database: it
	// would be as busy.
	leave, err := l.passwords.admit(ctx)
	if err != nil {
		return VerifiedCredentials{}, err
	}
	defer leave()
	key := casefold.Key(strings.TrimSpace(email))
	credentials, err := l.store.BeginAttempt(ctx, LoginAttempt{
		EmailKey: key, EmailHash: sha256.Sum256([]byte(key)), Network: from, Now: l.now(),
		Limits: l.limits, PairWindow: pairWindow, AccountWindow: accountWindow, MaxDelay: maxLoginDelay, MaxDuration: maxAttemptDuration,
	})
	if err != nil {
		if fault.KindOf(err) == fault.TooMany {
			failedLimited.Inc()
		}
		return VerifiedCredentials{}, err
	}
	ok, newHash, err := l.passwords.Verify(ctx, credentials.PasswordHash, password)
	if err != nil {
		// Nobody knows whether the password was wrong.
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

// cancelAttempt no longer counts an attempt, and returns the error for which it was.
// The work's time may be over, but this is owed to the client.
func (l *Logins) cancelAttempt(ctx context.Context, credentials VerifiedCredentials, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = l.store.CancelAttempt(ctx, credentials.AttemptID) // at worst it counts for a while
	return err
}

// Trim deletes the failures that count no longer and returns how many.
func (l *Logins) Trim(ctx context.Context) (int, error) {
	return l.store.TrimAttempts(ctx, l.now().Add(-max(pairWindow, accountWindow)))
}
