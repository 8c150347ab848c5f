package core

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/testenv"
)

func TestHashIsArgon2id(t *testing.T) {
	t.Parallel()

	passwords := NewPasswords()
	hash, err := passwords.Hash(t.Context(), "correct horse")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(hash, "$")
	if len(parts) != 6 || parts[1] != "argon2id" || parts[2] != "v=19" || parts[3] != "m=19456,t=2,p=1" {
		t.Fatalf("the hash is %s; want argon2id with 19 MiB, two passes and one lane", hash)
	}
	salt, err := base64.RawStdEncoding.DecodeString(parts[4])
	if err != nil || len(salt) != 16 {
		t.Errorf("the salt has %d bytes, %v; want 16", len(salt), err)
	}
	key := argon2.IDKey([]byte("correct horse"), salt, 2, 19*1024, 1, 32)
	if got := base64.RawStdEncoding.EncodeToString(key); got != parts[5] {
		t.Errorf("the key is %s; want %s", parts[5], got)
	}

	again, err := passwords.Hash(t.Context(), "correct horse")
	if err != nil || again == hash {
		t.Errorf("the same password has the same hash twice, %v: the salt is not random", err)
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()

	passwords := NewPasswords()
	hash, err := passwords.Hash(t.Context(), "correct horse")
	if err != nil {
		t.Fatal(err)
	}
	weak := argon2.IDKey([]byte("correct horse"), make([]byte, 16), 1, 64, 1, 32)
	for _, test := range []struct {
		name, hash, password string
		ok, rehashed         bool
	}{
		{"the right password", hash, "correct horse", true, false},
		{"a wrong password", hash, "correct horses", false, false},
		{"an empty password", hash, "", false, false},
		{"a password with a space behind it", hash, "correct horse ", false, false},
		{"an account that does not exist", "", "correct horse", false, false},
		{"no password for an account that does not exist", "", "", false, false},
		{"an unknown scheme", "$scrypt$ln=1$c2FsdA$a2V5", "correct horse", false, false},
		{"a hash that is no hash", "correct horse", "correct horse", false, false},
		{"bcrypt", bcrypted(t, "correct horse"), "correct horse", true, true},
		{"bcrypt as PHP names it", strings.Replace(bcrypted(t, "correct horse"), "$2a$", "$2y$", 1), "correct horse", true, true},
		{"bcrypt with a wrong password", bcrypted(t, "correct horse"), "wrong horse", false, false},
		{"bcrypt with a password longer than it reads", bcrypted(t, strings.Repeat("x", 72)), strings.Repeat("x", 80), true, false},
		{
			"argon2id of another cost", "$argon2id$v=19$m=64,t=1,p=1$" + base64.RawStdEncoding.EncodeToString(make([]byte, 16)) + "$" +
				base64.RawStdEncoding.EncodeToString(weak), "correct horse", true, true,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			ok, newHash, err := passwords.Verify(t.Context(), test.hash, test.password)
			if err != nil || ok != test.ok || (newHash != "") != test.rehashed {
				t.Fatalf("Verify = %t, %q, %v; want %t, and a fresh hash: %t", ok, newHash, err, test.ok, test.rehashed)
			}
			if newHash == "" {
				return
			}
			if !strings.HasPrefix(newHash, "$argon2id$v=19$m=19456,t=2,p=1$") {
				t.Errorf("the fresh hash is %s", newHash)
			}
			if ok, again, err := passwords.Verify(t.Context(), newHash, test.password); !ok || again != "" || err != nil {
				t.Errorf("the fresh hash verifies: %t, %q, %v", ok, again, err)
			}
		})
	}
}

// bcrypted returns a bcrypt hash of the least cost.
func bcrypted(t *testing.T, password string) string {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	return string(hash)
}

func TestVerifyReportsMalformedHashes(t *testing.T) {
	t.Parallel()

	passwords := NewPasswords()
	f := func(hash string) {
		t.Helper()
		if ok, _, err := passwords.Verify(t.Context(), hash, "correct horse"); ok || err == nil {
			t.Errorf("Verify(%q) = %t, %v; want an error", hash, ok, err)
		}
	}

	f("$argon2id$")
	f("$argon2id$v=19$m=19456,t=2,p=1$c2FsdA")
	f("$argon2id$v=16$m=19456,t=2,p=1$c2FsdA$a2V5")
	f("$argon2id$v=19$m=64,t=0,p=1$c2FsdA$a2V5")
	f("$argon2id$v=19$m=64,t=1,p=0$c2FsdA$a2V5")
	f("$argon2id$v=19$m=19456,t=2,p=1$not base64$a2V5")
	f("$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$")
	f("$2a$04$short")
}

// Accounts with an outdated hash, and accounts that do not exist, take as long as any other: all
// compute argon2id at its present cost, which shows in the memory allocated.
func TestVerifyCostsTheSameForAll(t *testing.T) {
	passwords := NewPasswords()
	hash, err := passwords.Hash(t.Context(), "correct horse")
	if err != nil {
		t.Fatal(err)
	}
	f := func(account, hash string) {
		t.Helper()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, _ = passwords.Verify(t.Context(), hash, "wrong horse")
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got < argonMemory*1024 || got > argonMemory*1024*3/2 {
			t.Errorf("a wrong password for %s takes %d bytes; want one argon2id", account, got)
		}
	}

	f("an account", hash)
	f("no account", "")
	f("an account with a bcrypt hash", bcrypted(t, "correct horse"))
	f("an account with a hash of an unknown scheme", "plain")
}

func TestTooManyConcurrentHashesAreRejected(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)

	passwords := NewPasswords()
	fill := func(network netip.Prefix) (n int) {
		for passwords.queue.admit(network) {
			n++
		}
		return n
	}
	hash := func(network netip.Prefix) error {
		_, err := passwords.Hash(WithClient(t.Context(), Client{Network: network}), "correct horse")
		return err
	}
	refused := func(what string, err error) {
		t.Helper()
		if refused := fault.Of(err); refused.Kind != fault.Unavailable || refused.RetryAfter <= 0 {
			t.Errorf("Hash %s: %v; want an Unavailable fault with a time to retry", what, err)
		}
	}
	hostile, other, honest := netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("2001:db8::/56"), netip.MustParsePrefix("198.51.100.0/24")

	if n, most := fill(hostile), passwords.queue.capacity; n != most/2 {
		t.Errorf("one network has %d of %d places in the queue; want half", n, most)
	}
	refused("for a network that has half of the places", hash(hostile))
	if err := hash(honest); err != nil {
		t.Errorf("Hash for another network: %v", err)
	}
	fill(other)
	fill(honest)
	refused("with a full queue", hash(netip.MustParsePrefix("192.0.2.0/24")))
	passwords.queue.release(other)
	if err := hash(honest); err != nil {
		t.Errorf("Hash with one place in the queue: %v", err)
	}
}

func TestHashWaitEndsWithContext(t *testing.T) {
	t.Parallel()

	passwords := NewPasswords()
	for range cap(passwords.sem) {
		passwords.sem <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := passwords.Hash(ctx, "correct horse"); !errors.Is(err, context.Canceled) {
		t.Errorf("Hash = %v; want the context's error", err)
	}
	if n := passwords.queue.size; n != 0 {
		t.Errorf("%d callers still wait", n)
	}

	<-passwords.sem
	if _, err := passwords.Hash(t.Context(), "correct horse"); err != nil {
		t.Errorf("Hash with one slot: %v", err)
	}
	if n := passwords.queue.size; n != 0 {
		t.Errorf("%d callers wait after the last one is done", n)
	}
}

func TestPasswordsHaveEightTo128Characters(t *testing.T) {
	t.Parallel()

	f := func(password string, want bool) {
		t.Helper()
		err := checkPassword("new_password", password)
		if (err == nil) != want {
			t.Errorf("%q is allowed: %v; want %t", password, err, want)
		}
		if err != nil && fmt.Sprint(fault.Of(err).Fields) == "map[]" {
			t.Errorf("%q: the fault %v names no field", password, err)
		}
	}

	f("1234567", false)
	f("12345678", true)
	f("        ", true) // not trimmed: every character counts
	f("ääääääää", true)
	f("äääääää", false) // 14 bytes, but 7 characters
	f(strings.Repeat("ä", 128), true)
	f(strings.Repeat("x", 129), false)
	f("12345678\xff", false)
}
