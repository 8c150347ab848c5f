package api

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/fault"
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

// handleLogin handles POST /api/auth/login.
func (s *Server) handleLogin(ctx context.Context, rc *fasthttp.RequestCtx) error {
	f, err := parseForm(rc)
	if err != nil {
		return err
	}
	email, password := f.str("email"), f.str("password")
	if err := f.err(); err != nil {
		return err
	}
	token, err := s.Sessions.Login(ctx, email, password, s.network(rc))
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

// limitRegistrations calls do, which reveals whether an e-mail address is registered, within the
// limit of registrations of the client address. An Invalid fault reveals nothing and does not
// count.
func (s *Server) limitRegistrations(rc *fasthttp.RequestCtx, do func() error) error {
	key := s.addressKey(rc)
	if err := s.limiters.Registrations.Take(rc, key); err != nil {
		return err
	}
	err := do()
	if fault.KindOf(err) == fault.Invalid {
		s.limiters.Registrations.Refund(key)
	}
	return err
}

// handleRegister handles POST /api/auth/register: it adds a user and opens a session. Where
// registrations must be confirmed, the password is set by the confirmation.
func (s *Server) handleRegister(ctx context.Context, rc *fasthttp.RequestCtx) error {
	if s.config.Registration == "closed" {
		return fault.New(fault.Refused, "Registration is closed.")
	}
	f, err := parseForm(rc)
	if err != nil {
		return err
	}
	confirm := s.config.Registration == "confirm"
	registration := core.Registration{Email: f.str("email"), Nickname: f.str("nickname"), PlayerName: f.optionalStr("player_name", "")}
	if !confirm {
		registration.Password = f.str("password")
	}
	if err := f.err(); err != nil {
		return err
	}
	if confirm {
		return s.requestRegistration(ctx, rc, registration)
	}
	var user core.Credentials
	err = s.limitRegistrations(rc, func() (err error) {
		user, err = s.Users.Register(ctx, registration)
		return err
	})
	if err != nil {
		return err
	}
	return s.startSession(ctx, rc, user)
}

// startSession opens a session of a new user and responds with the token and the user.
func (s *Server) startSession(ctx context.Context, rc *fasthttp.RequestCtx, user core.Credentials) error {
	token, err := s.Sessions.Open(ctx, core.VerifiedCredentials{Credentials: user}, s.network(rc))
	if err != nil {
		return err
	}
	return writeOK(rc, "Welcome.", struct {
		tokenJSON
		User userJSON `json:"user"`
	}{toTokenJSON(token), toUserJSON(user.User)})
}

// requestRegistration sends the link that confirms a registration. The response is the same whether
// or not there is an account with the address.
func (s *Server) requestRegistration(ctx context.Context, rc *fasthttp.RequestCtx, registration core.Registration) error {
	err := s.limitRegistrations(rc, func() error { return s.Users.RequestRegistration(ctx, registration) })
	if err != nil {
		return err
	}
	return writeAccepted(rc, "An e-mail with a link is on its way to you. Open it, and choose a password, to make the account.")
}
