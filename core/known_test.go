package core

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/uuid"
)

// A token is known by its bytes, but whether it is valid is asked each time.
func TestKnownTokensAreStillChecked(t *testing.T) {
	t.Parallel()

	now := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	tokens := NewTokens(KeyRing{first: "k", keys: map[string][]byte{"k": bytes.Repeat([]byte("k"), 32)}}, "veneer", time.Hour, func() time.Time { return now })
	issued := Token{User: 7, Session: uuid.New(), ID: uuid.New(), IssuedAt: now}
	compact, err := tokens.Sign(issued)
	if err != nil {
		t.Fatal(err)
	}
	f := func(compact string, at time.Duration, evenExpired, want bool) {
		t.Helper()
		now = issued.IssuedAt.Add(at)
		got, err := tokens.Verify(compact, evenExpired)
		if (err == nil) != want {
			t.Errorf("%s after it was issued: %v; want it to work: %t", at, err, want)
		}
		if err == nil && (got.User != issued.User || got.Session != issued.Session || got.ID != issued.ID || !got.IssuedAt.Equal(issued.IssuedAt)) {
			t.Errorf("the token identifies %+v; want %+v", got, issued)
		}
	}

	for range 2 { // unknown, and known
		f(compact, 0, false, true)
		f(compact, -5*time.Second, false, true)
		f(compact, -6*time.Second, false, false)
		f(compact, time.Hour+4*time.Second, false, true)
		f(compact, time.Hour+5*time.Second, false, false)
		f(compact, time.Hour+5*time.Second, true, true)
		f(compact+"A", 0, false, false)
		f(compact[:len(compact)-1], 0, false, false)
	}
}

// However many tokens there are, only so many are known, those that are used among
// them.
func TestOnlySoManyTokensAreKnown(t *testing.T) {
	t.Parallel()

	now := time.Now()
	valid := knownToken{Token: Token{User: 7}, from: now, until: now.Add(time.Hour)}
	var k knownTokens
	k.remember("used", valid)
	for range 5 * maxKnown {
		k.remember(uuid.NewString(), valid)
		if _, ok := k.find("used", now); !ok {
			t.Fatal("a token that is used is forgotten")
		}
		if len(k.young) > maxKnown || len(k.old) > maxKnown {
			t.Fatalf("%d and %d tokens are known; want no more than %d", len(k.young), len(k.old), maxKnown)
		}
	}
	k.remember("unused", valid)
	for range 2 * maxKnown {
		k.remember(uuid.NewString(), valid)
	}
	if _, ok := k.find("unused", now); ok {
		t.Error("a token that is not used is not forgotten")
	}
}
