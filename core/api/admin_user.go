package api

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
)

// userAct is what an administrator does to a user, as the fields of the request
// say.
type userAct func(ctx context.Context, f *fields, by core.Authority, user core.UserID) (core.User, error)

// actOnUser returns the handler of PUT /api/admin/users/{uid}/….
func (s *Server) actOnUser(message string, act userAct) fasthttp.RequestHandler {
	return s.administrators(func(ctx context.Context, rc *fasthttp.RequestCtx, by core.Authority) error {
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

// setPermission handles PUT /api/admin/users/{uid}/permission.
func (s *Server) setPermission(ctx context.Context, f *fields, by core.Authority, user core.UserID) (core.User, error) {
	permission := f.requiredInteger("permission")
	if err := f.fault(); err != nil {
		return core.User{}, err
	}
	return s.Accounts.SetPermissionBy(ctx, by, user, permission)
}
