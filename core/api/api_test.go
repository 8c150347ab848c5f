package api_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"log/slog"
	"maps"
	"mime/multipart"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/api"
	"github.com/veneer-skins/veneer/core/mail"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/paint"
)

// testConfig has the settings of the program core that tests set.
type testConfig struct {
	API api.Config
	core.SessionLimits
	Players  core.PlayerLimits  `envPrefix:"PLAYER_"`
	Textures core.TextureLimits `envPrefix:"UPLOAD_"`
	Quotas   core.Quotas        `envPrefix:"QUOTA_"`
	Logins   core.LoginLimits   `envPrefix:"LIMIT_"`
	Scores   core.Scores        `envPrefix:"SCORE_"`
	Limits   httpserver.Limits
	Proxies  httpserver.ProxyConfig
	SMTP     mail.Config     `envPrefix:"SMTP_"`
	Mail     core.MailConfig `envPrefix:"MAIL_"`
}

// testSite is a database, an object store and a clock, shared by the servers of a test.
type testSite struct {
	setup testConfig
	keys  string    // key ring that signs tokens
	url   string    // URL of the database
	sql   *pgx.Conn // connection of the test itself
	files *blobstore.Store
	now   *atomic.Int64 // Unix time, in seconds
	users *atomic.Int64 // number of users signed up
}

// mailSettings make a site send e-mail. Unless a test starts a mail server, no e-mail is delivered.
var mailSettings = []string{"SMTP_HOST=127.0.0.1", "SMTP_TLS=none", "SMTP_FROM=noreply@skins.example.org", "MAIL_URL=https://skins.example.org"}

// newSite returns a new site that sends e-mail. environ are settings as NAME=value; the others have
// their defaults.
func newSite(t *testing.T, environ ...string) *testSite {
	t.Helper()
	config, err := config.Read[testConfig]("", slices.Concat(mailSettings, environ))
	if err != nil {
		t.Fatal(err)
	}
	files, err := blobstore.New(blobstore.Config{URL: "file://" + t.TempDir(), Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if err := files.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	address := postgrestest.URL(t)
	s := &testSite{setup: config, keys: keyRing("test", "k"), url: address, sql: postgrestest.Conn(t, address), files: files, now: new(atomic.Int64), users: new(atomic.Int64)}
	s.now.Store(time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC).Unix())
	return s
}

// keyRing returns the setting of a key ring, from pairs of a kid and the letter of which the key
// consists.
func keyRing(pairs ...string) string {
	var keys []string
	for pair := range slices.Chunk(pairs, 2) {
		keys = append(keys, pair[0]+":"+base64.StdEncoding.EncodeToString(keyBytes(pair[1])))
	}
	return strings.Join(keys, ",")
}

func keyBytes(letter string) []byte { return bytes.Repeat([]byte(letter), 32) }

// advance moves the site's clock forward.
func (s *testSite) advance(d time.Duration) { s.now.Add(int64(d.Seconds())) }

// exec runs a statement.
func (s *testSite) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := s.sql.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// count returns the number that a query selects.
func (s *testSite) count(t *testing.T, sql string, args ...any) int {
	t.Helper()
	var n int
	if err := s.sql.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// client sends requests to a server, with a token if it is signed in.
type client struct {
	site     *testSite
	db       *postgres.DB
	services api.Services
	server   *fasthttp.Server
	http     *fasthttp.HostClient
	token    string
	uid      core.UserID
}

// services returns the domain of a new server, with its own connections to the database.
func (s *testSite) services(t *testing.T) (*postgres.DB, api.Services) {
	t.Helper()
	names, err := core.NewPlayerNames(s.setup.Players)
	if err != nil {
		t.Fatal(err)
	}
	var keys core.KeyRing
	if err := keys.UnmarshalText([]byte(s.keys)); err != nil {
		t.Fatal(err)
	}
	db, passwords := postgrestest.Connect(t, s.url), core.NewPasswords()
	logins := core.NewLogins(db, passwords, s.setup.Logins, s.clock)
	mails := s.setup.SMTP.Host != ""
	var links *core.Links
	if mails {
		links = core.NewLinks(db, passwords, names, s.setup.Mail, s.setup.Scores, s.clock)
	}
	return db, api.Services{
		Links:         links,
		Users:         core.NewUsers(db, passwords, names, s.setup.Scores, mails),
		Accounts:      core.NewAccounts(db, logins, passwords, mails),
		Sessions:      core.NewSessions(db, logins, core.NewTokens(keys, "veneer", s.setup.TokenTTL, s.clock), s.setup.SessionLimits, s.clock),
		Players:       core.NewPlayers(db, names, s.setup.Quotas, s.setup.Scores),
		Closets:       core.NewClosets(db, s.setup.Quotas, s.setup.Scores),
		Textures:      core.NewTextures(db, s.files, s.setup.Textures, s.setup.Quotas, s.setup.Scores),
		Library:       core.NewLibrary(db),
		Notifications: core.NewNotifications(db, 0, s.clock),
		Ledger:        core.NewLedger(db, s.setup.Scores, s.clock),
		Reports:       core.NewReports(db),
		Audit:         core.NewAudit(db),
		Check:         db.Check,
	}
}

func (s *testSite) clock() time.Time { return time.Unix(s.now.Load(), 0) }

// httpServer returns a server of the API.
func (s *testSite) httpServer(t *testing.T, services api.Services) *fasthttp.Server {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	server, err := api.New(httpserver.Options{Log: log, Limits: s.setup.Limits, Proxies: httpserver.NewTrustedProxies(s.setup.Proxies, log)}, services, s.setup.API, s.setup.Textures.Bytes, s.clock)
	if err != nil {
		t.Fatal(err)
	}
	return server.HTTP()
}

// serveListener serves on a listener until the test ends.
func serveListener(t *testing.T, server *fasthttp.Server, listener net.Listener) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = listener.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// serve starts a server and returns a client that is not signed in.
func (s *testSite) serve(t *testing.T) client {
	t.Helper()
	db, services := s.services(t)
	return client{site: s, db: db, services: services, server: s.httpServer(t, services)}.from(t, "0.0.0.0")
}

// from returns a client that connects from an address.
func (c client) from(t *testing.T, address string) client {
	t.Helper()
	listener := fasthttputil.NewInmemoryListener()
	serveListener(t, c.server, addrListener{listener, net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(address), 1024))})
	c.http = &fasthttp.HostClient{
		Addr:                   "veneer.test",
		DisablePathNormalizing: true,
		Dial:                   func(string) (net.Conn, error) { return listener.Dial() },
	}
	return c
}

// addrListener reports a fixed remote address for its connections.
type addrListener struct {
	net.Listener
	address net.Addr
}

func (l addrListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return addrConn{conn, l.address}, err
}

type addrConn struct {
	net.Conn
	address net.Addr
}

func (c addrConn) RemoteAddr() net.Addr { return c.address }

// start starts a server on a new site.
func start(t *testing.T, environ ...string) client {
	t.Helper()
	return newSite(t, environ...).serve(t)
}

// listen starts a server on a new site behind a TCP socket, without limits, and returns a client.
func listen(t *testing.T, environ ...string) client {
	t.Helper()
	s := newSite(t, slices.Concat(environ, noLimits, []string{"WORK_TIMEOUT=5m"})...) // the machine may be busy
	opened, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	db, services := s.services(t)
	c := client{site: s, db: db, services: services, server: s.httpServer(t, services), http: &fasthttp.HostClient{Addr: opened.Addr().String()}}
	serveListener(t, c.server, httpserver.Listener{Server: c.server}.Wrap(opened))
	return c
}

// as returns a client that sends another token.
func (c client) as(token string) client {
	c.token = token
	return c
}

// signUp returns a client that is signed in as a new user. The user has no password, since hashing
// one takes time.
func (c client) signUp(t *testing.T) client {
	t.Helper()
	email := fmt.Sprintf("user%d@example.com", c.site.users.Add(1))
	user, err := c.db.CreateUser(t.Context(), core.NewUser{Email: email, EmailKey: email, Nickname: "Somebody", PasswordHash: "none"})
	if err != nil {
		t.Fatal(err)
	}
	c.uid = user.ID
	return c.signIn(t)
}

// homeNetwork is the client network of test users' log-ins.
var homeNetwork = netip.MustParsePrefix("192.0.2.1/32")

// signIn opens another session of a user without a password.
func (c client) signIn(t *testing.T) client {
	t.Helper()
	proof := core.VerifiedCredentials{Credentials: core.Credentials{User: core.User{ID: c.uid}, PasswordHash: "none"}}
	bearer, err := c.services.Sessions.Open(t.Context(), proof, homeNetwork)
	if err != nil {
		t.Fatal(err)
	}
	return c.as(bearer.Token)
}

// body is a request's body and its content type.
type body struct {
	contentType string
	content     []byte
}

func encodeJSON(text string) body { return body{"application/json", []byte(text)} }

func encodeForm(text string) body { return body{"application/x-www-form-urlencoded", []byte(text)} }

// encodeMultipart returns a multipart form with the values of a query, and with a file unless that
// is nil.
func encodeMultipart(t *testing.T, text string, file []byte) body {
	t.Helper()
	values, err := url.ParseQuery(text)
	if err != nil {
		t.Fatal(err)
	}
	var content bytes.Buffer
	w := multipart.NewWriter(&content)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		for _, value := range values[name] {
			if err := w.WriteField(name, value); err != nil {
				t.Fatal(err)
			}
		}
	}
	if file != nil {
		part, err := w.CreateFormFile("file", "texture.png")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := part.Write(file); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return body{w.FormDataContentType(), content.Bytes()}
}

// response is the server's response.
type response struct {
	request string // method and path, for messages
	status  int
	header  *fasthttp.ResponseHeader
	body    []byte
}

// send sends a request and checks what holds for every response. headers are pairs of name and
// value.
func (c client) send(t *testing.T, method, path string, body body, headers ...string) response {
	t.Helper()
	got, err := c.exchange(method, path, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	got.check(t)
	if err := mustLoadContract(t).check(newExchange(method, path, body, got)); err != nil {
		t.Errorf("%s: %v", got.request, err)
	}
	return got
}

// exchange sends a request and returns the response unchecked.
func (c client) exchange(method, path string, body body, headers ...string) (response, error) {
	request, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(resp)
	request.Header.SetNoDefaultContentType(true)
	request.Header.SetMethod(method)
	request.SetRequestURI("http://veneer.test" + path)
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	if body.content != nil {
		request.SetBody(body.content)
	}
	if body.contentType != "" {
		request.Header.SetContentType(body.contentType)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	if err := c.http.Do(request, resp); err != nil {
		return response{}, err
	}
	got := response{method + " " + path, resp.StatusCode(), new(fasthttp.ResponseHeader), bytes.Clone(resp.Body())}
	resp.Header.CopyTo(got.header)
	got.header.SetNoDefaultContentType(true)
	return got, nil
}

func (c client) get(t *testing.T, path string) response {
	t.Helper()
	return c.send(t, "GET", path, body{})
}

func (c client) post(t *testing.T, path, object string) response {
	t.Helper()
	return c.send(t, "POST", path, encodeJSON(object))
}

func (c client) put(t *testing.T, path, object string) response {
	t.Helper()
	return c.send(t, "PUT", path, encodeJSON(object))
}

func (c client) delete(t *testing.T, path string) response {
	t.Helper()
	return c.send(t, "DELETE", path, body{})
}

// check checks what holds for every response.
func (a response) check(t *testing.T) {
	t.Helper()
	cacheControl := "no-store"
	if a.isAsset() {
		cacheControl = "public, max-age=31536000, immutable"
	}
	for name, want := range map[string]string{
		"Cache-Control": cacheControl, "X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin",
		"Referrer-Policy": "no-referrer", "Access-Control-Allow-Credentials": "",
	} {
		if got := a.headerValue(name); got != want {
			t.Errorf("%s: %s is %q; want %q", a.request, name, got, want)
		}
	}
	if got, want := a.headerValue("Content-Security-Policy"), "default-src 'none'; frame-ancestors 'none'"; !a.isDocumentation() && got != want {
		t.Errorf("%s: Content-Security-Policy is %q; want %q", a.request, got, want)
	}
	if a.headerValue("X-Request-ID") == "" {
		t.Errorf("%s: the answer has no X-Request-ID", a.request)
	}
	if got, want := a.headerValue("WWW-Authenticate"), a.status == 401; (got == "Bearer") != want {
		t.Errorf("%s: status %d comes with WWW-Authenticate %q", a.request, a.status, got)
	}
	if a.status == 204 {
		if len(a.body) != 0 {
			t.Errorf("%s: the answer without content is %q", a.request, a.body)
		}
		return
	}
	if a.isDocumentation() || strings.HasPrefix(a.request, "HEAD ") {
		return
	}
	if got := a.headerValue("Content-Type"); got != "application/json; charset=utf-8" {
		t.Errorf("%s: the answer is %q", a.request, got)
	}
	if !json.Valid(a.body) {
		t.Errorf("%s: the answer is no JSON: %s", a.request, a.body)
	}
}

// isDocumentation reports whether the response is the OpenAPI document or a file of the
// documentation, which are no JSON.
func (a response) isDocumentation() bool {
	_, path, _ := strings.Cut(a.request, " ")
	path, _, _ = strings.Cut(path, "?")
	path = strings.TrimRight(path, "/")
	return (a.status == 200 || a.status == 304) && (path == "/api/openapi.yaml" || strings.HasPrefix(path, "/api/docs"))
}

// isAsset reports whether the response is a file that is addressed by its digest.
func (a response) isAsset() bool {
	_, path, _ := strings.Cut(a.request, " ")
	path, _, _ = strings.Cut(path, "?")
	return a.isDocumentation() && strings.HasPrefix(strings.TrimRight(path, "/"), "/api/docs/")
}

func (a response) headerValue(name string) string { return string(a.header.Peek(name)) }

// wildcards are placeholders in expected JSON, with the pattern of the values they match.
var wildcards = map[string]*regexp.Regexp{
	"<text>":    regexp.MustCompile(`^".+"$`),
	"<texts>":   regexp.MustCompile(`^\[".+"\]$`),
	"<integer>": regexp.MustCompile(`^[1-9][0-9]*$`),
	"<time>":    regexp.MustCompile(`^"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"$`),
	"<uuid>":    regexp.MustCompile(`^"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"$`),
	"<hash>":    regexp.MustCompile(`^"[0-9a-f]{64}"$`),
	"<jwt>":     regexp.MustCompile(`^"[\w-]+\.[\w-]+\.[\w-]+"$`),
}

// is checks the status and the whole body. body is JSON with wildcards.
func (a response) is(t *testing.T, status int, body string) {
	t.Helper()
	if a.status != status {
		t.Errorf("%s: the status is %d; want %d", a.request, a.status, status)
	}
	want := decode(t, []byte(body))
	if diff := cmp.Diff(want, applyWildcards(want, decode(t, a.body))); diff != "" {
		t.Errorf("%s: the body (-want +got):\n%s", a.request, diff)
	}
}

// decode decodes JSON; numbers keep their spelling.
func decode(t *testing.T, text []byte) any {
	t.Helper()
	var value any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return value
}

// applyWildcards returns got with wildcards in place of what they match.
func applyWildcards(want, got any) any {
	switch want := want.(type) {
	case string:
		raw, err := json.Marshal(got)
		if wildcard := wildcards[want]; wildcard != nil && err == nil && wildcard.Match(raw) {
			return want
		}
	case map[string]any:
		if got, ok := got.(map[string]any); ok {
			for key, value := range got {
				got[key] = applyWildcards(want[key], value)
			}
		}
	case []any:
		if got, ok := got.([]any); ok {
			for i := range min(len(want), len(got)) {
				got[i] = applyWildcards(want[i], got[i])
			}
		}
	}
	return got
}

// isError checks that the response is an error with messages for these fields and no others.
func (a response) isError(t *testing.T, status, code int, fields ...string) {
	t.Helper()
	want := `{"code":` + strconv.Itoa(code) + `,"message":"<text>"`
	for i, field := range fields {
		want += []string{`,"errors":{`, `,`}[min(i, 1)] + `"` + field + `":"<texts>"`
	}
	if len(fields) > 0 {
		want += "}"
	}
	a.is(t, status, want+"}")
}

// field returns the value at a path of keys in the body.
func (a response) field(t *testing.T, path ...string) string {
	t.Helper()
	value := decode(t, a.body)
	for _, key := range path {
		object, ok := value.(map[string]any)
		if !ok {
			t.Fatalf("%s: the answer has no %s: %s", a.request, strings.Join(path, "."), a.body)
		}
		value = object[key]
	}
	return fmt.Sprint(value)
}

// decode decodes the body into a value.
func (a response) decode(t *testing.T, value any) {
	t.Helper()
	if err := json.Unmarshal(a.body, value); err != nil {
		t.Fatal(err)
	}
}

// player adds a player and returns its path.
func (c client) player(t *testing.T, name string) string {
	t.Helper()
	a := c.post(t, "/api/players", `{"name":"`+name+`"}`)
	if a.status != 200 {
		t.Fatalf("add player %s: %d %s", name, a.status, a.body)
	}
	return "/api/players/" + a.field(t, "data", "pid")
}

// texture uploads a texture and returns its tid.
func (c client) texture(t *testing.T, form string, file []byte) string {
	t.Helper()
	a := c.send(t, "POST", "/api/textures", encodeMultipart(t, form, file))
	if a.status != 200 {
		t.Fatalf("upload: %d %s", a.status, a.body)
	}
	return a.field(t, "data", "tid")
}

// skinFile returns the PNG of a skin with classic arms; each variant has different pixels.
func skinFile(t *testing.T, variant byte) []byte {
	t.Helper()
	return fileOf(t, paint.Explorer(), variant)
}

// capeFile returns the PNG of a cape.
func capeFile(t *testing.T) []byte {
	t.Helper()
	return fileOf(t, paint.Sunrise(), 1)
}

func fileOf(t *testing.T, sheet skin.Sheet, variant byte) []byte {
	t.Helper()
	sheet.Pix[0] = variant // a corner that no face uses
	return encodePNG(t, &image.NRGBA{Pix: sheet.Pix, Stride: 4 * sheet.Width, Rect: image.Rect(0, 0, sheet.Width, sheet.Height)})
}

func encodePNG(t *testing.T, picture image.Image) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := png.Encode(&file, picture); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// withPassword gives the client's user a password.
func (c client) withPassword(t *testing.T, password string) {
	t.Helper()
	hash, err := core.NewPasswords().Hash(context.WithoutCancel(t.Context()), password)
	if err != nil {
		t.Fatal(err)
	}
	c.site.exec(t, "UPDATE users SET password_hash = $2 WHERE uid = $1", c.uid, hash)
}
