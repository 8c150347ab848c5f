package api

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/serve"
)

// tokenBody is a token as the API writes it.
type tokenBody struct {
	Token     string `json:"token"`
	TokenType string `json:"token_type"`
	ExpiresIn int    `json:"expires_in"` // seconds
}

func toTokenBody(b core.SignedToken) tokenBody {
	return tokenBody{Token: b.Token, TokenType: "Bearer", ExpiresIn: int(b.ExpiresIn.Seconds())}
}

// login handles POST /api/auth/login.
func (s *Server) login(ctx context.Context, rc *fasthttp.RequestCtx) error {
	f, err := read(rc)
	if err != nil {
		return err
	}
	email, password := f.text("email"), f.text("password")
	if err := f.fault(); err != nil {
		return err
	}
	token, err := s.Sessions.Login(ctx, email, password, s.network(rc))
	if err != nil {
		return err
	}
	return serve.JSON(rc, fasthttp.StatusOK, toTokenBody(token))
}

// refresh handles POST /api/auth/refresh.
func (s *Server) refresh(ctx context.Context, rc *fasthttp.RequestCtx) error {
	current, err := bearer(rc)
	if err != nil {
		return err
	}
	successor, err := s.Sessions.Refresh(ctx, current)
	if err != nil {
		return err
	}
	return serve.JSON(rc, fasthttp.StatusOK, toTokenBody(successor))
}

// logout handles POST /api/auth/logout.
func (s *Server) logout(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	if err := s.Sessions.Logout(ctx, caller); err != nil {
		return err
	}
	rc.SetStatusCode(fasthttp.StatusNoContent)
	return nil
}

// registering does what tells whether an e-mail address is registered, as often as
// the client's address may. What is invalid tells nothing, and does not count.
func (s *Server) registering(rc *fasthttp.RequestCtx, do func() error) error {
	who := s.address(rc)
	if err := s.registrations.take(rc, who); err != nil {
		return err
	}
	err := do()
	if fault.KindOf(err) == fault.Invalid {
		s.registrations.giveBack(who)
	}
	return err
}

// register handles POST /api/auth/register: it adds a user and signs them in. Where
// registrations must be confirmed, the password is chosen with the confirmation.
func (s *Server) register(ctx context.Context, rc *fasthttp.RequestCtx) error {
	if s.config.Registration == "closed" {
		return fault.New(fault.Refused, "Registration is closed.")
	}
	f, err := read(rc)
	if err != nil {
		return err
	}
	confirm := s.config.Registration == "confirm"
	registration := core.Registration{Email: f.text("email"), Nickname: f.text("nickname"), PlayerName: f.optionalText("player_name", "")}
	if !confirm {
		registration.Password = f.text("password")
	}
	if err := f.fault(); err != nil {
		return err
	}
	if confirm {
		return s.apply(ctx, rc, registration)
	}
	var user core.Credentials
	err = s.registering(rc, func() (err error) {
		user, err = s.Users.Register(ctx, registration)
		return err
	})
	if err != nil {
		return err
	}
	return s.welcome(ctx, rc, user)
}

// welcome opens a session of an added user, and answers with the token and the user.
func (s *Server) welcome(ctx context.Context, rc *fasthttp.RequestCtx, user core.Credentials) error {
	token, err := s.Sessions.Open(ctx, core.VerifiedCredentials{Credentials: user}, s.network(rc))
	if err != nil {
		return err
	}
	return done(rc, "Welcome.", struct {
		tokenBody
		User userBody `json:"user"`
	}{toTokenBody(token), toUserBody(user.User)})
}

// apply answers a registration that comes to life by a link in an e-mail, the same
// whether or not there is an account with the address.
func (s *Server) apply(ctx context.Context, rc *fasthttp.RequestCtx, registration core.Registration) error {
	err := s.registering(rc, func() error { return s.Users.RequestRegistration(ctx, registration) })
	if err != nil {
		return err
	}
	return accepted(rc, "An e-mail with a link is on its way to you. Open it, and choose a password, to make the account.")
}
