package api

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
)

// allTextures handles GET /api/admin/textures.
func (s *Server) allTextures(ctx context.Context, rc *fasthttp.RequestCtx, by core.Actor) error {
	return s.textures(ctx, rc, core.User{ID: by.ID, Permission: by.Permission})
}

// changeTextureBy handles PUT /api/admin/textures/{tid}.
func (s *Server) changeTextureBy(ctx context.Context, rc *fasthttp.RequestCtx, by core.Actor) error {
	tid, err := number(rc, "tid")
	if err != nil {
		return err
	}
	change, err := textureChange(rc)
	if err != nil {
		return err
	}
	texture, err := s.Textures.ChangeBy(ctx, by, core.TextureID(tid), change)
	if err != nil {
		return err
	}
	return done(rc, "The texture is changed.", toTextureBody(texture))
}

// deleteTextureBy handles DELETE /api/admin/textures/{tid}.
func (s *Server) deleteTextureBy(ctx context.Context, rc *fasthttp.RequestCtx, by core.Actor) error {
	tid, err := number(rc, "tid")
	if err != nil {
		return err
	}
	if err := s.Textures.DeleteBy(ctx, by, core.TextureID(tid)); err != nil {
		return err
	}
	return done(rc, "The texture is deleted.", nil)
}
