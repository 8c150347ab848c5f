package api

import (
	"context"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/skin"
)

// handleListTextures handles GET /api/textures.
func (s *Server) handleListTextures(ctx context.Context, rc *fasthttp.RequestCtx, user core.User) error {
	f := parseQuery(rc)
	query := core.LibraryQuery{
		Name: f.optionalStr("q", ""),
		Page: int(f.integer("page", 1)), PerPage: int(f.integer("perPage", core.DefaultPerPage)),
		Uploader: (*core.UserID)(f.optionalInteger("uploader")),
	}
	if text := strings.TrimSpace(f.optionalStr("type", "")); text == "skin" {
		query.Types = []skin.Type{skin.Classic, skin.Slim}
	} else if !f.isAbsent("type") {
		typ, err := skin.ParseType(text)
		if err != nil {
			f.addError("type", "The type must be skin, steve, alex or cape.")
		}
		query.Types = []skin.Type{typ}
	}
	switch strings.TrimSpace(f.optionalStr("sort", "newest")) {
	case "newest":
	case "likes":
		query.ByLikes = true
	default:
		f.addError("sort", "The order must be newest or likes.")
	}
	if err := f.err(); err != nil {
		return err
	}
	page, err := s.Library.List(ctx, user, query)
	if err != nil {
		return err
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, toSearchPageJSON(page, query.Page, query.PerPage, core.MaxCounted/query.PerPage, libraryTextureFor(user)))
}
