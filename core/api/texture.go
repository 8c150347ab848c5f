package api

import (
	"context"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/serve"
	"github.com/veneer-skins/veneer/shared/skin"
)

// textureBody is a texture as the API writes it.
type textureBody struct {
	TID      core.TextureID `json:"tid"`
	Name     string         `json:"name"`
	Type     skin.Type      `json:"type"`
	Hash     skin.Hash      `json:"hash"`
	Size     int            `json:"size"` // KiB
	Uploader core.UserID    `json:"uploader"`
	Public   bool           `json:"public"`
	UploadAt timestamp      `json:"upload_at"`
	Likes    int64          `json:"likes"`
}

func toTextureBody(t core.Texture) textureBody {
	return textureBody{
		TID: t.ID, Name: t.Name, Type: t.Type, Hash: t.Hash, Size: t.KiB(), Uploader: t.Uploader, Public: t.Public,
		UploadAt: timestamp(t.UploadAt), Likes: t.Likes,
	}
}

// upload handles POST /api/textures.
func (s *Server) upload(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	if err := s.uploads.take(rc, client{user: caller.ID}); err != nil {
		return err
	}
	f, err := readUpload(rc)
	if err != nil {
		return err
	}
	upload := core.Upload{File: f.file, Name: f.text("name"), Type: strings.TrimSpace(f.text("type")), Public: f.optionalBool("public", true)}
	if f.file == nil {
		f.flaw("file", "Send the PNG file as the field file of a multipart/form-data body.")
	}
	if err := f.fault(); err != nil {
		return err
	}
	texture, err := s.Textures.Upload(ctx, caller.ID, upload)
	if err != nil {
		return err
	}
	return done(rc, "The texture is uploaded.", toTextureBody(texture))
}

// textures handles GET /api/textures.
func (s *Server) textures(ctx context.Context, rc *fasthttp.RequestCtx, user core.User) error {
	f := readQuery(rc)
	query := core.LibraryQuery{
		Name: f.optionalText("q", ""),
		Page: int(f.integer("page", 1)), PerPage: int(f.integer("perPage", core.DefaultPerPage)),
		Uploader: (*core.UserID)(f.optionalInteger("uploader")),
	}
	if text := strings.TrimSpace(f.optionalText("type", "")); text == "skin" {
		query.Types = []skin.Type{skin.Steve, skin.Alex}
	} else if !f.null("type") {
		wanted, err := skin.ParseType(text)
		if err != nil {
			f.flaw("type", "The type must be skin, steve, alex or cape.")
		}
		query.Types = []skin.Type{wanted}
	}
	switch strings.TrimSpace(f.optionalText("sort", "newest")) {
	case "newest":
	case "likes":
		query.ByLikes = true
	default:
		f.flaw("sort", "The order must be newest or likes.")
	}
	if err := f.fault(); err != nil {
		return err
	}
	page, err := s.Library.List(ctx, user, query)
	if err != nil {
		return err
	}
	return serve.JSON(rc, fasthttp.StatusOK, toFoundBody(page, query.Page, query.PerPage, core.MaxCounted/query.PerPage, toTextureBody))
}

// texture handles GET /api/textures/{tid}.
func (s *Server) texture(ctx context.Context, rc *fasthttp.RequestCtx, user core.User) error {
	tid, err := number(rc, "tid")
	if err != nil {
		return err
	}
	texture, err := s.Textures.Find(ctx, user, core.TextureID(tid))
	if err != nil {
		return err
	}
	return serve.JSON(rc, fasthttp.StatusOK, toTextureBody(texture))
}

// textureChange reads what is to become different of a texture.
func textureChange(rc *fasthttp.RequestCtx) (core.TextureChange, error) {
	var change core.TextureChange
	f, err := read(rc)
	if err != nil {
		return change, err
	}
	if !f.null("name") {
		change.Name = new(f.text("name"))
	}
	if !f.null("type") {
		wanted, err := skin.ParseType(strings.TrimSpace(f.text("type")))
		if err != nil || wanted == skin.Cape {
			f.flaw("type", "The type must be steve or alex.")
		}
		change.Type = &wanted
	}
	if !f.null("public") {
		change.Public = new(f.optionalBool("public", false))
	}
	return change, f.fault()
}

// changeTexture handles PUT /api/textures/{tid}.
func (s *Server) changeTexture(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	tid, err := number(rc, "tid")
	if err != nil {
		return err
	}
	change, err := textureChange(rc)
	if err != nil {
		return err
	}
	texture, err := s.Textures.Change(ctx, caller, s.door.Proxies.Client(rc), core.TextureID(tid), change)
	if err != nil {
		return err
	}
	return done(rc, "The texture is changed.", toTextureBody(texture))
}

// deleteTexture handles DELETE /api/textures/{tid}.
func (s *Server) deleteTexture(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	tid, err := number(rc, "tid")
	if err != nil {
		return err
	}
	if err := s.Textures.Delete(ctx, caller, s.door.Proxies.Client(rc), core.TextureID(tid)); err != nil {
		return err
	}
	return done(rc, "The texture is deleted.", nil)
}
