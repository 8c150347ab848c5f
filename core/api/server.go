// Package api is core's public door: HTTP in, HTTP out, nothing decided here.
// It reads requests, calls the domain once, and writes answers.
package api

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"
	"golang.org/x/net/http/httpguts"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/serve"
	"github.com/veneer-skins/veneer/shared/skin"
)

// Config is what the door may be told.
type Config struct {
	CORSOrigins  []string `env:"CORS_ORIGINS" envDefault:"*" example:"https://skins.example.org" help:"origins whose pages may call /api, comma-separated; * for all"`
	Registration string   `env:"REGISTRATION" envDefault:"open" help:"who may register: open for everybody, confirm for whoever opens a link that is mailed to them, closed for nobody"`
	BodyBytes    int      `env:"BODY_BYTES" envDefault:"65536" help:"largest request body, in bytes, 0 for as many as BODIES_BYTES; uploads may carry a texture file besides"`
	Limits       Limits   `envPrefix:"LIMIT_"`
}

// Parts is the domain that the door opens to.
type Parts struct {
	Users         *core.Users
	Accounts      *core.Accounts
	Sessions      *core.Sessions
	Players       *core.Players
	Closets       *core.Closets
	Textures      *core.Textures
	Library       *core.Library
	Notifications *core.Notifications
	Ledger        *core.Ledger
	Reports       *core.Reports
	Audit         *core.Audit
	Links         *core.Links // nil at a site that sends no e-mail
	// Check returns an error unless the database answers.
	Check func(context.Context) error
}

// Server answers /api.
type Server struct {
	Parts
	config    Config
	door      serve.Door
	fileBytes int

	requests, registrations, uploads *limiter
	// changes counts what edges are told of.
	changes *limiter
	// Reports are counted for users, and for client networks.
	reports, networkReports *limiter
	// ended counts requests with tokens that work no longer.
	ended *limiter
	// resets counts requests for a link that resets a password.
	resets *limiter

	database checker
}

// New returns a door to the domain. fileBytes is the largest texture file that
// the domain accepts.
func New(door serve.Door, parts Parts, config Config, fileBytes int, now core.Clock) (*Server, error) {
	if err := config.Limits.check(); err != nil {
		return nil, err
	}
	switch {
	case config.Registration == "confirm" && parts.Links == nil:
		return nil, errors.New("REGISTRATION is confirm, which takes e-mail, but SMTP_HOST is not set")
	case config.Registration != "open" && config.Registration != "confirm" && config.Registration != "closed":
		return nil, fmt.Errorf("REGISTRATION is %q, but must be open, confirm or closed", config.Registration)
	}
	if config.BodyBytes != 0 && config.BodyBytes < leastBody {
		return nil, fmt.Errorf("BODY_BYTES is %d, but must be 0 or at least %d", config.BodyBytes, leastBody)
	}
	if limit := (&Server{config: config, fileBytes: fileBytes}).uploadLimit(); limit > door.Limits.BodiesBytes {
		return nil, fmt.Errorf("BODIES_BYTES is %d, but must be at least %d, an upload of TEXTURE_BYTES and BODY_BYTES", door.Limits.BodiesBytes, limit)
	}
	origins, err := origins(config.CORSOrigins)
	if err != nil {
		return nil, err
	}
	config.CORSOrigins = origins
	door.Listener = "public"
	limits := config.Limits
	return &Server{
		Parts: parts, config: config, door: door, fileBytes: fileBytes,
		requests:      newLimiter("requests", limits.Requests, time.Second, limits.RequestsBurst, now),
		ended:         newLimiter("requests", limits.Requests, time.Second, limits.RequestsBurst, now),
		registrations: newLimiter("registrations", limits.Registrations, time.Hour, limits.Registrations, now),
		uploads:       newLimiter("uploads", limits.Uploads, time.Minute, limits.Uploads, now),
		changes:       newLimiter("changes", limits.Changes, time.Minute, limits.Changes, now),
		reports:       newLimiter("reports", limits.Reports, time.Hour, limits.Reports, now),

		networkReports: newLimiter("reports from your network", networkReports*limits.Reports, time.Hour, networkReports*limits.Reports, now),

		resets:   newLimiter("requests for a new password", limits.Resets, time.Hour, limits.Resets, now),
		database: checker{check: parts.Check, now: now},
	}, nil
}

// origins returns the origins that a setting lists, which have a scheme and a host
// and nothing else; or *.
func origins(listed []string) ([]string, error) {
	var origins []string
	for _, origin := range listed {
		origin = strings.TrimSpace(origin)
		parsed, err := url.Parse(origin)
		if origin != "*" && (err != nil || parsed.Host == "" || strings.Contains(origin, "*") || parsed.Scheme+"://"+parsed.Host != origin) {
			return nil, fmt.Errorf("CORS_ORIGINS has %q, but must be *, or origins as in https://skins.example", origin)
		}
		origins = append(origins, origin)
	}
	return origins, nil
}

const uploadPath = "/api/textures"

// HTTP returns the server behind the public listener.
func (s *Server) HTTP() *fasthttp.Server {
	door := s.door
	door.Mark = s.mark
	return door.Server(door.AddressLimiter().Handler(s.answered(s.routes().Handler)))
}

// longestCharacter is the most bytes that a character takes in a body: an emoji escaped in
// JSON as two surrogates, or %XX for each of its four bytes in a form.
const longestCharacter = 12

// leastBody is the least limit of a body: the reason of a report may have 1,000 characters.
const leastBody = 16 << 10

// bodyLimit returns the limit of a body that may have some bytes besides those of others,
// 0 for none.
func (s *Server) bodyLimit(besides int) int {
	if s.config.BodyBytes == 0 {
		return 0
	}
	return s.config.BodyBytes + besides
}

// uploadLimit returns the limit of an upload's body, 0 for none.
func (s *Server) uploadLimit() int {
	if s.fileBytes == 0 {
		return 0
	}
	return s.bodyLimit(s.fileBytes)
}

// routes is the route table.
func (s *Server) routes() *router.Router {
	r := router.New()
	r.RedirectTrailingSlash, r.RedirectFixedPath = false, false
	r.HandleOPTIONS = false // preflights are answered in answered, whatever the path
	r.NotFound = s.open(func(_ context.Context, rc *fasthttp.RequestCtx) error {
		if isAPI(string(rc.Path())) {
			return nothingHere()
		}
		return notFoundPage.Refuse(rc)
	})
	r.MethodNotAllowed = s.open(func(_ context.Context, rc *fasthttp.RequestCtx) error {
		return fault.New(fault.MethodNotAllowed, "%s is not possible here.", rc.Method())
	})

	bodiless := func(method, path string, h fasthttp.RequestHandler) *serve.Route {
		route := s.door.Route(method + " " + path)
		claimed := func(rc *fasthttp.RequestCtx) {
			route.Claim(rc)
			h(rc)
		}
		r.Handle(method, path, claimed)
		if method == fasthttp.MethodGet { // HEAD is GET without the body, which fasthttp leaves out
			r.Handle(fasthttp.MethodHead, path, claimed)
		}
		return route
	}
	handle := func(method, path string, h fasthttp.RequestHandler) *serve.Route {
		route := bodiless(method, path, h)
		if method != fasthttp.MethodGet {
			route.TakeBody(s.bodyLimit(0), 0)
		}
		return route
	}

	handle(fasthttp.MethodGet, "/", s.open(s.root))
	handle(fasthttp.MethodGet, "/robots.txt", s.open(s.robots))
	handle(fasthttp.MethodGet, "/api", s.open(s.index))

	handle(fasthttp.MethodPost, "/api/auth/login", s.open(s.login))
	handle(fasthttp.MethodPost, "/api/auth/logout", s.signedIn(s.logout))
	bodiless(fasthttp.MethodPost, "/api/auth/refresh", s.open(s.refresh))
	handle(fasthttp.MethodPost, "/api/auth/register", s.open(s.register))
	handle(fasthttp.MethodPost, "/api/auth/verify", s.open(s.verify))
	handle(fasthttp.MethodPost, "/api/auth/reset", s.open(s.askReset))
	handle(fasthttp.MethodPost, "/api/auth/password", s.open(s.resetPassword))

	handle(fasthttp.MethodGet, "/api/user", s.signedIn(s.user))
	handle(fasthttp.MethodPut, "/api/user", s.signedIn(s.renameUser))
	handle(fasthttp.MethodDelete, "/api/user", s.signedIn(s.deleteUser))
	handle(fasthttp.MethodPut, "/api/user/avatar", s.signedIn(s.changing(s.setAvatar)))
	handle(fasthttp.MethodPut, "/api/user/email", s.signedIn(s.changeEmail))
	handle(fasthttp.MethodPut, "/api/user/password", s.signedIn(s.changePassword))
	handle(fasthttp.MethodPost, "/api/user/verification", s.signedIn(s.askVerification))
	handle(fasthttp.MethodGet, "/api/user/notifications", s.ticketed(s.notifications))
	handle(fasthttp.MethodPost, "/api/user/notifications/{id}", s.signedIn(s.readNotification))

	handle(fasthttp.MethodGet, "/api/user/score", s.ticketed(s.scoreChanges))
	handle(fasthttp.MethodPost, "/api/user/sign", s.signedIn(s.sign))

	handle(fasthttp.MethodGet, "/api/players", s.ticketed(s.players))
	handle(fasthttp.MethodPost, "/api/players", s.signedIn(s.changing(s.createPlayer)))
	handle(fasthttp.MethodDelete, "/api/players/{pid}", s.signedIn(s.changing(s.deletePlayer)))
	handle(fasthttp.MethodPut, "/api/players/{pid}/name", s.signedIn(s.changing(s.renamePlayer)))
	handle(fasthttp.MethodPut, "/api/players/{pid}/textures", s.signedIn(s.changing(s.dressPlayer)))
	handle(fasthttp.MethodDelete, "/api/players/{pid}/textures", s.signedIn(s.changing(s.undressPlayer)))

	handle(fasthttp.MethodGet, "/api/closet", s.ticketed(s.closet))
	handle(fasthttp.MethodPost, "/api/closet", s.signedIn(s.addClosetItem))
	handle(fasthttp.MethodPut, "/api/closet/{tid}", s.signedIn(s.renameClosetItem))
	handle(fasthttp.MethodDelete, "/api/closet/{tid}", s.signedIn(s.removeClosetItem))

	handle(fasthttp.MethodPost, uploadPath, s.signedIn(s.upload)).TakeBody(s.uploadLimit(), s.door.Limits.UploadTimeout)
	handle(fasthttp.MethodGet, "/api/textures", s.visited(s.textures))
	handle(fasthttp.MethodGet, "/api/textures/{tid}", s.visited(s.texture))
	handle(fasthttp.MethodPut, "/api/textures/{tid}", s.signedIn(s.changing(s.changeTexture)))
	handle(fasthttp.MethodDelete, "/api/textures/{tid}", s.signedIn(s.changing(s.deleteTexture)))
	handle(fasthttp.MethodPost, "/api/reports", s.signedIn(s.report))

	handle(fasthttp.MethodGet, "/api/admin/users", s.administrators(s.findUsers))
	handle(fasthttp.MethodDelete, "/api/admin/users/{uid}", s.administrators(s.deleteUserBy))
	handle(fasthttp.MethodPut, "/api/admin/users/{uid}/nickname", s.actOnUser("The nickname is changed.", s.setNickname))
	handle(fasthttp.MethodPut, "/api/admin/users/{uid}/email", s.actOnUser("The e-mail address is changed.", s.setEmail))
	handle(fasthttp.MethodPut, "/api/admin/users/{uid}/password", s.actOnUser("The password is changed. The user's sessions have ended.", s.setPassword))
	handle(fasthttp.MethodPut, "/api/admin/users/{uid}/verified", s.actOnUser("The verification is changed.", s.setVerified))
	handle(fasthttp.MethodPut, "/api/admin/users/{uid}/score", s.actOnUser("The score is set.", s.setScore))
	handle(fasthttp.MethodPut, "/api/admin/users/{uid}/permission", s.actOnUser("The permission is changed.", s.setPermission))
	handle(fasthttp.MethodGet, "/api/admin/users/{uid}/closet", s.administrators(s.closetOf))
	handle(fasthttp.MethodPost, "/api/admin/users/{uid}/closet", s.administrators(s.addItemOf))
	handle(fasthttp.MethodDelete, "/api/admin/users/{uid}/closet/{tid}", s.administrators(s.removeItemOf))

	handle(fasthttp.MethodGet, "/api/admin/players", s.administrators(s.findPlayers))
	handle(fasthttp.MethodDelete, "/api/admin/players/{pid}", s.administrators(s.deletePlayerBy))
	handle(fasthttp.MethodPut, "/api/admin/players/{pid}/name", s.actOnPlayer("The player is renamed.", s.renamePlayerBy))
	handle(fasthttp.MethodPut, "/api/admin/players/{pid}/owner", s.actOnPlayer("The player is moved.", s.movePlayerBy))
	handle(fasthttp.MethodPut, "/api/admin/players/{pid}/textures", s.actOnPlayer("The player is dressed.", s.dressPlayerBy))
	handle(fasthttp.MethodDelete, "/api/admin/players/{pid}/textures", s.actOnPlayer("The textures are taken off.", s.undressPlayerBy))

	handle(fasthttp.MethodGet, "/api/admin/textures", s.administrators(s.allTextures))
	handle(fasthttp.MethodPut, "/api/admin/textures/{tid}", s.administrators(s.changeTextureBy))
	handle(fasthttp.MethodDelete, "/api/admin/textures/{tid}", s.administrators(s.deleteTextureBy))
	handle(fasthttp.MethodGet, "/api/admin/reports", s.administrators(s.listReports))
	handle(fasthttp.MethodPut, "/api/admin/reports/{rid}", s.administrators(s.settleReport))
	handle(fasthttp.MethodPost, "/api/admin/notifications", s.administrators(s.announce)).
		TakeBody(s.bodyLimit(longestCharacter*core.MaxContent), 0)
	handle(fasthttp.MethodGet, "/api/admin/audit", s.administrators(s.audit))

	for _, path := range []string{documentPath, pagePath, pagePath + "/{digest}/{file}"} {
		handle(fasthttp.MethodGet, path, s.open(s.document))
	}

	return r
}

// answered marks every answer, and answers preflights.
func (s *Server) answered(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	preflights := s.door.Route("OPTIONS")
	return func(rc *fasthttp.RequestCtx) {
		s.mark(rc)
		// The router reads the path as it was sent.
		if path := rc.URI().PathOriginal(); bytes.HasSuffix(path, []byte("/")) && isAPI(string(path)) {
			rc.URI().SetPathBytes(bytes.TrimRight(path, "/"))
		}
		if rc.IsOptions() {
			preflights.Claim(rc)
			header := &rc.Response.Header
			header.Set(fasthttp.HeaderAccessControlAllowMethods, "GET, HEAD, POST, PUT, DELETE")
			if names := requestedHeaders(&rc.Request.Header); names != "" {
				header.Set(fasthttp.HeaderAccessControlAllowHeaders, names)
			}
			header.Set(fasthttp.HeaderAccessControlMaxAge, "86400")
			rc.SetStatusCode(fasthttp.StatusNoContent)
			return
		}
		next(rc)
	}
}

// Bounds of the header names that a preflight asks for, as they are sent back.
const (
	maxRequestedHeaders = 32
	maxHeaderName       = 64
)

// requestedHeaders returns the names that a preflight asks for, of those that are
// tokens (RFC 9110, section 5.6.2), as a list.
func requestedHeaders(header *fasthttp.RequestHeader) string {
	var names []string
	for _, line := range header.PeekAll(fasthttp.HeaderAccessControlRequestHeaders) {
		for name := range strings.SplitSeq(string(line), ",") {
			name = strings.Trim(name, " \t")
			if len(names) < maxRequestedHeaders && len(name) <= maxHeaderName && httpguts.ValidHeaderFieldName(name) {
				names = append(names, name)
			}
		}
	}
	return strings.Join(names, ", ")
}

// mark sets what every answer has, also one to a request that cannot be read: a
// page must see why its upload was too large.
func (s *Server) mark(rc *fasthttp.RequestCtx) {
	serve.Reserve(rc)
	s.allowOrigin(rc)
}

// allowOrigin sets the CORS headers. Credentials are never allowed: the bearer
// token is all there is, and pages set it themselves.
func (s *Server) allowOrigin(rc *fasthttp.RequestCtx) {
	header := &rc.Response.Header
	header.Set(fasthttp.HeaderAccessControlExposeHeaders, "Allow, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Retry-After, WWW-Authenticate, X-Request-ID")
	origin := string(rc.Request.Header.Peek(fasthttp.HeaderOrigin))
	for _, allowed := range s.config.CORSOrigins {
		if allowed == "*" {
			header.Set(fasthttp.HeaderAccessControlAllowOrigin, "*")
			return
		}
		if origin != "" && allowed == origin {
			header.Set(fasthttp.HeaderAccessControlAllowOrigin, origin)
			break
		}
	}
	header.Add(fasthttp.HeaderVary, fasthttp.HeaderOrigin)
}

// open is a route for everybody. Requests count for their address.
func (s *Server) open(h serve.Handler) fasthttp.RequestHandler {
	return s.door.Guard(func(rc *fasthttp.RequestCtx) error {
		if err := s.requests.take(rc, s.address(rc)); err != nil {
			return err
		}
		return s.work(rc, 0, h)
	})
}

// work reads the body that the route takes, and then calls h for a user, 0 for none. The
// time of h begins there: nothing is held for a request while its body arrives.
func (s *Server) work(rc *fasthttp.RequestCtx, user core.UserID, h serve.Handler) error {
	if rc.IsPost() && string(rc.Path()) == uploadPath { // it counts once its session is known to live
		if err := s.uploads.look(rc, client{user: user}); err != nil {
			return err
		}
	}
	if err := serve.ReadBody(rc); err != nil {
		if fault.KindOf(err) == fault.TooLarge && string(rc.Path()) == uploadPath && s.fileBytes > 0 {
			return skin.FileTooLarge(s.fileBytes)
		}
		return err
	}
	ctx, cancel := s.door.Bound(rc)
	defer cancel()
	return h(s.withClient(ctx, rc, user), rc)
}

// ticketed is a route for those who show a token that we signed. Whether its
// session lives is left to the handler: a read looks it up in the round trip in
// which it reads. Requests count for their user.
func (s *Server) ticketed(h func(context.Context, *fasthttp.RequestCtx, core.VerifiedToken) error) fasthttp.RequestHandler {
	return s.door.Guard(func(rc *fasthttp.RequestCtx) error {
		ticket, err := s.ticket(rc)
		if err != nil {
			return cmp.Or(s.requests.take(rc, s.address(rc)), err)
		}
		serve.Note(rc, slog.Int64("uid", int64(ticket.Token.User)))
		user, token := client{user: ticket.Token.User}, client{token: ticket.Token.ID}
		if err := s.ended.look(rc, token); err != nil {
			return err
		}
		if err := s.requests.take(rc, user); err != nil {
			return err
		}
		err = s.work(rc, ticket.Token.User, func(ctx context.Context, rc *fasthttp.RequestCtx) error { return h(ctx, rc, ticket) })
		if errors.Is(err, core.ErrSignedOut) {
			// Whoever holds a token that works no longer must not use up what is the
			// user's. It counts by itself, as it must be looked up before anybody knows,
			// and for the address.
			s.requests.giveBack(user)
			return cmp.Or(s.ended.take(rc, token), s.requests.take(rc, s.address(rc)), err)
		}
		return err
	})
}

// signedIn is a route for those who are signed in.
func (s *Server) signedIn(h func(context.Context, *fasthttp.RequestCtx, core.Caller) error) fasthttp.RequestHandler {
	return s.ticketed(func(ctx context.Context, rc *fasthttp.RequestCtx, ticket core.VerifiedToken) error {
		caller, err := s.Sessions.Authenticate(ctx, ticket)
		if err != nil {
			return err
		}
		return h(ctx, rc, caller)
	})
}

// changing returns a handler that changes, as often as the caller may, what edges are told
// of: each change is kept for a day, and goes to every edge and to the CDN.
func (s *Server) changing(h func(context.Context, *fasthttp.RequestCtx, core.Caller) error) func(context.Context, *fasthttp.RequestCtx, core.Caller) error {
	return func(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
		if err := s.changes.take(rc, client{user: caller.ID}); err != nil {
			return err
		}
		return h(ctx, rc, caller)
	}
}

// visited is a route for everybody, which shows more to those who are signed in.
// The zero user is not. Who shows a token must show one that works.
func (s *Server) visited(h func(context.Context, *fasthttp.RequestCtx, core.User) error) fasthttp.RequestHandler {
	anybody := s.open(func(ctx context.Context, rc *fasthttp.RequestCtx) error { return h(ctx, rc, core.User{}) })
	somebody := s.signedIn(func(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
		return h(ctx, rc, caller.User)
	})
	return func(rc *fasthttp.RequestCtx) {
		if len(rc.Request.Header.Peek(fasthttp.HeaderAuthorization)) == 0 {
			anybody(rc)
		} else {
			somebody(rc)
		}
	}
}

// ticket returns what the request's bearer token stands for.
func (s *Server) ticket(rc *fasthttp.RequestCtx) (core.VerifiedToken, error) {
	token, err := bearer(rc)
	if err != nil {
		return core.VerifiedToken{}, err
	}
	return s.Sessions.VerifyToken(token)
}

// withClient returns a context of the work on a request of a user, 0 for none.
func (s *Server) withClient(ctx context.Context, rc *fasthttp.RequestCtx, user core.UserID) context.Context {
	return core.WithClient(ctx, core.Client{Network: serve.ClientNetwork(s.door.Proxies.Client(rc)), User: user})
}

// address is who makes a request, by their address.
func (s *Server) address(rc *fasthttp.RequestCtx) client { return client{network: s.network(rc)} }

func (s *Server) network(rc *fasthttp.RequestCtx) netip.Prefix {
	return serve.Network(s.door.Proxies.Client(rc))
}

// bearer returns the token of the Authorization header (RFC 6750, section 2.1).
func bearer(rc *fasthttp.RequestCtx) (string, error) {
	scheme, token, ok := strings.Cut(string(rc.Request.Header.Peek(fasthttp.HeaderAuthorization)), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return "", core.ErrSignedOut
	}
	return strings.TrimSpace(token), nil
}

// isAPI reports whether a path is the API's, whose answers are for programs.
func isAPI(path string) bool { return path == "/api" || strings.HasPrefix(path, "/api/") }

func nothingHere() error { return fault.New(fault.NotFound, "There is nothing at this path.") }

// number returns a path's integer; there is nothing at a path without one.
func number(rc *fasthttp.RequestCtx, placeholder string) (int64, error) {
	text, _ := rc.UserValue(placeholder).(string)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != text { // one path for one thing
		return 0, nothingHere()
	}
	return n, nil
}

// envelope is the body of most answers that say yes.
type envelope struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

// done answers with an envelope.
func done(rc *fasthttp.RequestCtx, message string, data any) error {
	return serve.JSON(rc, fasthttp.StatusOK, envelope{Message: message, Data: data})
}

// accepted answers with an envelope that what was asked for is yet to be confirmed.
func accepted(rc *fasthttp.RequestCtx, message string) error {
	return serve.JSON(rc, fasthttp.StatusAccepted, envelope{Message: message})
}

// timestamp is a time as the API writes it: in UTC, to the second.
type timestamp time.Time

// MarshalJSON writes YYYY-MM-DD HH:MM:SS.
func (t timestamp) MarshalJSON() ([]byte, error) {
	return time.Time(t).UTC().AppendFormat(nil, `"2006-01-02 15:04:05"`), nil
}
