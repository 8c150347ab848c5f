package api

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/clientapi/decode"
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
	f := decode.ParseForm(rc)
	name := f.Str("name")
	if err := f.Err(); err != nil {
		return err
	}
	player, err := s.Players.Create(ctx, caller, name)
	if err != nil {
		return err
	}
	return writeOK(rc, "The player is added.", toPlayerJSON(player))
}

// deletedPlayerJSON is a player that can be restored.
type deletedPlayerJSON struct {
	PID             core.PlayerID  `json:"pid"`
	UUID            uuid.UUID      `json:"uuid"`
	Name            string         `json:"name"`
	Skin            core.TextureID `json:"tid_skin"`
	Cape            core.TextureID `json:"tid_cape"`
	DeletedAt       timestamp      `json:"deleted_at"`
	RestorableUntil timestamp      `json:"restorable_until"`
}

// handleListDeletedPlayers handles GET /api/deleted-players.
func (s *Server) handleListDeletedPlayers(ctx context.Context, rc *fasthttp.RequestCtx, token core.VerifiedToken) error {
	players, err := s.Players.Deleted(ctx, token)
	if err != nil {
		return err
	}
	bodies := make([]deletedPlayerJSON, len(players))
	for i, p := range players {
		until := p.LastModified.Add(core.Restorable)
		bodies[i] = deletedPlayerJSON{p.ID, p.UUID, p.Name, p.Skin, p.Cape, timestamp(p.LastModified), timestamp(until)}
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, bodies)
}

// handleRestorePlayer handles POST /api/players/{pid}/restore.
func (s *Server) handleRestorePlayer(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	pid, err := pathInteger(rc, "pid")
	if err != nil {
		return err
	}
	player, err := s.Players.Restore(ctx, caller, core.PlayerID(pid))
	if err != nil {
		return err
	}
	return writeOK(rc, "The player is restored.", toPlayerJSON(player))
}

// textureSelection returns the textures to set, nil for a slot that stays.
func textureSelection(f *decode.Form) core.TextureSelection {
	return core.TextureSelection{Skin: (*core.TextureID)(f.OptionalInteger("skin")), Cape: (*core.TextureID)(f.OptionalInteger("cape"))}
}

// slots are slots of a player's textures.
type slots struct{ skin, cape bool }

// slotsToClear returns the slots to empty: the elements of type, or else the presence of the fields
// skin and cape.
func slotsToClear(f *decode.Form) slots {
	if f.IsAbsent("type") {
		return slots{f.Has("skin"), f.Has("cape")}
	}
	names := f.Strs("type")
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
	}
	invalid := slices.ContainsFunc(names, func(name string) bool { return name != "skin" && name != "cape" })
	if len(names) < 1 || len(names) > 2 || invalid {
		f.AddError("type", "The field type must hold one or two of skin and cape.")
	}
	return slots{slices.Contains(names, "skin"), slices.Contains(names, "cape")}
}

// clearTextures empties slots of a player.
func (s *Server) clearTextures(ctx context.Context, by core.Actor, player core.PlayerID, empty slots) (core.Player, error) {
	return s.Players.ClearTextures(ctx, by, player, empty.skin, empty.cape)
}
