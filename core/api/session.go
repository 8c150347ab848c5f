package api

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/clientapi/decode"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

// tokenJSON is a bearer token in a response.
type tokenJSON struct {
	Token     string `json:"token"`
	TokenType string `json:"token_type"`
	ExpiresIn int    `json:"expires_in"` // seconds
}

func toTokenJSON(b core.SignedToken) tokenJSON {
	return tokenJSON{Token: b.Token, TokenType: "Bearer", ExpiresIn: int(b.ExpiresIn.Seconds())}
}

// origin returns from where a request signs a user in.
func (s *Server) origin(rc *fasthttp.RequestCtx) core.Origin {
	return core.NewOrigin(s.network(rc), string(rc.UserAgent()))
}

// handleLogin handles POST /api/auth/login.
func (s *Server) handleLogin(ctx context.Context, rc *fasthttp.RequestCtx) error {
	f := decode.ParseForm(rc)
	email, password := f.Str("email"), f.Str("password")
	if err := f.Err(); err != nil {
		return err
	}
	token, err := s.Sessions.Login(ctx, email, password, s.origin(rc))
	if err != nil {
		return err
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, toTokenJSON(token))
}

// handleRefreshToken handles POST /api/auth/refresh.
func (s *Server) handleRefreshToken(ctx context.Context, rc *fasthttp.RequestCtx) error {
	current, err := bearerToken(rc)
	if err != nil {
		return err
	}
	successor, err := s.Sessions.Refresh(ctx, current)
	if err != nil {
		return err
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, toTokenJSON(successor))
}

// handleLogout handles POST /api/auth/logout.
func (s *Server) handleLogout(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	if err := s.Sessions.Logout(ctx, caller); err != nil {
		return err
	}
	rc.SetStatusCode(fasthttp.StatusNoContent)
	return nil
}

// startSession opens a session of a new user and responds with the token and the user.
func (s *Server) startSession(ctx context.Context, rc *fasthttp.RequestCtx, user core.Credentials) error {
	token, err := s.Sessions.Open(ctx, core.VerifiedCredentials{Credentials: user}, s.origin(rc))
	if err != nil {
		return err
	}
	return writeOK(rc, "Welcome.", struct {
		tokenJSON
		User userJSON `json:"user"`
	}{toTokenJSON(token), toUserJSON(user.User)})
}
