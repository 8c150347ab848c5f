package console

import (
	"context"
	"net/netip"
	"net/url"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/clientapi"
	"github.com/veneer-skins/veneer/core/clientapi/decode"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
)

// sessionPath is the path of the routes that keep a session in a cookie, and the only path that
// browsers send the cookie to: all else takes a bearer token.
const sessionPath = Root + "/session"

// tokenPath is the path of the session's token.
const tokenPath = sessionPath + "/token"

// Names of the cookie. Its value is the current token of a session. Browsers accept the first only over
// HTTPS from this very host, with Secure and the path / (RFC 6265bis, section 4.1.3.2), so that no other
// host of the domain can set it. The second is for plain HTTP.
const (
	secureCookie   = "__Host-veneer"
	insecureCookie = "veneer"
)

// headerFetchSite says which site's page makes a request (Fetch Metadata). Browsers send it over
// HTTPS and to loopback; pages cannot set it.
const headerFetchSite = "Sec-Fetch-Site"

// errForeign is the fault of a request that another site's page may have made.
var errForeign = fault.New(fault.Forbidden, "Only pages of this site may do this.")

// ownPages wraps a handler that uses the cookie. It rejects requests that a page of another site may
// have made in the name of a visitor. Requests count for the client's network.
func (s *Server) ownPages(h httpserver.Handler) fasthttp.RequestHandler {
	return s.opts.HandleNoContext(func(rc *fasthttp.RequestCtx) error {
		address := s.opts.Proxies.ClientIP(rc)
		if err := s.limiters.Requests.Take(rc, clientapi.Key{Network: clientip.Prefix(address)}); err != nil {
			return err
		}
		if !s.isOwnPage(rc) {
			return errForeign
		}
		if !decode.IsJSON(rc) {
			return fault.New(fault.UnsupportedMedia, "The body must be application/json.")
		}
		if err := httpserver.ReadBody(rc); err != nil {
			return err
		}
		ctx, cancel := s.opts.RequestContext(rc)
		defer cancel()
		return h(core.WithClient(ctx, core.Client{Network: clientip.Network(address)}), rc)
	})
}

// isOwnPage reports whether a page of this origin makes a request. Browsers that do not send
// Sec-Fetch-Site, and all over plain HTTP, send Origin with every POST and DELETE.
func (s *Server) isOwnPage(rc *fasthttp.RequestCtx) bool {
	header := &rc.Request.Header
	if sites := header.PeekAll(headerFetchSite); len(sites) > 0 {
		return len(sites) == 1 && string(sites[0]) == "same-origin"
	}
	origins := header.PeekAll(fasthttp.HeaderOrigin)
	if len(origins) != 1 {
		return false
	}
	origin, err := url.Parse(string(origins[0]))
	return err == nil && origin.Host != "" && strings.EqualFold(origin.Host, s.opts.Proxies.RequestedHost(rc))
}

// isPlainHTTP reports whether a page was loaded over plain HTTP, and whether from this machine. Only the
// browser knows: TLS may end in front of core. Chrome and Firefox take Secure cookies from localhost,
// Safari does not.
func isPlainHTTP(rc *fasthttp.RequestCtx) (plain, local bool) {
	origin, err := url.Parse(string(rc.Request.Header.Peek(fasthttp.HeaderOrigin)))
	if err != nil || origin.Scheme != "http" {
		return false, false
	}
	// Potentially trustworthy origins (W3C Secure Contexts, section 3.1).
	host := strings.ToLower(origin.Hostname())
	address, err := netip.ParseAddr(host)
	return true, host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && address.IsLoopback()
}

// cookieOf returns the value of the request's cookie, empty without one. Two of them are an Invalid
// fault: another page has set one, and which one is the visitor's is unknown.
func cookieOf(rc *fasthttp.RequestCtx) (string, error) {
	name := secureCookie
	if plain, _ := isPlainHTTP(rc); plain {
		name = insecureCookie
	}
	value, count := "", 0
	for key, sent := range rc.Request.Header.Cookies() {
		if string(key) == name {
			value = string(sent)
			count++
		}
	}
	if count > 1 {
		return "", fault.New(fault.Invalid, "The browser sends two session cookies. Delete the cookies of this site.")
	}
	return value, nil
}

// setCookie sets the cookie to a token, which browsers keep for as long as a session lives without a
// refresh; an empty token deletes the cookie.
func (s *Server) setCookie(rc *fasthttp.RequestCtx, token string) {
	plain, local := isPlainHTTP(rc)
	if plain && !local && s.insecure.Allow() {
		s.opts.Log.Warn("a user of the console signs in over plain HTTP, where passwords and sessions can be read",
			"origin", string(rc.Request.Header.Peek(fasthttp.HeaderOrigin)))
	}
	cookie := fasthttp.AcquireCookie()
	defer fasthttp.ReleaseCookie(cookie)
	cookie.SetKey(secureCookie)
	cookie.SetPath("/")
	if plain {
		cookie.SetKey(insecureCookie)
		cookie.SetPath(sessionPath)
	}
	cookie.SetValue(token)
	cookie.SetHTTPOnly(true)
	cookie.SetSecure(!plain)
	cookie.SetSameSite(fasthttp.CookieSameSiteStrictMode)
	if token == "" {
		cookie.SetExpire(fasthttp.CookieExpireDelete)
	} else {
		cookie.SetMaxAge(int(s.sessions.Idle().Seconds()))
	}
	rc.Response.Header.SetCookie(cookie)
}

// tokenJSON is a bearer token in a response, with its user: a page needs both, and a request of its
// own would take a phone another 150 ms.
type tokenJSON struct {
	Token     string `json:"token"`
	ExpiresIn int    `json:"expires_in"` // seconds
	User      any    `json:"user"`       // as in GET /api/user
}

// writeToken responds with a token and its user, and keeps the token in the cookie. The cookie has it
// also if the user cannot be read: the former token soon stops working, and the page asks again.
func (s *Server) writeToken(ctx context.Context, rc *fasthttp.RequestCtx, token core.SignedToken) error {
	s.setCookie(rc, token.Token)
	verified, err := s.sessions.VerifyToken(token.Token)
	if err != nil {
		return err
	}
	user, err := s.sessions.UserWithUnread(ctx, verified)
	if err != nil {
		return err
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, tokenJSON{token.Token, int(token.ExpiresIn.Seconds()), s.site.UserJSON(user)})
}

// signInJSON is the body of a log-in: an e-mail address or a player's name, and a password; or the token of
// a session that a registration has just opened.
type signInJSON struct {
	Email    *string `json:"email"` // or a name
	Password *string `json:"password"`
	Token    *string `json:"token"`
}

// handleSignIn handles POST /console/session.
func (s *Server) handleSignIn(ctx context.Context, rc *fasthttp.RequestCtx) error {
	var request signInJSON
	if err := decode.JSON(rc, &request); err != nil {
		return err
	}
	replaced, err := cookieOf(rc)
	if err != nil {
		return err
	}
	if request.Token != nil {
		return s.resume(ctx, rc, *request.Token, replaced)
	}
	missing := map[string][]string{}
	for name, value := range map[string]*string{"email": request.Email, "password": request.Password} {
		if value == nil {
			missing[name] = []string{"The field " + name + " is required."}
		}
	}
	if len(missing) > 0 {
		return &fault.Error{Kind: fault.Invalid, Message: "The player name or e-mail address and the password are required.", Fields: missing}
	}
	token, err := s.sessions.LoginByName(ctx, *request.Email, *request.Password,
		core.NewOrigin(clientip.Prefix(s.opts.Proxies.ClientIP(rc)), string(rc.UserAgent())))
	if err != nil {
		return err
	}
	_ = s.sessions.Replace(ctx, replaced, token) // at worst the session ends by itself
	return s.writeToken(ctx, rc, token)
}

// handleToken handles POST /console/session/token. Without a cookie it responds with 204: a visitor
// that has not signed in is no error.
func (s *Server) handleToken(ctx context.Context, rc *fasthttp.RequestCtx) error {
	current, err := cookieOf(rc)
	if err != nil {
		return err
	}
	if current == "" {
		rc.SetStatusCode(fasthttp.StatusNoContent)
		return nil
	}
	return s.resume(ctx, rc, current, "")
}

// resume responds with the token that continues a session, and deletes the cookie of a session that
// has ended. replaced is the token of a session that the page gives up, or empty.
func (s *Server) resume(ctx context.Context, rc *fasthttp.RequestCtx, current, replaced string) error {
	token, err := s.sessions.Resume(ctx, current)
	if fault.KindOf(err) == fault.Unauthenticated {
		s.setCookie(rc, "")
	}
	if err != nil {
		return err
	}
	_ = s.sessions.Replace(ctx, replaced, token) // at worst the session ends by itself
	return s.writeToken(ctx, rc, token)
}

// handleSignOut handles DELETE /console/session. A session that has ended already is no error.
func (s *Server) handleSignOut(ctx context.Context, rc *fasthttp.RequestCtx) error {
	current, err := cookieOf(rc)
	if err != nil {
		return err
	}
	if current != "" {
		if err := s.sessions.End(ctx, current); err != nil && fault.KindOf(err) != fault.Unauthenticated {
			return err // the session lives, and so does its cookie
		}
	}
	s.setCookie(rc, "")
	rc.SetStatusCode(fasthttp.StatusNoContent)
	return nil
}
