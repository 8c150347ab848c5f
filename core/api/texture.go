package api

import (
	"context"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/public"
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
	InCloset *bool `json:"in_closet,omitempty"` // nil without a user
}

// libraryTextureFor returns a function that makes the texture in a response to a user; the zero User
// is not signed in.
func libraryTextureFor(user core.User) func(core.LibraryTexture) libraryTextureJSON {
	return func(t core.LibraryTexture) libraryTextureJSON {
		body := libraryTextureJSON{textureJSON: toTextureJSON(t.Texture)}
		if user.ID != 0 {
			body.InCloset = &t.InCloset
		}
		return body
	}
}

// readUpload counts an upload, or a request for its price, for its limit, and parses it.
func (s *Server) readUpload(rc *fasthttp.RequestCtx, caller core.Caller) (core.Upload, error) {
	if err := s.uploadLimiter(rc).Take(rc, public.Key{User: caller.ID}); err != nil {
		return core.Upload{}, err
	}
	f, err := parseUpload(rc)
	if err != nil {
		return core.Upload{}, err
	}
	upload := core.Upload{File: f.file, Name: f.str("name"), Type: strings.TrimSpace(f.str("type")), Public: f.optionalBool("public", true)}
	if f.file == nil {
		f.addError("file", "Send the PNG file as the field file of a multipart/form-data body.")
	}
	return upload, f.err()
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

// parseTextureChange parses the change of a texture.
func parseTextureChange(rc *fasthttp.RequestCtx) (core.TextureChange, error) {
	var change core.TextureChange
	f, err := parseForm(rc)
	if err != nil {
		return change, err
	}
	if !f.isAbsent("name") {
		change.Name = new(f.str("name"))
	}
	if !f.isAbsent("type") {
		typ, err := skin.ParseType(strings.TrimSpace(f.str("type")))
		if err != nil || typ == skin.Cape {
			f.addError("type", "The type must be steve or alex.")
		}
		change.Type = &typ
	}
	if !f.isAbsent("public") {
		change.Public = new(f.optionalBool("public", false))
	}
	return change, f.err()
}

// handleChangeTexture handles PUT /api/textures/{tid}.
func (s *Server) handleChangeTexture(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	tid, err := pathInteger(rc, "tid")
	if err != nil {
		return err
	}
	change, err := parseTextureChange(rc)
	if err != nil {
		return err
	}
	texture, err := s.Textures.Change(ctx, caller, s.opts.Proxies.ClientIP(rc), core.TextureID(tid), change)
	if err != nil {
		return err
	}
	return writeOK(rc, "The texture is changed.", toTextureJSON(texture))
}

// handleDeleteTexture handles DELETE /api/textures/{tid}.
func (s *Server) handleDeleteTexture(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	tid, err := pathInteger(rc, "tid")
	if err != nil {
		return err
	}
	if err := s.Textures.Delete(ctx, caller, s.opts.Proxies.ClientIP(rc), core.TextureID(tid)); err != nil {
		return err
	}
	return writeOK(rc, "The texture is deleted.", nil)
}
