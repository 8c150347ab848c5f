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
