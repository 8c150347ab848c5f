package core_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
)

// The oldest session ends even if all began within one second.
func TestOldestSessionWithinASecondEnds(t *testing.T) {
	t.Parallel()
	db := postgrestest.Open(t)
	user, err := db.CreateUser(t.Context(), core.NewUser{Email: "ann@example.com", EmailKey: "ann@example.com", Nickname: "Ann", PasswordHash: "x"})
	if err != nil {
		t.Fatal(err)
	}
	now := noon
	limits := core.SessionLimits{TokenTTL: time.Hour, Idle: time.Hour, MaxAge: time.Hour, PerUser: 20, Grace: 30 * time.Second}
	clock := func() time.Time { return now }
	sessions := core.NewSessions(db, nil, core.NewTokens(newKeyRing(t, "k", keyOld), "veneer", limits.TokenTTL, clock), limits, clock)

	var bearers []core.SignedToken
	for range 40 {
		signed, err := sessions.Open(t.Context(), core.VerifiedCredentials{Credentials: core.Credentials{User: user, PasswordHash: "x"}}, netip.MustParsePrefix("192.0.2.1/32"))
		if err != nil {
			t.Fatal(err)
		}
		bearers = append(bearers, signed)
		now = now.Add(20 * time.Millisecond)
	}
	for i, signed := range bearers {
		token, err := sessions.VerifyToken(signed.Token)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sessions.Authenticate(t.Context(), token); (err == nil) != (i >= 20) {
			t.Errorf("session %d of 40: %v; want the last 20 to live", i+1, err)
		}
	}
}
