package e2e

import (
	"crypto/tls"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/httpserver/httpservertest"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/tlsreload"
	"github.com/veneer-skins/veneer/shared/tlsreload/tlsreloadtest"
)

// verifyFullURL returns a database URL with sslmode=verify-full.
func verifyFullURL(p *stack.Postgres, authorities string) string {
	return "postgres://postgres@" + p.Address + "/postgres?" + url.Values{"sslmode": {"verify-full"}, "sslrootcert": {authorities}}.Encode()
}

func serialNumber(t *testing.T, address, authorities string) string {
	t.Helper()
	config := testenv.Must(tlsreload.ClientConfig(authorities))(t)
	conn := testenv.Must((&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", address))(t)
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
	conn := postgrestest.Conn(t, postgres.URL(postgres.Address))
	var secure, cleartext int
	testenv.Do(t, conn.QueryRow(t.Context(), `
		SELECT count(*) FILTER (WHERE ssl), count(*) FILTER (WHERE NOT ssl)
		FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
		WHERE client_addr IS NOT NULL AND pid <> pg_backend_pid()`).Scan(&secure, &cleartext))
	if secure < 3 || cleartext > 0 { // for requests, for lookups, and the LISTEN one
		t.Errorf("core has %d connections to PostgreSQL over TLS, and %d others", secure, cleartext)
	}
}

// With certificates for PostgreSQL, the texture store and core, all connections between the
// programs use TLS and verify the peer.
func TestTLS(t *testing.T) {
	t.Parallel()
	authority, untrusted := tlsreloadtest.NewAuthority(t), tlsreloadtest.NewAuthority(t)
	_, files := site.NewMinIO(t, authority)
	postgres := stack.NewPostgres(t)
	chain, key := authority.Issue(t)
	postgres.EnableTLS(t, chain, key)

	core := site.NewCoreAt(t, files, verifyFullURL(postgres, authority.File))
	for _, listener := range []string{"CORE_TLS_", "CORE_EDGES_TLS_"} {
		core.Set(listener+"CERT="+chain, listener+"KEY="+key)
	}
	core.Start(t)
	newEdge := func() *stack.Process {
		edge := site.NewEdge(t, files, core)
		edge.Set("EDGE_CORE_CA="+authority.File, "EDGE_API_CA="+authority.File)
		return edge
	}
	edge := newEdge()
	edge.StartReady(t)
	images := edge.BaseURL(t, "public")

	ann := signUp(t, images)
	sheet := drawSheet(10)
	tid := upload(t, ann, "first", sheet).TID
	ann.SetSkin(t, ann.AddPlayer(t, "Ann_1"), tid)
	awaitAvatar(t, images+"/avatar/player/ann_1?png", sheet, time.Now())

	wantAllTLS(t, postgres)

	// An edge with TLS, for a balancer or CDN with keep-alive connections.
	secure := newEdge()
	secure.Set("EDGE_TLS_CERT="+chain, "EDGE_TLS_KEY="+key)
	secure.StartReady(t)
	config := testenv.Must(tlsreload.ClientConfig(authority.File))(t)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
	defer client.CloseIdleConnections()
	for i := range 5 {
		response := httpservertest.Call(t, client, http.MethodGet, "https://"+secure.Address(t, "public")+"/avatar/player/ann_1?png", nil, "")
		if status := response.Header.Get("Cache-Status"); response.Status != http.StatusOK || i == 4 && status != "veneer; hit" {
			t.Errorf("answer %d over TLS: %d, %s", i+1, response.Status, status)
		}
	}

	// Certificates of an unknown authority.
	const unknown = "certificate signed by unknown authority"
	for name, setting := range map[string]string{
		"PostgreSQL":        "CORE_DATABASE_URL=" + verifyFullURL(postgres, untrusted.File),
		"the texture store": "CORE_OBJECTS_CA=" + untrusted.File,
	} {
		other := core.Clone(t)
		other.Set(setting)
		if output, err := other.Try(t, "migrate"); err == nil || !strings.Contains(output, unknown) {
			t.Errorf("core migrate, with %s of an unknown authority: %v, %s", name, err, output)
		}
	}

	distrusting := newEdge()
	distrusting.Set("EDGE_CORE_CA=" + untrusted.File)
	distrusting.Start(t)
	distrusting.AwaitLog(t, "stream of changes lost", unknown)
	baseURL := distrusting.BaseURL(t, "public")
	status := httpservertest.Get(t, baseURL+"/avatar/player/ann_1?png").Status
	testenv.Equal(t, status, http.StatusServiceUnavailable, "a picture from an edge that does not trust core's certificate")

	distrusting = newEdge()
	distrusting.Set("EDGE_API_CA="+untrusted.File, "EDGE_OBJECTS_CA="+untrusted.File)
	distrusting.StartReady(t)
	baseURL = distrusting.BaseURL(t, "public")
	for path, route := range map[string]string{"/api/user": "/api", "/avatar/player/ann_1?png": "/avatar/player/{name}"} {
		status := httpservertest.Get(t, baseURL+path).Status
		testenv.Equal(t, status, http.StatusServiceUnavailable, "%s at an edge that does not trust the upstream's certificate", path)
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
	ann.SetSkin(t, ann.AddPlayer(t, "Ann_2"), tid)
	awaitAvatar(t, images+"/avatar/player/ann_2?png", sheet, time.Now())
}
