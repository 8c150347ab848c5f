package api

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/serve"
)

// userBody is a user as the API writes it.
type userBody struct {
	UID        core.UserID     `json:"uid"`
	Email      string          `json:"email"`
	Nickname   string          `json:"nickname"`
	Avatar     core.TextureID  `json:"avatar"`
	Score      int64           `json:"score"`
	Permission core.Permission `json:"permission"`
	LastSignAt timestamp       `json:"last_sign_at"`
	RegisterAt timestamp       `json:"register_at"`
	Verified   bool            `json:"verified"`
}

func toUserBody(u core.User) userBody {
	return userBody{
		UID: u.ID, Email: u.Email, Nickname: u.Nickname, Avatar: u.Avatar, Score: u.Score, Permission: u.Permission,
		LastSignAt: timestamp(u.LastSignAt), RegisterAt: timestamp(u.RegisterAt), Verified: u.Verified,
	}
}

// user handles GET /api/user.
func (s *Server) user(_ context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	return serve.JSON(rc, fasthttp.StatusOK, toUserBody(caller.User))
}

// renameUser handles PUT /api/user.
func (s *Server) renameUser(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	f, err := read(rc)
	if err != nil {
		return err
	}
	nickname := f.text("nickname")
	if err := f.fault(); err != nil {
		return err
	}
	user, err := s.Accounts.Rename(ctx, caller, nickname)
	if err != nil {
		return err
	}
	return done(rc, "The nickname is changed.", toUserBody(user))
}

// setAvatar handles PUT /api/user/avatar.
func (s *Server) setAvatar(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	f, err := read(rc)
	if err != nil {
		return err
	}
	tid := f.requiredInteger("tid")
	if err := f.fault(); err != nil {
		return err
	}
	user, err := s.Accounts.SetAvatar(ctx, caller, core.TextureID(tid))
	if err != nil {
		return err
	}
	return done(rc, "The avatar is set.", toUserBody(user))
}

// changeEmail handles PUT /api/user/email. Like a registration it tells whether an
// address is registered, so it counts as one, or else must be confirmed as one.
func (s *Server) changeEmail(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	f, err := read(rc)
	if err != nil {
		return err
	}
	email, password := f.text("email"), f.text("password")
	if err := f.fault(); err != nil {
		return err
	}
	if s.config.Registration == "confirm" {
		err := s.registering(rc, func() error { return s.Accounts.RequestEmailChange(ctx, caller, email, password, s.network(rc)) })
		if err != nil {
			return err
		}
		return accepted(rc, "An e-mail with a link is on its way to that address. Open it to make the address yours.")
	}
	var user core.User
	err = s.registering(rc, func() (err error) {
		user, err = s.Accounts.ChangeEmail(ctx, caller, email, password, s.network(rc))
		return err
	})
	if err != nil {
		return err
	}
	return done(rc, "The e-mail address is changed.", toUserBody(user))
}

// changePassword handles PUT /api/user/password.
func (s *Server) changePassword(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	f, err := read(rc)
	if err != nil {
		return err
	}
	current, fresh := f.text("current_password"), f.text("new_password")
	if err := f.fault(); err != nil {
		return err
	}
	if err := s.Accounts.ChangePassword(ctx, caller, current, fresh, s.network(rc)); err != nil {
		return err
	}
	return done(rc, "The password is changed. Your other sessions have ended.", nil)
}

// deleteUser handles DELETE /api/user.
func (s *Server) deleteUser(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	f, err := read(rc)
	if err != nil {
		return err
	}
	password := f.text("password")
	if err := f.fault(); err != nil {
		return err
	}
	if err := s.Accounts.Delete(ctx, caller, password, s.network(rc)); err != nil {
		return err
	}
	return done(rc, "The account is deleted.", nil)
}
