// Package certificate is how a listener proves who it is, and whose proofs are
// believed.
package certificate

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
)

// Client returns how a server's certificate is judged: by the authorities in a file, or
// by the system's if no file is named.
func Client(authorities string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if authorities == "" {
		return config, nil
	}
	content, err := os.ReadFile(authorities)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("names %s, which holds no certificate in PEM", authorities)
	}
	return config, nil
}

// Server returns how a listener proves who it is: by the certificate chain in one file,
// with the key in another. It is nil if no file is named, for plain HTTP.
//
// The files are read again with each handshake, which costs far more than that. So new
// connections have a certificate that was renewed at once; those that are open go on.
func Server(chain, key string, log *slog.Logger) (*tls.Config, error) {
	if chain == "" && key == "" {
		return nil, nil //nolint:nilnil // stands for plain HTTP
	}
	k := &keeper{chainFile: chain, keyFile: key, log: log}
	if _, err := k.renew(); err != nil {
		return nil, err
	}
	return &tls.Config{GetCertificate: k.present, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12}, nil
}

// keeper has a certificate and looks after its renewal.
type keeper struct {
	chainFile, keyFile string
	log                *slog.Logger

	mu         sync.Mutex
	chain, key []byte // as they were tried last
	kept       *tls.Certificate
	complaint  string // what is wrong with the files, as it was logged
}

// present returns the certificate for a handshake. While there is something wrong with
// the files, as when one of them is replaced already and the other is not, that is the
// one from before.
func (k *keeper) present(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	renewed, err := k.renew()
	switch {
	case err != nil && err.Error() != k.complaint:
		k.complaint = err.Error()
		k.log.WarnContext(hello.Context(), "certificate is not renewed", "chain", k.chainFile, "error", err)
	case err == nil && !renewed:
		k.complaint = "" // the next one is news again
	case renewed:
		k.complaint = ""
		k.log.InfoContext(hello.Context(), "certificate renewed", "chain", k.chainFile, "until", k.kept.Leaf.NotAfter)
	}
	return k.kept, nil
}

// renew reads the files, and reports whether they hold another certificate than
// before. What is wrong with what they hold it says once.
func (k *keeper) renew() (renewed bool, err error) {
	chain, err := os.ReadFile(k.chainFile)
	if err != nil {
		return false, err
	}
	key, err := os.ReadFile(k.keyFile)
	if err != nil {
		return false, err
	}
	if bytes.Equal(chain, k.chain) && bytes.Equal(key, k.key) {
		return false, nil
	}
	k.chain, k.key = chain, key
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return false, err
	}
	k.kept = &pair
	return true, nil
}
