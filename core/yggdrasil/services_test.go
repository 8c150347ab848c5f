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

	"github.com/google/go-cmp/cmp"
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
	if meta := string(c.get(t, "").body); !strings.Contains(meta, `"feature.enable_profile_key":true`) {
		t.Errorf("the metadata is %s", meta)
	}
	u := c.signUp(t, "First", "Second")
	first := c.as(c.issue(t, u, "First").AccessToken)
	issue := func() certificate {
		t.Helper()
		return decode[certificate](t, first.send(t, "POST", "/minecraftservices/player/certificates", body{}))
	}
	got := issue()
	if lines := strings.Split(got.KeyPair.PublicKey, "\n"); len(lines[1]) != 76 || lines[len(lines)-1] != "" || strings.Contains(got.KeyPair.PublicKey, "\r") {
		t.Errorf("the public key is %q", got.KeyPair.PublicKey)
	}
	publicBlock, _ := pem.Decode([]byte(got.KeyPair.PublicKey))
	privateBlock, _ := pem.Decode([]byte(got.KeyPair.PrivateKey))
	if publicBlock == nil || publicBlock.Type != "RSA PUBLIC KEY" || privateBlock == nil || privateBlock.Type != "RSA PRIVATE KEY" {
		t.Fatalf("the keys are %+v", got.KeyPair)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(privateBlock.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.ParsePKIXPublicKey(publicBlock.Bytes)
	if private, ok := parsed.(*rsa.PrivateKey); err != nil || !ok || !private.PublicKey.Equal(public) || private.N.BitLen() != 2048 {
		t.Errorf("the keys do not fit: %v", err)
	}
	now := c.site.clock()
	if !got.ExpiresAt.Equal(now.Add(48*time.Hour)) || !got.RefreshedAfter.Equal(now.Add(36*time.Hour)) {
		t.Errorf("made at %s, it expires at %s, and is refreshed after %s", now, got.ExpiresAt, got.RefreshedAfter)
	}

	site, _ := testKey()
	verify := func(signature, signed string) {
		t.Helper()
		decoded, err := base64.StdEncoding.DecodeString(signature)
		if err != nil {
			t.Fatal(err)
		}
		digest := sha1.Sum([]byte(signed))
		if err := rsa.VerifyPKCS1v15(&site.PublicKey, crypto.SHA1, digest[:], decoded); err != nil {
			t.Error(err)
		}
	}
	expires := got.ExpiresAt.UnixMilli()
	verify(got.PublicKeySignature, strconv.FormatInt(expires, 10)+got.KeyPair.PublicKey)
	id := u.players[0].UUID
	verify(got.PublicKeySignatureV2, string(id[:])+string(binary.BigEndian.AppendUint64(nil, uint64(expires)))+string(publicBlock.Bytes))

	// It stays until it must be replaced, and is the player's own.
	if diff := cmp.Diff(got, issue()); diff != "" {
		t.Errorf("the next answer differs:\n%s", diff)
	}
	second := c.as(c.issue(t, u, "Second").AccessToken)
	if other := decode[certificate](t, second.send(t, "POST", "/minecraftservices/player/certificates", body{})); other.KeyPair == got.KeyPair {
		t.Error("two players have one key")
	}
	c.site.now.Add((36 * time.Hour).Milliseconds())
	if issue().KeyPair == got.KeyPair {
		t.Error("the key is not replaced")
	}

	c.as("x").send(t, "POST", "/minecraftservices/player/certificates", body{}).isError(t, 401, "Unauthorized", badToken)
	c.as(c.issue(t, u).AccessToken).send(t, "POST", "/minecraftservices/player/certificates", body{}).isError(t, 403, forbidden, "")
}

// Without the setting there are keys, but no signatures.
func TestUnsignedCertificates(t *testing.T) {
	t.Parallel()

	c := start(t)
	u := c.signUp(t, "Ann_1")
	c = c.as(c.issue(t, u).AccessToken)
	got := decode[certificate](t, c.send(t, "POST", "/minecraftservices/player/certificates", body{"application/json", []byte("{}")}))
	if got.PublicKeySignature != "" || got.PublicKeySignatureV2 != "" || got.KeyPair.PrivateKey == "" {
		t.Errorf("%+v", got)
	}
}
