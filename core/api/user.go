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
