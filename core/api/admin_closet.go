package api

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/serve"
)

// closetOf handles GET /api/admin/users/{uid}/closet.
func (s *Server) closetOf(ctx context.Context, rc *fasthttp.RequestCtx, _ core.Actor) error {
	uid, err := number(rc, "uid")
	if err != nil {
		return err
	}
	query, err := closetQuery(rc)
	if err != nil {
		return err
	}
	page, err := s.Closets.Of(ctx, core.UserID(uid), query)
	if err != nil {
		return err
	}
	return serve.JSON(rc, fasthttp.StatusOK, toClosetPageBody(query, page))
}

// addItemOf handles POST /api/admin/users/{uid}/closet.
func (s *Server) addItemOf(ctx context.Context, rc *fasthttp.RequestCtx, by core.Actor) error {
	uid, err := number(rc, "uid")
	if err != nil {
		return err
	}
	f, err := read(rc)
	if err != nil {
		return err
	}
	tid, name := f.requiredInteger("tid"), f.text("name")
	if err := f.fault(); err != nil {
		return err
	}
	if err := s.Closets.AddBy(ctx, by, core.UserID(uid), core.TextureID(tid), name); err != nil {
		return err
	}
	return done(rc, "The texture is in the closet.", nil)
}

// removeItemOf handles DELETE /api/admin/users/{uid}/closet/{tid}.
func (s *Server) removeItemOf(ctx context.Context, rc *fasthttp.RequestCtx, by core.Actor) error {
	uid, err := number(rc, "uid")
	if err != nil {
		return err
	}
	tid, err := number(rc, "tid")
	if err != nil {
		return err
	}
	if err := s.Closets.RemoveBy(ctx, by, core.UserID(uid), core.TextureID(tid)); err != nil {
		return err
	}
	return done(rc, "The texture is out of the closet.", nil)
}
