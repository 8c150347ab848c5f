package api

import (
	"context"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/clientapi/decode"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/skin"
)

// handleListTextures handles GET /api/textures.
func (s *Server) handleListTextures(ctx context.Context, rc *fasthttp.RequestCtx, user core.User) error {
	return s.listTextures(ctx, rc, user, func(f *decode.Form) (*core.UserID, error) {
		uploader := (*core.UserID)(f.OptionalInteger("uploader"))
		return uploader, f.Err()
	})
}

// listTextures responds with a page of textures. uploader returns whose textures are listed, nil for
// all users', and the errors of the form.
func (s *Server) listTextures(
	ctx context.Context, rc *fasthttp.RequestCtx, user core.User, uploader func(*decode.Form) (*core.UserID, error),
) (err error) {
	f := decode.ParseQuery(rc)
	query := core.LibraryQuery{Name: f.OptionalStr("q", "")}
	query.Page, query.PerPage = f.Page(core.DefaultPerPage)
	if text := strings.TrimSpace(f.OptionalStr("type", "")); text == "skin" {
		query.Types = []skin.Type{skin.Classic, skin.Slim}
	} else if !f.IsAbsent("type") {
		typ, err := skin.ParseType(text)
		if err != nil {
			f.AddError("type", "The type must be skin, steve, alex or cape.")
		}
		query.Types = []skin.Type{typ}
	}
	switch strings.TrimSpace(f.OptionalStr("sort", "newest")) {
	case "newest":
	case "likes":
		query.ByLikes = true
	default:
		f.AddError("sort", "The order must be newest or likes.")
	}
	if query.Uploader, err = uploader(f); err != nil {
		return err
	}
	page, err := s.Library.List(ctx, user, query)
	if err != nil {
		return err
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, toSearchPageJSON(page, query.Page, query.PerPage, core.MaxCounted/query.PerPage, libraryTextureFor(user)))
}
