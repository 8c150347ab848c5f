// Package tlsreloadtest makes certificate authorities and certificates for tests.
package tlsreloadtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// Authority is a certificate authority.
type Authority struct {
	File string // its own certificate, in PEM

	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	issued      int // number of certificates; each expires a minute after the one before
}

// NewAuthority makes an authority that only this test trusts.
func NewAuthority(tb testing.TB) *Authority {
	tb.Helper()
	a := &Authority{File: filepath.Join(tb.TempDir(), "ca.pem")}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "an authority of a test"}, IsCA: true, BasicConstraintsValid: true,
	}
	der, key := createCertificate(tb, template, nil)
	a.certificate = testenv.Must(x509.ParseCertificate(der))(tb)
	a.key = key
	write(tb, a.File, "CERTIFICATE", der)
	return a
}

// Issue makes a certificate for 127.0.0.1 and localhost, and returns the paths of its chain
// and its key.
func (a *Authority) Issue(tb testing.TB) (chain, key string) {
	tb.Helper()
	directory := tb.TempDir()
	chain, key = filepath.Join(directory, "chain.pem"), filepath.Join(directory, "key.pem")
	a.Renew(tb, chain, key)
	return chain, key
}

// Renew writes another certificate, and its key, to files.
func (a *Authority) Renew(tb testing.TB, chain, key string) {
	tb.Helper()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "a server of a test"}, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, private := createCertificate(tb, template, a)
	pkcs8 := testenv.Must(x509.MarshalPKCS8PrivateKey(private))(tb)
	write(tb, chain, "CERTIFICATE", der)
	write(tb, key, "PRIVATE KEY", pkcs8)
}

// createCertificate makes a certificate, signed by an authority or self-signed.
func createCertificate(tb testing.TB, template *x509.Certificate, by *Authority) ([]byte, *ecdsa.PrivateKey) {
	tb.Helper()
	key := testenv.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(tb)
	template.SerialNumber = testenv.Must(rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)))(tb)
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := template, key
	if by != nil {
		by.issued++
		template.NotAfter = template.NotAfter.Add(time.Duration(by.issued) * time.Minute)
		parent, signer = by.certificate, by.key
	}
	der := testenv.Must(x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer))(tb)
	return der, key
}

func write(tb testing.TB, path, kind string, der []byte) {
	tb.Helper()
	testenv.Do(tb, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}
