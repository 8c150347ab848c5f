package e2e

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/tlsreload"
	"github.com/veneer-skins/veneer/shared/tlsreload/tlsreloadtest"
)

// verifyFullURL returns a database URL with sslmode=verify-full.
func verifyFullURL(p *stack.Postgres, authorities string) string {
	return "postgres://postgres@" + p.Address + "/postgres?" + url.Values{"sslmode": {"verify-full"}, "sslrootcert": {authorities}}.Encode()
}

// serialNumber returns the serial number of a listener's certificate.
func serialNumber(t *testing.T, address, authorities string) string {
	t.Helper()
	config, err := tlsreload.ClientConfig(authorities)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	secure, ok := conn.(*tls.Conn)
	if !ok {
		t.Fatalf("the connection is a %T", conn)
	}
	return secure.ConnectionState().PeerCertificates[0].SerialNumber.String()
}

// wantAllTLS checks that every connection to a PostgreSQL uses TLS.
func wantAllTLS(t *testing.T, postgres *stack.Postgres) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), postgres.URL(postgres.Address))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	var secure, cleartext int
	if err := conn.QueryRow(t.Context(), `
		SELECT count(*) FILTER (WHERE ssl), count(*) FILTER (WHERE NOT ssl)
		FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
		WHERE client_addr IS NOT NULL AND pid <> pg_backend_pid()`).Scan(&secure, &cleartext); err != nil {
		t.Fatal(err)
	}
	if secure < 3 || cleartext > 0 { // for requests, for lookups, and the LISTEN one
		t.Errorf("core has %d connections to PostgreSQL over TLS, and %d others", secure, cleartext)
	}
}

// With certificates for PostgreSQL, the texture store and core, all connections between the
// programs use TLS and verify the peer.
func TestTLS(t *testing.T) {
	t.Parallel()
	authority, untrusted := tlsreloadtest.NewAuthority(t), tlsreloadtest.NewAuthority(t)
	files := stack.NewMinIO(t, authority).Config
	postgres := stack.NewPostgres(t)
	chain, key := authority.Issue(t)
	postgres.EnableTLS(t, chain, key)

	core := stack.NewCoreAt(t, files, verifyFullURL(postgres, authority.File))
	for _, listener := range []string{"CORE_TLS_", "CORE_EDGES_TLS_"} {
		core.Set(listener+"CERT", chain)
		core.Set(listener+"KEY", key)
	}
	core.Start(t)
	newEdge := func() *stack.Process {
		edge := stack.NewEdge(t, files, core)
		edge.Set("EDGE_CORE_CA", authority.File)
		edge.Set("EDGE_API_CA", authority.File)
		return edge
	}
	edge := newEdge()
	edge.Start(t)
	edge.AwaitReady(t)
	images := "http://" + edge.Address(t, "public")

	ann := signUp(t, images)
	sheet := drawSheet(10)
	tid := ann.upload(t, "first", sheet).Data.TID
	ann.call(t, http.MethodPost, "/api/players", map[string]any{"name": "Ann_1"})
	ann.call(t, http.MethodPut, "/api/players/1/textures", map[string]any{"skin": tid})
	awaitAvatar(t, images+"/avatar/player/ann_1?png", sheet, time.Now())

	wantAllTLS(t, postgres)

	// An edge with TLS, for a balancer or CDN with keep-alive connections.
	secure := newEdge()
	secure.Set("EDGE_TLS_CERT", chain)
	secure.Set("EDGE_TLS_KEY", key)
	secure.Start(t)
	secure.AwaitReady(t)
	config, err := tlsreload.ClientConfig(authority.File)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
	defer client.CloseIdleConnections()
	for i := range 5 {
		response, err := client.Get("https://" + secure.Address(t, "public") + "/avatar/player/ann_1?png")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		if status := response.Header.Get("Cache-Status"); response.StatusCode != http.StatusOK || i == 4 && status != "veneer; hit" {
			t.Errorf("answer %d over TLS: %d, %s", i+1, response.StatusCode, status)
		}
	}

	// Certificates of an unknown authority.
	const unknown = "certificate signed by unknown authority"
	for name, set := range map[string]func(*stack.Process){
		"PostgreSQL":        func(p *stack.Process) { p.Set("CORE_DATABASE_URL", verifyFullURL(postgres, untrusted.File)) },
		"the texture store": func(p *stack.Process) { p.Set("CORE_OBJECTS_CA", untrusted.File) },
	} {
		other := core.Clone()
		set(other)
		if output, err := other.Try(t, "migrate"); err == nil || !strings.Contains(output, unknown) {
			t.Errorf("core migrate, with %s of an unknown authority: %v, %s", name, err, output)
		}
	}

	distrusting := newEdge()
	distrusting.Set("EDGE_CORE_CA", untrusted.File)
	distrusting.Start(t)
	distrusting.AwaitLog(t, "stream of changes lost", unknown)
	baseURL := "http://" + distrusting.Address(t, "public")
	if _, status := fetch(t, baseURL+"/avatar/player/ann_1?png"); status != http.StatusServiceUnavailable {
		t.Errorf("a picture from an edge that does not trust core's certificate: %d; want 503", status)
	}

	distrusting = newEdge()
	distrusting.Set("EDGE_API_CA", untrusted.File)
	distrusting.Set("EDGE_OBJECTS_CA", untrusted.File)
	distrusting.Start(t)
	distrusting.AwaitReady(t)
	baseURL = "http://" + distrusting.Address(t, "public")
	for path, route := range map[string]string{"/api/user": "/api", "/avatar/player/ann_1?png": "/avatar/player/{name}"} {
		if _, status := fetch(t, baseURL+path); status != http.StatusServiceUnavailable {
			t.Errorf("%s at an edge that does not trust the upstream's certificate: %d; want 503", path, status)
		}
		distrusting.AwaitLog(t, "route:"+route, unknown)
	}

	// Renewal.
	for listener, address := range map[string]string{
		"public": core.Address(t, "public"), "edges": core.Address(t, "edges"), "edge's": secure.Address(t, "public"),
	} {
		before := serialNumber(t, address, authority.File)
		authority.Renew(t, chain, key)
		if serialNumber(t, address, authority.File) == before {
			t.Errorf("the %s listener still has the previous certificate", listener)
		}
	}
	core.AwaitLog(t, "certificate renewed", chain)
	// Existing connections of the edge continue, and new ones succeed.
	ann.call(t, http.MethodPost, "/api/players", map[string]any{"name": "Ann_2"})
	ann.call(t, http.MethodPut, "/api/players/2/textures", map[string]any{"skin": tid})
	awaitAvatar(t, images+"/avatar/player/ann_2?png", sheet, time.Now())
}
