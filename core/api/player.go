package api

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

// playerJSON is a player in a response.
type playerJSON struct {
	PID          core.PlayerID  `json:"pid"`
	UID          core.UserID    `json:"uid"`
	UUID         uuid.UUID      `json:"uuid"`
	Name         string         `json:"name"`
	Skin         core.TextureID `json:"tid_skin"`
	Cape         core.TextureID `json:"tid_cape"`
	LastModified timestamp      `json:"last_modified"`
}

func toPlayerJSON(p core.Player) playerJSON {
	return playerJSON{
		PID: p.ID, UID: p.Owner, UUID: p.UUID, Name: p.Name, Skin: p.Skin, Cape: p.Cape, LastModified: timestamp(p.LastModified),
	}
}

// handleListPlayers handles GET /api/players.
func (s *Server) handleListPlayers(ctx context.Context, rc *fasthttp.RequestCtx, token core.VerifiedToken) error {
	players, err := s.Players.List(ctx, token)
	if err != nil {
		return err
	}
	bodies := make([]playerJSON, len(players))
	for i, p := range players {
		bodies[i] = toPlayerJSON(p)
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, bodies)
}

// handleAddPlayer handles POST /api/players.
func (s *Server) handleAddPlayer(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	f, err := parseForm(rc)
	if err != nil {
		return err
	}
	name := f.str("name")
	if err := f.err(); err != nil {
		return err
	}
	player, err := s.Players.Create(ctx, caller, name)
	if err != nil {
		return err
	}
	return writeOK(rc, "The player is added.", toPlayerJSON(player))
}

// handleDeletePlayer handles DELETE /api/players/{pid}.
func (s *Server) handleDeletePlayer(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	pid, err := pathInteger(rc, "pid")
	if err != nil {
		return err
	}
	if err := s.Players.Delete(ctx, caller, core.PlayerID(pid)); err != nil {
		return err
	}
	return writeOK(rc, "The player is deleted.", nil)
}

// handleRenamePlayer handles PUT /api/players/{pid}/name.
func (s *Server) handleRenamePlayer(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	pid, f, err := playerAndForm(rc)
	if err != nil {
		return err
	}
	name := f.str("name")
	if err := f.err(); err != nil {
		return err
	}
	player, err := s.Players.Rename(ctx, caller, pid, name)
	if err != nil {
		return err
	}
	return writeOK(rc, "The player is renamed.", toPlayerJSON(player))
}

// handleApplyTextures handles PUT /api/players/{pid}/textures.
func (s *Server) handleApplyTextures(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	pid, f, err := playerAndForm(rc)
	if err != nil {
		return err
	}
	slots := f.textureSelection()
	if err := f.err(); err != nil {
		return err
	}
	player, err := s.Players.SetTextures(ctx, caller, pid, slots)
	if err != nil {
		return err
	}
	return writeOK(rc, "The player is dressed.", toPlayerJSON(player))
}

// textureSelection returns the textures to set, nil for a slot that stays.
func (f *form) textureSelection() core.TextureSelection {
	return core.TextureSelection{Skin: (*core.TextureID)(f.optionalInteger("skin")), Cape: (*core.TextureID)(f.optionalInteger("cape"))}
}

// slotsToClear returns which slots to empty: the elements of type, or else the presence of the
// fields skin and cape.
func (f *form) slotsToClear() (skin, cape bool) {
	if f.isAbsent("type") {
		return f.has("skin"), f.has("cape")
	}
	slots := f.strs("type")
	for i, slot := range slots {
		slots[i] = strings.TrimSpace(slot)
	}
	invalid := slices.ContainsFunc(slots, func(slot string) bool { return slot != "skin" && slot != "cape" })
	if len(slots) < 1 || len(slots) > 2 || invalid {
		f.addError("type", "The field type must hold one or two of skin and cape.")
	}
	return slices.Contains(slots, "skin"), slices.Contains(slots, "cape")
}

// handleRemoveTextures handles DELETE /api/players/{pid}/textures.
func (s *Server) handleRemoveTextures(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	pid, f, err := playerAndForm(rc)
	if err != nil {
		return err
	}
	skin, cape := f.slotsToClear()
	if err := f.err(); err != nil {
		return err
	}
	player, err := s.Players.ClearTextures(ctx, caller, pid, skin, cape)
	if err != nil {
		return err
	}
	return writeOK(rc, "The textures are taken off.", toPlayerJSON(player))
}

func playerAndForm(rc *fasthttp.RequestCtx) (core.PlayerID, *form, error) {
	pid, err := pathInteger(rc, "pid")
	if err != nil {
		return 0, nil, err
	}
	f, err := parseForm(rc)
	return core.PlayerID(pid), f, err
}
