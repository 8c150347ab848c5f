package api

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/serve"
)

// findUsers handles GET /api/admin/users.
func (s *Server) findUsers(ctx context.Context, rc *fasthttp.RequestCtx, _ core.Actor) error {
	f := readQuery(rc)
	query := core.UserQuery{ID: core.UserID(f.id("uid")), Email: f.optionalText("email", ""), Nickname: f.optionalText("nickname", "")}
	query.Page, query.PerPage = f.foundPage()
	if err := f.fault(); err != nil {
		return err
	}
	found, err := s.Accounts.Find(ctx, query)
	if err != nil {
		return err
	}
	return serve.JSON(rc, fasthttp.StatusOK, toFoundBody(found, query.Page, query.PerPage, core.MaxSearchPage, toUserBody))
}

// userAct is what an administrator does to a user, as the fields of the request
// say.
type userAct func(ctx context.Context, f *fields, by core.Actor, user core.UserID) (core.User, error)

// actOnUser returns the handler of PUT /api/admin/users/{uid}/….
func (s *Server) actOnUser(message string, act userAct) fasthttp.RequestHandler {
	return s.administrators(func(ctx context.Context, rc *fasthttp.RequestCtx, by core.Actor) error {
		uid, err := number(rc, "uid")
		if err != nil {
			return err
		}
		f, err := read(rc)
		if err != nil {
			return err
		}
		user, err := act(ctx, f, by, core.UserID(uid))
		if err != nil {
			return err
		}
		return done(rc, message, toUserBody(user))
	})
}

// setNickname handles PUT /api/admin/users/{uid}/nickname.
func (s *Server) setNickname(ctx context.Context, f *fields, by core.Actor, user core.UserID) (core.User, error) {
	nickname := f.text("nickname")
	if err := f.fault(); err != nil {
		return core.User{}, err
	}
	return s.Accounts.RenameBy(ctx, by, user, nickname)
}

// setEmail handles PUT /api/admin/users/{uid}/email.
func (s *Server) setEmail(ctx context.Context, f *fields, by core.Actor, user core.UserID) (core.User, error) {
	email := f.text("email")
	if err := f.fault(); err != nil {
		return core.User{}, err
	}
	return s.Accounts.ChangeEmailBy(ctx, by, user, email)
}

// setPassword handles PUT /api/admin/users/{uid}/password.
func (s *Server) setPassword(ctx context.Context, f *fields, by core.Actor, user core.UserID) (core.User, error) {
	password := f.text("password")
	if err := f.fault(); err != nil {
		return core.User{}, err
	}
	return s.Accounts.ResetPasswordBy(ctx, by, user, password)
}

// setVerified handles PUT /api/admin/users/{uid}/verified.
func (s *Server) setVerified(ctx context.Context, f *fields, by core.Actor, user core.UserID) (core.User, error) {
	if f.null("verified") {
		f.flaw("verified", "The field verified is required.")
	}
	verified := f.optionalBool("verified", false)
	if err := f.fault(); err != nil {
		return core.User{}, err
	}
	return s.Accounts.SetVerifiedBy(ctx, by, user, verified)
}

// setScore handles PUT /api/admin/users/{uid}/score.
func (s *Server) setScore(ctx context.Context, f *fields, by core.Actor, user core.UserID) (core.User, error) {
	score := f.requiredInteger("score")
	if err := f.fault(); err != nil {
		return core.User{}, err
	}
	return s.Accounts.SetScoreBy(ctx, by, user, score)
}

// setPermission handles PUT /api/admin/users/{uid}/permission.
func (s *Server) setPermission(ctx context.Context, f *fields, by core.Actor, user core.UserID) (core.User, error) {
	permission := f.requiredInteger("permission")
	if err := f.fault(); err != nil {
		return core.User{}, err
	}
	return s.Accounts.SetPermissionBy(ctx, by, user, permission)
}

// deleteUserBy handles DELETE /api/admin/users/{uid}.
func (s *Server) deleteUserBy(ctx context.Context, rc *fasthttp.RequestCtx, by core.Actor) error {
	uid, err := number(rc, "uid")
	if err != nil {
		return err
	}
	if err := s.Accounts.DeleteBy(ctx, by, core.UserID(uid)); err != nil {
		return err
	}
	return done(rc, "The account is deleted.", nil)
}
