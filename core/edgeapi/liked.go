package edgeapi

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

// liked handles GET edgeproto.LikedPath.
func (s *Server) liked(ctx context.Context, rc *fasthttp.RequestCtx) error {
	if !rc.IsGet() {
		rc.Response.Header.Set(fasthttp.HeaderAllow, fasthttp.MethodGet)
		return fault.New(fault.MethodNotAllowed, "Use GET.")
	}
	limit, err := rc.QueryArgs().GetUint("limit")
	if err != nil {
		return fault.Field("limit", "The limit must be an integer.")
	}
	liked, err := s.mappings.MostLiked(ctx, limit)
	if err != nil {
		return err
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, liked)
}
