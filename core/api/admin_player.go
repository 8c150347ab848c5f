package api

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/clientapi/decode"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

// foundPlayerJSON is a player in a response to an administrator that looks for some.
type foundPlayerJSON struct {
	playerJSON
	OwnerNickname string `json:"owner_nickname"`
	SkinName      string `json:"skin_name,omitempty"`
	CapeName      string `json:"cape_name,omitempty"`
}

func toFoundPlayerJSON(p core.FoundPlayer) foundPlayerJSON {
	return foundPlayerJSON{toPlayerJSON(p.Player), p.OwnerNickname, p.SkinName, p.CapeName}
}

// handleFindPlayers handles GET /api/admin/players.
func (s *Server) handleFindPlayers(ctx context.Context, rc *fasthttp.RequestCtx, _ core.Actor) error {
	f := decode.ParseQuery(rc)
	query := core.PlayerQuery{ID: core.PlayerID(f.ID("pid")), Name: f.OptionalStr("name", "")}
	query.Page, query.PerPage = f.Page(core.DefaultSearchPerPage)
	owner, err := s.userParameter(ctx, f, "uid", 1)
	if err != nil {
		return err
	}
	if owner != nil {
		query.Owner = *owner
	}
	result, err := s.Players.Find(ctx, query)
	if err != nil {
		return err
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, toSearchPageJSON(result, query.Page, query.PerPage, core.MaxSearchPage, toFoundPlayerJSON))
}
