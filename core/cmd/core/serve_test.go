package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core/mail/mailtest"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/cli"
	"github.com/veneer-skins/veneer/shared/httpserver/httpservertest"
	"github.com/veneer-skins/veneer/shared/metrics/metricstest"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
	"github.com/veneer-skins/veneer/shared/tlsreload"
	"github.com/veneer-skins/veneer/shared/tlsreload/tlsreloadtest"
)

// serveProcess is a run of core serve.
type serveProcess struct {
	public, edges, operators string // addresses of the listeners, from the log
	stop                     context.CancelFunc
	ended                    <-chan struct{}

	// Valid once it has ended.
	log []string
	err error
}

// startServe runs core serve until the test ends or stop is called.
func startServe(t *testing.T, environ []string) *serveProcess {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	lines, out := io.Pipe()
	ended := make(chan struct{})
	s := &serveProcess{stop: cancel, ended: ended}
	t.Cleanup(func() { s.end(t) })
	go func() {
		s.err = program().Run(ctx, cli.Invocation{Args: []string{"serve"}, Environ: environ, Stdin: strings.NewReader(""), Stdout: out})
		_ = out.Close()
	}()

	listening := make(chan struct{})
	go func() {
		defer close(ended)
		addresses := map[string]*string{"public": &s.public, "edges": &s.edges, "operators": &s.operators}
		for scanner := bufio.NewScanner(lines); scanner.Scan(); {
			var line struct{ Msg, Listener, Address string }
			testenv.Is(t, json.Unmarshal(scanner.Bytes(), &line), nil, "the log line %q", scanner.Text())
			s.log = append(s.log, scanner.Text())
			if address := addresses[line.Listener]; line.Msg == "listening" && address != nil {
				*address = line.Address
				if delete(addresses, line.Listener); len(addresses) == 0 {
					close(listening)
				}
			}
		}
	}()
	select {
	case <-listening:
	case <-ended:
		t.Fatalf("core serve ends before it listens: %v\n%s", s.err, strings.Join(s.log, "\n"))
	}
	return s
}

// end stops the program, which must drain and exit without an error.
func (s *serveProcess) end(t *testing.T) {
	t.Helper()
	s.stop()
	<-s.ended
	testenv.Is(t, s.err, nil, "core serve")
}

// logged reports whether the log of a program that has ended contains a text.
func (s *serveProcess) logged(text string) bool {
	return strings.Contains(strings.Join(s.log, "\n"), text)
}

// jsonHeader returns the header of a request with a JSON body, with a bearer token unless that
// is empty.
func jsonHeader(token string) http.Header {
	header := http.Header{"Content-Type": {"application/json"}}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	return header
}

// expect checks the status of a GET request and a part of its body.
func expect(t *testing.T, url string, status int, part string) {
	t.Helper()
	got := httpservertest.Get(t, url)
	testenv.Check(t, got.Status == status && strings.Contains(got.Body, part),
		"%s: %d %s; want %d and %q", url, got.Status, got.Body, status, part)
}

func TestServe(t *testing.T) {
	t.Parallel()

	file := filepath.Join(t.TempDir(), "keys")
	testenv.Do(t, os.WriteFile(file, []byte(keys()+"\n"), 0o600))
	environ := withSetting(environment(t, postgrestest.URL(t)), "CORE_TOKEN_KEYS", "")
	environ = append(environ, "CORE_TOKEN_KEYS_FILE="+file)
	succeed(t, environ, "", "migrate")
	s := startServe(t, environ)

	expect(t, "http://"+s.operators+"/livez", 200, "true")
	expect(t, "http://"+s.operators+"/readyz", 200, `"checks":{"objects":"ok","postgres":"ok"}`)
	expect(t, "http://"+s.public+"/api/user", 401, `"code":5`)
	expect(t, "http://"+s.operators+"/metrics", 200, `veneer_error_responses_total{code="5",kind="unauthenticated",status="401"}`)
	expect(t, "http://"+s.edges+"/edges/v1/mappings", 401, `"code":5`)
	for _, want := range []string{
		`veneer_requests_total{listener="public",route="GET /api/user",status="4xx"}`,
		`veneer_request_seconds_bucket{listener="public",route="PUT /api/players/{pid}/name",le="0.1"}`,
		`veneer_requests_total{listener="edges",route="POST /edges/v1/mappings",status="4xx"}`,
		`veneer_requests_in_flight{listener="operators"}`,
		`veneer_pool_connections{pool="reads",state="idle"}`, `veneer_pool_waits_total{pool="lookups"}`, `veneer_pool_wait_seconds_total{pool="feed"}`,
	} {
		expect(t, "http://"+s.operators+"/metrics", 200, want)
	}
	metricstest.Check(t, httpservertest.Get(t, "http://"+s.operators+"/metrics").Body)
	// Each listener has its own routes only.
	expect(t, "http://"+s.public+"/metrics", 404, `"code":3`)
	expect(t, "http://"+s.public+"/edges/v1/mappings", 404, `"code":3`)
	expect(t, "http://"+s.operators+"/api/user", 404, `"code":3`)

	healthy := withSetting(environ, "CORE_OPS_LISTEN", s.operators)
	testenv.Equal(t, succeed(t, healthy, "", "health"), "ready\n", "the output of core health")
	fails(t, "CORE_LISTEN is "+s.public+", which is taken by another program", withSetting(environ, "CORE_LISTEN", s.public), "", "serve") // the port is taken

	s.end(t)
	for _, want := range []string{`"msg":"draining"`, `"msg":"stopped"`} {
		testenv.Equal(t, s.logged(want), true, "the log has %s", want)
	}
	if conn, err := net.Dial("tcp", s.public); err == nil {
		_ = conn.Close()
		t.Error("the public listener is open after the exit")
	}
	fails(t, s.operators, healthy, "", "health")
	testenv.Check(t, !s.logged("hunter2") && !s.logged(keys()) && !s.logged(edgeSecret), "the log contains a secret")
}

// With a mail server, e-mail is sent. Log and metrics contain neither addresses nor contents.
func TestServeMails(t *testing.T) {
	t.Parallel()

	mails := mailtest.Start(t, mailtest.Options{StartTLS: true, User: "operator", Password: "hunter2"})
	file := filepath.Join(t.TempDir(), "password")
	testenv.Do(t, os.WriteFile(file, []byte("hunter2\n"), 0o600))
	environ := append(environment(t, postgrestest.URL(t)), "CORE_LOG_SAMPLE_RATE=1", "CORE_SMTP_HOST="+mails.Host, fmt.Sprintf("CORE_SMTP_PORT=%d", mails.Port), "CORE_SMTP_CA="+mails.CA,
		"CORE_SMTP_USER=operator", "CORE_SMTP_PASSWORD_FILE="+file, "CORE_SMTP_FROM=Skins <noreply@skins.example.org>", "CORE_MAIL_URL=https://skins.example.org", "CORE_REGISTRATION=confirm")
	succeed(t, environ, "", "migrate")
	succeed(t, environ, "correct horse", "user", "add", "steve@example.com")
	s := startServe(t, environ)
	post := func(path, body string, status int) {
		t.Helper()
		got := httpservertest.Call(t, nil, "POST", "http://"+s.public+path, jsonHeader(""), body)
		testenv.Equal(t, got.Status, status, "%s: %s: the status", path, got.Body)
	}
	post("/api/auth/reset", `{"email":"steve@example.com"}`, 200)
	post("/api/auth/reset", `{"email":"nobody@example.com"}`, 200)
	post("/api/auth/register", `{"email":"alex@example.com","password":"correct horse","nickname":"Alex"}`, 202)
	for _, m := range mails.Await(t, 2) {
		_, token, _ := strings.Cut(m.Text, "#token=")
		token, _, _ = strings.Cut(token, "&")
		if strings.Contains(m.Text, "/reset#") {
			post("/api/auth/password", `{"token":"`+token+`","password":"another horse"}`, 200)
			post("/api/auth/login", `{"email":"steve@example.com","password":"another horse"}`, 200)
		} else {
			post("/api/auth/verify", `{"token":"`+token+`"}`, 422)
			post("/api/auth/verify", `{"token":"`+token+`","password":"second horse"}`, 200)
			post("/api/auth/login", `{"email":"alex@example.com","password":"second horse"}`, 200)
		}
	}
	metrics := httpservertest.Get(t, "http://"+s.operators+"/metrics").Body
	for _, want := range []string{
		"veneer_core_mails_sent_total ", "veneer_core_mails_dropped_total ", "veneer_core_mails_given_up_total ", "veneer_core_mail_failures_total ",
		"veneer_core_mails_queued ", "veneer_core_mail_lag_seconds ",
	} {
		testenv.Contains(t, metrics, want, "the metrics")
	}
	s.end(t)
	for _, secret := range []string{"@example.com", "#token=", "hunter2", "horse"} {
		testenv.Check(t, !s.logged(secret) && !strings.Contains(metrics, secret),
			"the log or the metrics contain %q", secret)
	}
}

// Streams to edges are ended at shutdown.
func TestServeEndsStreams(t *testing.T) {
	t.Parallel()

	environ := environment(t, postgrestest.URL(t))
	succeed(t, environ, "", "migrate")
	s := startServe(t, environ)
	changes := "http://" + s.edges + "/edges/v1/changes"
	request := testenv.Must(http.NewRequestWithContext(t.Context(), "GET", changes, http.NoBody))(t)
	request.Header.Set("Authorization", "Bearer "+edgeSecret)
	response, err := http.DefaultClient.Do(request)
	testenv.Do(t, err)
	defer func() { _ = response.Body.Close() }()
	stream := bufio.NewReader(response.Body)
	testenv.Contains(t, testenv.Must(stream.ReadString('\n'))(t), `"start":true`, "the stream's first line")
	s.end(t)
	_, err = io.Copy(io.Discard, stream)
	testenv.Is(t, err, nil, "the rest of the stream")
}

// core serve does not migrate. Without a schema it is not ready, and reports so.
func TestServeIsNotReadyWithoutItsSchema(t *testing.T) {
	t.Parallel()

	environ := environment(t, postgrestest.Empty(t))
	s := startServe(t, environ)
	expect(t, "http://"+s.operators+"/livez", 200, "true")
	expect(t, "http://"+s.operators+"/readyz", 503, "core migrate")
	fails(t, "core migrate", withSetting(environ, "CORE_OPS_LISTEN", s.operators), "", "health")
	succeed(t, environ, "", "migrate")
	expect(t, "http://"+s.operators+"/readyz", 200, `"postgres":"ok"`)
}

func TestServeDemo(t *testing.T) {
	t.Parallel()

	environ, conn := newDatabase(t)
	environ = append(environ, "CORE_DEMO=1")
	succeed(t, environ, "", "migrate")

	first := startServe(t, environ)
	checkDemo(t, first, conn)
	before := demoCounts(t, conn)
	first.end(t)

	second := startServe(t, environ)
	checkDemo(t, second, conn)
	cmptest.Same(t, demoCounts(t, conn), before, "the second start changes the data")
}

// checkDemo checks the demo data through the API.
func checkDemo(t *testing.T, s *serveProcess, conn *pgx.Conn) {
	t.Helper()
	const demo = `{"email":"demo@example.com","password":"demo-password"}`
	login := httpservertest.Call(t, nil, "POST", "http://"+s.public+"/api/auth/login", jsonHeader(""), demo)
	testenv.Equal(t, login.Status, 200, "the log-in: %s: the status", login.Body)
	var bearer struct{ Token string }
	testenv.Do(t, json.Unmarshal([]byte(login.Body), &bearer))
	get := func(path string) string {
		return httpservertest.Call(t, nil, "GET", "http://"+s.public+path, jsonHeader(bearer.Token), "").Body
	}
	testenv.Contains(t, get("/api/user"), `"verified":true`, "the demo user")
	var players []struct {
		Name string `json:"name"`
		Skin int    `json:"tid_skin"`
		Cape int    `json:"tid_cape"`
	}
	testenv.Do(t, json.Unmarshal([]byte(get("/api/players")), &players))
	kind := func(tid int) (kind string) {
		if tid != 0 {
			testenv.Do(t, conn.QueryRow(t.Context(), "SELECT type FROM textures WHERE tid = $1", tid).Scan(&kind))
		}
		return kind
	}
	got := map[string][2]string{}
	for _, p := range players {
		got[p.Name] = [2]string{kind(p.Skin), kind(p.Cape)}
	}
	cmptest.Same(t, got, map[string][2]string{"Demo": {"steve", "cape"}, "Slim": {"alex", ""}}, "the players wear")

	unread := selected[int](t, conn, `
		SELECT count(*) FROM notifications JOIN users USING (uid) WHERE read_at IS NULL AND email = 'demo@example.com'`)
	testenv.Equal(t, unread, 2, "the number of unread notifications")
	skins := selected[int](t, conn, `
		SELECT count(*) FROM closet_items JOIN textures USING (tid) JOIN users USING (uid)
		WHERE type <> 'cape' AND email = 'demo@example.com'`)
	testenv.Equal(t, skins > 6, true, "%d skins are more than one page of 6 in the closet", skins)
}

// demoCounts returns the number of rows of every table that a start might add to.
func demoCounts(t *testing.T, conn *pgx.Conn) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, table := range []string{"users", "players", "textures", "closet_items", "messages", "notifications", "changes"} {
		counts[table] = selected[int](t, conn, "SELECT count(*) FROM "+table)
	}
	return counts
}

func TestServeEdgesOverTLS(t *testing.T) {
	t.Parallel()

	authority := tlsreloadtest.NewAuthority(t)
	cert, key := authority.Issue(t)
	environ := environment(t, postgrestest.URL(t))
	fails(t, "CORE_EDGES_TLS_KEY", append(environ, "CORE_EDGES_TLS_CERT="+cert), "", "serve")
	succeed(t, environ, "", "migrate")
	s := startServe(t, append(environ, "CORE_EDGES_TLS_CERT="+cert, "CORE_EDGES_TLS_KEY="+key))

	verified := testenv.Must(tlsreload.ClientConfig(authority.File))(t)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: verified}}
	defer client.CloseIdleConnections()
	lookUp := func(secret, body string) httpservertest.Response {
		return httpservertest.Call(t, client, "POST", "https://"+s.edges+"/edges/v1/mappings", jsonHeader(secret), body)
	}
	got := lookUp(edgeSecret, `{"keys":["name:missing"]}`)
	testenv.Equal(t, got.Status, 200, "the look-up: the status")
	testenv.Contains(t, got.Body, `"mappings":[{}]`, "the look-up")
	testenv.Equal(t, lookUp("another secret of 16", `{}`).Status, 401, "a wrong secret: the status")
}
