package yggdrasil_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"image"
	"image/png"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/api"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/core/yggdrasil"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/yggproto"
)

// testConfig has the settings of the program core that tests set.
type testConfig struct {
	API api.Config
	core.SessionLimits
	Players   core.PlayerLimits  `envPrefix:"PLAYER_"`
	Textures  core.TextureLimits `envPrefix:"UPLOAD_"`
	Quotas    core.Quotas        `envPrefix:"QUOTA_"`
	Logins    core.LoginLimits   `envPrefix:"LIMIT_"`
	Scores    core.Scores        `envPrefix:"SCORE_"`
	Limits    httpserver.Limits
	Proxies   clientip.Config
	Yggdrasil struct {
		core.LauncherLimits
		core.ProfileLimits
		CheckIP bool `env:"CHECK_IP"`
		yggdrasil.Config
	} `envPrefix:"YGGDRASIL_"`
}

const texturesURL = "https://textures.example.org:8443"

// testSite is a database and an object store, shared by the servers of a test.
type testSite struct {
	setup testConfig
	url   string    // URL of the database
	sql   *pgx.Conn // connection of the test itself
	files *blobstore.Store
	users atomic.Int64 // number of users signed up
	now   atomic.Int64 // of the servers, in milliseconds
}

// newSite returns a new site without an interval between log-ins. environ are settings as NAME=value;
// the others have their defaults.
func newSite(t *testing.T, environ ...string) *testSite {
	t.Helper()
	settings, err := config.Read[testConfig]("", append([]string{"YGGDRASIL_LOGIN_INTERVAL=0s"}, environ...))
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
	s := &testSite{setup: settings, url: address, sql: postgrestest.Conn(t, address), files: files}
	s.now.Store(time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC).UnixMilli())
	return s
}

func (s *testSite) clock() time.Time { return time.UnixMilli(s.now.Load()) }

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

// testKey is the site's key in tests. It has 2048 bits, since one of 4096 takes seconds to make.
var testKey = sync.OnceValues(func() (*rsa.PrivateKey, []byte) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		panic(err)
	}
	return private, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
})

// services is the domain of a server.
type services struct {
	yggdrasil.Services
	sessions     *core.Sessions
	userSessions *core.UserSessions
	accounts     *core.Accounts
}

// serve starts a server, with its own connections to the database, and returns a client.
func (s *testSite) serve(t *testing.T) client {
	t.Helper()
	names, err := core.NewPlayerNames(s.setup.Players)
	if err != nil {
		t.Fatal(err)
	}
	_, keyText := testKey()
	key, err := core.ParseProfileKey(keyText)
	if err != nil {
		t.Fatal(err)
	}
	var ring core.KeyRing
	if err := ring.UnmarshalText([]byte("test:a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=")); err != nil {
		t.Fatal(err)
	}
	db, passwords := postgrestest.Connect(t, s.url), core.NewPasswords()
	logins := core.NewLogins(db, passwords, s.setup.Logins, s.clock)
	feed := core.NewFeed(db, slog.New(slog.DiscardHandler))
	db.OnChange(feed.Committed)
	profiles, err := core.NewProfiles(db, feed, key, s.setup.Yggdrasil.ProfileLimits, texturesURL+"/", s.clock)
	if err != nil {
		t.Fatal(err)
	}
	players := core.NewPlayers(db, names, s.setup.Quotas, s.setup.Scores)
	closets := core.NewClosets(db, s.setup.Quotas, s.setup.Scores)
	textures := core.NewTextures(db, s.files, s.setup.Textures, s.setup.Quotas, s.setup.Scores)
	tokens := core.NewLauncherTokens(db, logins, s.setup.Yggdrasil.LauncherLimits)
	domain := services{
		Services: yggdrasil.Services{
			Tokens: tokens, Joins: core.NewJoinServer(db, tokens, s.setup.Yggdrasil.CheckIP), Profiles: profiles, Players: players,
			Certificates: core.NewPlayerCertificates(key, s.setup.Yggdrasil.ProfileKeys, s.clock),
			Uploads:      core.NewLauncherUploads(textures, closets, players),
		},
		sessions:     core.NewSessions(db, logins, core.NewTokens(ring, "veneer", s.setup.TokenTTL, s.clock), s.setup.SessionLimits, s.clock),
		userSessions: core.NewUserSessions(db, s.setup.Yggdrasil.LauncherLimits),
		accounts:     core.NewAccounts(db, logins, passwords, false),
	}
	log := slog.New(slog.DiscardHandler)
	options := httpserver.Options{
		Log: log, Limits: s.setup.Limits, Proxies: clientip.New(s.setup.Proxies, log), ErrorFormat: yggdrasil.FormatError, IsUnlimited: yggproto.IsGameServer,
	}
	public, err := api.New(options, api.Services{
		Sessions: domain.sessions, Accounts: domain.accounts, Players: players, Closets: closets, Textures: textures, Check: db.Check,
	}, s.setup.API, s.setup.Textures.Bytes, s.clock)
	if err != nil {
		t.Fatal(err)
	}
	server, err := yggdrasil.New(options, domain.Services, s.setup.Yggdrasil.Config, yggdrasil.Site{
		Name: "Test", Homepage: "https://skins.example.org", TexturesHost: "textures.example.org",
	}, public.Limiters(), s.setup.Textures.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	public.MountLaunchers(api.Mount{Root: yggdrasil.Root, Handler: server.Handler})
	return client{site: s, db: db, feed: feed, services: domain, public: public, server: public.HTTP(), ygg: server}.from(t, "192.0.2.1")
}

// start starts a server on a new site.
func start(t *testing.T, environ ...string) client {
	t.Helper()
	return newSite(t, environ...).serve(t)
}

// client sends requests to a server.
type client struct {
	site     *testSite
	db       *postgres.DB
	feed     *core.Feed // does not run
	services services
	public   *api.Server
	server   *fasthttp.Server // of public
	ygg      *yggdrasil.Server
	http     *fasthttp.HostClient
	bearer   string // sent in the Authorization header unless empty
}

// from returns a client that connects from an address.
func (c client) from(t *testing.T, address string) client {
	t.Helper()
	listener := fasthttputil.NewInmemoryListener()
	ended := make(chan error, 1)
	served := addrListener{listener, net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(address), 1024))}
	go func() { ended <- c.server.Serve(served) }()
	t.Cleanup(func() {
		_ = listener.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
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

// as returns a client that sends a token in the Authorization header.
func (c client) as(token string) client {
	c.bearer = token
	return c
}

// response is the server's response.
type response struct {
	request string // method and path, for messages
	status  int
	header  *fasthttp.ResponseHeader
	body    []byte
}

// body is a request's body and its content type.
type body struct {
	contentType string
	content     []byte
}

// send sends a request to a path under the root, and checks the response against the OpenAPI
// document.
func (c client) send(t *testing.T, method, path string, body body) response {
	t.Helper()
	got, err := c.exchange(method, path, body)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkDocument(t, method, path, body, got); err != nil {
		t.Errorf("%s: %v", got.request, err)
	}
	return got
}

// exchange sends a request to a path under the root, and returns the response unchecked.
func (c client) exchange(method, path string, body body) (response, error) {
	return c.exchangeAt(method, yggdrasil.Root+path, body)
}

// exchangeAt sends a request to any path.
func (c client) exchangeAt(method, path string, body body) (response, error) {
	request, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(resp)
	request.Header.SetNoDefaultContentType(true)
	request.Header.SetMethod(method)
	request.SetRequestURI("http://veneer.test" + path)
	if c.bearer != "" {
		request.Header.Set("Authorization", "Bearer "+c.bearer)
	}
	if body.content != nil {
		request.SetBody(body.content)
	}
	if body.contentType != "" {
		request.Header.SetContentType(body.contentType)
	}
	if err := c.http.Do(request, resp); err != nil {
		return response{}, err
	}
	got := response{method + " " + path, resp.StatusCode(), new(fasthttp.ResponseHeader), bytes.Clone(resp.Body())}
	resp.Header.CopyTo(got.header)
	got.header.SetNoDefaultContentType(true)
	return got, nil
}

// homeNetwork is the client network of test users' log-ins.
var homeNetwork = netip.MustParsePrefix("192.0.2.1/32")

// atOnce posts n bodies at once, and returns how many responses have each status.
func (c client) atOnce(t *testing.T, n int, path string, of func(i int) body) map[int]int {
	t.Helper()
	responses, errs := make([]response, n), make([]error, n)
	var requests sync.WaitGroup
	for i := range n {
		sent := of(i)
		requests.Go(func() { responses[i], errs[i] = c.exchange("POST", path, sent) })
	}
	requests.Wait()
	statuses := map[int]int{}
	for i, got := range responses {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		statuses[got.status]++
	}
	return statuses
}

func (c client) get(t *testing.T, path string) response {
	t.Helper()
	return c.send(t, "GET", path, body{})
}

// post sends a JSON body: a text as it is, and any other value encoded.
func (c client) post(t *testing.T, path string, value any) response {
	t.Helper()
	return c.send(t, "POST", path, jsonBody(t, value))
}

func jsonBody(t *testing.T, value any) body {
	t.Helper()
	text, ok := value.(string)
	if !ok {
		encoded, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		text = string(encoded)
	}
	return body{"application/json; charset=utf-8", []byte(text)}
}

// isEmpty checks for status 204.
func (r response) isEmpty(t *testing.T) {
	t.Helper()
	if r.status != 204 || len(r.body) != 0 || len(r.header.ContentType()) != 0 {
		t.Errorf("%s: %d %q; want 204 and no body", r.request, r.status, r.body)
	}
}

// isError checks for an error with exactly the two fields of the protocol.
func (r response) isError(t *testing.T, status int, name, message string) {
	t.Helper()
	var got map[string]string
	if err := json.Unmarshal(r.body, &got); err != nil {
		t.Errorf("%s: %q: %v", r.request, r.body, err)
	}
	if r.status != status || len(got) != 2 || got["error"] != name || got["errorMessage"] == "" || message != "" && got["errorMessage"] != message {
		t.Errorf("%s: %d %s; want %d %s %q", r.request, r.status, r.body, status, name, message)
	}
	if got := string(r.header.ContentType()); got != "application/json; charset=utf-8" {
		t.Errorf("%s: the error has the type %q", r.request, got)
	}
}

const (
	forbidden      = "ForbiddenOperationException"
	illegal        = "IllegalArgumentException"
	badToken       = "Invalid token."
	badCredentials = "Invalid credentials. Invalid username or password."
)

// decode decodes the body of status 200.
func decode[T any](t *testing.T, r response) T {
	t.Helper()
	var value T
	if r.status != 200 {
		t.Fatalf("%s: %d %s; want 200", r.request, r.status, r.body)
	}
	if err := json.Unmarshal(r.body, &value); err != nil {
		t.Fatalf("%s: %v: %s", r.request, err, r.body)
	}
	return value
}

// user is a user of the site with their players.
type user struct {
	core.User
	email   string
	players []core.Player
}

// password is that of all users; hashing one takes time.
const password = "correct horse"

var passwordHash = sync.OnceValues(func() (string, error) { return core.NewPasswords().Hash(context.Background(), password) })

// signUp adds a user with players.
func (c client) signUp(t *testing.T, names ...string) user {
	t.Helper()
	hash, err := passwordHash()
	if err != nil {
		t.Fatal(err)
	}
	email := fmt.Sprintf("user%d@example.com", c.site.users.Add(1))
	added, err := c.db.CreateUser(t.Context(), core.NewUser{Email: email, EmailKey: email, Nickname: "Somebody", PasswordHash: hash, Verified: true})
	if err != nil {
		t.Fatal(err)
	}
	u := user{User: added, email: email}
	for _, name := range names {
		player, err := c.services.Players.Create(t.Context(), core.Caller{User: added}, name)
		if err != nil {
			t.Fatal(err)
		}
		u.players = append(u.players, player)
	}
	return u
}

// dress applies textures to a player: a skin with slim arms or not, and a cape.
func (c client) dress(t *testing.T, p core.Player, skinFile, capeFile []byte, model string) (skinHash, capeHash skin.Hash) {
	t.Helper()
	upload := func(file []byte, kind string) (core.TextureID, skin.Hash) {
		if file == nil {
			return 0, skin.Hash{}
		}
		texture, err := c.textures(t).Upload(t.Context(), p.Owner, core.Upload{File: file, Name: "texture", Type: kind, Public: true})
		if err != nil {
			t.Fatal(err)
		}
		return texture.ID, texture.Hash
	}
	var slots core.TextureSelection
	skinID, skinHash := upload(skinFile, model)
	capeID, capeHash := upload(capeFile, "cape")
	if skinID != 0 {
		slots.Skin = &skinID
	}
	if capeID != 0 {
		slots.Cape = &capeID
	}
	if _, err := c.services.Players.SetTextures(t.Context(), core.Caller{User: core.User{ID: p.Owner}}, p.ID, slots); err != nil {
		t.Fatal(err)
	}
	return skinHash, capeHash
}

func (c client) textures(t *testing.T) *core.Textures {
	t.Helper()
	return core.NewTextures(c.db, c.site.files, c.site.setup.Textures, c.site.setup.Quotas, c.site.setup.Scores)
}

// skinFile returns the PNG of a skin; each variant has different pixels.
func skinFile(t *testing.T, variant byte) []byte {
	t.Helper()
	return fileOf(t, artwork.Explorer(), variant)
}

// capeFile returns the PNG of a cape.
func capeFile(t *testing.T) []byte {
	t.Helper()
	return fileOf(t, artwork.Sunrise(), 1)
}

func fileOf(t *testing.T, sheet skin.Sheet, variant byte) []byte {
	t.Helper()
	sheet.Pix[0] = variant // a corner that no face uses
	var file bytes.Buffer
	if err := png.Encode(&file, &image.NRGBA{Pix: sheet.Pix, Stride: 4 * sheet.Width, Rect: image.Rect(0, 0, sheet.Width, sheet.Height)}); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// hexID returns a UUID without hyphens.
func hexID(id uuid.UUID) string { return hex.EncodeToString(id[:]) }

// named is a player in a response.
type named struct {
	ID, Name string
}

func toNamed(p core.Player) named { return named{hexID(p.UUID), p.Name} }

// session is a token in a response.
type session struct {
	AccessToken, ClientToken string
	AvailableProfiles        []named
	SelectedProfile          *named
	User                     *struct {
		ID         string
		Properties []struct{ Name, Value string }
	}
}

// authenticate signs a user in.
func (c client) authenticate(t *testing.T, username string) session {
	t.Helper()
	return decode[session](t, c.post(t, "/authserver/authenticate", credentials(username, password)))
}

// issue returns a session as authenticate does, but without hashing a password, which takes time. It
// is bound to the player of a name, if one is given.
func (c client) issue(t *testing.T, u user, name ...string) session {
	t.Helper()
	hash, err := passwordHash()
	if err != nil {
		t.Fatal(err)
	}
	var bound core.PlayerID
	for _, p := range u.players {
		if len(name) > 0 && p.Name == name[0] {
			bound = p.ID
		}
	}
	token := hexID(uuid.New()) + hexID(uuid.New())
	issued, err := c.db.IssueLauncherToken(t.Context(), core.NewLauncherToken{
		Hash: sha256.Sum256([]byte(token)), Credentials: core.VerifiedCredentials{Credentials: core.Credentials{User: u.User, PasswordHash: hash}},
		Network: homeNetwork, ClientToken: hexID(uuid.New()), Player: bound, PerUser: c.site.setup.Yggdrasil.Tokens,
	})
	if err != nil {
		t.Fatal(err)
	}
	s := session{AccessToken: token, ClientToken: issued.ClientToken}
	for _, p := range issued.Players {
		s.AvailableProfiles = append(s.AvailableProfiles, named{hexID(p.UUID), p.Name})
	}
	if issued.Selected != nil {
		s.SelectedProfile = &named{hexID(issued.Selected.UUID), issued.Selected.Name}
	}
	return s
}

func credentials(username, password string) map[string]any {
	return map[string]any{"username": username, "password": password, "agent": map[string]any{"name": "Minecraft", "version": 1}}
}

// isValid checks that a token is valid.
func (c client) isValid(t *testing.T, token string) {
	t.Helper()
	c.post(t, "/authserver/validate", map[string]string{"accessToken": token}).isEmpty(t)
}

// isInvalid checks that a token is not valid.
func (c client) isInvalid(t *testing.T, token string) {
	t.Helper()
	c.post(t, "/authserver/validate", map[string]string{"accessToken": token}).isError(t, 403, forbidden, badToken)
}

// isRevoked checks that a token can neither be used nor refreshed.
func (c client) isRevoked(t *testing.T, token string) {
	t.Helper()
	c.isInvalid(t, token)
	c.post(t, "/authserver/refresh", map[string]string{"accessToken": token}).isError(t, 403, forbidden, badToken)
}

// join announces that a player joins a server.
func (c client) join(t *testing.T, token, profile, server string) response {
	t.Helper()
	return c.post(t, "/sessionserver/session/minecraft/join", map[string]string{"accessToken": token, "selectedProfile": profile, "serverId": server})
}

// hasJoined asks for a player that has joined a server.
func (c client) hasJoined(t *testing.T, name, server string, more ...string) response {
	t.Helper()
	query := fasthttp.AcquireArgs()
	defer fasthttp.ReleaseArgs(query)
	query.Set("username", name)
	query.Set("serverId", server)
	return c.get(t, "/sessionserver/session/minecraft/hasJoined?"+query.String()+strings.Join(more, ""))
}
