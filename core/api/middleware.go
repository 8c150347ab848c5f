package api

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/clientapi"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
	"github.com/veneer-skins/veneer/shared/skin"
)

// public wraps a handler that needs no token. Requests count for the client's network.
func (s *Server) public(h httpserver.Handler) fasthttp.RequestHandler {
	return s.opts.HandleNoContext(func(rc *fasthttp.RequestCtx) error {
		if err := s.limiters.Requests.Take(rc, s.addressKey(rc)); err != nil {
			return err
		}
		return s.readAndServe(rc, 0, h)
	})
}

// readAndServe reads the body and calls h; user is 0 for none. The timeout of h begins after the
// body has arrived, and nothing is held for it before.
func (s *Server) readAndServe(rc *fasthttp.RequestCtx, user core.UserID, h httpserver.Handler) error {
	if isUpload(rc) { // counted by the handler, once the session is verified
		if err := s.uploadLimiter(rc).Peek(rc, clientapi.Key{User: user}); err != nil {
			return err
		}
	}
	if err := httpserver.ReadBody(rc); err != nil {
		if fault.KindOf(err) == fault.TooLarge && isUpload(rc) && s.fileBytes > 0 {
			return skin.FileTooLarge(s.fileBytes)
		}
		return err
	}
	ctx, cancel := s.opts.RequestContext(rc)
	defer cancel()
	return h(s.withClient(ctx, rc, user), rc)
}

// withToken wraps a handler that takes a token with a valid signature. The handler verifies the
// session: reads verify it in the same round trip. Requests count for the user.
func (s *Server) withToken(h func(context.Context, *fasthttp.RequestCtx, core.VerifiedToken) error) fasthttp.RequestHandler {
	return s.opts.HandleNoContext(func(rc *fasthttp.RequestCtx) error {
		verified, err := s.verifyToken(rc)
		if err != nil {
			return cmp.Or(s.limiters.Requests.Take(rc, s.addressKey(rc)), err)
		}
		httpserver.AddLogAttr(rc, slog.Int64("uid", int64(verified.Token.User)))
		user, token := clientapi.Key{User: verified.Token.User}, clientapi.Key{Token: verified.Token.ID}
		if err := s.limiters.EndedTokens.Peek(rc, token); err != nil {
			return err
		}
		if err := s.limiters.Requests.Take(rc, user); err != nil {
			return err
		}
		err = s.readAndServe(rc, verified.Token.User, func(ctx context.Context, rc *fasthttp.RequestCtx) error { return h(ctx, rc, verified) })
		if errors.Is(err, core.ErrSignedOut) {
			// A revoked token must not use up the user's limit. Its request counts for the token,
			// since it took a look-up, and for the address.
			s.limiters.Requests.Refund(user)
			return cmp.Or(s.limiters.EndedTokens.Take(rc, token), s.limiters.Requests.Take(rc, s.addressKey(rc)), err)
		}
		return err
	})
}

// requireUser wraps a handler of signed-in users.
func (s *Server) requireUser(h func(context.Context, *fasthttp.RequestCtx, core.Caller) error) fasthttp.RequestHandler {
	return s.withToken(func(ctx context.Context, rc *fasthttp.RequestCtx, verified core.VerifiedToken) error {
		caller, err := s.Sessions.Authenticate(ctx, verified)
		if err != nil {
			return err
		}
		return h(ctx, rc, caller)
	})
}

// limitChanges wraps a handler that writes to the change stream, or to the changes of scores, and limits
// its rate: each change is kept for a day, and sent to every edge and to the CDN; changes of scores are
// kept for a year.
func (s *Server) limitChanges(h func(context.Context, *fasthttp.RequestCtx, core.Caller) error) func(context.Context, *fasthttp.RequestCtx, core.Caller) error {
	return func(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
		if err := s.limiters.Changes.Take(rc, clientapi.Key{User: caller.ID}); err != nil {
			return err
		}
		return h(ctx, rc, caller)
	}
}

// optionalUser wraps a handler that needs no token but shows more to a signed-in user; the user is
// zero without a token. An invalid token is an error.
func (s *Server) optionalUser(h func(context.Context, *fasthttp.RequestCtx, core.User) error) fasthttp.RequestHandler {
	anonymous := s.public(func(ctx context.Context, rc *fasthttp.RequestCtx) error { return h(ctx, rc, core.User{}) })
	authenticated := s.requireUser(func(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
		return h(ctx, rc, caller.User)
	})
	return func(rc *fasthttp.RequestCtx) {
		if len(rc.Request.Header.Peek(fasthttp.HeaderAuthorization)) == 0 {
			anonymous(rc)
		} else {
			authenticated(rc)
		}
	}
}

// verifyToken verifies the signature of the request's bearer token.
func (s *Server) verifyToken(rc *fasthttp.RequestCtx) (core.VerifiedToken, error) {
	token, err := bearerToken(rc)
	if err != nil {
		return core.VerifiedToken{}, err
	}
	return s.Sessions.VerifyToken(token)
}

// withClient adds the client's network and user, 0 for none, to the context.
func (s *Server) withClient(ctx context.Context, rc *fasthttp.RequestCtx, user core.UserID) context.Context {
	return core.WithClient(ctx, core.Client{Network: clientip.Network(s.opts.Proxies.ClientIP(rc)), User: user})
}

// addressKey returns the rate limit key of the client's network.
func (s *Server) addressKey(rc *fasthttp.RequestCtx) clientapi.Key {
	return clientapi.Key{Network: s.network(rc)}
}

func (s *Server) network(rc *fasthttp.RequestCtx) netip.Prefix {
	return clientip.Prefix(s.opts.Proxies.ClientIP(rc))
}

// takeWithNetwork counts a request for a key, and for the client's network. The response's headers tell the key's limit, or
// the network's limit if that refuses the request.
func (s *Server) takeWithNetwork(rc *fasthttp.RequestCtx, limiter, ofNetwork *clientapi.Limiter, key clientapi.Key) (refund func(), err error) {
	network := clientapi.Key{Network: clientip.Network(s.opts.Proxies.ClientIP(rc))}
	if err := ofNetwork.Take(rc, network); err != nil {
		return nil, err
	}
	if err := limiter.Take(rc, key); err != nil {
		ofNetwork.Refund(network)
		return nil, err
	}
	return func() { limiter.Refund(key); ofNetwork.Refund(network) }, nil
}

// bearerToken returns the token of the Authorization header (RFC 6750, section 2.1).
func bearerToken(rc *fasthttp.RequestCtx) (string, error) {
	scheme, token, ok := strings.Cut(string(rc.Request.Header.Peek(fasthttp.HeaderAuthorization)), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return "", core.ErrSignedOut
	}
	return strings.TrimSpace(token), nil
}
