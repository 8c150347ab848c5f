package yggdrasil

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/public"
	"github.com/veneer-skins/veneer/shared/fault"
)

// slotOf returns the slot in the path: skin or cape.
func slotOf(rc *fasthttp.RequestCtx) (isCape bool, err error) {
	switch pathText(rc, "slot") {
	case "skin":
		return false, nil
	case "cape":
		return true, nil
	default:
		return false, fault.New(fault.NotFound, "A profile has the textures skin and cape.")
	}
}

// boundPlayer returns the player in the path, which the token must be bound to.
func boundPlayer(rc *fasthttp.RequestCtx, user core.LauncherUser) (core.PlayerID, error) {
	id, ok := parseID(pathText(rc, "uuid"))
	if !ok || user.Player == nil || user.Player.UUID != id {
		return 0, fault.New(fault.Forbidden, "The token is not bound to this profile.")
	}
	return user.Player.ID, nil
}

// handleUploadTexture handles PUT /api/user/profile/{uuid}/{slot}.
func (s *Server) handleUploadTexture(ctx context.Context, rc *fasthttp.RequestCtx, user core.LauncherUser) error {
	isCape, err := slotOf(rc)
	if err != nil {
		return err
	}
	if _, err := boundPlayer(rc, user); err != nil {
		return err
	}
	for _, limiter := range []*public.Limiter{s.limiters.Uploads, s.limiters.Changes} {
		if err := limiter.Take(rc, public.Key{User: user.ID}); err != nil {
			return err
		}
	}
	upload := core.LauncherUpload{Player: *user.Player, Cape: isCape}
	body, err := public.ReadContent(rc, public.TypeMultipart)
	if err != nil {
		return err
	}
	if err := body.EachPart(func(part public.Part) {
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
	isCape, err := slotOf(rc)
	if err != nil {
		return err
	}
	player, err := boundPlayer(rc, user)
	if err != nil {
		return err
	}
	if err := s.limiters.Changes.Take(rc, public.Key{User: user.ID}); err != nil {
		return err
	}
	if _, err := s.Players.ClearTextures(ctx, core.Caller{User: user.User}, player, !isCape, isCape); err != nil {
		return err
	}
	return writeNoContent(rc)
}
