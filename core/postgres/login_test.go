package postgres_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// attempt returns a log-in attempt under limits.
func attempt(email string, network netip.Prefix, limits core.LoginLimits) core.LoginAttempt {
	return core.LoginAttempt{
		EmailKey: email, EmailHash: sha256.Sum256([]byte(email)), Network: network, Now: time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC), Limits: limits,
		PairWindow: 15 * time.Minute, AccountWindow: time.Hour, MaxDelay: 15 * time.Minute, MaxDuration: time.Minute,
	}
}

// network returns one of many networks.
func network(i int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{203, 0, 113, byte(i)}), 32)
}

// Of concurrent attempts exactly as many are counted as the limit allows, for each limit.
func TestAttemptsAtOnce(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)

	f := func(limits core.LoginLimits, of func(i int) (email string, from netip.Prefix)) {
		t.Helper()
		db := open(t)
		atOnce(t, 40, 7, fault.TooMany, func(i int) error {
			email, from := of(i)
			return errOf(db.BeginAttempt(t.Context(), attempt(email, from, limits)))
		})
	}

	f(core.LoginLimits{PerPair: 7}, func(int) (string, netip.Prefix) { return "ann@example.com", homeNetwork })
	f(core.LoginLimits{PerAddress: 7}, func(i int) (string, netip.Prefix) { return fmt.Sprintf("ann%d@example.com", i), homeNetwork })
	f(core.LoginLimits{PerAccount: 7}, func(i int) (string, netip.Prefix) { return "ann@example.com", network(i) })
}

// Attempts in progress delay others for a second, and failed ones for as long as they count. An
// interrupted attempt counts for a minute.
func TestAttemptsUnderWay(t *testing.T) {
	t.Parallel()

	f := func(limits core.LoginLimits, settled time.Duration) {
		t.Helper()
		db := open(t)
		try := attempt("ann@example.com", homeNetwork, limits)
		waits := func(when string, want time.Duration) {
			t.Helper()
			_, err := db.BeginAttempt(t.Context(), try)
			wantKind(t, err, fault.TooMany)
			testenv.Equal(t, fault.Of(err).RetryAfter, want, "%+v: %s, others may try in", limits, when)
		}
		begin := func() int64 { return must(db.BeginAttempt(t.Context(), try))(t).AttemptID }
		settle := func(attempt int64) {
			t.Helper()
			do(t, db.FailAttempt(t.Context(), attempt))
		}

		first, second := begin(), begin()
		waits("two in progress", time.Second)
		settle(first)
		waits("one failed, one in progress", time.Second)
		do(t, db.CancelAttempt(t.Context(), second))
		begin()
		waits("one failed, another in progress", time.Second)
		try.Now = try.Now.Add(time.Minute)
		third := begin() // the other was interrupted
		waits("one failed a minute ago, one in progress", time.Second)
		settle(third)
		waits("two failed", settled)
	}

	f(core.LoginLimits{PerPair: 2}, 14*time.Minute)    // when the first no longer counts
	f(core.LoginLimits{PerAddress: 2}, 14*time.Minute) // likewise
	f(core.LoginLimits{PerAccount: 2}, time.Second)    // and longer with every failure
}

// Once the limit of an account is exhausted, unknown networks may try one at a time, even if
// they retry simultaneously.
func TestUnknownNetworksTryOneAtATime(t *testing.T) {
	t.Parallel()
	db := open(t)
	try := attempt("ann@example.com", homeNetwork, core.LoginLimits{PerAccount: 2})
	for range 2 {
		begun := must(db.BeginAttempt(t.Context(), try))(t)
		do(t, db.FailAttempt(t.Context(), begun.AttemptID))
	}
	try.Now = try.Now.Add(time.Second)
	atOnce(t, 20, 1, fault.TooMany, func(i int) error {
		other := try
		other.Network = network(i)
		_, err := db.BeginAttempt(t.Context(), other)
		testenv.Check(t, err == nil || fault.Of(err).RetryAfter == time.Second,
			"an unknown network may try in %s; want 1s", fault.Of(err).RetryAfter)
		return err
	})
}

// An attempt that waited for others counts them.
func TestAnAttemptAfterWaitingCountsTheOthers(t *testing.T) {
	t.Parallel()
	db := open(t)
	late := attempt("ann@example.com", homeNetwork, core.LoginLimits{PerPair: 1})
	other := db.lock(t, "SELECT pg_advisory_xact_lock('login_failures_account'::regclass::int, $1)", int32(binary.BigEndian.Uint32(late.EmailHash[:])))
	other.exec(t, "INSERT INTO login_failures (failed_at, account, address, settled) VALUES ($1, $2, $3, true)", late.Now, late.EmailHash[:], late.Network)

	err := other.delays(t, func() error { return errOf(db.BeginAttempt(t.Context(), late)) })
	wantKind(t, err, fault.TooMany)
	testenv.Equal(t, fault.Of(err).RetryAfter, 15*time.Minute, "the wait")
}

func TestAttempts(t *testing.T) {
	t.Parallel()
	db, ann := openForOne(t)
	const counted = "SELECT count(*) FROM login_failures"

	known := must(db.BeginAttempt(t.Context(), attempt("ann@example.com", homeNetwork, core.LoginLimits{})))(t)
	testenv.Check(t, known.ID == ann.ID && known.Email == ann.Email && known.PasswordHash == "x" && known.AttemptID != 0,
		"the attempt on an account: %+v", known)
	unknown := must(db.BeginAttempt(t.Context(), attempt("bob@example.com", homeNetwork, core.LoginLimits{})))(t)
	isNew := unknown.AttemptID != 0 && unknown.AttemptID != known.AttemptID
	testenv.Check(t, unknown.ID == 0 && unknown.PasswordHash == "" && isNew, "the attempt on no account: %+v", unknown)

	do(t, db.CancelAttempt(t.Context(), known.AttemptID))
	testenv.Is(t, db.CancelAttempt(t.Context(), known.AttemptID), nil, "cancel an attempt again")
	db.hasCount(t, 1, counted) // one of two was cancelled

	late := attempt("bob@example.com", homeNetwork, core.LoginLimits{})
	late.Now = late.Now.Add(time.Minute)
	must(db.BeginAttempt(t.Context(), late))(t)
	testenv.Equal(t, must(db.TrimAttempts(t.Context(), late.Now))(t), 1, "attempts are trimmed, the earlier one of two")
	db.hasCount(t, 1, counted)
}

// A network from which a user has signed in is known for that user, for a year.
func TestKnownAddresses(t *testing.T) {
	t.Parallel()
	s := newSessionTest(t)
	bob := addUser(t, s.db, "bob")
	s.open(t) // as ann, from home
	f := func(user core.User, from netip.Prefix, want bool) {
		t.Helper()
		limited := attempt(user.Email, from, core.LoginLimits{PerAccount: 1})
		_, err := s.db.BeginAttempt(t.Context(), limited)
		testenv.Equal(t, err == nil, want, "an attempt on %s from %s passes (%v)", user.Email, from, err)
	}

	f(s.user, network(1), true)
	f(s.user, network(2), false)
	f(s.user, homeNetwork, true)
	f(bob, network(1), true)
	f(bob, homeNetwork, false)

	s.now = s.now.Add(364 * 24 * time.Hour)
	must(s.db.TrimSessions(t.Context(), s.window()))(t)
	f(s.user, homeNetwork, true)
	s.now = s.now.Add(2 * 24 * time.Hour)
	must(s.db.TrimSessions(t.Context(), s.window()))(t)
	f(s.user, homeNetwork, false)
}
