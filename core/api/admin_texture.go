package api

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
)

// handleListTexturesAsAdmin handles GET /api/admin/textures.
func (s *Server) handleListTexturesAsAdmin(ctx context.Context, rc *fasthttp.RequestCtx, by core.Actor) error {
	return s.handleListTextures(ctx, rc, core.User{ID: by.ID, Permission: by.Permission})
}

// handleChangeTextureAsAdmin handles PUT /api/admin/textures/{tid}.
func (s *Server) handleChangeTextureAsAdmin(ctx context.Context, rc *fasthttp.RequestCtx, by core.Actor) error {
	tid, err := pathInteger(rc, "tid")
	if err != nil {
		return err
	}
	change, err := parseTextureChange(rc)
	if err != nil {
		return err
	}
	texture, err := s.Textures.ChangeBy(ctx, by, core.TextureID(tid), change)
	if err != nil {
		return err
	}
	return writeOK(rc, "The texture is changed.", toTextureJSON(texture))
}

// handleDeleteTextureAsAdmin handles DELETE /api/admin/textures/{tid}.
func (s *Server) handleDeleteTextureAsAdmin(ctx context.Context, rc *fasthttp.RequestCtx, by core.Actor) error {
	tid, err := pathInteger(rc, "tid")
	if err != nil {
		return err
	}
	if err := s.Textures.DeleteBy(ctx, by, core.TextureID(tid)); err != nil {
		return err
	}
	return writeOK(rc, "The texture is deleted.", nil)
}
