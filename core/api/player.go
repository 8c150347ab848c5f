package api

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/serve"
)

// playerBody is a player as the API writes it.
type playerBody struct {
	PID          core.PlayerID  `json:"pid"`
	UID          core.UserID    `json:"uid"`
	UUID         uuid.UUID      `json:"uuid"`
	Name         string         `json:"name"`
	Skin         core.TextureID `json:"tid_skin"`
	Cape         core.TextureID `json:"tid_cape"`
	LastModified timestamp      `json:"last_modified"`
}

func toPlayerBody(p core.Player) playerBody {
	return playerBody{
		PID: p.ID, UID: p.Owner, UUID: p.UUID, Name: p.Name, Skin: p.Skin, Cape: p.Cape, LastModified: timestamp(p.LastModified),
	}
}

// players handles GET /api/players.
func (s *Server) players(ctx context.Context, rc *fasthttp.RequestCtx, ticket core.VerifiedToken) error {
	players, err := s.Players.List(ctx, ticket)
	if err != nil {
		return err
	}
	bodies := make([]playerBody, len(players))
	for i, p := range players {
		bodies[i] = toPlayerBody(p)
	}
	return serve.JSON(rc, fasthttp.StatusOK, bodies)
}

// createPlayer handles POST /api/players.
func (s *Server) createPlayer(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	f, err := read(rc)
	if err != nil {
		return err
	}
	name := f.text("name")
	if err := f.fault(); err != nil {
		return err
	}
	player, err := s.Players.Create(ctx, caller, name)
	if err != nil {
		return err
	}
	return done(rc, "The player is added.", toPlayerBody(player))
}

// deletePlayer handles DELETE /api/players/{pid}.
func (s *Server) deletePlayer(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	pid, err := number(rc, "pid")
	if err != nil {
		return err
	}
	if err := s.Players.Delete(ctx, caller, core.PlayerID(pid)); err != nil {
		return err
	}
	return done(rc, "The player is deleted.", nil)
}

// renamePlayer handles PUT /api/players/{pid}/name.
func (s *Server) renamePlayer(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	pid, f, err := playerAndFields(rc)
	if err != nil {
		return err
	}
	name := f.text("name")
	if err := f.fault(); err != nil {
		return err
	}
	player, err := s.Players.Rename(ctx, caller, pid, name)
	if err != nil {
		return err
	}
	return done(rc, "The player is renamed.", toPlayerBody(player))
}

// dressPlayer handles PUT /api/players/{pid}/textures.
func (s *Server) dressPlayer(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	pid, f, err := playerAndFields(rc)
	if err != nil {
		return err
	}
	slots := f.slots()
	if err := f.fault(); err != nil {
		return err
	}
	player, err := s.Players.SetTextures(ctx, caller, pid, slots)
	if err != nil {
		return err
	}
	return done(rc, "The player is dressed.", toPlayerBody(player))
}

// slots returns what is to be put on.
func (f *fields) slots() core.TextureSlots {
	return core.TextureSlots{Skin: (*core.TextureID)(f.optionalInteger("skin")), Cape: (*core.TextureID)(f.optionalInteger("cape"))}
}

// takenOff returns which slots are to be emptied: either type lists them, or the
// presence of skin and cape names them.
func (f *fields) takenOff() (skin, cape bool) {
	if f.null("type") {
		return f.has("skin"), f.has("cape")
	}
	slots := f.texts("type")
	for i, slot := range slots {
		slots[i] = strings.TrimSpace(slot)
	}
	wrong := slices.ContainsFunc(slots, func(slot string) bool { return slot != "skin" && slot != "cape" })
	if len(slots) < 1 || len(slots) > 2 || wrong {
		f.flaw("type", "The field type must hold one or two of skin and cape.")
	}
	return slices.Contains(slots, "skin"), slices.Contains(slots, "cape")
}

// undressPlayer handles DELETE /api/players/{pid}/textures.
func (s *Server) undressPlayer(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	pid, f, err := playerAndFields(rc)
	if err != nil {
		return err
	}
	skin, cape := f.takenOff()
	if err := f.fault(); err != nil {
		return err
	}
	player, err := s.Players.ClearTextures(ctx, caller, pid, skin, cape)
	if err != nil {
		return err
	}
	return done(rc, "The textures are taken off.", toPlayerBody(player))
}

func playerAndFields(rc *fasthttp.RequestCtx) (core.PlayerID, *fields, error) {
	pid, err := number(rc, "pid")
	if err != nil {
		return 0, nil, err
	}
	f, err := read(rc)
	return core.PlayerID(pid), f, err
}
