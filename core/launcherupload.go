package core

import (
	"context"
	"path"
	"strings"

	"github.com/veneer-skins/veneer/shared/fault"
)

// LauncherUpload is a texture that a launcher sends for a player.
type LauncherUpload struct {
	Player Player
	Cape   bool   // a cape instead of a skin
	Slim   bool   // whether a skin has slim arms
	File   []byte // PNG
	Name   string // of the file; any text
}

// LauncherUploads applies textures that launchers send.
type LauncherUploads struct {
	textures *Textures
	closets  *Closets
	players  *Players
}

// NewLauncherUploads returns uploads into closets, for players.
func NewLauncherUploads(textures *Textures, closets *Closets, players *Players) *LauncherUploads {
	return &LauncherUploads{textures: textures, closets: closets, players: players}
}

// mostCapes is how many capes launchers show.
const mostCapes = 50

// Capes returns the newest 50 capes in a user's closet.
func (u *LauncherUploads) Capes(ctx context.Context, user UserID) ([]ClosetItem, error) {
	page, err := u.closets.Of(ctx, user, ClosetQuery{Capes: true, Page: 1, PerPage: mostCapes})
	return page.Items, err
}

// Apply uploads a private texture into the user's closet, and applies it to the player. Pixels that
// the user has uploaded already are that texture. Those of another user's public texture are that
// one, which is added to the closet. Faults are as of Textures.Upload, Closets.Add and
// Players.SetTextures.
func (u *LauncherUploads) Apply(ctx context.Context, user User, upload LauncherUpload) error {
	caller, name := Caller{User: user}, upload.itemName()
	tid, err := u.upload(ctx, caller, upload, name)
	if err != nil {
		return err
	}
	selection := TextureSelection{Skin: &tid}
	if upload.Cape {
		selection = TextureSelection{Cape: &tid}
	}
	_, err = u.players.SetTextures(ctx, caller.Owner(), upload.Player.ID, selection)
	return err
}

// upload returns the texture with the pixels of an upload.
func (u *LauncherUploads) upload(ctx context.Context, caller Caller, upload LauncherUpload, name string) (TextureID, error) {
	kind := "steve"
	switch {
	case upload.Cape:
		kind = "cape"
	case upload.Slim:
		kind = "alex"
	}
	texture, err := u.textures.Upload(ctx, caller.ID, Upload{File: upload.File, Name: name, Type: kind})
	existing, isDuplicate := duplicateTexture(err)
	if !isDuplicate {
		return texture.ID, err
	}
	found, err := u.textures.Find(ctx, caller.User, existing)
	if err != nil {
		return 0, err
	}
	if found.Uploader != caller.ID {
		if err := u.closets.Add(ctx, caller.Owner(), caller.ID, existing, name); err != nil && fault.KindOf(err) != fault.Duplicate {
			return 0, err
		}
	}
	return existing, nil
}

// itemName returns the name of the file without its suffix, or the player's name if it is not fit
// for an item of a closet.
func (u LauncherUpload) itemName() string {
	name := path.Base(strings.ReplaceAll(u.Name, "\\", "/"))
	name, err := validateName("name", strings.TrimSuffix(name, path.Ext(name)))
	if err != nil {
		return u.Player.Name
	}
	return name
}
