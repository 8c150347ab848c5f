package api

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/serve"
)

// findPlayers handles GET /api/admin/players.
func (s *Server) findPlayers(ctx context.Context, rc *fasthttp.RequestCtx, _ core.Actor) error {
	f := readQuery(rc)
	query := core.PlayerQuery{ID: core.PlayerID(f.id("pid")), Owner: core.UserID(f.id("uid")), Name: f.optionalText("name", "")}
	query.Page, query.PerPage = f.foundPage()
	if err := f.fault(); err != nil {
		return err
	}
	found, err := s.Players.Find(ctx, query)
	if err != nil {
		return err
	}
	return serve.JSON(rc, fasthttp.StatusOK, toFoundBody(found, query.Page, query.PerPage, core.MaxSearchPage, toPlayerBody))
}

// playerAct is what an administrator does to a player, as the fields of the
// request say.
type playerAct func(ctx context.Context, f *fields, by core.Actor, player core.PlayerID) (core.Player, error)

// actOnPlayer returns the handler of what is below /api/admin/players/{pid}.
func (s *Server) actOnPlayer(message string, act playerAct) fasthttp.RequestHandler {
	return s.administrators(func(ctx context.Context, rc *fasthttp.RequestCtx, by core.Actor) error {
		pid, f, err := playerAndFields(rc)
		if err != nil {
			return err
		}
		player, err := act(ctx, f, by, pid)
		if err != nil {
			return err
		}
		return done(rc, message, toPlayerBody(player))
	})
}

// renamePlayerBy handles PUT /api/admin/players/{pid}/name.
func (s *Server) renamePlayerBy(ctx context.Context, f *fields, by core.Actor, player core.PlayerID) (core.Player, error) {
	name := f.text("name")
	if err := f.fault(); err != nil {
		return core.Player{}, err
	}
	return s.Players.RenameBy(ctx, by, player, name)
}

// movePlayerBy handles PUT /api/admin/players/{pid}/owner.
func (s *Server) movePlayerBy(ctx context.Context, f *fields, by core.Actor, player core.PlayerID) (core.Player, error) {
	uid := f.requiredInteger("uid")
	if err := f.fault(); err != nil {
		return core.Player{}, err
	}
	return s.Players.MoveBy(ctx, by, player, core.UserID(uid))
}

// dressPlayerBy handles PUT /api/admin/players/{pid}/textures.
func (s *Server) dressPlayerBy(ctx context.Context, f *fields, by core.Actor, player core.PlayerID) (core.Player, error) {
	slots := f.slots()
	if err := f.fault(); err != nil {
		return core.Player{}, err
	}
	return s.Players.SetTexturesBy(ctx, by, player, slots)
}

// undressPlayerBy handles DELETE /api/admin/players/{pid}/textures.
func (s *Server) undressPlayerBy(ctx context.Context, f *fields, by core.Actor, player core.PlayerID) (core.Player, error) {
	skin, cape := f.takenOff()
	if err := f.fault(); err != nil {
		return core.Player{}, err
	}
	return s.Players.ClearTexturesBy(ctx, by, player, skin, cape)
}

// deletePlayerBy handles DELETE /api/admin/players/{pid}.
func (s *Server) deletePlayerBy(ctx context.Context, rc *fasthttp.RequestCtx, by core.Actor) error {
	pid, err := number(rc, "pid")
	if err != nil {
		return err
	}
	if err := s.Players.DeleteBy(ctx, by, core.PlayerID(pid)); err != nil {
		return err
	}
	return done(rc, "The player is deleted.", nil)
}
