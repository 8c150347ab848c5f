package api_test

import (
	"slices"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/coretest"
)

type (
	body     = coretest.Body
	response = coretest.Response
)

var (
	encodeJSON, encodeForm, encodeMultipart, raw = coretest.JSON, coretest.Form, coretest.Multipart, coretest.Raw
	skinFile, capeFile, fileOf, encodePNG        = coretest.SkinFile, coretest.CapeFile, coretest.FileOf, coretest.EncodePNG
)

// testSite is a database, an object store and a clock, shared by the servers of a test.
type testSite struct{ *coretest.Site }

// mailSettings make a site send e-mail. Unless a test starts a mail server, no e-mail is delivered.
var mailSettings = []string{"SMTP_HOST=127.0.0.1", "SMTP_TLS=none", "SMTP_FROM=noreply@skins.example.org", "MAIL_URL=https://skins.example.org"}

// newSite returns a new site that sends e-mail. environ are settings as NAME=value; the others have
// their defaults.
func newSite(t *testing.T, environ ...string) testSite {
	t.Helper()
	return testSite{coretest.NewSite(t, slices.Concat(mailSettings, environ)...)}
}

// client sends requests to a server, with a token if it is signed in.
type client struct {
	coretest.Client
	site testSite
}

// clientOf returns a client of a server on a domain, which has no connection yet.
func (s testSite) clientOf(t *testing.T, d coretest.Domain) client {
	t.Helper()
	return client{coretest.Client{Domain: d, Server: s.NewAPI(t, s.Options(), d.Services).HTTP(), Check: checkResponse}, s}
}

// serve starts a server and returns a client that is not signed in.
func (s testSite) serve(t *testing.T) client {
	t.Helper()
	return s.clientOf(t, s.NewDomain(t)).from(t, "0.0.0.0")
}

// start starts a server on a new site.
func start(t *testing.T, environ ...string) client {
	t.Helper()
	return newSite(t, environ...).serve(t)
}

// listen starts a server on a new site behind a TCP socket, without limits, and returns a client.
func listen(t *testing.T, environ ...string) client {
	t.Helper()
	s := newSite(t, slices.Concat(environ, noLimits)...)
	c := s.clientOf(t, s.NewDomain(t))
	c.HTTP = &fasthttp.HostClient{Addr: coretest.Listen(t, c.Server)}
	return c
}

// from returns a client that connects from an address.
func (c client) from(t *testing.T, address string) client {
	t.Helper()
	c.Client = c.From(t, address)
	return c
}

// as returns a client that sends another token.
func (c client) as(token string) client {
	c.Token = token
	return c
}

// signUp returns a client that is signed in as a new user. The user has no password, since hashing
// one takes time.
func (c client) signUp(t *testing.T) client {
	t.Helper()
	c.UID = c.site.AddUser(t, c.Domain, "none", false).ID
	return c.signIn(t)
}

// signIn opens another session of a user without a password.
func (c client) signIn(t *testing.T) client {
	t.Helper()
	return c.as(c.Domain.OpenSession(t, core.User{ID: c.UID}, "none"))
}
