package core_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"hash"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/core"
)

const (
	keyOld = "abcdefghijklmnopqrstuvwxyz012345" // 32 bytes
	keyNew = "543210zyxwvutsrqponmlkjihgfedcba"
)

// noon is when the tokens of these tests are issued.
var noon = time.Date(2031, 2, 3, 12, 0, 0, 0, time.UTC)

func fixedClock(moment time.Time) core.Clock { return func() time.Time { return moment } }

// newKeyRing returns a key ring from pairs of a kid and a key.
func newKeyRing(t *testing.T, pairs ...string) core.KeyRing {
	t.Helper()
	var entries []string
	for i := 0; i < len(pairs); i += 2 {
		entries = append(entries, pairs[i]+":"+base64.StdEncoding.EncodeToString([]byte(pairs[i+1])))
	}
	var keys core.KeyRing
	if err := keys.UnmarshalText([]byte(strings.Join(entries, ","))); err != nil {
		t.Fatal(err)
	}
	return keys
}

func testToken() core.Token {
	return core.Token{
		User: 7, Session: uuid.MustParse("11111111-1111-4111-8111-111111111111"), ID: uuid.MustParse("22222222-2222-4222-8222-222222222222"), IssuedAt: noon,
	}
}

// testClaims returns the claims of testToken.
func testClaims() map[string]any {
	return map[string]any{
		"iss": "veneer", "sub": "7", "sid": testToken().Session.String(), "jti": testToken().ID.String(),
		"iat": noon.Unix(), "nbf": noon.Unix(), "exp": noon.Add(time.Hour).Unix(),
	}
}

// forge signs a token without validating it.
func forge(t *testing.T, header, claims map[string]any, sum func() hash.Hash, key string) string {
	t.Helper()
	part := func(fields map[string]any) string {
		text, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	signed := part(header) + "." + part(claims)
	if sum == nil {
		return signed + "."
	}
	mac := hmac.New(sum, []byte(key))
	mac.Write([]byte(signed))
	return signed + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// setUnusedBit sets an unused bit of a token's last character: the 43 characters of its signature
// hold 258 bits, of which 256 are used.
func setUnusedBit(compact string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := len(compact) - 1
	return compact[:last] + string(alphabet[strings.IndexByte(alphabet, compact[last])|1])
}

func withField(fields map[string]any, key string, value any) map[string]any {
	changed := maps.Clone(fields)
	if value == nil {
		delete(changed, key)
	} else {
		changed[key] = value
	}
	return changed
}

func TestTokenHasItsClaims(t *testing.T) {
	t.Parallel()

	tokens := core.NewTokens(newKeyRing(t, "b", keyNew, "a", keyOld), "veneer", time.Hour, fixedClock(noon))
	compact, err := tokens.Sign(testToken())
	if err != nil {
		t.Fatal(err)
	}
	f := func(part string, want map[string]any) {
		t.Helper()
		text, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil {
			t.Fatal(err)
		}
		wanted, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got, expected any
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(wanted, &expected); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(expected, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}

	parts := strings.Split(compact, ".")
	f(parts[0], map[string]any{"alg": "HS256", "typ": "JWT", "kid": "b"})
	f(parts[1], testClaims())

	got, err := tokens.Verify(compact, false)
	if err != nil {
		t.Fatal(err)
	}
	got.IssuedAt = got.IssuedAt.UTC()
	if diff := cmp.Diff(testToken(), got); diff != "" {
		t.Errorf("what is verified differs from what was signed (-want +got):\n%s", diff)
	}
	if again, err := tokens.Sign(testToken()); err != nil || again != compact {
		t.Errorf("signing the same token again gives %s, %v; want %s", again, err, compact)
	}
}

// A token with any flaw other than its age is rejected, also for a refresh.
func TestVerifyRejects(t *testing.T) {
	t.Parallel()

	header := map[string]any{"alg": "HS256", "typ": "JWT", "kid": "a"}
	genuine := forge(t, header, testClaims(), sha256.New, keyOld)
	signature := genuine[strings.LastIndex(genuine, ".")+1:]
	tokens := core.NewTokens(newKeyRing(t, "a", keyOld), "veneer", time.Hour, fixedClock(noon))
	if _, err := tokens.Verify(genuine, false); err != nil {
		t.Fatalf("the genuine token is refused: %v", err)
	}

	for _, test := range []struct{ name, token string }{
		{"nothing", ""},
		{"no token at all", "nonsense"},
		{"a signature of another form", genuine + "="},
		{"a token cut short", genuine[:len(genuine)-4]},
		{"the same signature in another spelling", setUnusedBit(genuine)},
		{"no algorithm", forge(t, withField(header, "alg", "none"), testClaims(), nil, "")},
		{"no algorithm, with the signature of another", forge(t, withField(header, "alg", "none"), testClaims(), nil, "") + signature},
		{"no signature", forge(t, header, testClaims(), nil, "")},
		{"another HMAC", forge(t, withField(header, "alg", "HS512"), testClaims(), sha512.New, keyOld)},
		{"another HMAC under the right name", forge(t, header, testClaims(), sha512.New, keyOld)},
		{"a public-key algorithm with our key", forge(t, withField(header, "alg", "RS256"), testClaims(), sha256.New, keyOld)},
		{"another key", forge(t, header, testClaims(), sha256.New, keyNew)},
		{"an empty key", forge(t, header, testClaims(), sha256.New, "")},
		{"an unknown kid", forge(t, withField(header, "kid", "z"), testClaims(), sha256.New, keyOld)},
		{"an unknown kid with an empty key", forge(t, withField(header, "kid", "z"), testClaims(), sha256.New, "")},
		{"no kid", forge(t, withField(header, "kid", nil), testClaims(), sha256.New, keyOld)},
		{"a kid that is no text", forge(t, withField(header, "kid", 1), testClaims(), sha256.New, keyOld)},
		{"a changed sub", forge(t, header, withField(testClaims(), "sub", "8"), nil, "") + signature},
		{"a later exp", forge(t, header, withField(testClaims(), "exp", noon.Add(2*time.Hour).Unix()), nil, "") + signature},
		{"a sub that is no uid", forge(t, header, withField(testClaims(), "sub", "steve"), sha256.New, keyOld)},
		{"no sub", forge(t, header, withField(testClaims(), "sub", nil), sha256.New, keyOld)},
		{"no sid", forge(t, header, withField(testClaims(), "sid", nil), sha256.New, keyOld)},
		{"a sid that is no UUID", forge(t, header, withField(testClaims(), "sid", "1"), sha256.New, keyOld)},
		{"no jti", forge(t, header, withField(testClaims(), "jti", nil), sha256.New, keyOld)},
		{"no iat", forge(t, header, withField(testClaims(), "iat", nil), sha256.New, keyOld)},
		{"no nbf", forge(t, header, withField(testClaims(), "nbf", nil), sha256.New, keyOld)},
		{"no exp", forge(t, header, withField(testClaims(), "exp", nil), sha256.New, keyOld)},
		{"no iss", forge(t, header, withField(testClaims(), "iss", nil), sha256.New, keyOld)},
		{"another issuer", forge(t, header, withField(testClaims(), "iss", "somebody"), sha256.New, keyOld)},
		{"a token that is not yet valid", forge(t, header, withField(testClaims(), "nbf", noon.Add(time.Minute).Unix()), sha256.New, keyOld)},
		{"a token from the future", forge(t, header, withField(testClaims(), "iat", noon.Add(time.Minute).Unix()), sha256.New, keyOld)},
		{
			"an expired one of another issuer",
			forge(t, header, withField(withField(testClaims(), "exp", noon.Add(-time.Hour).Unix()), "iss", "somebody"), sha256.New, keyOld),
		},
		{
			"an expired one that is not yet valid",
			forge(t, header, withField(withField(testClaims(), "exp", noon.Add(-time.Hour).Unix()), "nbf", noon.Add(time.Hour).Unix()), sha256.New, keyOld),
		},
		{
			"an expired one from the future",
			forge(t, header, withField(withField(testClaims(), "exp", noon.Add(-time.Hour).Unix()), "iat", noon.Add(time.Hour).Unix()), sha256.New, keyOld),
		},
		{
			"an expired one of another key",
			forge(t, header, withField(testClaims(), "exp", noon.Add(-time.Hour).Unix()), sha256.New, keyNew),
		},
		{
			"an expired one without a sid",
			forge(t, header, withField(withField(testClaims(), "exp", noon.Add(-time.Hour).Unix()), "sid", nil), sha256.New, keyOld),
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			for _, allowExpired := range []bool{false, true} {
				if got, err := tokens.Verify(test.token, allowExpired); err == nil || got != (core.Token{}) {
					t.Errorf("Verify, even expired: %t, = %+v, %v; want an error", allowExpired, got, err)
				}
			}
		})
	}
}

// Clocks of cores differ by a few seconds; larger differences are not tolerated.
func TestTokensWorkForTheirTime(t *testing.T) {
	t.Parallel()

	keys := newKeyRing(t, "a", keyOld)
	compact, err := core.NewTokens(keys, "veneer", time.Hour, fixedClock(noon)).Sign(testToken())
	if err != nil {
		t.Fatal(err)
	}
	f := func(after time.Duration, want, wantEvenExpired bool) {
		t.Helper()
		tokens := core.NewTokens(keys, "veneer", time.Hour, fixedClock(noon.Add(after)))
		if _, err := tokens.Verify(compact, false); (err == nil) != want {
			t.Errorf("%s after it was issued, a token works: %v; want %t", after, err, want)
		}
		if _, err := tokens.Verify(compact, true); (err == nil) != wantEvenExpired {
			t.Errorf("%s after it was issued, a token can be refreshed: %v; want %t", after, err, wantEvenExpired)
		}
	}

	f(-6*time.Second, false, false)
	f(-4*time.Second, true, true)
	f(0, true, true)
	f(time.Hour-time.Second, true, true)
	f(time.Hour+4*time.Second, true, true)
	f(time.Hour+6*time.Second, false, true)
	f(14*24*time.Hour, false, true)
}

func TestKeysRotate(t *testing.T) {
	t.Parallel()

	tokens := func(pairs ...string) *core.Tokens {
		return core.NewTokens(newKeyRing(t, pairs...), "veneer", time.Hour, fixedClock(noon))
	}
	before, during, after := tokens("a", keyOld), tokens("b", keyNew, "a", keyOld), tokens("b", keyNew)
	sign := func(by *core.Tokens) string {
		compact, err := by.Sign(testToken())
		if err != nil {
			t.Fatal(err)
		}
		return compact
	}

	if _, err := during.Verify(sign(before), false); err != nil {
		t.Errorf("the old key does not verify: %v", err)
	}
	if _, err := after.Verify(sign(during), false); err != nil {
		t.Errorf("the new key does not sign: %v", err)
	}
	if _, err := after.Verify(sign(before), false); err == nil {
		t.Error("a key that was taken out still verifies")
	}
}

func TestKeyRingRejects(t *testing.T) {
	t.Parallel()

	long := base64.StdEncoding.EncodeToString([]byte(keyOld))
	f := func(text, want string) {
		t.Helper()
		var keys core.KeyRing
		err := keys.UnmarshalText([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the ring %q: %v; want an error with %q", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), long) {
			t.Errorf("the error tells a key: %v", err)
		}
	}

	f("", "form id:base64")
	f(long, "form id:base64")
	f("a:", "form id:base64")
	f(":"+long, "form id:base64")
	f("a:"+long+",", "form id:base64")
	f("a:!", "no base64")
	f("a:"+base64.StdEncoding.EncodeToString([]byte(keyOld[1:])), "at least 32")
	f("a:"+long+",a:"+long, "twice")
}
