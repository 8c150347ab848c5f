package core

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // games verify this signature and no other
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
)

// ProfileKey signs profiles. It is the same for all cores of a site: games remember its public half
// while they run.
type ProfileKey struct {
	private   *rsa.PrivateKey
	publicDER []byte
}

// Sizes of the key in bits. New ones have the size that the protocol recommends.
const (
	minProfileKey = 2048
	newProfileKey = 4096
)

// NewProfileKey returns a random key in PEM (PKCS #8).
func NewProfileKey() ([]byte, error) {
	private, err := rsa.GenerateKey(rand.Reader, newProfileKey)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// ParseProfileKey parses an RSA key in PEM, as NewProfileKey makes it. Its errors reveal nothing of
// the key.
func ParseProfileKey(text []byte) (*ProfileKey, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, errors.New("has no private key in PEM (PKCS #8)")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	private, ok := parsed.(*rsa.PrivateKey)
	switch {
	case err != nil || !ok:
		return nil, errors.New("has a private key that is no RSA key")
	case private.N.BitLen() < minProfileKey:
		return nil, fmt.Errorf("has a key of %d bits, but it must have at least %d", private.N.BitLen(), minProfileKey)
	}
	public, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	if err != nil {
		return nil, errors.New("has a private key without a public one")
	}
	return &ProfileKey{private: private, publicDER: public}, nil
}

// PublicPEM returns the public key as SubjectPublicKeyInfo in PEM.
func (k *ProfileKey) PublicPEM() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: k.publicDER}))
}

// PublicBase64 returns the public key as SubjectPublicKeyInfo in base64.
func (k *ProfileKey) PublicBase64() string { return base64.StdEncoding.EncodeToString(k.publicDER) }

// sign returns the base64 of a signature over text.
func (k *ProfileKey) sign(text string) (string, error) {
	signature, err := k.signRaw(text)
	return base64.StdEncoding.EncodeToString(signature), err
}

// signRaw returns a signature over text: SHA1withRSA, PKCS #1 v1.5.
func (k *ProfileKey) signRaw(text string) ([]byte, error) {
	digest := sha1.Sum([]byte(text)) //nolint:gosec // see the import
	signature, err := rsa.SignPKCS1v15(nil, k.private, crypto.SHA1, digest[:])
	if err != nil {
		return nil, fmt.Errorf("sign a profile: %w", err)
	}
	return signature, nil
}
