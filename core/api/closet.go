package api

import (
	"context"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/serve"
)

// closetItemBody is a texture as the API writes it when it lies in a closet.
type closetItemBody struct {
	textureBody
	Pivot pivotBody `json:"pivot"`
}

type pivotBody struct {
	ItemName string `json:"item_name"`
}

// pageBody is a page of something as the API writes it.
type pageBody[T any] struct {
	PerPage     int `json:"per_page"`
	From        int `json:"from"` // number of the first item, 0 on an empty page
	To          int `json:"to"`   // number of the last item, 0 on an empty page
	Total       int `json:"total"`
	CurrentPage int `json:"current_page"`
	LastPage    int `json:"last_page"`
	Data        []T `json:"data"`
}

func toPageBody[T any](page, perPage, total int, items []T) pageBody[T] {
	body := pageBody[T]{PerPage: perPage, Total: total, CurrentPage: page, LastPage: max(1, (total+perPage-1)/perPage), Data: items}
	if len(items) > 0 {
		body.From = (page-1)*perPage + 1
		body.To = body.From + len(items) - 1
	}
	return body
}

func toClosetPageBody(query core.ClosetQuery, page core.ClosetPage) pageBody[closetItemBody] {
	bodies := make([]closetItemBody, len(page.Items))
	for i, item := range page.Items {
		bodies[i] = closetItemBody{toTextureBody(item.Texture), pivotBody{item.ItemName}}
	}
	return toPageBody(query.Page, query.PerPage, page.Total, bodies)
}

// closet handles GET /api/closet.
func (s *Server) closet(ctx context.Context, rc *fasthttp.RequestCtx, ticket core.VerifiedToken) error {
	query, err := closetQuery(rc)
	if err != nil {
		return err
	}
	page, err := s.Closets.List(ctx, ticket, query)
	if err != nil {
		return err
	}
	return serve.JSON(rc, fasthttp.StatusOK, toClosetPageBody(query, page))
}

// closetQuery reads which items of a closet are wanted.
func closetQuery(rc *fasthttp.RequestCtx) (core.ClosetQuery, error) {
	f := readQuery(rc)
	query := core.ClosetQuery{
		Name: f.optionalText("q", ""),
		Page: int(f.integer("page", 1)), PerPage: int(f.integer("perPage", core.DefaultPerPage)),
	}
	switch strings.TrimSpace(f.optionalText("category", "skin")) {
	case "skin":
	case "cape":
		query.Capes = true
	default:
		f.flaw("category", "The category must be skin or cape.")
	}
	return query, f.fault()
}

// addClosetItem handles POST /api/closet.
func (s *Server) addClosetItem(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	f, err := read(rc)
	if err != nil {
		return err
	}
	tid, name := f.requiredInteger("tid"), f.text("name")
	if err := f.fault(); err != nil {
		return err
	}
	if err := s.Closets.Add(ctx, caller, core.TextureID(tid), name); err != nil {
		return err
	}
	return done(rc, "The texture is in your closet.", nil)
}

// renameClosetItem handles PUT /api/closet/{tid}.
func (s *Server) renameClosetItem(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	tid, err := number(rc, "tid")
	if err != nil {
		return err
	}
	f, err := read(rc)
	if err != nil {
		return err
	}
	name := f.text("name")
	if err := f.fault(); err != nil {
		return err
	}
	if err := s.Closets.Rename(ctx, caller, core.TextureID(tid), name); err != nil {
		return err
	}
	return done(rc, "The item is renamed.", nil)
}

// removeClosetItem handles DELETE /api/closet/{tid}.
func (s *Server) removeClosetItem(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	tid, err := number(rc, "tid")
	if err != nil {
		return err
	}
	if err := s.Closets.Remove(ctx, caller, core.TextureID(tid)); err != nil {
		return err
	}
	return done(rc, "The texture is out of your closet.", nil)
}
