package api_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/api"
	"github.com/veneer-skins/veneer/core/mail"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
)

// testConfig has the settings of the program core that tests set.
type testConfig struct {
	API api.Config
	core.SessionLimits
	Players   core.PlayerLimits   `envPrefix:"PLAYER_"`
	Textures  core.TextureLimits  `envPrefix:"UPLOAD_"`
	Quotas    core.Quotas         `envPrefix:"QUOTA_"`
	Logins    core.LoginLimits    `envPrefix:"LIMIT_"`
	Scores    core.Scores         `envPrefix:"SCORE_"`
	Launchers core.LauncherLimits `envPrefix:"YGGDRASIL_"`
	Limits    httpserver.Limits
	Proxies   clientip.Config
	SMTP      mail.Config     `envPrefix:"SMTP_"`
	Mail      core.MailConfig `envPrefix:"MAIL_"`
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
	settings, err := config.Read[testConfig]("", slices.Concat(mailSettings, environ))
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
	s := &testSite{setup: settings, keys: keyRing("test", "k"), url: address, sql: postgrestest.Conn(t, address), files: files, now: new(atomic.Int64), users: new(atomic.Int64)}
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
		Site:          core.Site{Players: s.setup.Players, Textures: s.setup.Textures.Limits, Quotas: s.setup.Quotas, Scores: s.setup.Scores},
		Users:         core.NewUsers(db, passwords, names, s.setup.Scores, mails),
		Accounts:      core.NewAccounts(db, logins, passwords, mails),
		Sessions:      core.NewSessions(db, logins, core.NewTokens(keys, "veneer", s.setup.TokenTTL, s.clock), s.setup.SessionLimits, s.clock),
		UserSessions:  core.NewUserSessions(db, s.setup.Launchers),
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
	server, err := api.New(httpserver.Options{Log: log, Limits: s.setup.Limits, Proxies: clientip.New(s.setup.Proxies, log)}, services, s.setup.API, s.setup.Textures.Bytes, s.clock)
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

// skinFile returns the PNG of a skin with classic arms; each variant has different pixels.
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
