package postgres_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// lookUp returns the user of a token, at the time when it was issued.
func lookUp(ctx context.Context, db *postgres.DB, token core.Token) (core.UserID, error) {
	before := token.IssuedAt.Add(-time.Minute)
	user, err := db.SessionUser(ctx, core.VerifiedToken{Token: token, Window: core.SessionWindow{
		Now: token.IssuedAt, RefreshedAfter: before, CreatedAfter: before, ReplacedAfter: before,
	}})
	return user.ID, err
}

func TestSessionLookupsAreBatched(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)

	db, address := openNamed(t)
	now := time.Now().UTC().Truncate(time.Second)
	var tokens []core.Token
	for _, name := range []string{"Ann", "Bob", "Cid"} {
		token := core.Token{User: addUser(t, db, name).ID, Session: uuid.New(), ID: uuid.New(), IssuedAt: now}
		conn := postgrestest.Conn(t, address)
		if _, err := conn.Exec(t.Context(), `INSERT INTO sessions (sid, uid, created_at, refreshed_at) VALUES ($1, $2, $3, $3)`, token.Session, token.User, now); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), `INSERT INTO session_tokens (jti, sid, issued_at) VALUES ($1, $2, $3)`, token.ID, token.Session, now); err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, token)
	}
	mismatched := core.Token{User: tokens[0].User, Session: tokens[1].Session, ID: tokens[1].ID, IssuedAt: now}

	// While the table is locked, look-ups are batched behind the first ones.
	other := beginLockTx(t, address)
	other.exec(t, "LOCK TABLE sessions IN ACCESS EXCLUSIVE MODE")
	var group sync.WaitGroup
	for i := range 100 {
		group.Go(func() {
			token := tokens[i%len(tokens)]
			if user, err := lookUp(t.Context(), db, token); err != nil || user != token.User {
				t.Errorf("user %d, %v; want %d", user, err, token.User)
			}
		})
		group.Go(func() {
			if _, err := lookUp(t.Context(), db, mismatched); !errors.Is(err, core.ErrSignedOut) {
				t.Errorf("a session with another user's uid: %v; want %v", err, core.ErrSignedOut)
			}
		})
	}
	other.waitBlocked(t, 1)
	// A cancelled look-up returns at once, and does not affect the others of its batch.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lookUp(ctx, db, tokens[0]); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled look-up: %v", err)
	}
	other.commitOnceBlocked(t, 1)
	group.Wait()
}

func TestLookupsFailTogether(t *testing.T) {
	t.Parallel()

	db := postgrestest.Connect(t, "postgres://nobody@127.0.0.1:1/nothing") // port 1 of loopback refuses
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			_, err := lookUp(t.Context(), db, core.Token{User: 1, Session: uuid.New(), ID: uuid.New(), IssuedAt: time.Now()})
			if kind := fault.KindOf(err); kind != fault.Unavailable {
				t.Errorf("%v, a %v fault; want Unavailable", err, kind)
			}
		})
	}
	group.Wait()
}
