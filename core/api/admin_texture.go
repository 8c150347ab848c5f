package api

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/clientapi/decode"
)

// handleListTexturesAsAdmin handles GET /api/admin/textures.
func (s *Server) handleListTexturesAsAdmin(ctx context.Context, rc *fasthttp.RequestCtx, by core.Actor) error {
	return s.listTextures(ctx, rc, core.User{ID: by.ID, Permission: by.Permission}, func(f *decode.Form) (*core.UserID, error) {
		return s.userParameter(ctx, f, "uploader", 0)
	})
}
