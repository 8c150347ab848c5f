package api

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/clientapi/decode"
)

// handleRequestVerification handles POST /api/user/verification.
func (s *Server) handleRequestVerification(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	if err := s.Links.RequestVerification(ctx, caller); err != nil {
		return err
	}
	return writeOK(rc, "An e-mail with a link is on its way to you.", nil)
}

// handleVerifyEmail handles POST /api/auth/verify: it verifies an address, or adds the user of a
// registration and opens a session.
func (s *Server) handleVerifyEmail(ctx context.Context, rc *fasthttp.RequestCtx) error {
	f := decode.ParseForm(rc)
	confirmation := core.Confirmation{Token: f.Str("token"), TermsVersion: f.OptionalStr("terms_version", "")}
	for name, field := range map[string]**string{
		"password": &confirmation.Password, "nickname": &confirmation.Nickname, "player_name": &confirmation.PlayerName,
	} {
		if !f.IsAbsent(name) {
			*field = new(f.Str(name))
		}
	}
	if err := f.Err(); err != nil {
		return err
	}
	user, err := s.Links.Verify(ctx, confirmation)
	if err != nil {
		return err
	}
	if user.ID != 0 {
		return s.startSession(ctx, rc, user)
	}
	return writeOK(rc, "Your e-mail address is verified.", nil)
}

// handleRequestPasswordReset handles POST /api/auth/reset. The response is the same whether or not
// there is an account with the address.
func (s *Server) handleRequestPasswordReset(ctx context.Context, rc *fasthttp.RequestCtx) error {
	f := decode.ParseForm(rc)
	email := f.Str("email")
	if err := f.Err(); err != nil {
		return err
	}
	if _, err := s.takeWithNetwork(rc, s.limiters.Resets, s.limiters.NetworkResets, s.addressKey(rc)); err != nil {
		return err
	}
	if err := s.Links.RequestReset(ctx, email); err != nil {
		return err
	}
	return writeOK(rc, "If there is an account with this e-mail address, an e-mail with a link is on its way.", nil)
}

// handleResetPassword handles POST /api/auth/password.
func (s *Server) handleResetPassword(ctx context.Context, rc *fasthttp.RequestCtx) error {
	f := decode.ParseForm(rc)
	token, password := f.Str("token"), f.Str("password")
	if err := f.Err(); err != nil {
		return err
	}
	if err := s.Links.ResetPassword(ctx, token, password, s.network(rc)); err != nil {
		return err
	}
	return writeOK(rc, "The password is changed. Please sign in; all sessions have ended.", nil)
}
