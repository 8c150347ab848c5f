package pages

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/casefold"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/roots"
	"github.com/veneer-skins/veneer/shared/skin"
)

// route returns the key of the page at a path, without a slash at its end, in the cache; the cache tag of the
// page that says that it does not exist; and what loads it: nil if there cannot be such a page.
func (s *Server) route(path string, lang *language) (key, tag string, load func(context.Context) (*page, error)) {
	name, isPlayer := strings.CutPrefix(path, playerRoot+"/")
	number, _ := strings.CutPrefix(path, textureRoot+"/")
	switch {
	case path == "":
		return roots.Front, "", func(ctx context.Context) (*page, error) { return s.front(ctx, lang) }
	case isPlayer && len(name) <= edgeproto.MaxNameBytes && !strings.Contains(name, "/"):
		return playerRoot + casefold.Key(name), edgeproto.NameKey(name).Tag(), func(ctx context.Context) (*page, error) { return s.player(ctx, lang, name) }
	}
	tid, err := strconv.ParseInt(number, 10, 64)
	if err != nil || tid < 1 || strconv.FormatInt(tid, 10) != number {
		return "", "", nil
	}
	return textureRoot + number, edgeproto.TIDKey(tid).Tag(), func(ctx context.Context) (*page, error) { return s.texture(ctx, lang, core.TextureID(tid)) }
}

// How many skins a wall of the front page has, and how many figures stand beside the site's name.
const (
	wallSize  = 12
	crowdSize = 3
)

// wall is skins on the front page.
type wall struct {
	*view
	Name, Heading string
	All, AllLabel string // the link to the list in the library
	Textures      []core.Texture
}

// front returns the front page.
func (s *Server) front(ctx context.Context, lang *language) (*page, error) {
	var walls core.Walls
	var err error
	if s.config.Wall == "on" {
		if walls, err = s.showcase.Walls(ctx, wallSize); err != nil {
			return nil, err
		}
	}
	description := s.Description
	if description == "" {
		description = lang.T("front.sentence")
	}
	v := s.newView(lang, roots.Front, s.Name, description, "front.js")
	v.Title = s.Name
	all := roots.Console + "/library?type=skin"
	data := struct {
		Crowd []string
		Walls []wall
	}{Walls: []wall{
		{v, "newest", v.T("front.newest"), all, v.T("front.allNewest"), walls.Newest},
		{v, "liked", v.T("front.liked"), all + "&sort=likes", v.T("front.allLiked"), walls.MostLiked},
	}}
	var keys []edgeproto.Key
	for _, wall := range data.Walls {
		for _, texture := range wall.Textures {
			keys = append(keys, edgeproto.TIDKey(int64(texture.ID)))
		}
	}
	for i, texture := range walls.MostLiked[:min(crowdSize, len(walls.MostLiked))] {
		turn := []string{"1", "1", "7"}[i] // the others look at the first one, in the middle
		data.Crowd = append(data.Crowd, s.textureURL("body", texture.ID)+"?height=480&turn="+turn)
	}
	if data.Crowd == nil {
		data.Crowd = []string{s.PicturesURL + "/body/user/0.webp?height=480&pose=wave"}
	} else {
		v.setCard("texture/" + strconv.FormatInt(int64(walls.MostLiked[0].ID), 10))
	}
	v.Data = data
	return v.newPage("front", keys...), nil
}

// textureURL returns the URL of a picture of a texture.
func (s *Server) textureURL(mode string, tid core.TextureID) string {
	return s.PicturesURL + "/" + mode + "/" + strconv.FormatInt(int64(tid), 10) + ".webp"
}

// figures are pictures that the figure in three dimensions takes the place of.
type figures struct {
	Figures            []picture
	SkinFile, CapeFile string // URLs of the files; empty for none
	Model              string // as skinview3d has it
}

// show has the figure wear a texture.
func (f *figures) show(s *Server, texture *core.Texture) {
	file := s.PicturesURL + "/textures/" + texture.Hash.String()
	switch texture.Type {
	case skin.Cape:
		f.CapeFile = file
	case skin.Slim:
		f.SkinFile, f.Model = file, "slim"
	case skin.Classic:
		f.SkinFile, f.Model = file, "default"
	}
}

// picture is a picture, or a page, with its URL to be copied.
type picture struct {
	*view
	Label, URL    string
	Alt           string // empty for a page
	Width, Height int
}

// IsPicture reports whether it is a picture.
func (p picture) IsPicture() bool { return p.Alt != "" }

// link returns the link to a page.
func (v *view) link(path string) picture {
	return picture{view: v, Label: v.T("share.page"), URL: v.PublicURL + path}
}

// worn is what a player wears in a slot.
type worn struct {
	Slot    string
	Texture *core.Texture // nil for nothing
}

// player returns the page of a player.
func (s *Server) player(ctx context.Context, lang *language, name string) (*page, error) {
	player, err := s.showcase.Player(ctx, name)
	if err != nil {
		return nil, err
	}
	escaped := url.PathEscape(player.Name)
	path := playerRoot + "/" + escaped
	v := s.newView(lang, path, player.Name, lang.T("player.description", player.Name), "shared.js")
	data := struct {
		figures
		Worn     []worn
		Pictures []picture
		Link     picture
	}{Worn: []worn{{v.T("player.skin"), player.Skin}, {v.T("player.cape"), player.Cape}}, Link: v.link(path)}
	keys := []edgeproto.Key{edgeproto.NameKey(player.Name), edgeproto.PIDKey(int64(player.ID))}
	var private []edgeproto.Key
	for _, slot := range data.Worn {
		if slot.Texture == nil {
			continue
		}
		data.show(s, slot.Texture)
		if key := edgeproto.TIDKey(int64(slot.Texture.ID)); slot.Texture.Public {
			keys = append(keys, key)
		} else {
			private = append(private, key)
		}
	}
	figure := func(key, mode, query string, width, height int) picture {
		label := v.T(key)
		return picture{v, label, v.absolute() + "/" + mode + "/player/" + escaped + ".png" + query, player.Name + ": " + label, width, height}
	}
	if player.Skin != nil {
		v.setCard("player/" + escaped) // a player without a skin has none
		data.Pictures = []picture{figure("player.face", "face", "?size=96", 96, 96), figure("player.head", "head", "?size=96", 96, 96), figure("player.body", "body", "?height=192", 48, 96)}
	}
	stands := s.PicturesURL + "/body/player/" + escaped + ".webp?height=480&default=avatar"
	data.Figures = []picture{{URL: stands, Alt: v.T("player.figure", player.Name), Width: 240, Height: 480}}
	if player.Cape != nil {
		data.Figures = append(data.Figures, picture{URL: stands + "&turn=3", Width: 240, Height: 480})
	}
	v.Data = data
	page := v.newPage("player", keys...)
	page.shows = append(page.shows, private...) // their numbers are in no tag
	return page, nil
}

// texture returns the page of a texture.
func (s *Server) texture(ctx context.Context, lang *language, tid core.TextureID) (*page, error) {
	texture, err := s.showcase.Texture(ctx, tid)
	if err != nil {
		return nil, err
	}
	kind := lang.T("texture." + texture.Type.String())
	description := lang.T("texture.anonymous", kind)
	if texture.UploaderNickname != "" {
		description = lang.T("texture.description", kind, texture.UploaderNickname)
	}
	number := strconv.FormatInt(int64(tid), 10)
	path := textureRoot + "/" + number
	v := s.newView(lang, path, texture.Name, description, "shared.js")
	v.setCard("texture/" + number)
	data := struct {
		figures
		Texture        core.Texture
		Type, Download string
		Link           picture
	}{Texture: texture, Type: kind, Link: v.link(path), Download: s.PicturesURL + "/skin/" + number + "?download"}
	data.show(s, &texture)
	alt := v.T("texture.figure", texture.Name)
	if texture.Type == skin.Cape {
		data.Download = s.PicturesURL + "/cape/" + number + "?download"
		data.Figures = []picture{{URL: s.textureURL("preview", tid) + "?height=320", Alt: alt, Width: 440, Height: 320}}
	} else {
		stands := s.textureURL("body", tid) + "?height=480"
		data.Figures = []picture{{URL: stands, Alt: alt, Width: 240, Height: 480}, {URL: stands + "&turn=5", Width: 240, Height: 480}}
	}
	v.Data = data
	return v.newPage("texture", edgeproto.TIDKey(int64(tid))), nil
}
