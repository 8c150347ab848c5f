// Package coretest has what tests of core's public APIs share: a site over a real PostgreSQL, clients
// that send requests to its servers, and checks of the responses.
package coretest

import (
	"bytes"
	"context"
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
	"github.com/veneer-skins/veneer/core/yggdrasil"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Config has the settings of the program core that tests set.
type Config struct {
	API api.Config
	core.SessionLimits
	Players  core.PlayerLimits  `envPrefix:"PLAYER_"`
	Textures core.TextureLimits `envPrefix:"UPLOAD_"`
	Quotas   core.Quotas        `envPrefix:"QUOTA_"`
	Logins   core.LoginLimits   `envPrefix:"LIMIT_"`
	Scores   core.ScorePrices   `envPrefix:"SCORE_"`
	Limits   httpserver.Limits
	Proxies  clientip.Config
	SMTP     mail.Config     `envPrefix:"SMTP_"`
	Mail     core.MailConfig `envPrefix:"MAIL_"`
	Site     core.Branding   `envPrefix:"SITE_"`
	// PasswordMemory is the memory that hashing a password takes, in KiB: little, to save time.
	PasswordMemory uint32 `env:"PASSWORD_MEMORY" envDefault:"64"`
	Yggdrasil      struct {
		core.LauncherLimits
		core.ProfileLimits
		core.UnknownLimits
		CheckIP bool `env:"CHECK_IP"`
		yggdrasil.Config
	} `envPrefix:"YGGDRASIL_"`
}

// Site is a database, an object store and a clock, shared by the servers of a test.
type Site struct {
	Setup Config
	Log   *slog.Logger // of the servers
	Keys  string       // key ring that signs tokens
	URL   string       // of the database
	SQL   *pgx.Conn    // connection of the test itself
	Files *blobstore.Store
	Pages *core.SitePages // nil for none

	Users atomic.Int64 // number of users signed up
	now   atomic.Int64 // Unix time, in milliseconds
}

// NewSite returns a new site. environ are settings as NAME=value; the last one of a name counts, and
// the others have their defaults.
func NewSite(t *testing.T, environ ...string) *Site {
	t.Helper()
	settings := testenv.Must(config.Read[Config]("", environ))(t)
	files := testenv.Must(blobstore.New(blobstore.Config{URL: "file://" + t.TempDir(), Timeout: time.Minute}))(t)
	testenv.Do(t, files.Init(t.Context()))
	address := postgrestest.URL(t)
	s := &Site{Setup: settings, Log: slog.New(slog.DiscardHandler), Keys: KeyRing("test", "k"), URL: address, SQL: postgrestest.Conn(t, address), Files: files}
	s.now.Store(time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC).UnixMilli())
	return s
}

// KeyRing returns the setting of a key ring, from pairs of a kid and the letter that its key
// repeats.
func KeyRing(pairs ...string) string {
	var keys []string
	for pair := range slices.Chunk(pairs, 2) {
		keys = append(keys, pair[0]+":"+base64.StdEncoding.EncodeToString(KeyBytes(pair[1])))
	}
	return strings.Join(keys, ",")
}

// KeyBytes returns the key of a letter.
func KeyBytes(letter string) []byte { return bytes.Repeat([]byte(letter), 32) }

// Clock returns the site's time.
func (s *Site) Clock() time.Time { return time.UnixMilli(s.now.Load()) }

// Advance moves the site's clock forward.
func (s *Site) Advance(d time.Duration) { s.now.Add(d.Milliseconds()) }

// Exec runs a statement.
func (s *Site) Exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	testenv.Must(s.SQL.Exec(t.Context(), sql, args...))(t)
}

// Count returns the number that a query selects.
func (s *Site) Count(t *testing.T, sql string, args ...any) (n int) {
	t.Helper()
	testenv.Do(t, s.SQL.QueryRow(t.Context(), sql, args...).Scan(&n))
	return n
}

// Text returns the text that a query selects.
func (s *Site) Text(t *testing.T, sql string, args ...any) (text string) {
	t.Helper()
	testenv.Do(t, s.SQL.QueryRow(t.Context(), sql, args...).Scan(&text))
	return text
}

// HasCount checks the number that a query selects.
func (s *Site) HasCount(t *testing.T, want int, sql string, args ...any) {
	t.Helper()
	testenv.Equal(t, s.Count(t, sql, args...), want, "%s, %v", sql, args)
}

// Domain is the domain of a server.
type Domain struct {
	api.Services
	DB        *postgres.DB
	Logins    *core.Logins
	Passwords *core.Passwords
}

// NewDomain returns the domain of a new server, with its own connections to the database. It sends
// e-mail if the site has a mail server.
func (s *Site) NewDomain(t *testing.T) Domain {
	t.Helper()
	names := testenv.Must(core.NewPlayerNames(s.Setup.Players))(t)
	var keys core.KeyRing
	testenv.Do(t, keys.UnmarshalText([]byte(s.Keys)))
	setup := &s.Setup
	db, passwords, mails := postgrestest.Connect(t, s.URL), core.NewPasswordsOf(setup.PasswordMemory), setup.SMTP.Host != ""
	logins := core.NewLogins(db, passwords, setup.Logins, s.Clock)
	d := Domain{DB: db, Logins: logins, Passwords: passwords, Services: api.Services{
		Site:          core.Site{Branding: setup.Site, Players: setup.Players, Textures: setup.Textures.Limits, Quotas: setup.Quotas, Scores: setup.Scores},
		Users:         core.NewUsers(db, passwords, names, setup.Scores, s.Pages, mails),
		Accounts:      core.NewAccounts(db, logins, passwords, mails),
		Sessions:      core.NewSessions(db, logins, core.NewTokens(keys, "veneer", setup.TokenTTL, s.Clock), setup.SessionLimits, s.Clock),
		UserSessions:  core.NewUserSessions(db, setup.Yggdrasil.LauncherLimits),
		Players:       core.NewPlayers(db, names, setup.Quotas, setup.Scores),
		Closets:       core.NewClosets(db, setup.Quotas, setup.Scores),
		Textures:      core.NewTextures(db, s.Files, setup.Textures, setup.Quotas, setup.Scores),
		Library:       core.NewLibrary(db),
		Notifications: core.NewNotifications(db, 0, s.Clock),
		Scores:        core.NewScores(db, setup.Scores, s.Clock),
		Reports:       core.NewReports(db),
		Audit:         core.NewAudit(db),
		Counts:        db.Counts,
		Check:         db.Check,
		Pages:         s.Pages,
	}}
	if mails {
		d.Links = core.NewLinks(db, passwords, names, setup.Mail, setup.Scores, s.Pages, s.Clock)
	}
	return d
}

// Options returns the options of a server.
func (s *Site) Options() httpserver.Options {
	return httpserver.Options{Log: s.Log, Limits: s.Setup.Limits, Proxies: clientip.New(s.Setup.Proxies, slog.New(slog.DiscardHandler))}
}

// NewAPI returns a server of the API.
func (s *Site) NewAPI(t *testing.T, options httpserver.Options, services api.Services) *api.Server {
	t.Helper()
	return testenv.Must(api.New(options, services, s.Setup.API, s.Setup.Textures.Bytes, s.Clock))(t)
}

// Serve serves on a listener until the test ends.
func Serve(t *testing.T, server *fasthttp.Server, listener net.Listener) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = listener.Close()
		testenv.Is(t, <-ended, nil, "Serve")
	})
}

// Background calls a function that returns once its context is cancelled, at the end of the test.
func Background(t *testing.T, run func(context.Context)) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { run(ctx); close(done) }()
	t.Cleanup(func() { stop(); <-done })
}

// Listen serves behind a TCP socket until the test ends, and returns its address. The server must
// not serve yet.
func Listen(t *testing.T, server *fasthttp.Server) string {
	t.Helper()
	listener := testenv.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	Serve(t, server, httpserver.Listener{Server: server}.Wrap(listener))
	return listener.Addr().String()
}

// FullPasswords is the setting of the memory that hashing a password takes in the program core.
const FullPasswords = "PASSWORD_MEMORY=19456"

// SkinFile returns the PNG of a skin with classic arms; each variant has different pixels.
func SkinFile(t *testing.T, variant byte) []byte {
	t.Helper()
	return FileOf(t, artwork.Explorer(), variant)
}

// CapeFile returns the PNG of a cape.
func CapeFile(t *testing.T) []byte {
	t.Helper()
	return FileOf(t, artwork.Sunrise(), 1)
}

// FileOf returns the PNG of a variant of a sheet.
func FileOf(t *testing.T, sheet skin.Sheet, variant byte) []byte {
	t.Helper()
	sheet.Pix[0] = variant // a corner that no face uses
	return EncodePNG(t, &image.NRGBA{Pix: sheet.Pix, Stride: 4 * sheet.Width, Rect: image.Rect(0, 0, sheet.Width, sheet.Height)})
}

// EncodePNG returns the PNG of a picture.
func EncodePNG(t *testing.T, picture image.Image) []byte {
	t.Helper()
	var file bytes.Buffer
	testenv.Do(t, png.Encode(&file, picture))
	return file.Bytes()
}
