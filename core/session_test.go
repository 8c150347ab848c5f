package core_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// The oldest session ends even if all began within one second.
func TestOldestSessionWithinASecondEnds(t *testing.T) {
	t.Parallel()
	db := postgrestest.Open(t)
	user := addUser(t, db, "ann@example.com")
	now := noon
	limits := core.SessionLimits{TokenTTL: time.Hour, Idle: time.Hour, MaxAge: time.Hour, PerUser: 20, Grace: 30 * time.Second}
	clock := func() time.Time { return now }
	sessions := core.NewSessions(db, nil, core.NewTokens(newKeyRing(t, "k", keyOld), "veneer", limits.TokenTTL, clock), limits, clock)

	var bearers []core.SignedToken
	for range 40 {
		credentials := core.Credentials{User: user, PasswordHash: "x"}
		proof := core.VerifiedCredentials{Credentials: credentials}
		bearers = append(bearers, testenv.Must(sessions.Open(t.Context(), proof, core.Origin{Network: netip.MustParsePrefix("192.0.2.1/32")}))(t))
		now = now.Add(20 * time.Millisecond)
	}
	for i, signed := range bearers {
		token := testenv.Must(sessions.VerifyToken(signed.Token))(t)
		_, err := sessions.Authenticate(t.Context(), token)
		testenv.Equal(t, err == nil, i >= 20, "session %d of 40 lives (%v)", i+1, err)
	}
}
