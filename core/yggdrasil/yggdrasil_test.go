package yggdrasil_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/api"
	"github.com/veneer-skins/veneer/core/coretest"
	"github.com/veneer-skins/veneer/core/yggdrasil"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/yggproto"
)

type (
	body     = coretest.Body
	response = coretest.Response
)

var skinFile, capeFile, jsonBody, raw, hexID = coretest.SkinFile, coretest.CapeFile, coretest.JSON, coretest.Raw, coretest.HexID

const texturesURL = "https://textures.example.org:8443"

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

// client sends requests to a server.
type client struct {
	coretest.Client
	site     *coretest.Site
	feed     *core.Feed // does not run
	services yggdrasil.Services
	ygg      *yggdrasil.Server
}

// serve starts a server, with its own connections to the database, and returns a client.
func serve(t *testing.T, s *coretest.Site) client {
	t.Helper()
	_, keyText := testKey()
	key := testenv.Must(core.ParseProfileKey(keyText))(t)
	d, setup := s.NewDomain(t), s.Setup.Yggdrasil
	feed := core.NewFeed(d.DB, slog.New(slog.DiscardHandler))
	d.DB.OnChange(feed.Committed)
	unknown := core.NewUnknownLimit(setup.UnknownLimits)
	profiles := testenv.Must(core.NewProfiles(d.DB, unknown, feed, key, setup.ProfileLimits, texturesURL+"/", s.Clock))(t)
	tokens := core.NewLauncherTokens(d.DB, unknown, d.Logins, setup.LauncherLimits)
	services := yggdrasil.Services{
		Tokens: tokens, Joins: core.NewJoinServer(d.DB, tokens, setup.CheckIP), Profiles: profiles, Players: d.Players,
		Certificates: core.NewPlayerCertificates(key, setup.ProfileKeys, s.Clock),
		Uploads:      core.NewLauncherUploads(d.Textures, d.Closets, d.Players),
	}
	options := s.Options()
	options.ErrorFormat, options.IsUnlimited = yggdrasil.FormatError, yggproto.IsGameServer
	public := s.NewAPI(t, options, d.Services)
	site := yggdrasil.Site{Name: "Test", Homepage: "https://skins.example.org", TexturesHost: "textures.example.org"}
	server, err := yggdrasil.New(options, services, setup.Config, site, public.Limiters(), s.Setup.Textures.Bytes)
	testenv.Do(t, err)
	public.MountLaunchers(api.Mount{Root: yggdrasil.Root, Handler: server.Handler})
	return client{coretest.Client{Domain: d, Server: public.HTTP(), Root: yggdrasil.Root, Check: checkResponse}, s, feed, services, server}.from(t, "192.0.2.1")
}

// start starts a server on a new site, without an interval between log-ins. environ are settings as
// NAME=value; the others have their defaults.
func start(t *testing.T, environ ...string) client {
	t.Helper()
	return serve(t, coretest.NewSite(t, append([]string{"YGGDRASIL_LOGIN_INTERVAL=0s"}, environ...)...))
}

// startForOne starts a server on a new site with a user, whose player is Ann_1.
func startForOne(t *testing.T, environ ...string) (client, user) {
	t.Helper()
	c := start(t, environ...)
	return c, c.signUp(t, "Ann_1")
}

// from returns a client that connects from an address.
func (c client) from(t *testing.T, address string) client {
	t.Helper()
	c.Client = c.From(t, address)
	return c
}

// as returns a client that sends a token in the Authorization header.
func (c client) as(token string) client {
	c.Token = token
	return c
}

// atRoot returns a client that sends requests to any path of the site, whose responses are unchecked.
func (c client) atRoot() client {
	c.Root, c.Check = "", func(*testing.T, response) {}
	return c
}

// isError checks for an error with exactly the two fields of the protocol.
func isError(t *testing.T, r response, status int, name, message string) {
	t.Helper()
	var got map[string]string
	testenv.Is(t, json.Unmarshal(r.Body, &got), nil, "%s: %q", r.Request(), r.Body)
	if r.Status != status || len(got) != 2 || got["error"] != name || got["errorMessage"] == "" || message != "" && got["errorMessage"] != message {
		t.Errorf("%s: %d %s; want %d %s %q", r.Request(), r.Status, r.Body, status, name, message)
	}
	testenv.Equal(t, r.Header.Get("Content-Type"), "application/json; charset=utf-8", "%s: the error's type", r.Request())
}

const (
	forbidden      = "ForbiddenOperationException"
	illegal        = "IllegalArgumentException"
	badToken       = "Invalid token."
	badCredentials = "Invalid credentials. Invalid username or password."
)

// decode decodes the body of status 200.
func decode[T any](t *testing.T, r response) (value T) {
	t.Helper()
	r.HasStatus(t, 200)
	r.Decode(t, &value)
	return value
}

// user is a user of the site with their players.
type user struct {
	core.User
	email   string
	hash    string // of the password
	players []core.Player
}

// password is the password of all users.
const password = "correct horse"

// signUp adds a user with players.
func (c client) signUp(t *testing.T, names ...string) user {
	t.Helper()
	hash := testenv.Must(c.Domain.Passwords.Hash(t.Context(), password))(t)
	added := c.site.AddUser(t, c.Domain, hash, true)
	u := user{User: added, email: added.Email, hash: hash}
	for _, name := range names {
		player := testenv.Must(c.Domain.Players.Create(t.Context(), core.Caller{User: added}, name))(t)
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
		add := core.Upload{File: file, Name: "texture", Type: kind, Public: true}
		texture := testenv.Must(c.Domain.Textures.Upload(t.Context(), p.Owner, add))(t)
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
	owner := core.Caller{User: core.User{ID: p.Owner}}.Owner()
	testenv.Must(c.Domain.Players.SetTextures(t.Context(), owner, p.ID, slots))(t)
	return skinHash, capeHash
}

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
	return decode[session](t, c.Post(t, "/authserver/authenticate", credentials(username, password)))
}

// issue returns a session as authenticate does, but without hashing a password, which takes time. It
// is bound to the player of a name, if one is given.
func (c client) issue(t *testing.T, u user, name ...string) session {
	t.Helper()
	var bound core.PlayerID
	for _, p := range u.players {
		if len(name) > 0 && p.Name == name[0] {
			bound = p.ID
		}
	}
	token := hexID(uuid.New()) + hexID(uuid.New())
	issued := testenv.Must(c.Domain.DB.IssueLauncherToken(t.Context(), core.NewLauncherToken{
		Hash: sha256.Sum256([]byte(token)), Credentials: core.VerifiedCredentials{Credentials: core.Credentials{User: u.User, PasswordHash: u.hash}},
		Network: coretest.HomeNetwork, ClientToken: hexID(uuid.New()), Player: bound, PerUser: c.site.Setup.Yggdrasil.Tokens,
	}))(t)
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
	c.Post(t, "/authserver/validate", map[string]string{"accessToken": token}).IsEmpty(t)
}

// isInvalid checks that a token is not valid.
func (c client) isInvalid(t *testing.T, token string) {
	t.Helper()
	isError(t, c.Post(t, "/authserver/validate", map[string]string{"accessToken": token}), 403, forbidden, badToken)
}

// isRevoked checks that a token can neither be used nor refreshed.
func (c client) isRevoked(t *testing.T, token string) {
	t.Helper()
	c.isInvalid(t, token)
	isError(t, c.Post(t, "/authserver/refresh", map[string]string{"accessToken": token}), 403, forbidden, badToken)
}

// join announces that a player joins a server.
func (c client) join(t *testing.T, token, profile, server string) response {
	t.Helper()
	return c.Post(t, "/sessionserver/session/minecraft/join", map[string]string{"accessToken": token, "selectedProfile": profile, "serverId": server})
}

// hasJoined asks for a player that has joined a server.
func (c client) hasJoined(t *testing.T, name, server string, more ...string) response {
	t.Helper()
	query := fasthttp.AcquireArgs()
	defer fasthttp.ReleaseArgs(query)
	query.Set("username", name)
	query.Set("serverId", server)
	return c.Get(t, "/sessionserver/session/minecraft/hasJoined?"+query.String()+strings.Join(more, ""))
}
