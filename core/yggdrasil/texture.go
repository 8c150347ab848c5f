package yggdrasil

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/clientapi"
	"github.com/veneer-skins/veneer/core/clientapi/decode"
	"github.com/veneer-skins/veneer/shared/fault"
)

// boundSlot returns the player and the slot, skin or cape, in the path. The token must be bound to the
// player.
func boundSlot(rc *fasthttp.RequestCtx, user core.LauncherUser) (player core.PlayerID, isCape bool, err error) {
	slot := pathText(rc, "slot")
	if slot != "skin" && slot != "cape" {
		return 0, false, fault.New(fault.NotFound, "A profile has the textures skin and cape.")
	}
	id, ok := parseID(pathText(rc, "uuid"))
	if !ok || user.Player == nil || user.Player.UUID != id {
		return 0, false, fault.New(fault.Forbidden, "The token is not bound to this profile.")
	}
	return user.Player.ID, slot == "cape", nil
}

// handleUploadTexture handles PUT /api/user/profile/{uuid}/{slot}.
func (s *Server) handleUploadTexture(ctx context.Context, rc *fasthttp.RequestCtx, user core.LauncherUser) error {
	_, isCape, err := boundSlot(rc, user)
	if err != nil {
		return err
	}
	for _, limiter := range []*clientapi.Limiter{s.limiters.Uploads, s.limiters.Changes} {
		if err := limiter.Take(rc, clientapi.Key{User: user.ID}); err != nil {
			return err
		}
	}
	upload := core.LauncherUpload{Player: *user.Player, Cape: isCape}
	if err := decode.EachPart(rc, func(part decode.Part) {
		switch {
		case part.Name == "file" && upload.File == nil:
			upload.File, upload.Name = part.Content, part.FileName
		case part.Name == "model":
			upload.Slim = string(part.Content) == "slim"
		}
	}); err != nil {
		return err
	}
	if upload.File == nil {
		return fault.Field("file", "Send the PNG file as the field file of a multipart/form-data body.")
	}
	if err := s.Uploads.Apply(ctx, user.User, upload); err != nil {
		return err
	}
	return writeNoContent(rc)
}

// handleClearTexture handles DELETE /api/user/profile/{uuid}/{slot}.
func (s *Server) handleClearTexture(ctx context.Context, rc *fasthttp.RequestCtx, user core.LauncherUser) error {
	player, isCape, err := boundSlot(rc, user)
	if err != nil {
		return err
	}
	if err := s.limiters.Changes.Take(rc, clientapi.Key{User: user.ID}); err != nil {
		return err
	}
	if _, err := s.Players.ClearTextures(ctx, core.Caller{User: user.User}.Owner(), player, !isCape, isCape); err != nil {
		return err
	}
	return writeNoContent(rc)
}
