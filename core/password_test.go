package core

import (
	"context"
	"encoding/base64"
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

	passwords := NewPasswords("")
	hash := testenv.Must(passwords.Hash(t.Context(), "correct horse"))(t)
	parts := strings.Split(hash, "$")
	if len(parts) != 6 || parts[1] != "argon2id" || parts[2] != "v=19" || parts[3] != "m=19456,t=2,p=1" {
		t.Fatalf("the hash is %s; want argon2id with 19 MiB, two passes and one lane", hash)
	}
	salt := testenv.Must(base64.RawStdEncoding.DecodeString(parts[4]))(t)
	testenv.Equal(t, len(salt), 16, "bytes of the salt")
	key := argon2.IDKey([]byte("correct horse"), salt, 2, 19*1024, 1, 32)
	testenv.Equal(t, base64.RawStdEncoding.EncodeToString(key), parts[5], "the key")

	again := testenv.Must(passwords.Hash(t.Context(), "correct horse"))(t)
	testenv.Equal(t, again == hash, false, "the same password has the same hash twice: the salt is not random")
}

func TestVerify(t *testing.T) {
	t.Parallel()

	passwords := NewPasswords("")
	hash := testenv.Must(passwords.Hash(t.Context(), "correct horse"))(t)
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
			testenv.Contains(t, newHash, "$argon2id$v=19$m=19456,t=2,p=1$", "the fresh hash")
			ok, again, err := passwords.Verify(t.Context(), newHash, test.password)
			testenv.Check(t, ok && again == "" && err == nil, "the fresh hash verifies: %t, %q, %v", ok, again, err)
		})
	}
}

// A password is the same from every keyboard: pairs that are equal and pairs that are not, in both
// directions. Hashes from before passwords were normalised verify, and are replaced.
func TestPasswordsAreNormalised(t *testing.T) {
	t.Parallel()
	passwords := NewPasswordsOf(64)
	f := func(a, b string, want bool) {
		t.Helper()
		for _, pair := range [][2]string{{a, b}, {b, a}} {
			ok, newHash, err := passwords.Verify(t.Context(), testenv.Must(passwords.Hash(t.Context(), pair[0]))(t), pair[1])
			testenv.Check(t, ok == want && newHash == "" && err == nil, "%q and %q are equal: %t, %q, %v; want %t", pair[0], pair[1], ok, newHash, err, want)
		}
	}
	f("caf\u00e9 olé!", "cafe\u0301 ole\u0301!", true)
	f("two words", "two\u00a0words", true)  // a no-break space, as macOS types with Alt
	f("two words", "two\u3000words", true)  // an ideographic space
	f("\u1112\u1161\u11ab", "\ud55c", true) // Hangul
	f("correct horse", "Correct horse", false)
	f("two words", "two\twords", false)
	f("two words", "two  words", false)
	f("pass\uff11", "pass1", false) // a full-width digit
	f("stra\u00dfe", "strasse", false)
	testenv.Do(t, passwords.Check("password", strings.Repeat("cafe\u0301 Ole\u0301 ", 12))) // as many characters once it is normalised

	for _, hash := range []string{
		passwords.format(make([]byte, argonSalt), argon2.IDKey([]byte("cafe\u0301 ole"), make([]byte, argonSalt), argonPasses, 64, argonLanes, argonKey)),
		bcrypted(t, "cafe\u0301 ole"),
	} {
		ok, newHash, err := passwords.Verify(t.Context(), hash, "cafe\u0301 ole")
		testenv.Check(t, ok && newHash != "" && err == nil, "a former hash: %t, %q, %v", ok, newHash, err)
		ok, again, err := passwords.Verify(t.Context(), newHash, "caf\u00e9 ole")
		testenv.Check(t, ok && again == "" && err == nil, "its new hash: %t, %q, %v", ok, again, err)
	}
}

// bcrypted returns a bcrypt hash of the least cost.
func bcrypted(t *testing.T, password string) string {
	t.Helper()
	return string(testenv.Must(bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost))(t))
}

func TestVerifyReportsMalformedHashes(t *testing.T) {
	t.Parallel()

	passwords := NewPasswords("")
	for _, hash := range []string{
		"$argon2id$", "$argon2id$v=19$m=19456,t=2,p=1$c2FsdA", "$argon2id$v=16$m=19456,t=2,p=1$c2FsdA$a2V5",
		"$argon2id$v=19$m=64,t=0,p=1$c2FsdA$a2V5", "$argon2id$v=19$m=64,t=1,p=0$c2FsdA$a2V5",
		"$argon2id$v=19$m=19456,t=2,p=1$not base64$a2V5", "$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$", "$2a$04$short",
	} {
		ok, _, err := passwords.Verify(t.Context(), hash, "correct horse")
		testenv.Check(t, !ok && err != nil, "Verify(%q) = %t, %v; want an error", hash, ok, err)
	}
}

// Accounts with an outdated hash, and accounts that do not exist, take as long as any other: all
// compute argon2id at its present cost, which shows in the memory allocated.
func TestVerifyCostsTheSameForAll(t *testing.T) {
	passwords := NewPasswords("")
	hash := testenv.Must(passwords.Hash(t.Context(), "correct horse"))(t)
	f := func(account, hash string) {
		t.Helper()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, _ = passwords.Verify(t.Context(), hash, "wrong horse")
		runtime.ReadMemStats(&after)
		got := after.TotalAlloc - before.TotalAlloc
		testenv.Check(t, got >= argonMemory*1024 && got <= argonMemory*1024*3/2, "%s takes %d bytes", account, got)
	}

	f("an account", hash)
	f("no account", "")
	f("an account with a bcrypt hash", bcrypted(t, "correct horse"))
	f("an account with a hash of an unknown scheme", "plain")
}

func TestTooManyConcurrentHashesAreRejected(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)

	passwords := NewPasswords("")
	fill := func(network netip.Prefix) (n int) {
		for passwords.queue.admit(network) {
			n++
		}
		return n
	}
	hash := func(network netip.Prefix) error {
		return testenv.ErrOf(passwords.Hash(WithClient(t.Context(), Client{Network: network}), "correct horse"))
	}
	refused := func(what string, err error) {
		t.Helper()
		got := fault.Of(err)
		testenv.Check(t, got.Kind == fault.Unavailable && got.RetryAfter > 0, "Hash %s: %v; want it Unavailable", what, err)
	}
	hostile, other, honest := netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("2001:db8::/56"), netip.MustParsePrefix("198.51.100.0/24")

	testenv.Equal(t, fill(hostile), passwords.queue.capacity/2, "places in the queue for one network")
	refused("for a network that has half of the places", hash(hostile))
	testenv.Is(t, hash(honest), nil, "Hash for another network")
	fill(other)
	fill(honest)
	refused("with a full queue", hash(netip.MustParsePrefix("192.0.2.0/24")))
	passwords.queue.release(other)
	testenv.Is(t, hash(honest), nil, "Hash with one place in the queue")
}

func TestHashWaitEndsWithContext(t *testing.T) {
	t.Parallel()

	passwords := NewPasswords("")
	for range cap(passwords.sem) {
		passwords.sem <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	testenv.Is(t, testenv.ErrOf(passwords.Hash(ctx, "correct horse")), context.Canceled, "Hash with a cancelled context")
	testenv.Equal(t, passwords.queue.size, 0, "callers still wait")

	<-passwords.sem
	testenv.Is(t, testenv.ErrOf(passwords.Hash(t.Context(), "correct horse")), nil, "Hash with one slot")
	testenv.Equal(t, passwords.queue.size, 0, "callers wait after the last one is done")
}

// Passwords have 8 to 128 characters, and are not the first that attackers try.
func TestCheckPassword(t *testing.T) {
	t.Parallel()
	passwords := NewPasswords("Skins of Ann")

	f := func(password string, want bool) {
		t.Helper()
		err := passwords.Check("new_password", password, "Ann.Lee@example.com")
		testenv.Equal(t, err == nil, want, "%q is allowed (%v)", password, err)
		testenv.Check(t, err == nil || fmt.Sprint(fault.Of(err).Fields) != "map[]",
			"%q: the fault %v names no field", password, err)
	}

	f("a b c d", false)
	f("a b c d ", true) // not trimmed: every character counts
	f("äöüäöüäö", true)
	f("äöüäöüä", false) // 14 bytes, but 7 characters
	f(strings.Repeat("äöüß", 32), true)
	f(strings.Repeat("äöüß", 32)+"x", false)
	f("a b c d \xff", false)

	for _, guessed := range []string{
		"12345678", "1234567890", "09876543", "87654321", "abcdefgh", "hgfedcba", "aaaaaaaa", "        ", "12121212", "aabbaabb",
		"password", "Password1", "PASSWORD123!", "p@ssw0rd", "!passw0rd!", "password12345", "Minecraft2026", "１２３４５６７８", "ｐａｓｓｗｏｒｄ", "qwertzuiop", "1q2w3e4r", "123qwe123",
		"12345678a", "a1234567", "a123456789", "Aa123456", "Aa@123456", "qq123456", "asd12345", "12345678!", "1234567899", "P@ss1234", "Pass@123", "hello123",
		"spongebob", "123654789", "789456123", "5201314a", "a5201314", "blink182", "xminecraftx",
		"Skins of Ann", "skinsofann1", "skins of ann 2026", "Ann.Lee@example.com", "ann.lee@example.com1", "ann.lee2024", "annlee12",
	} {
		f(guessed, false)
	}
	for _, strong := range []string{
		"abc$8!2977#20!51", "sims2847193650274", "qwe-8391-2750-1184", "test82736455", "7391!halo#48203",
		"minecraft and cake", "correct horse", "password of mine", "135790246",
	} {
		f(strong, true)
	}
}
