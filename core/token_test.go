package core_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
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
	testenv.Do(t, keys.UnmarshalText([]byte(strings.Join(entries, ","))))
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
		return base64.RawURLEncoding.EncodeToString(testenv.Must(json.Marshal(fields))(t))
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
	compact := testenv.Must(tokens.Sign(testToken()))(t)
	f := func(part string, want map[string]any) {
		t.Helper()
		text := testenv.Must(base64.RawURLEncoding.DecodeString(part))(t)
		wanted := testenv.Must(json.Marshal(want))(t)
		var got, expected any
		testenv.Do(t, json.Unmarshal(text, &got))
		testenv.Do(t, json.Unmarshal(wanted, &expected))
		cmptest.Same(t, got, expected, "%s", text)
	}

	parts := strings.Split(compact, ".")
	f(parts[0], map[string]any{"alg": "HS256", "typ": "JWT", "kid": "b"})
	f(parts[1], testClaims())

	got := testenv.Must(tokens.Verify(compact, false))(t)
	got.IssuedAt = got.IssuedAt.UTC()
	cmptest.Same(t, got, testToken(), "what is verified differs from what was signed")
	testenv.Equal(t, testenv.Must(tokens.Sign(testToken()))(t), compact, "signing the same token again")
}

// A token with any flaw other than its age is rejected, also for a refresh.
func TestVerifyRejects(t *testing.T) {
	t.Parallel()

	header := map[string]any{"alg": "HS256", "typ": "JWT", "kid": "a"}
	genuine := forge(t, header, testClaims(), sha256.New, keyOld)
	signature := genuine[strings.LastIndex(genuine, ".")+1:]
	tokens := core.NewTokens(newKeyRing(t, "a", keyOld), "veneer", time.Hour, fixedClock(noon))
	testenv.Must(tokens.Verify(genuine, false))(t)

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

func TestKeysRotate(t *testing.T) {
	t.Parallel()

	tokens := func(pairs ...string) *core.Tokens {
		return core.NewTokens(newKeyRing(t, pairs...), "veneer", time.Hour, fixedClock(noon))
	}
	before, during, after := tokens("a", keyOld), tokens("b", keyNew, "a", keyOld), tokens("b", keyNew)
	sign := func(by *core.Tokens) string { return testenv.Must(by.Sign(testToken()))(t) }

	testenv.Is(t, testenv.ErrOf(during.Verify(sign(before), false)), nil, "the old key")
	testenv.Is(t, testenv.ErrOf(after.Verify(sign(during), false)), nil, "the new key")
	_, err := after.Verify(sign(before), false)
	testenv.Equal(t, err == nil, false, "a key that was taken out still verifies")
}

func TestKeyRingRejects(t *testing.T) {
	t.Parallel()

	long := base64.StdEncoding.EncodeToString([]byte(keyOld))
	f := func(text, want string) {
		t.Helper()
		var keys core.KeyRing
		err := keys.UnmarshalText([]byte(text))
		testenv.ErrorHas(t, err, want, "the ring %q", text)
		testenv.Equal(t, strings.Contains(fmt.Sprint(err), long), false, "the error tells a key: %v", err)
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
