package edge

import (
	"slices"

	"github.com/veneer-skins/veneer/edge/render"
)

// View is a kind of response at the edge: where it is, what it shows, and which parameters it
// has. Everything that differs between views is here or in package render. The routes and
// their metrics and Cache-Control, the pictures that edge warm loads, and the table of
// docs/pictures.md are made from Views.
type View struct {
	Kind Kind
	Slot TextureSlot // of a player's texture
	// Routes are the addresses.
	Routes []Route
	// Suffixes are the ends that a path may have, in lower case. A path in any case matches.
	// The empty suffix, if it is among them, comes last.
	Suffixes []string
	// Picture is what a picture shows, nil for other kinds.
	Picture *PictureView
	// Warm are the queries of the responses that edge warm loads by default.
	Warm []string
}

// PictureView is what a picture shows of a texture, by the parameters of the request.
type PictureView struct {
	Pose   render.Pose
	Pose3D render.Pose // with the parameter 3d; equals Pose if the view does not use it
	// SizeParameter is the name of the parameter that Pose.SizeOf rounds.
	SizeParameter string
	DefaultSize   int // in pixels
}

// Route is an address of a view: a prefix of the path, with a slash at its end, and after it
// the value that names the subject.
type Route struct {
	Prefix     string
	Subject    Subject
	CacheClass CacheClass
	Help       string // what the response is, for documents
}

// Subject is what the value in a path names.
type Subject uint8

// The subjects.
const (
	ByName Subject = iota // a player's name
	ByUUID                // a player's UUID
	ByUID                 // a user's number
	ByTID                 // a texture's number
	ByHash                // the hash of a texture's file
)

// CacheClass says how long caches may keep the responses of a route.
type CacheClass uint8

// The cache classes.
const (
	CacheImmutable CacheClass = iota // the response never changes
	CacheTexture                     // it changes only when the texture is deleted
	CachePlayer                      // it changes whenever a player or user changes textures
)

// pictureSuffixes choose the format.
var pictureSuffixes = []string{".png", ".webp", ""}

// Views are all views.
var Views = []*View{&avatar, &preview, &storedFile, &skinFile, &capeFile, &profile}

var avatar = View{
	Kind: KindPicture, Slot: SkinSlot, Suffixes: pictureSuffixes,
	Routes: []Route{
		{"/avatar/player/", ByName, CachePlayer, "head of a player's skin"},
		{"/avatar/uuid/", ByUUID, CachePlayer, "the same, by the UUID that `GET /api/players` gives"},
		{"/avatar/user/", ByUID, CachePlayer, "the head that a user chose"},
		{"/avatar/", ByTID, CacheTexture, "head of a texture"},
		{"/avatar/hash/", ByHash, CacheTexture, "head of a texture"},
	},
	Picture: &PictureView{Pose: render.Flat, Pose3D: render.Isometric, SizeParameter: "size", DefaultSize: render.DefaultSize},
	Warm:    []string{"", "?png", "?3d"},
}

var preview = View{
	Kind: KindPicture, Slot: SkinSlot, Suffixes: pictureSuffixes,
	Routes: []Route{
		{"/preview/", ByTID, CacheTexture, "whole figure or cape, front and back"},
		{"/preview/hash/", ByHash, CacheTexture, "whole figure or cape, front and back"},
	},
	Picture: &PictureView{Pose: render.Preview, Pose3D: render.Preview, SizeParameter: "height", DefaultSize: render.DefaultHeight},
	Warm:    []string{""},
}

var storedFile = View{
	Kind: KindFile, Slot: SkinSlot, Suffixes: []string{".png", ""},
	Routes: []Route{
		{"/textures/", ByHash, CacheImmutable, "the stored file"},
		// Mods request the files of a profile relative to the URL of the profile.
		{"/csl/textures/", ByHash, CacheImmutable, "the stored file"},
	},
	Picture: nil,
	Warm:    []string{""},
}

var skinFile = View{
	Kind: KindFile, Slot: SkinSlot, Suffixes: []string{".png"},
	Routes:  []Route{{"/skin/", ByName, CachePlayer, "the file of the skin that a player wears"}},
	Picture: nil,
	Warm:    nil,
}

var capeFile = View{
	Kind: KindFile, Slot: CapeSlot, Suffixes: []string{".png"},
	Routes:  []Route{{"/cape/", ByName, CachePlayer, "the file of the cape that a player wears"}},
	Picture: nil,
	Warm:    nil,
}

var profile = View{
	Kind: KindProfile, Slot: SkinSlot, Suffixes: []string{".json"},
	Routes:  []Route{{"/csl/", ByName, CachePlayer, "what a player wears, as CustomSkinAPI describes it; the root for the mod is `/csl/`"}},
	Picture: nil,
	Warm:    nil,
}

// Parameters returns the names of the query parameters that the view uses.
func (v *View) Parameters() []string {
	if v.Picture == nil {
		return nil
	}
	names := []string{v.Picture.SizeParameter}
	if v.Picture.Pose3D != v.Picture.Pose {
		names = append(names, "3d")
	}
	return append(names, "png")
}

// Pattern returns the path of a route of the view, with a placeholder for the value. It is
// the name of the route in metrics and documents.
func (v *View) Pattern(route Route) string {
	suffix := ""
	if !slices.Contains(v.Suffixes, "") {
		suffix = v.Suffixes[0]
	}
	return route.Prefix + route.Subject.placeholder() + suffix
}

// WarmPaths returns the paths and queries that edge warm requests by default, with {hash} for
// the hash of a texture.
func WarmPaths() (paths []string) {
	for _, view := range Views {
		hashed := slices.IndexFunc(view.Routes, func(r Route) bool { return r.Subject == ByHash })
		for _, query := range view.Warm {
			paths = append(paths, view.Pattern(view.Routes[hashed])+query)
		}
	}
	return paths
}

func (s Subject) placeholder() string {
	switch s {
	case ByName:
		return "{name}"
	case ByUUID:
		return "{uuid}"
	case ByUID:
		return "{uid}"
	case ByTID:
		return "{tid}"
	case ByHash:
		return "{hash}"
	}
	return ""
}
