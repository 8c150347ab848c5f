package api

import (
	"context"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/clientapi"
	"github.com/veneer-skins/veneer/core/clientapi/decode"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/skin"
)

// textureJSON is a texture in a response.
type textureJSON struct {
	TID      core.TextureID `json:"tid"`
	Name     string         `json:"name"`
	Type     skin.Type      `json:"type"`
	Hash     skin.Hash      `json:"hash"`
	Size     int            `json:"size"` // KiB
	Uploader core.UserID    `json:"uploader"`
	Public   bool           `json:"public"`
	UploadAt timestamp      `json:"upload_at"`
	Likes    int64          `json:"likes"`

	UploaderNickname string `json:"uploader_nickname,omitempty"`
}

func toTextureJSON(t core.Texture) textureJSON {
	return textureJSON{
		TID: t.ID, Name: t.Name, Type: t.Type, Hash: t.Hash, Size: t.KiB(), Uploader: t.Uploader, Public: t.Public,
		UploadAt: timestamp(t.UploadAt), Likes: t.Likes, UploaderNickname: t.UploaderNickname,
	}
}

// libraryTextureJSON is a texture in a response to a user that may have it in the closet.
type libraryTextureJSON struct {
	textureJSON
	InCloset *bool  `json:"in_closet,omitempty"` // nil without a user
	ItemName string `json:"item_name,omitempty"` // empty if it is not in the closet
}

// libraryTextureFor returns a function that makes the texture in a response to a user; the zero User
// is not signed in.
func libraryTextureFor(user core.User) func(core.LibraryTexture) libraryTextureJSON {
	return func(t core.LibraryTexture) libraryTextureJSON {
		body := libraryTextureJSON{textureJSON: toTextureJSON(t.Texture)}
		if user.ID != 0 {
			body.InCloset, body.ItemName = new(t.ItemName != ""), t.ItemName
		}
		return body
	}
}

// readUpload counts an upload, or a request for its price, for its limit, and parses it.
func (s *Server) readUpload(rc *fasthttp.RequestCtx, caller core.Caller) (core.Upload, error) {
	if err := s.uploadLimiter(rc).Take(rc, clientapi.Key{User: caller.ID}); err != nil {
		return core.Upload{}, err
	}
	f := decode.ParseUpload(rc)
	upload := core.Upload{File: f.File, Name: f.Str("name"), Type: strings.TrimSpace(f.Str("type")), Public: f.OptionalBool("public", true)}
	if f.File == nil {
		f.AddError("file", "Send the PNG file as the field file of a multipart/form-data body.")
	}
	return upload, f.Err()
}

// handleUploadTexture handles POST /api/textures.
func (s *Server) handleUploadTexture(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	upload, err := s.readUpload(rc, caller)
	if err != nil {
		return err
	}
	texture, err := s.Textures.Upload(ctx, caller.ID, upload)
	if err != nil {
		return err
	}
	return writeOK(rc, "The texture is uploaded.", toTextureJSON(texture))
}

// uploadPriceJSON is what an upload would add and cost.
type uploadPriceJSON struct {
	Type         skin.Type      `json:"type"`
	Size         int            `json:"size"` // KiB
	PublicPrice  int64          `json:"public_price"`
	PrivatePrice int64          `json:"private_price"`
	Duplicate    core.TextureID `json:"duplicate"` // 0 for none
}

// handlePriceUpload handles POST /api/price.
func (s *Server) handlePriceUpload(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	upload, err := s.readUpload(rc, caller)
	if err != nil {
		return err
	}
	price, err := s.Textures.Price(ctx, caller.ID, upload)
	if err != nil {
		return err
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, uploadPriceJSON{
		Type: price.Type, Size: price.KiB(), PublicPrice: price.Public, PrivatePrice: price.Private, Duplicate: price.Duplicate,
	})
}

// handleGetTexture handles GET /api/textures/{tid}.
func (s *Server) handleGetTexture(ctx context.Context, rc *fasthttp.RequestCtx, user core.User) error {
	tid, err := pathInteger(rc, "tid")
	if err != nil {
		return err
	}
	texture, err := s.Textures.Find(ctx, user, core.TextureID(tid))
	if err != nil {
		return err
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, libraryTextureFor(user)(texture))
}

// textureChange returns the change of a texture.
func textureChange(f *decode.Form) core.TextureChange {
	var change core.TextureChange
	if !f.IsAbsent("name") {
		change.Name = new(f.Str("name"))
	}
	if !f.IsAbsent("type") {
		typ, err := skin.ParseType(strings.TrimSpace(f.Str("type")))
		if err != nil || typ == skin.Cape {
			f.AddError("type", "The type must be steve or alex.")
		}
		change.Type = &typ
	}
	if !f.IsAbsent("public") {
		change.Public = new(f.OptionalBool("public", false))
	}
	return change
}
