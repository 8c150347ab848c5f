package api

import (
	"context"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
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
