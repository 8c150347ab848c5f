package core_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Only tokens that were signed with a key, with all required claims, are accepted. compact is a
// token of a client; header and claims are signed with the key, as by a faulty core.
func FuzzVerify(f *testing.F) {
	var keys core.KeyRing
	testenv.Do(f, keys.UnmarshalText([]byte("new:"+base64.StdEncoding.EncodeToString([]byte(keyNew)))))
	tokens := core.NewTokens(keys, "veneer", time.Hour, fixedClock(noon))
	signed := testenv.Must(tokens.Sign(testToken()))(f)
	const header = `{"alg":"HS256","kid":"new","typ":"JWT"}`
	claims := testenv.Must(json.Marshal(testClaims()))(f)
	f.Add(signed, []byte(header), claims)
	f.Add(signed+"=", []byte(`{"alg":"none","kid":"new"}`), claims)
	f.Add(signed[:len(signed)-1], []byte(`{"alg":"HS512","kid":["new"]}`), []byte(`{"sub":"7","exp":1e30}`))
	f.Add("..", []byte(`{"alg":"HS256","kid":"old"}`), []byte(`{"iss":"veneer","exp":-1,"nbf":0,"iat":null}`))
	f.Add("", []byte(`null`), []byte(`[]`))

	f.Fuzz(func(t *testing.T, compact string, header, claims []byte) {
		if token, err := tokens.Verify(compact, true); err == nil && (compact != signed || token.User != testToken().User || token.Session != testToken().Session || token.ID != testToken().ID) {
			t.Errorf("%q is taken for a token of %d", compact, token.User)
		}
		unsigned := base64.RawURLEncoding.EncodeToString(header) + "." + base64.RawURLEncoding.EncodeToString(claims)
		mac := hmac.New(sha256.New, []byte(keyNew))
		mac.Write([]byte(unsigned))
		if _, err := tokens.Verify(unsigned+"."+base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), false); err != nil {
			return
		}
		var says struct {
			Issuer    string `json:"iss"`
			Expires   int64  `json:"exp"`
			Algorithm string `json:"alg"`
		}
		testenv.Check(t, json.Unmarshal(claims, &says) == nil && says.Issuer == "veneer" &&
			says.Expires >= noon.Add(-time.Minute).Unix(), "the claims %q are taken", claims)
		testenv.Check(t, json.Unmarshal(header, &says) == nil && says.Algorithm == "HS256",
			"the header %q is taken", header)
	})
}
