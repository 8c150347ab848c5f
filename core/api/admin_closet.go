package api

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/clientapi/decode"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

// handleListUserClosetItems handles GET /api/admin/users/{uid}/closet.
func (s *Server) handleListUserClosetItems(ctx context.Context, rc *fasthttp.RequestCtx, _ core.Actor) error {
	uid, err := pathInteger(rc, "uid")
	if err != nil {
		return err
	}
	query, err := parseClosetQuery(rc)
	if err != nil {
		return err
	}
	page, err := s.Closets.Of(ctx, core.UserID(uid), query)
	if err != nil {
		return err
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, toClosetPageJSON(query, page))
}

// handleAddUserClosetItem handles POST /api/admin/users/{uid}/closet.
func (s *Server) handleAddUserClosetItem(ctx context.Context, rc *fasthttp.RequestCtx, by core.Actor) error {
	uid, err := pathInteger(rc, "uid")
	if err != nil {
		return err
	}
	f := decode.ParseForm(rc)
	tid, name := f.RequiredInteger("tid"), f.Str("name")
	if err := f.Err(); err != nil {
		return err
	}
	if err := s.Closets.Add(ctx, by, core.UserID(uid), core.TextureID(tid), name); err != nil {
		return err
	}
	return writeOK(rc, "The texture is in the closet.", nil)
}

// handleRemoveUserClosetItem handles DELETE /api/admin/users/{uid}/closet/{tid}.
func (s *Server) handleRemoveUserClosetItem(ctx context.Context, rc *fasthttp.RequestCtx, by core.Actor) error {
	uid, err := pathInteger(rc, "uid")
	if err != nil {
		return err
	}
	tid, err := pathInteger(rc, "tid")
	if err != nil {
		return err
	}
	if err := s.Closets.Remove(ctx, by, core.UserID(uid), core.TextureID(tid)); err != nil {
		return err
	}
	return writeOK(rc, "The texture is out of the closet.", nil)
}
