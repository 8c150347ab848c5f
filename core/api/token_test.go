package api_test

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

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/core/coretest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// forgery is a modified copy of a genuine token.
type forgery struct {
	header, claims map[string]any      // changed values; nil removes a field
	sum            func() hash.Hash    // default SHA-256
	key            string              // letter of the key; default that of the server
	signature      func(string) string // changes the signature
}

func (f forgery) of(t *testing.T, genuine string) string {
	t.Helper()
	parts := strings.Split(genuine, ".")
	change := func(part string, changes map[string]any) string {
		text := testenv.Must(base64.RawURLEncoding.DecodeString(part))(t)
		var fields map[string]any
		testenv.Do(t, json.Unmarshal(text, &fields))
		maps.Copy(fields, changes)
		maps.DeleteFunc(fields, func(_ string, value any) bool { return value == nil })
		return base64.RawURLEncoding.EncodeToString(testenv.Must(json.Marshal(fields))(t))
	}
	signed := change(parts[0], f.header) + "." + change(parts[1], f.claims)
	if f.sum == nil {
		f.sum = sha256.New
	}
	if f.key == "" {
		f.key = "k"
	}
	mac := hmac.New(f.sum, coretest.KeyBytes(f.key))
	mac.Write([]byte(signed))
	signature := base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	if f.signature != nil {
		signature = f.signature(signature)
	}
	return signed + "." + signature
}

type fields = map[string]any

// Every forged token is rejected, also by refresh, and the session that it names goes on. TestVerifyRejects of package
// core forges others.
func TestForgedTokens(t *testing.T) {
	t.Parallel()
	c := start(t, "LIMIT_REQUESTS=0").signUp(t)
	victim := c.signUp(t)
	got := forgery{}.of(t, c.Token)
	testenv.Equal(t, got == c.Token, false, "the forged token equals the genuine one")
	c.as(got).works(t, true) // the same token with its fields in another order

	now := c.site.Clock()
	none := func(string) string { return "" }
	genuine := func(string) string { return c.Token[strings.LastIndex(c.Token, ".")+1:] }
	for _, test := range []struct {
		name string
		forgery
	}{
		{"alg none", forgery{header: fields{"alg": "none"}, signature: none}},
		{"alg None", forgery{header: fields{"alg": "None"}, signature: none}},
		{"alg NONE", forgery{header: fields{"alg": "NONE"}, signature: none}},
		{"alg nOnE", forgery{header: fields{"alg": "nOnE"}, signature: none}},
		{"alg none with a signature", forgery{header: fields{"alg": "none"}}},
		{"alg none without a kid", forgery{header: fields{"alg": "none", "kid": nil}, signature: none}},
		{"an empty alg", forgery{header: fields{"alg": ""}, signature: none}},
		{"no alg", forgery{header: fields{"alg": nil}}},
		{"HS384 with our key", forgery{header: fields{"alg": "HS384"}, sum: sha512.New384}},
		{"HS512 with our key", forgery{header: fields{"alg": "HS512"}, sum: sha512.New}},
		{"ES256 with our key", forgery{header: fields{"alg": "ES256"}}},
		{"another key under our kid", forgery{key: "x"}},
		{"a key that the token brings along", forgery{header: fields{"jwk": fields{"kty": "oct", "k": base64.RawURLEncoding.EncodeToString(coretest.KeyBytes("x"))}}, key: "x"}},
		{"a sub changed after signing", forgery{claims: fields{"sub": victim.subject(t)}, signature: genuine}},
		{"a signed sub that is not the session's user", forgery{claims: fields{"sub": victim.subject(t)}}},
		{"a signed sub of no user", forgery{claims: fields{"sub": "999999"}}},
		{"a sid of no session", forgery{claims: fields{"sid": uuid.NewString()}}},
		{"the sid of another's session", forgery{claims: fields{"sid": victim.claim(t, "sid")}}},
		{"the sid and jti of another's session", forgery{claims: fields{"sid": victim.claim(t, "sid"), "jti": victim.claim(t, "jti")}}},
		{"an exp put off after signing", forgery{claims: fields{"exp": now.Add(24 * time.Hour).Unix()}, signature: genuine}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			forged := c.as(test.of(t, c.Token))
			forged.works(t, false)
			forged.Send(t, "POST", "/api/auth/refresh", body{}).IsError(t, 401, 5)
			forged.Send(t, "POST", "/api/auth/logout", body{}).IsError(t, 401, 5)
			c.works(t, true)
			victim.works(t, true)
		})
	}
}

// claim returns a claim of the client's token.
func (c client) claim(t *testing.T, name string) string {
	t.Helper()
	text := testenv.Must(base64.RawURLEncoding.DecodeString(strings.Split(c.Token, ".")[1]))(t)
	var claims map[string]any
	testenv.Do(t, json.Unmarshal(text, &claims))
	claim, ok := claims[name].(string)
	if !ok {
		t.Fatalf("the token has no claim %s: %s", name, text)
	}
	return claim
}

func (c client) subject(t *testing.T) string {
	t.Helper()
	return c.claim(t, "sub")
}

// An expired token is rejected everywhere but by refresh.
func TestExpiredTokens(t *testing.T) {
	t.Parallel()
	c := start(t, "LIMIT_REQUESTS=0").signUp(t)
	c.site.Advance(time.Hour + 6*time.Second)
	for _, e := range mustLoadContract(t).protected() {
		if e.OperationID != "refreshToken" {
			c.Send(t, e.method, e.path, body{}).IsError(t, 401, 5)
		}
	}
	// Other defects of an expired token are not ignored.
	for _, f := range []forgery{
		{key: "x"}, {header: fields{"alg": "none"}, signature: func(string) string { return "" }}, {claims: fields{"iss": "other"}},
	} {
		c.as(f.of(t, c.Token)).Send(t, "POST", "/api/auth/refresh", body{}).IsError(t, 401, 5)
	}
	c.refresh(t).works(t, true)
}

// A token that its session does not know was replaced long ago: a refresh with it ends the session.
func TestUnknownTokenEndsSession(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	other := c.signIn(t)
	unknown := c.as(forgery{claims: fields{"jti": uuid.NewString()}}.of(t, c.Token))
	unknown.works(t, false)
	c.works(t, true)
	unknown.Send(t, "POST", "/api/auth/refresh", body{}).IsError(t, 401, 5)
	c.works(t, false)
	other.works(t, true)
}

func TestTokensOfDeletedUser(t *testing.T) {
	t.Parallel()
	c := start(t, "LIMIT_REQUESTS=0").signUp(t)
	c.withPassword(t, "battery staple")
	otherServer, other := c.site.serve(t).as(c.Token), c.signUp(t)
	c.signInWith(t, "battery staple")
	c.Send(t, "DELETE", "/api/user", encodeJSON(`{"password":"battery staple"}`)).HasStatus(t, 200)
	for _, c := range []client{c, otherServer} {
		for _, e := range mustLoadContract(t).protected() {
			c.Send(t, e.method, e.path, body{}).IsError(t, 401, 5)
		}
		c.as("").Post(t, "/api/auth/login", `{"email":"user1@example.com","password":"battery staple"}`).IsError(t, 401, 5)
	}
	other.works(t, true)
	for _, table := range []string{"sessions", "session_tokens", "users"} {
		c.site.HasCount(t, 1, "SELECT count(*) FROM "+table)
	}
}

// signInWith signs the client's user in with their password.
func (c client) signInWith(t *testing.T, password string) client {
	t.Helper()
	a := c.Post(t, "/api/auth/login", `{"email":"user1@example.com","password":"`+password+`"}`)
	a.Is(t, 200, `{"token":"<jwt>","token_type":"Bearer","expires_in":3600}`)
	return c.as(a.Field(t, "token"))
}

// Keys are rotated one server after another, and no session ends before the old key is removed.
func TestKeysAreRotated(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.Keys = coretest.KeyRing("old", "o")
	before := s.serve(t).signUp(t)
	s.Keys = coretest.KeyRing("old", "o", "new", "n")
	prepared := s.serve(t).as(before.Token)
	s.Keys = coretest.KeyRing("new", "n", "old", "o")
	during := s.serve(t).as(before.Token)
	s.Keys = coretest.KeyRing("new", "n")
	after := s.serve(t).as(before.Token)

	prepared.works(t, true)
	during.works(t, true)
	after.works(t, false)
	after.Send(t, "POST", "/api/auth/refresh", body{}).IsError(t, 401, 5)

	fresh := during.refresh(t)
	prepared.as(fresh.Token).works(t, true)
	after.as(fresh.Token).works(t, true)
	before.as(fresh.Token).works(t, false) // that server does not know the new key yet
	before.works(t, true)

	// A repeated refresh returns the same successor, also under another key.
	again := prepared.refresh(t)
	testenv.Equal(t, again.claim(t, "jti"), fresh.claim(t, "jti"), "the successor under another key")
	prepared.works(t, true)
}
