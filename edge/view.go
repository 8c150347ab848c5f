package edge

import (
	"slices"
	"strings"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
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
	// The last one is the shortest, and may be empty.
	Suffixes []string
	// Picture is what a picture shows, nil for other kinds.
	Picture *PictureView
	// Profile is the format of a profile, NoProfile for other kinds.
	Profile ProfileFormat
	// HasDownload gives it the parameter download.
	HasDownload bool
	// Warm are the queries of the responses that edge warm loads by default.
	Warm []string
}

// PictureView is what a picture shows of a texture, by the parameters of the request.
type PictureView struct {
	Mode   render.Mode
	Mode3D render.Mode // with the parameter 3d; equals Mode if the view does not use it
	// SizeParameter is the name of the parameter that Mode.SizeOf rounds, empty for a mode of one size. A sheet has
	// no parameters at all.
	SizeParameter string
	DefaultSize   int // in pixels
	// IsAdjustable gives it the parameters width if Mode.HasWidth, turn and tilt if Mode.HasAttitudes, pose if
	// Mode.HasPoses, wear if Mode.ShowsWorn, background if Mode.HasBackground, no for what is Mode.Omissible, exact
	// if Mode.HasExactSizes and, by name, UUID or uid, default. An empty value of its parameters is an absent one.
	IsAdjustable bool
}

// ProfileFormat is what mods expect of a profile.
type ProfileFormat uint8

// The formats of profiles.
const (
	// NoProfile is of views of other kinds.
	NoProfile ProfileFormat = iota
	// CustomSkinAPI is of the mod CustomSkinLoader and many others. A profile has what revision 1
	// of it reads (skins, cape) and what revision 2 reads (textures).
	CustomSkinAPI
	// UniSkinAPI is of the mod UniSkinMod.
	UniSkinAPI
)

// Route is an address of a view: a prefix of the path, with a slash at its end, and after it
// the value that names the subject. Routes of several views may have one prefix if their
// suffixes differ.
type Route struct {
	Prefix     string // the whole path if the value is a parameter
	Subject    Subject
	CacheClass CacheClass
	Help       string // what the response is, for documents
}

// Subject is what the value in a path names.
type Subject uint8

// The subjects.
const (
	ByName          Subject = iota // a player's name
	ByNameParameter                // the same, in the parameter name
	ByNameAndUUID                  // a player's name, after which there may be a full stop and a UUID
	ByUUID                         // a player's UUID
	ByUID                          // a user's number
	ByTID                          // a texture's number
	ByHash                         // the hash of a texture's file

	// SubjectCount is the number of subjects.
	SubjectCount = iota
)

// IsName reports whether the value has a player's name.
func (s Subject) IsName() bool {
	switch s {
	case ByName, ByNameParameter, ByNameAndUUID:
		return true
	case ByUUID, ByUID, ByTID, ByHash:
	}
	return false
}

// CanWear reports whether the value is of a player, which may wear a cape. A user has a skin only.
func (s Subject) CanWear() bool { return s.IsPlayer() && s != ByUID }

// IsPlayer reports whether the value is of a player or a user, and not of a texture.
func (s Subject) IsPlayer() bool {
	switch s {
	case ByName, ByNameParameter, ByNameAndUUID, ByUUID, ByUID:
		return true
	case ByTID, ByHash:
	}
	return false
}

// CacheClass says how long caches may keep the responses of a route.
type CacheClass uint8

// The cache classes.
const (
	CacheImmutable CacheClass = iota // the response never changes
	CacheTexture                     // it changes only when the texture is deleted
	CachePlayer                      // it changes whenever a player or user changes textures
)

// Lifetime returns how long browsers may keep the responses, in words.
func (c CacheClass) Lifetime() string {
	switch c {
	case CacheImmutable:
		return "a year"
	case CacheTexture:
		return "a day"
	case CachePlayer:
	}
	return "a minute"
}

// pictureSuffixes choose the format.
var pictureSuffixes = []string{".png", ".webp", ""}

// optionalPNG are the suffixes of files that mods may request without .png.
var optionalPNG = []string{".png", ""}

// legacySuffix is the end of the name of a texture as the sheet of games before 1.8. Mods take
// it for the name of a file of its own.
const legacySuffix = "-legacy"

// LegacyTexture appends the name below a route of a texture by hash that stands for its legacy
// sheet.
func LegacyTexture(dst []byte, hash skin.Hash) []byte {
	return append(hash.AppendTo(dst), legacySuffix...)
}

// Views are all views. Of those with a route in common, the one with the longer suffixes comes
// first.
var Views = []*View{
	&avatar, &preview, &face, &head, &bust, &body, &front, &back, &left, &right, &card, &legacyTexture, &storedFile, &skinFile, &capeFile, &skinFileBySubject, &skinFileByTID, &capeFileBySubject, &capeFileByTID, &skinFileForMods, &capeFileForMods, &legacySheet, &profile, &uniSkinProfile,
}

var avatar = View{
	Kind: KindPicture, Slot: SkinSlot, Suffixes: pictureSuffixes,
	Routes: []Route{
		{"/avatar/player/", ByName, CachePlayer, "head of a player's skin"},
		{"/avatar/uuid/", ByUUID, CachePlayer, "the same, by the UUID that `GET /api/players` gives"},
		{"/avatar/user/", ByUID, CachePlayer, "the head that a user chose"},
		{"/avatar/", ByTID, CacheTexture, "head of a texture"},
		{"/avatar/hash/", ByHash, CacheTexture, "head of a texture"},
	},
	Picture:     &PictureView{Mode: render.Flat, Mode3D: render.Isometric, SizeParameter: "size", DefaultSize: render.DefaultSize, IsAdjustable: false},
	Profile:     NoProfile,
	HasDownload: false,
	Warm:        []string{"", "?png", "?3d"},
}

var preview = View{
	Kind: KindPicture, Slot: SkinSlot, Suffixes: pictureSuffixes,
	Routes: []Route{
		{"/preview/", ByTID, CacheTexture, "whole figure or cape, front and back"},
		{"/preview/hash/", ByHash, CacheTexture, "whole figure or cape, front and back"},
	},
	Picture:     &PictureView{Mode: render.Preview, Mode3D: render.Preview, SizeParameter: "height", DefaultSize: render.DefaultHeight, IsAdjustable: false},
	Profile:     NoProfile,
	HasDownload: false,
	Warm:        []string{""},
}

// The views of one mode each, for all subjects.
var (
	face  = adjustableView("face", render.Flat, "face", "size", render.DefaultSize)
	head  = adjustableView("head", render.Isometric, "head in three dimensions", "size", render.DefaultSize)
	bust  = adjustableView("bust", render.Bust, "head, body and arms in three dimensions", "size", render.DefaultSize)
	body  = adjustableView("body", render.Body, "figure in three dimensions", "height", render.DefaultHeight)
	front = adjustableView("front", render.Front, "flat front", "height", render.DefaultHeight)
	back  = adjustableView("back", render.Back, "flat back", "height", render.DefaultHeight)
	left  = adjustableView("left", render.Left, "flat left side", "height", render.DefaultHeight)
	right = adjustableView("right", render.Right, "flat right side", "height", render.DefaultHeight)
)

// adjustableView returns the view of a mode at the paths that begin with a name.
func adjustableView(name string, mode render.Mode, shows, sizeParameter string, defaultSize int) View {
	root := "/" + name + "/"
	byPlayer, byTexture := shows+" of a player's skin, or of the one that a user chose", shows+" of a skin"
	return View{
		Kind: KindPicture, Slot: SkinSlot, Suffixes: pictureSuffixes,
		Routes: []Route{
			{root + "player/", ByName, CachePlayer, byPlayer},
			{root + "uuid/", ByUUID, CachePlayer, byPlayer},
			{root + "user/", ByUID, CachePlayer, byPlayer},
			{root, ByTID, CacheTexture, byTexture},
			{root + "hash/", ByHash, CacheTexture, byTexture},
		},
		Picture:     &PictureView{Mode: mode, Mode3D: mode, SizeParameter: sizeParameter, DefaultSize: defaultSize, IsAdjustable: true},
		Profile:     NoProfile,
		HasDownload: true,
		Warm:        nil, // a site uses few of them, or none
	}
}

// card is the picture of a link to a page about a player or a texture. A private texture has none, as it has no such page.
var card = View{
	Kind: KindPicture, Slot: SkinSlot, Suffixes: pictureSuffixes,
	Routes: []Route{
		{"/card/player/", ByName, CachePlayer, cardHelp + " of a player"},
		{"/card/uuid/", ByUUID, CachePlayer, cardHelp + " of a player"},
		{"/card/texture/", ByTID, CacheTexture, cardHelp + " of a public skin, or both sides of a cape"},
	},
	Picture:     &PictureView{Mode: render.Card, Mode3D: render.Card, SizeParameter: "", DefaultSize: render.Card.SizeOf(0), IsAdjustable: true},
	Profile:     NoProfile,
	HasDownload: false,
	Warm:        nil, // crawlers request it when a link is posted
}

var storedFile = View{
	Kind: KindFile, Slot: AnySlot, Suffixes: optionalPNG,
	Routes: []Route{
		{"/textures/", ByHash, CacheImmutable, "the stored file"},
		// Mods request the files of a profile relative to the URL of the profile.
		{"/csl/textures/", ByHash, CacheImmutable, "the stored file"},
		{"/usm/textures/", ByHash, CacheImmutable, "the stored file"},
		{"/raw/", ByTID, CacheTexture, "the stored file of a public texture"},
	},
	Picture:     nil,
	Profile:     NoProfile,
	HasDownload: false,
	Warm:        []string{""},
}

var skinFile = fileView(SkinSlot, []string{".png"}, false, []Route{{"/skin/", ByName, CachePlayer, skinFileHelp}})

var capeFile = fileView(CapeSlot, []string{".png"}, false, []Route{{"/cape/", ByName, CachePlayer, capeFileHelp}})

// The files by all subjects. One by number has no suffix: with .png the number is a player's name.
var (
	skinFileBySubject = fileView(SkinSlot, optionalPNG, true, fileRoutes("skin"))
	capeFileBySubject = fileView(CapeSlot, optionalPNG, true, fileRoutes("cape"))
	skinFileByTID     = fileView(SkinSlot, []string{""}, true, []Route{{"/skin/", ByTID, CacheTexture, "the file of a public skin"}})
	capeFileByTID     = fileView(CapeSlot, []string{""}, true, []Route{{"/cape/", ByTID, CacheTexture, "the file of a public cape"}})
)

// fileView returns the view of the files in a slot.
func fileView(slot TextureSlot, suffixes []string, hasDownload bool, routes []Route) View {
	return View{Kind: KindFile, Slot: slot, Suffixes: suffixes, Routes: routes, Picture: nil, Profile: NoProfile, HasDownload: hasDownload, Warm: nil}
}

// fileRoutes returns the routes of files at the paths that begin with a name.
func fileRoutes(name string) []Route {
	root := "/" + name + "/"
	byPlayer := "the file of the " + name + " that a player wears, or a user chose"
	return []Route{
		{root + "player/", ByName, CachePlayer, byPlayer},
		{root + "uuid/", ByUUID, CachePlayer, byPlayer},
		{root + "user/", ByUID, CachePlayer, byPlayer},
		{root + "hash/", ByHash, CacheTexture, "the file of a " + name},
	}
}

// Paths of Mojang's old servers and of chrly (Ely.by); mods and servers point them here.
var skinFileForMods = fileView(SkinSlot, optionalPNG, false, []Route{
	{"/skins/", ByName, CachePlayer, skinFileHelp},
	{"/skins", ByNameParameter, CachePlayer, skinFileHelp},
	{"/MinecraftSkins/", ByName, CachePlayer, skinFileHelp},
})

var capeFileForMods = fileView(CapeSlot, optionalPNG, false, []Route{
	{"/cloaks/", ByName, CachePlayer, capeFileHelp},
	{"/cloaks", ByNameParameter, CachePlayer, capeFileHelp},
	{"/MinecraftCloaks/", ByName, CachePlayer, capeFileHelp},
	{"/usm/MinecraftCloaks/", ByName, CachePlayer, capeFileHelp},
	{yggdrasilSkins + "MinecraftCloaks/", ByName, CachePlayer, capeFileHelp},
})

// yggdrasilSkins is where authlib-injector sends what games before 1.7.6 request from
// skins.minecraft.net. All else below the root of the Yggdrasil API is core's.
const yggdrasilSkins = "/api/yggdrasil/skins/"

var legacySheet = View{
	Kind: KindPicture, Slot: SkinSlot, Suffixes: []string{".png"},
	Routes: []Route{
		{"/legacy/", ByName, CachePlayer, legacySheetHelp},
		{"/usm/MinecraftSkins/", ByName, CachePlayer, legacySheetHelp},
		{yggdrasilSkins + "MinecraftSkins/", ByName, CachePlayer, legacySheetHelp},
	},
	Picture:     &legacySheetPicture,
	Profile:     NoProfile,
	HasDownload: false,
	Warm:        nil,
}

// Profiles name it beside the file of a slim skin, for games and mods without that model.
var legacyTexture = View{
	Kind: KindPicture, Slot: SkinSlot, Suffixes: []string{legacySuffix + ".png", legacySuffix},
	Routes: []Route{
		{"/textures/", ByHash, CacheTexture, legacyTextureHelp},
		{"/csl/textures/", ByHash, CacheTexture, legacyTextureHelp},
		{"/usm/textures/", ByHash, CacheTexture, legacyTextureHelp},
	},
	Picture:     &legacySheetPicture,
	Profile:     NoProfile,
	HasDownload: false,
	Warm:        nil,
}

var legacySheetPicture = PictureView{Mode: render.LegacySheet, Mode3D: render.LegacySheet, SizeParameter: "", DefaultSize: render.LegacySheet.SizeOf(0), IsAdjustable: false}

var profile = View{
	Kind: KindProfile, Slot: SkinSlot, Suffixes: []string{".json"},
	Routes: []Route{
		{"/csl/", ByName, CachePlayer, profileHelp},
		{"/", ByName, CachePlayer, profileHelp},
	},
	Picture:     nil,
	Warm:        nil,
	Profile:     CustomSkinAPI,
	HasDownload: false,
}

var uniSkinProfile = View{
	Kind: KindProfile, Slot: SkinSlot, Suffixes: []string{".json"},
	Routes:      []Route{{"/usm/", ByNameAndUUID, CachePlayer, "the same, as UniSkinAPI describes it"}},
	Picture:     nil,
	Warm:        nil,
	Profile:     UniSkinAPI,
	HasDownload: false,
}

const (
	cardHelp          = "picture of a link, 1200 × 630 pixels: the figure, front and back,"
	skinFileHelp      = "the file of the skin that a player wears"
	capeFileHelp      = "the file of the cape that a player wears"
	legacySheetHelp   = "the skin that a player wears, as that sheet"
	legacyTextureHelp = "a skin as the sheet of 64 × 32 pixels that games before 1.8 need"
	profileHelp       = "what a player wears, as CustomSkinAPI describes it"
)

// Parameters returns the names of the query parameters that the view uses by a subject.
func (v *View) Parameters(subject Subject) []string {
	if v.Picture == nil || v.Picture.Mode.IsSheet() {
		switch {
		case !v.HasDownload:
			return nil
		case v.Slot == SkinSlot && subject.IsPlayer():
			return []string{"default", "download"}
		}
		return []string{"download"}
	}
	var names []string
	if v.Picture.SizeParameter != "" {
		names = append(names, v.Picture.SizeParameter)
	}
	if v.Picture.Mode3D != v.Picture.Mode {
		names = append(names, "3d")
	}
	if v.Picture.IsAdjustable {
		names = append(names, v.Picture.adjustable(subject)...)
	}
	if v.HasDownload {
		names = append(names, "download")
	}
	return append(names, "png")
}

// adjustable returns the names of the parameters of an adjustable picture by a subject, besides its size.
func (p *PictureView) adjustable(subject Subject) (names []string) {
	for _, parameter := range []struct {
		name string
		has  bool
	}{
		{"width", p.Mode.HasWidth()},
		{"turn", p.Mode.HasAttitudes()},
		{"tilt", p.Mode.HasAttitudes()},
		{"pose", p.Mode.HasPoses()},
		{"wear", p.Mode.ShowsWorn() && subject.CanWear()},
		{"background", p.Mode.HasBackground()},
		{"no", true},
		{"exact", p.Mode.HasExactSizes()},
		{"default", subject.IsPlayer()},
	} {
		if parameter.has {
			names = append(names, parameter.name)
		}
	}
	return names
}

// Name returns the first segment of the view's paths.
func (v *View) Name() string {
	name, _, _ := strings.Cut(v.Routes[0].Prefix[1:], "/")
	return name
}

// Groups returns the routes of the view in their order. Those that respond with the same are together.
func (v *View) Groups() (groups [][]Route) {
	for i, route := range v.Routes {
		if i == 0 || route.Help != v.Routes[i-1].Help || route.CacheClass != v.Routes[i-1].CacheClass {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], route)
	}
	return groups
}

// Pattern returns the path of a route of the view, with a placeholder for the value.
func (v *View) Pattern(route Route) string {
	return route.Prefix + route.Subject.placeholder() + v.Suffixes[len(v.Suffixes)-1]
}

// RouteName returns the name of a route of the view in metrics and in the document of the API: its
// pattern. Views for all subjects share names, since the counters of 45 more would take 9 MB.
func (v *View) RouteName(route Route) string {
	pattern := v.Pattern(route)
	if !v.HasDownload {
		return pattern
	}
	_, below, _ := strings.Cut(pattern[1:], "/")
	return "/{view}/" + below
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
	case ByName, ByNameAndUUID:
		return "{name}"
	case ByNameParameter:
		return "?name={name}"
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
