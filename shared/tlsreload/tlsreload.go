// Package tlsreload configures TLS: certificates of listeners, which are reloaded when their
// files change, and authorities for clients.
package tlsreload

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/veneer-skins/veneer/shared/config"
)

// ClientConfig returns the configuration of a client that trusts the authorities in a PEM
// file, or the authorities of the system if the path is empty. The error lacks the name of the setting.
func ClientConfig(authorities string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if authorities == "" {
		return config, nil
	}
	content, err := os.ReadFile(authorities)
	if err != nil {
		return nil, fmt.Errorf("is %q, a file that cannot be read: %w", authorities, withoutPath(err))
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("is %q, a file that holds no certificate in PEM", authorities)
	}
	return config, nil
}

// HTTPSHint returns a text to append to the error of a request to an http:// URL, if a
// listener with TLS may have caused it, else the empty string. Such a listener closes the
// connection, or sends a TLS alert.
func HTTPSHint(url string, err error) string {
	closed := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
	if !strings.HasPrefix(url, "http://") || !closed && !strings.Contains(err.Error(), "malformed HTTP response") {
		return ""
	}
	return "; if that listener has a certificate, the URL begins with https://"
}

// withoutPath returns the cause of a file error, without the path.
func withoutPath(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

// Load returns the certificate of a listener from the PEM files of the chain and the key. It
// is nil if both paths are empty, for plain HTTP. The error begins with CERT or KEY,
// whichever is wrong.
func Load(chain, key string, log *slog.Logger) (*Certificate, error) {
	if chain == "" && key == "" {
		return nil, nil //nolint:nilnil // nil stands for plain HTTP
	}
	c := &Certificate{chainFile: chain, keyFile: key, log: log}
	if _, err := c.reload(); err != nil {
		return nil, err
	}
	return c, nil
}

// Certificate is a listener's certificate that is reloaded from its files.
//
// The files are read at each handshake, which costs far more than that. New connections get a
// renewed certificate at once; open connections are not affected.
type Certificate struct {
	chainFile, keyFile string
	log                *slog.Logger

	mu          sync.Mutex
	chain, key  []byte // as they were loaded last, whether valid or not
	pair        *tls.Certificate
	lastWarning string // the last logged error
}

// ServerConfig returns the TLS configuration of a listener; nil for plain HTTP.
func (c *Certificate) ServerConfig() *tls.Config {
	if c == nil {
		return nil
	}
	return &tls.Config{
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current(hello.Context()), nil },
		NextProtos:     []string{"http/1.1"}, MinVersion: tls.VersionTLS12,
	}
}

// RegisterMetrics registers a metric with the expiry of a listener's certificate; none for
// plain HTTP.
func (c *Certificate) RegisterMetrics(registry prometheus.Registerer, listener string) {
	if c != nil {
		promauto.With(registry).NewGaugeFunc(prometheus.GaugeOpts{
			Name: "veneer_certificate_end_seconds", Help: "Expiry of the certificate of a listener, in seconds since 1970.",
			ConstLabels: prometheus.Labels{"listener": listener},
		}, func() float64 {
			return float64(c.current(context.Background()).Leaf.NotAfter.Unix())
		})
	}
}

// current returns the certificate. While the files are invalid, for instance since only one
// of them is replaced yet, it is the previous one.
func (c *Certificate) current(ctx context.Context) *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed, err := c.reload()
	switch {
	case err != nil && err.Error() != c.lastWarning:
		c.lastWarning = err.Error()
		c.log.WarnContext(ctx, "certificate reload failed", "chain", c.chainFile, "error", err)
	case err == nil && !changed:
		c.lastWarning = "" // the next error is logged again
	case changed:
		c.lastWarning = ""
		c.log.InfoContext(ctx, "certificate renewed", "chain", c.chainFile, "until", c.pair.Leaf.NotAfter)
	}
	return c.pair
}

// reload reads the files, and reports whether they hold another certificate than before. It
// returns an error in their content only once.
func (c *Certificate) reload() (changed bool, err error) {
	chain, err := os.ReadFile(c.chainFile)
	if err != nil {
		return false, config.Errorf("CERT", "is %q, a file that cannot be read: %w", c.chainFile, withoutPath(err))
	}
	key, err := os.ReadFile(c.keyFile)
	if err != nil {
		return false, config.Errorf("KEY", "is %q, a file that cannot be read: %w", c.keyFile, withoutPath(err))
	}
	if bytes.Equal(chain, c.chain) && bytes.Equal(key, c.key) {
		return false, nil
	}
	c.chain, c.key = chain, key
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		if !x509.NewCertPool().AppendCertsFromPEM(chain) {
			return false, config.Errorf("CERT", "is %q, a file that holds no certificate in PEM: %w", c.chainFile, err)
		}
		return false, config.Errorf("KEY", "is %q, a file that does not hold the key of the certificate: %w", c.keyFile, err)
	}
	c.pair = &pair
	return true, nil
}
