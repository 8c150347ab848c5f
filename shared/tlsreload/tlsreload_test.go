package tlsreload_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/veneer-skins/veneer/shared/metrics/metricstest"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/tlsreload"
	"github.com/veneer-skins/veneer/shared/tlsreload/tlsreloadtest"
)

// listener is a TLS listener.
type listener struct {
	address    string
	log        bytes.Buffer // to be read after a handshake
	chain, key string
}

// listen opens a listener with a certificate of an authority.
func listen(t *testing.T, authority *tlsreloadtest.Authority) *listener {
	t.Helper()
	l := &listener{}
	l.chain, l.key = authority.Issue(t)
	cert := testenv.Must(tlsreload.Load(l.chain, l.key, slog.New(slog.NewTextHandler(&l.log, nil))))(t)
	opened := testenv.Must(tls.Listen("tcp", "127.0.0.1:0", cert.ServerConfig()))(t)
	t.Cleanup(func() { _ = opened.Close() })
	l.address = opened.Addr().String()
	go func() {
		for {
			conn, err := opened.Accept()
			if err != nil {
				return
			}
			if secure, ok := conn.(*tls.Conn); ok {
				_ = secure.Handshake()
			}
			_ = conn.Close()
		}
	}()
	return l
}

// servedSerial returns the serial number of the certificate that a client gets, if the client
// trusts authorities.
func (l *listener) servedSerial(t *testing.T, authorities string, change func(*tls.Config)) (string, error) {
	t.Helper()
	config := testenv.Must(tlsreload.ClientConfig(authorities))(t)
	if change != nil {
		change(config)
	}
	conn, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", l.address)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	secure, ok := conn.(*tls.Conn)
	if !ok {
		return "", fmt.Errorf("the connection is a %T", conn)
	}
	if state := secure.ConnectionState(); state.Version < tls.VersionTLS13 {
		return "", fmt.Errorf("the version is %s", tls.VersionName(state.Version))
	}
	return secure.ConnectionState().PeerCertificates[0].SerialNumber.String(), nil
}

func TestVerification(t *testing.T) {
	t.Parallel()
	ours, others := tlsreloadtest.NewAuthority(t), tlsreloadtest.NewAuthority(t)
	l := listen(t, ours)
	testenv.Is(t, testenv.ErrOf(l.servedSerial(t, ours.File, nil)), nil, "a certificate of our authority")
	for name, authorities := range map[string]string{"another authority": others.File, "the system": ""} {
		if _, err := l.servedSerial(t, authorities, nil); err == nil || !strings.Contains(err.Error(), "certificate signed by unknown authority") {
			t.Errorf("a certificate that %s does not trust: %v", name, err)
		}
	}
	if _, err := l.servedSerial(t, ours.File, func(c *tls.Config) { c.ServerName = "core.example.org" }); err == nil || !strings.Contains(err.Error(), "core.example.org") {
		t.Errorf("a certificate of another server: %v", err)
	}
	if _, err := l.servedSerial(t, ours.File, func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }); err == nil {
		t.Error("TLS 1.1 is accepted")
	}
}

// A renewed certificate is used for the next connection. Until both files are replaced, the
// previous one is.
func TestRenewal(t *testing.T) {
	t.Parallel()
	authority := tlsreloadtest.NewAuthority(t)
	l := listen(t, authority)
	serial := func() string {
		t.Helper()
		return testenv.Must(l.servedSerial(t, authority.File, nil))(t)
	}
	logged := func(want string) {
		t.Helper()
		if got := l.log.String(); want == "" && got != "" || strings.Count(got, "\n") > 1 || !strings.Contains(got, want) {
			t.Errorf("the log is %q; want %q", got, want)
		}
		l.log.Reset()
	}
	first := serial()
	logged("")

	chain, key := authority.Issue(t)
	move(t, chain, l.chain)
	for range 3 { // it is logged once
		testenv.Equal(t, serial(), first, "with half of another certificate, the served one")
	}
	logged("private key does not match public key")
	move(t, key, l.key)
	second := serial()
	testenv.Check(t, second != first, "a new certificate is not served")
	logged("certificate renewed")

	testenv.Do(t, os.Remove(l.key))
	for range 3 {
		testenv.Equal(t, serial(), second, "without a key, the served certificate")
	}
	logged("no such file")
	authority.Renew(t, l.chain, l.key)
	if got := serial(); got == second {
		t.Error("a new certificate is not served after an invalid one")
	}
	logged("certificate renewed")
}

// move replaces a file atomically, as tools that renew certificates do.
func move(t *testing.T, from, to string) {
	t.Helper()
	testenv.Do(t, os.Rename(from, to))
}

func TestInvalidFiles(t *testing.T) {
	t.Parallel()
	chain, key := tlsreloadtest.NewAuthority(t).Issue(t)
	nothing := filepath.Join(t.TempDir(), "nothing")
	for _, files := range [][2]string{{chain, ""}, {"", key}, {chain, nothing}, {nothing, key}, {key, chain}, {chain, chain}} {
		_, err := tlsreload.Load(files[0], files[1], slog.New(slog.DiscardHandler))
		testenv.Check(t, err != nil, "%q are accepted as a chain and its key", files)
	}
	cert, err := tlsreload.Load("", "", nil)
	testenv.Check(t, cert.ServerConfig() == nil && err == nil, "without files: %v, %v; want plain HTTP", cert, err)
	for _, file := range []string{nothing, key, "/dev/null"} {
		_, err := tlsreload.ClientConfig(file)
		testenv.Check(t, err != nil, "%s is accepted as authorities", file)
	}
}

// The metric has the expiry of the certificate that is in the files now.
func TestExpiryMetric(t *testing.T) {
	t.Parallel()
	authority := tlsreloadtest.NewAuthority(t)
	chain, key := authority.Issue(t)
	cert := testenv.Must(tlsreload.Load(chain, key, slog.New(slog.DiscardHandler)))(t)
	registry := prometheus.NewRegistry()
	cert.RegisterMetrics(registry, "public")
	for range 2 {
		pair := testenv.Must(tls.LoadX509KeyPair(chain, key))(t)
		got, want := metricstest.Value(t, metricstest.Text(t, registry), `veneer_certificate_end_seconds{listener="public"}`), pair.Leaf.NotAfter.Unix()
		testenv.Equal(t, got, float64(want), "when the certificate expires")
		authority.Renew(t, chain, key)
	}
	var none *tlsreload.Certificate
	if none.RegisterMetrics(registry, "edges"); strings.Contains(metricstest.Text(t, registry), "edges") {
		t.Error("plain HTTP has a certificate")
	}
}
