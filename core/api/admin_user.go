package api

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

// handleFindUsers handles GET /api/admin/users.
func (s *Server) handleFindUsers(ctx context.Context, rc *fasthttp.RequestCtx, _ core.Actor) error {
	f := parseQuery(rc)
	query := core.UserQuery{ID: core.UserID(f.id("uid")), Email: f.optionalStr("email", ""), Nickname: f.optionalStr("nickname", "")}
	query.Page, query.PerPage = f.pageParams()
	if err := f.err(); err != nil {
		return err
	}
	result, err := s.Accounts.Find(ctx, query)
	if err != nil {
		return err
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, toSearchPageJSON(result, query.Page, query.PerPage, core.MaxSearchPage, toUserJSON))
}

// userAction applies an administrator's change to a user, with values from the form.
type userAction func(ctx context.Context, f *form, by core.Actor, user core.UserID) (core.User, error)

// handleUserAction returns the handler of a route PUT /api/admin/users/{uid}/….
func (s *Server) handleUserAction(message string, action userAction) fasthttp.RequestHandler {
	return s.requireAdmin(func(ctx context.Context, rc *fasthttp.RequestCtx, by core.Actor) error {
		uid, err := pathInteger(rc, "uid")
		if err != nil {
			return err
		}
		f, err := parseForm(rc)
		if err != nil {
			return err
		}
		user, err := action(ctx, f, by, core.UserID(uid))
		if err != nil {
			return err
		}
		return writeOK(rc, message, toUserJSON(user))
	})
}

// setUserNickname handles PUT /api/admin/users/{uid}/nickname.
func (s *Server) setUserNickname(ctx context.Context, f *form, by core.Actor, user core.UserID) (core.User, error) {
	nickname := f.str("nickname")
	if err := f.err(); err != nil {
		return core.User{}, err
	}
	return s.Accounts.RenameBy(ctx, by, user, nickname)
}

// setUserEmail handles PUT /api/admin/users/{uid}/email.
func (s *Server) setUserEmail(ctx context.Context, f *form, by core.Actor, user core.UserID) (core.User, error) {
	email := f.str("email")
	if err := f.err(); err != nil {
		return core.User{}, err
	}
	return s.Accounts.ChangeEmailBy(ctx, by, user, email)
}

// setUserPassword handles PUT /api/admin/users/{uid}/password.
func (s *Server) setUserPassword(ctx context.Context, f *form, by core.Actor, user core.UserID) (core.User, error) {
	password := f.str("password")
	if err := f.err(); err != nil {
		return core.User{}, err
	}
	return s.Accounts.ResetPasswordBy(ctx, by, user, password)
}

// setUserVerified handles PUT /api/admin/users/{uid}/verified.
func (s *Server) setUserVerified(ctx context.Context, f *form, by core.Actor, user core.UserID) (core.User, error) {
	if f.isAbsent("verified") {
		f.addError("verified", "The field verified is required.")
	}
	verified := f.optionalBool("verified", false)
	if err := f.err(); err != nil {
		return core.User{}, err
	}
	return s.Accounts.SetVerifiedBy(ctx, by, user, verified)
}

// setUserScore handles PUT /api/admin/users/{uid}/score.
func (s *Server) setUserScore(ctx context.Context, f *form, by core.Actor, user core.UserID) (core.User, error) {
	score := f.requiredInteger("score")
	if err := f.err(); err != nil {
		return core.User{}, err
	}
	return s.Accounts.SetScoreBy(ctx, by, user, score)
}

// setUserPermission handles PUT /api/admin/users/{uid}/permission.
func (s *Server) setUserPermission(ctx context.Context, f *form, by core.Actor, user core.UserID) (core.User, error) {
	permission := f.requiredInteger("permission")
	if err := f.err(); err != nil {
		return core.User{}, err
	}
	return s.Accounts.SetPermissionBy(ctx, by, user, permission)
}

// handleDeleteUserAsAdmin handles DELETE /api/admin/users/{uid}.
func (s *Server) handleDeleteUserAsAdmin(ctx context.Context, rc *fasthttp.RequestCtx, by core.Actor) error {
	uid, err := pathInteger(rc, "uid")
	if err != nil {
		return err
	}
	if err := s.Accounts.DeleteBy(ctx, by, core.UserID(uid)); err != nil {
		return err
	}
	return writeOK(rc, "The account is deleted.", nil)
}
