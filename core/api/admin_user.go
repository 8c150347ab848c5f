package api

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/clientapi/decode"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

// handleFindUsers handles GET /api/admin/users.
func (s *Server) handleFindUsers(ctx context.Context, rc *fasthttp.RequestCtx, _ core.Actor) error {
	f := decode.ParseQuery(rc)
	query := core.UserQuery{Email: f.OptionalStr("email", ""), Nickname: f.OptionalStr("nickname", "")}
	query.Page, query.PerPage = f.Page(core.DefaultSearchPerPage)
	user, err := s.userParameter(ctx, f, "uid", 1)
	if err != nil {
		return err
	}
	if user != nil {
		query.ID = *user
	}
	result, err := s.Accounts.Find(ctx, query)
	if err != nil {
		return err
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, toSearchPageJSON(result, query.Page, query.PerPage, core.MaxSearchPage, toUserJSON))
}

// permissionChange returns a new permission of a user.
func permissionChange(f *decode.Form) core.PermissionChange {
	return core.PermissionChange{Permission: f.RequiredInteger("permission"), Ban: ban(f)}
}

// ban returns the reason and the end of a ban.
func ban(f *decode.Form) core.Ban {
	return core.Ban{Reason: f.OptionalStr("reason", ""), Until: f.OptionalTime("until")}
}
