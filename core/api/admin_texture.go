package api

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/clientapi/decode"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/skin"
)

// handleListTexturesAsAdmin handles GET /api/admin/textures.
func (s *Server) handleListTexturesAsAdmin(ctx context.Context, rc *fasthttp.RequestCtx, by core.Actor) error {
	return s.listTextures(ctx, rc, core.User{ID: by.ID, Permission: by.Permission}, func(f *decode.Form) (*core.UserID, error) {
		return s.userParameter(ctx, f, "uploader", 0)
	})
}

// handleRemoveTexture handles DELETE /api/admin/textures/{tid}.
func (s *Server) handleRemoveTexture(ctx context.Context, rc *fasthttp.RequestCtx, by core.Actor) error {
	tid, err := pathInteger(rc, "tid")
	if err != nil {
		return err
	}
	f := decode.ParseQuery(rc)
	refuse := f.OptionalBool("refuse", false)
	if err := f.Err(); err != nil {
		return err
	}
	if err := s.Textures.Remove(ctx, by, core.TextureID(tid), refuse); err != nil {
		return err
	}
	return writeOK(rc, "The texture is deleted.", nil)
}

// refusalJSON tells which pixels are refused.
type refusalJSON struct {
	TID               core.TextureID `json:"tid"`
	Name              string         `json:"name"`
	Type              skin.Type      `json:"type"`
	RefusedAt         timestamp      `json:"refused_at"`
	RefusedBy         core.UserID    `json:"refused_by"`
	RefusedByNickname string         `json:"refused_by_nickname,omitempty"`
}

func toRefusalJSON(r core.Refusal) refusalJSON {
	return refusalJSON{r.Texture, r.Name, r.Type, timestamp(r.RefusedAt), r.RefusedBy, r.RefusedByNickname}
}

// handleListRefusals handles GET /api/admin/refusals.
func (s *Server) handleListRefusals(ctx context.Context, rc *fasthttp.RequestCtx, _ core.Actor) error {
	f := decode.ParseQuery(rc)
	page, perPage := f.Page(core.DefaultSearchPerPage)
	if err := f.Err(); err != nil {
		return err
	}
	result, err := s.Textures.Refusals(ctx, page, perPage)
	if err != nil {
		return err
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, toSearchPageJSON(result, page, perPage, core.MaxSearchPage, toRefusalJSON))
}
