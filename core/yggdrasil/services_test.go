package yggdrasil_test

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

type certificate struct {
	KeyPair                                  struct{ PrivateKey, PublicKey string }
	PublicKeySignature, PublicKeySignatureV2 string
	ExpiresAt, RefreshedAfter                time.Time
}

// A certificate is a key pair in the games' PEM, signed by the site's key in both versions.
func TestCertificates(t *testing.T) {
	t.Parallel()
	c := start(t, "YGGDRASIL_PROFILE_KEYS=true")
	testenv.Contains(t, string(c.Get(t, "").Body), `"feature.enable_profile_key":true`, "the metadata")
	u := c.signUp(t, "First", "Second")
	first := c.as(c.issue(t, u, "First").AccessToken)
	const path = "/minecraftservices/player/certificates"
	of := func(c client) certificate { return decode[certificate](t, c.Send(t, "POST", path, body{})) }
	got := of(first)
	lines := strings.Split(got.KeyPair.PublicKey, "\n")
	testenv.Check(t, len(lines[1]) == 76 && lines[len(lines)-1] == "" && !strings.Contains(got.KeyPair.PublicKey, "\r"),
		"the public key is %q", got.KeyPair.PublicKey)
	publicBlock, _ := pem.Decode([]byte(got.KeyPair.PublicKey))
	privateBlock, _ := pem.Decode([]byte(got.KeyPair.PrivateKey))
	if publicBlock == nil || publicBlock.Type != "RSA PUBLIC KEY" || privateBlock == nil || privateBlock.Type != "RSA PRIVATE KEY" {
		t.Fatalf("the keys are %+v", got.KeyPair)
	}
	parsed := testenv.Must(x509.ParsePKCS8PrivateKey(privateBlock.Bytes))(t)
	public, err := x509.ParsePKIXPublicKey(publicBlock.Bytes)
	if private, ok := parsed.(*rsa.PrivateKey); err != nil || !ok || !private.PublicKey.Equal(public) || private.N.BitLen() != 2048 {
		t.Errorf("the keys do not fit: %v", err)
	}
	now := c.site.Clock()
	testenv.Check(t, got.ExpiresAt.Equal(now.Add(48*time.Hour)) && got.RefreshedAfter.Equal(now.Add(36*time.Hour)),
		"made at %s, it expires at %s, and is refreshed after %s", now, got.ExpiresAt, got.RefreshedAfter)

	site, _ := testKey()
	verify := func(signature, signed string) {
		t.Helper()
		decoded := testenv.Must(base64.StdEncoding.DecodeString(signature))(t)
		digest := sha1.Sum([]byte(signed))
		err := rsa.VerifyPKCS1v15(&site.PublicKey, crypto.SHA1, digest[:], decoded)
		testenv.Is(t, err, nil, "the signature of %q", signed)
	}
	expires := got.ExpiresAt.UnixMilli()
	verify(got.PublicKeySignature, strconv.FormatInt(expires, 10)+got.KeyPair.PublicKey)
	id := u.players[0].UUID
	verify(got.PublicKeySignatureV2, string(id[:])+string(binary.BigEndian.AppendUint64(nil, uint64(expires)))+string(publicBlock.Bytes))

	// It stays until it must be replaced, or the launcher signs in anew, and is the player's own.
	cmptest.Same(t, of(first), got, "the next answer differs")
	refreshed := decode[session](t, c.Post(t, "/authserver/refresh", map[string]string{"accessToken": first.Token}))
	first = c.as(refreshed.AccessToken)
	cmptest.Same(t, of(first), got, "the answer after a refresh differs")
	again := c.as(c.issue(t, u, "First").AccessToken)
	testenv.Check(t, of(again).KeyPair != got.KeyPair, "another sign-in has the same key")
	second := c.as(c.issue(t, u, "Second").AccessToken)
	testenv.Check(t, of(second).KeyPair != got.KeyPair, "two players have one key")
	c.site.Advance(36 * time.Hour)
	testenv.Check(t, of(first).KeyPair != got.KeyPair, "the key is not replaced")

	isError(t, c.as("x").Send(t, "POST", path, body{}), 401, "Unauthorized", badToken)
	isError(t, c.as(c.issue(t, u).AccessToken).Send(t, "POST", path, body{}), 403, forbidden, "")
}

// Without the setting there are keys, but no signatures.
func TestUnsignedCertificates(t *testing.T) {
	t.Parallel()
	c, u := startForOne(t)
	c = c.as(c.issue(t, u).AccessToken)
	got := decode[certificate](t, c.Send(t, "POST", "/minecraftservices/player/certificates", raw("application/json", "{}")))
	testenv.Check(t, got.PublicKeySignature == "" && got.PublicKeySignatureV2 == "" && got.KeyPair.PrivateKey != "",
		"%+v", got)
}
