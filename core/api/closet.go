package api

import (
	"context"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/clientapi/decode"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

// closetItemJSON is a texture in a closet.
type closetItemJSON struct {
	textureJSON
	Pivot pivotJSON `json:"pivot"`
}

type pivotJSON struct {
	ItemName string `json:"item_name"`
}

// pageJSON is a page of a list.
type pageJSON[T any] struct {
	PerPage     int `json:"per_page"`
	From        int `json:"from"` // number of the first item, 0 on an empty page
	To          int `json:"to"`   // number of the last item, 0 on an empty page
	Total       int `json:"total"`
	CurrentPage int `json:"current_page"`
	LastPage    int `json:"last_page"`
	Data        []T `json:"data"`
}

func toPageJSON[T any](page, perPage, total int, items []T) pageJSON[T] {
	body := pageJSON[T]{PerPage: perPage, Total: total, CurrentPage: page, LastPage: max(1, (total+perPage-1)/perPage), Data: items}
	if len(items) > 0 {
		body.From = (page-1)*perPage + 1
		body.To = body.From + len(items) - 1
	}
	return body
}

func toClosetPageJSON(query core.ClosetQuery, page core.ClosetPage) pageJSON[closetItemJSON] {
	bodies := make([]closetItemJSON, len(page.Items))
	for i, item := range page.Items {
		bodies[i] = closetItemJSON{toTextureJSON(item.Texture), pivotJSON{item.ItemName}}
	}
	return toPageJSON(query.Page, query.PerPage, page.Total, bodies)
}

// handleListClosetItems handles GET /api/closet.
func (s *Server) handleListClosetItems(ctx context.Context, rc *fasthttp.RequestCtx, token core.VerifiedToken) error {
	query, err := parseClosetQuery(rc)
	if err != nil {
		return err
	}
	page, err := s.Closets.List(ctx, token, query)
	if err != nil {
		return err
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, toClosetPageJSON(query, page))
}

// parseClosetQuery parses the parameters of a closet's list.
func parseClosetQuery(rc *fasthttp.RequestCtx) (core.ClosetQuery, error) {
	f := decode.ParseQuery(rc)
	query := core.ClosetQuery{Name: f.OptionalStr("q", "")}
	query.Page, query.PerPage = f.Page(core.DefaultPerPage)
	switch strings.TrimSpace(f.OptionalStr("category", "skin")) {
	case "skin":
	case "cape":
		query.Capes = true
	default:
		f.AddError("category", "The category must be skin or cape.")
	}
	switch strings.TrimSpace(f.OptionalStr("sort", "newest")) {
	case "newest":
	case "name":
		query.ByName = true
	default:
		f.AddError("sort", "The order must be newest or name.")
	}
	return query, f.Err()
}

// handleAddClosetItem handles POST /api/closet.
func (s *Server) handleAddClosetItem(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	f := decode.ParseForm(rc)
	tid, name := f.RequiredInteger("tid"), f.Str("name")
	if err := f.Err(); err != nil {
		return err
	}
	if err := s.Closets.Add(ctx, caller.Owner(), caller.ID, core.TextureID(tid), name); err != nil {
		return err
	}
	return writeOK(rc, "The texture is in your closet.", nil)
}

// handleRenameClosetItem handles PUT /api/closet/{tid}.
func (s *Server) handleRenameClosetItem(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	tid, err := pathInteger(rc, "tid")
	if err != nil {
		return err
	}
	f := decode.ParseForm(rc)
	name := f.Str("name")
	if err := f.Err(); err != nil {
		return err
	}
	if err := s.Closets.Rename(ctx, caller, core.TextureID(tid), name); err != nil {
		return err
	}
	return writeOK(rc, "The item is renamed.", nil)
}

// handleRemoveClosetItem handles DELETE /api/closet/{tid}.
func (s *Server) handleRemoveClosetItem(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	tid, err := pathInteger(rc, "tid")
	if err != nil {
		return err
	}
	if err := s.Closets.Remove(ctx, caller.Owner(), caller.ID, core.TextureID(tid)); err != nil {
		return err
	}
	return writeOK(rc, "The texture is out of your closet.", nil)
}
