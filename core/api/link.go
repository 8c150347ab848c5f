package api

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
)

// askVerification handles POST /api/user/verification.
func (s *Server) askVerification(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	if err := s.Links.RequestVerification(ctx, caller); err != nil {
		return err
	}
	return done(rc, "An e-mail with a link is on its way to you.", nil)
}

// verify handles POST /api/auth/verify: it verifies an address, or adds the user of a
// registration and signs them in.
func (s *Server) verify(ctx context.Context, rc *fasthttp.RequestCtx) error {
	f, err := read(rc)
	if err != nil {
		return err
	}
	confirmation := core.Confirmation{Token: f.text("token")}
	for name, field := range map[string]**string{
		"password": &confirmation.Password, "nickname": &confirmation.Nickname, "player_name": &confirmation.PlayerName,
	} {
		if !f.null(name) {
			*field = new(f.text(name))
		}
	}
	if err := f.fault(); err != nil {
		return err
	}
	user, err := s.Links.Verify(ctx, confirmation)
	if err != nil {
		return err
	}
	if user.ID != 0 {
		return s.welcome(ctx, rc, user)
	}
	return done(rc, "Your e-mail address is verified.", nil)
}

// askReset handles POST /api/auth/reset. It answers the same whether or not there
// is an account with the address.
func (s *Server) askReset(ctx context.Context, rc *fasthttp.RequestCtx) error {
	f, err := read(rc)
	if err != nil {
		return err
	}
	email := f.text("email")
	if err := f.fault(); err != nil {
		return err
	}
	if err := s.resets.take(rc, s.address(rc)); err != nil {
		return err
	}
	if err := s.Links.RequestReset(ctx, email); err != nil {
		return err
	}
	return done(rc, "If there is an account with this e-mail address, an e-mail with a link is on its way.", nil)
}

// resetPassword handles POST /api/auth/password.
func (s *Server) resetPassword(ctx context.Context, rc *fasthttp.RequestCtx) error {
	f, err := read(rc)
	if err != nil {
		return err
	}
	token, password := f.text("token"), f.text("password")
	if err := f.fault(); err != nil {
		return err
	}
	if err := s.Links.ResetPassword(ctx, token, password, s.network(rc)); err != nil {
		return err
	}
	return done(rc, "The password is changed. Please sign in; all sessions have ended.", nil)
}
