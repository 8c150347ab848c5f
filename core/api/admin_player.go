package api

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

// foundPlayerJSON is a player in a response to an administrator that looks for some.
type foundPlayerJSON struct {
	playerJSON
	OwnerNickname string `json:"owner_nickname"`
}

func toFoundPlayerJSON(p core.FoundPlayer) foundPlayerJSON {
	return foundPlayerJSON{toPlayerJSON(p.Player), p.OwnerNickname}
}

// handleFindPlayers handles GET /api/admin/players.
func (s *Server) handleFindPlayers(ctx context.Context, rc *fasthttp.RequestCtx, _ core.Actor) error {
	f := parseQuery(rc)
	query := core.PlayerQuery{ID: core.PlayerID(f.id("pid")), Owner: core.UserID(f.id("uid")), Name: f.optionalStr("name", "")}
	query.Page, query.PerPage = f.pageParams()
	if err := f.err(); err != nil {
		return err
	}
	result, err := s.Players.Find(ctx, query)
	if err != nil {
		return err
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, toSearchPageJSON(result, query.Page, query.PerPage, core.MaxSearchPage, toFoundPlayerJSON))
}

// playerAction applies an administrator's change to a player, with values from the form.
type playerAction func(ctx context.Context, f *form, by core.Actor, player core.PlayerID) (core.Player, error)

// handlePlayerAction returns the handler of a route below /api/admin/players/{pid}.
func (s *Server) handlePlayerAction(message string, action playerAction) fasthttp.RequestHandler {
	return s.requireAdmin(func(ctx context.Context, rc *fasthttp.RequestCtx, by core.Actor) error {
		pid, f, err := playerAndForm(rc)
		if err != nil {
			return err
		}
		player, err := action(ctx, f, by, pid)
		if err != nil {
			return err
		}
		return writeOK(rc, message, toPlayerJSON(player))
	})
}

// renamePlayerAsAdmin handles PUT /api/admin/players/{pid}/name.
func (s *Server) renamePlayerAsAdmin(ctx context.Context, f *form, by core.Actor, player core.PlayerID) (core.Player, error) {
	name := f.str("name")
	if err := f.err(); err != nil {
		return core.Player{}, err
	}
	return s.Players.RenameBy(ctx, by, player, name)
}

// setPlayerOwner handles PUT /api/admin/players/{pid}/owner.
func (s *Server) setPlayerOwner(ctx context.Context, f *form, by core.Actor, player core.PlayerID) (core.Player, error) {
	uid := f.requiredInteger("uid")
	if err := f.err(); err != nil {
		return core.Player{}, err
	}
	return s.Players.MoveBy(ctx, by, player, core.UserID(uid))
}

// applyTexturesAsAdmin handles PUT /api/admin/players/{pid}/textures.
func (s *Server) applyTexturesAsAdmin(ctx context.Context, f *form, by core.Actor, player core.PlayerID) (core.Player, error) {
	selection := f.textureSelection()
	if err := f.err(); err != nil {
		return core.Player{}, err
	}
	return s.Players.SetTexturesBy(ctx, by, player, selection)
}

// removeTexturesAsAdmin handles DELETE /api/admin/players/{pid}/textures.
func (s *Server) removeTexturesAsAdmin(ctx context.Context, f *form, by core.Actor, player core.PlayerID) (core.Player, error) {
	skin, cape := f.slotsToClear()
	if err := f.err(); err != nil {
		return core.Player{}, err
	}
	return s.Players.ClearTexturesBy(ctx, by, player, skin, cape)
}

// handleDeletePlayerAsAdmin handles DELETE /api/admin/players/{pid}.
func (s *Server) handleDeletePlayerAsAdmin(ctx context.Context, rc *fasthttp.RequestCtx, by core.Actor) error {
	pid, err := pathInteger(rc, "pid")
	if err != nil {
		return err
	}
	if err := s.Players.DeleteBy(ctx, by, core.PlayerID(pid)); err != nil {
		return err
	}
	return writeOK(rc, "The player is deleted.", nil)
}
