package core

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/shared/sieve"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Cached tokens are found by their bytes, and their validity is checked on every lookup. Clocks of cores differ by a
// few seconds; larger differences are not tolerated.
func TestTokensWorkForTheirTime(t *testing.T) {
	t.Parallel()

	now := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	keys := KeyRing{first: "k", keys: map[string][]byte{"k": bytes.Repeat([]byte("k"), 32)}}
	newTokens := func() *Tokens { return NewTokens(keys, "veneer", time.Hour, func() time.Time { return now }) }
	cached := newTokens()
	issued := Token{User: 7, Session: uuid.New(), ID: uuid.New(), IssuedAt: now}
	compact := testenv.Must(cached.Sign(issued))(t)
	f := func(compact string, at time.Duration, allowExpired, want bool) {
		t.Helper()
		now = issued.IssuedAt.Add(at)
		for _, tokens := range []*Tokens{newTokens(), cached} {
			got, err := tokens.Verify(compact, allowExpired)
			testenv.Equal(t, err == nil, want, "%s after it was issued, it works (%v)", at, err)
			if err == nil && (got.User != issued.User || got.Session != issued.Session || got.ID != issued.ID || !got.IssuedAt.Equal(issued.IssuedAt)) {
				t.Errorf("the token identifies %+v; want %+v", got, issued)
			}
		}
	}

	f(compact, 0, false, true)
	f(compact, -5*time.Second, false, true)
	f(compact, -6*time.Second, false, false)
	f(compact, -6*time.Second, true, false)
	f(compact, time.Hour+4*time.Second, false, true)
	f(compact, time.Hour+5*time.Second, false, false)
	f(compact, time.Hour+5*time.Second, true, true)
	f(compact, 14*24*time.Hour, true, true)
	f(compact+"A", 0, false, false)
	f(compact[:len(compact)-1], 0, false, false)
}

// A token in use stays cached, however many others are added.
func TestTokenInUseStaysCached(t *testing.T) {
	t.Parallel()

	now := time.Now()
	valid := cachedToken{Token: Token{User: 7}, validFrom: now, validUntil: now.Add(time.Hour)}
	k := tokenCache{tokens: sieve.New[string, cachedToken](maxCachedTokens)}
	k.add("used", valid)
	k.add("unused", valid)
	for range 2 * maxCachedTokens {
		k.add(uuid.NewString(), valid)
		if _, ok := k.get("used", now); !ok {
			t.Fatal("a token in use is evicted")
		}
	}
	_, ok := k.get("unused", now)
	testenv.Check(t, !ok && k.tokens.Len() == maxCachedTokens, "%d tokens, an unused one: %t", k.tokens.Len(), ok)
}
