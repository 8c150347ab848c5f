package postgres_test

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// lookUp returns the user of a token, at the time when it was issued.
func lookUp(ctx context.Context, db store, token core.Token) (core.UserID, error) {
	before := token.IssuedAt.Add(-time.Minute)
	user, err := db.SessionUser(ctx, core.VerifiedToken{Token: token, Window: core.SessionWindow{
		Now: token.IssuedAt, RefreshedAfter: before, CreatedAfter: before, ReplacedAfter: before,
	}})
	return user.ID, err
}

func TestSessionLookupsAreBatched(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)

	db := open(t)
	now := time.Now().UTC().Truncate(time.Second)
	var tokens []core.Token
	for _, name := range []string{"Ann", "Bob", "Cid"} {
		token := core.Token{User: addUser(t, db, name).ID, Session: uuid.New(), ID: uuid.New(), IssuedAt: now}
		db.exec(t, `INSERT INTO sessions (sid, uid, created_at, refreshed_at) VALUES ($1, $2, $3, $3)`, token.Session, token.User, now)
		db.exec(t, `INSERT INTO session_tokens (jti, sid, issued_at) VALUES ($1, $2, $3)`, token.ID, token.Session, now)
		tokens = append(tokens, token)
	}
	mismatched := core.Token{User: tokens[0].User, Session: tokens[1].Session, ID: tokens[1].ID, IssuedAt: now}

	// While the table is locked, look-ups are batched behind the first ones.
	other := db.lock(t, "LOCK TABLE sessions IN ACCESS EXCLUSIVE MODE")
	var group sync.WaitGroup
	for i := range 100 {
		group.Go(func() {
			token := tokens[i%len(tokens)]
			user, err := lookUp(t.Context(), db, token)
			testenv.Is(t, err, nil, "a session")
			testenv.Equal(t, user, token.User, "the user of a session")
		})
		group.Go(func() {
			testenv.Is(t, errOf(lookUp(t.Context(), db, mismatched)), core.ErrSignedOut, "a session with another user's uid")
		})
	}
	other.waitBlocked(t, 1)
	// A cancelled look-up returns at once, and does not affect the others of its batch.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	testenv.Is(t, errOf(lookUp(ctx, db, tokens[0])), context.Canceled, "a cancelled look-up")
	other.commitOnceBlocked(t, 1)
	group.Wait()
}

// Look-ups of one network leave places in the batches to others.
func TestBatchesAreSharedBetweenNetworks(t *testing.T) {
	t.Parallel()
	db := open(t)
	lookUps := func(n int, network string) {
		ctx := core.WithClient(t.Context(), core.Client{Network: netip.MustParsePrefix(network)})
		for range n {
			go func() { _, _ = lookUp(ctx, db, core.Token{User: 1, IssuedAt: time.Now()}) }()
		}
	}
	pending := func(n int) {
		t.Helper()
		testenv.Eventually(t, fmt.Sprintf("%d look-ups are pending", n), func() bool { return db.PendingSessions() == n })
	}
	other := db.lock(t, "LOCK TABLE sessions IN ACCESS EXCLUSIVE MODE")
	for batches := range 2 {
		lookUps(1, "192.0.2.0/24")
		other.waitBlocked(t, batches+1)
	}
	lookUps(4*postgres.MaxNetworkQueries, "192.0.2.0/24")
	pending(postgres.MaxNetworkQueries - 2)
	lookUps(1, "198.51.100.0/24")
	pending(postgres.MaxNetworkQueries - 1)
	do(t, other.Commit(t.Context()))
}

func TestLookupsFailTogether(t *testing.T) {
	t.Parallel()

	db := openAt(t, "postgres://nobody@127.0.0.1:1/nothing?sslmode=disable") // port 1 of loopback refuses
	atOnce(t, 50, 0, fault.Unavailable, func(int) error {
		return errOf(lookUp(t.Context(), db, core.Token{User: 1, Session: uuid.New(), ID: uuid.New(), IssuedAt: time.Now()}))
	})
}
