package yggdrasil

import (
	"context"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/clientapi"
	"github.com/veneer-skins/veneer/core/clientapi/decode"
	"github.com/veneer-skins/veneer/shared/fault"
)

// slot is a texture of a player that a request is about.
type slot func(*fasthttp.RequestCtx, core.LauncherUser) (isCape bool, err error)

// boundSlot is the slot in the path, skin or cape, of the player in the path. The token must be bound
// to the player.
func boundSlot(rc *fasthttp.RequestCtx, user core.LauncherUser) (isCape bool, err error) {
	name := pathText(rc, "slot")
	if name != "skin" && name != "cape" {
		return false, fault.New(fault.NotFound, "A profile has the textures skin and cape.")
	}
	id, ok := parseID(pathText(rc, "uuid"))
	if !ok || user.Player == nil || user.Player.UUID != id {
		return false, fault.New(fault.Forbidden, "The token is not bound to this profile.")
	}
	return name == "cape", nil
}

// ownSkin is the skin of the token's player.
func ownSkin(_ *fasthttp.RequestCtx, user core.LauncherUser) (isCape bool, err error) {
	return false, checkProfile(user)
}

// ownCape is the cape of the token's player.
func ownCape(_ *fasthttp.RequestCtx, user core.LauncherUser) (isCape bool, err error) {
	return true, checkProfile(user)
}

// checkProfile returns a NotFound fault if the token has no player.
func checkProfile(user core.LauncherUser) error {
	if user.Player == nil {
		return fault.New(fault.NotFound, "The token has no profile. Choose one, and refresh the token.")
	}
	return nil
}

// mayUpload returns a check of what is known before the body of an upload is read.
func (s *Server) mayUpload(of slot) tokenCheck {
	return func(rc *fasthttp.RequestCtx, user core.LauncherUser) error {
		if _, err := of(rc, user); err != nil {
			return err
		}
		return s.limiters.Uploads.Peek(rc, clientapi.Key{User: user.ID})
	}
}

// handleUpload returns a handler of PUT /api/user/profile/{uuid}/{slot} and
// POST /minecraftservices/minecraft/profile/skins.
func (s *Server) handleUpload(of slot, respond tokenHandler) tokenHandler {
	return func(ctx context.Context, rc *fasthttp.RequestCtx, user core.LauncherUser) error {
		isCape, err := of(rc, user)
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
			case part.Name == "model", part.Name == "variant":
				upload.Slim = strings.EqualFold(string(part.Content), "slim")
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
		return respond(ctx, rc, user)
	}
}

// handleClear returns a handler of DELETE /api/user/profile/{uuid}/{slot} and of
// DELETE /minecraftservices/minecraft/profile/{skins,capes}/active.
func (s *Server) handleClear(of slot, respond tokenHandler) tokenHandler {
	return func(ctx context.Context, rc *fasthttp.RequestCtx, user core.LauncherUser) error {
		isCape, err := of(rc, user)
		if err != nil {
			return err
		}
		if err := s.limiters.Changes.Take(rc, clientapi.Key{User: user.ID}); err != nil {
			return err
		}
		if _, err := s.Players.ClearTextures(ctx, core.Caller{User: user.User}.Owner(), user.Player.ID, !isCape, isCape); err != nil {
			return err
		}
		return respond(ctx, rc, user)
	}
}

// handleWearCape handles PUT /minecraftservices/minecraft/profile/capes/active.
func (s *Server) handleWearCape(ctx context.Context, rc *fasthttp.RequestCtx, user core.LauncherUser) error {
	var request struct {
		CapeID string `json:"capeId"`
	}
	if err := checkProfile(user); err != nil {
		return err
	}
	if err := decode.JSON(rc, &request); err != nil {
		return err
	}
	if err := s.limiters.Changes.Take(rc, clientapi.Key{User: user.ID}); err != nil {
		return err
	}
	id, ok := parseID(request.CapeID)
	profile, err := s.Profiles.Find(ctx, user.Player.UUID)
	if err != nil {
		return err
	}
	if ok && textureID(profile.Cape) == toID(id) { // it may be no more in the closet
		return s.handleOwnProfile(ctx, rc, user)
	}
	capes, err := s.Uploads.Capes(ctx, user.ID)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(capes, func(cape core.ClosetItem) bool { return ok && textureID(cape.Hash) == toID(id) })
	if at < 0 {
		return fault.Field("capeId", "The profile has no such cape.")
	}
	selection := core.TextureSelection{Cape: &capes[at].ID}
	if _, err := s.Players.SetTextures(ctx, core.Caller{User: user.User}.Owner(), user.Player.ID, selection); err != nil {
		return err
	}
	return s.handleOwnProfile(ctx, rc, user)
}
