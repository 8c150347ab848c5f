package edge

import (
	"cmp"

	"github.com/veneer-skins/veneer/edge/render"
)

// CompatRoute is a route of compatible URLs: plugins and sites have them from other skin services.
// After the prefix come a player's name, its UUID, a texture's number or its hash, and for most
// pictures a size, each as a segment of the path. Package api has the rules.
type CompatRoute struct {
	Prefix   string   // one or two segments, with slashes at both ends
	Services []string // that have the route, none if it is our own with other subjects
	Kind     Kind
	Slot     TextureSlot // of a file
	Mode     render.Mode // of a picture
	// DefaultSize is the side or the height in pixels if a request has no size.
	DefaultSize int
	// Aspect is of a figure in space. A figure without one is half as wide as high.
	Aspect Aspect
	// Measure is what a size in the path, or the parameter size, is.
	Measure Measure
	// IsSizeFirst says which of two numbers in the path is the size. The other one is a texture.
	IsSizeFirst bool
	// Scale is how many pixels of the side or the height a unit of the parameter scale is.
	Scale float64
	// IsBare says that the hat and the other layers are shown only with the parameter overlay or
	// helm.
	IsBare bool
	// IsAttachment says that the file is to be saved and not shown.
	IsAttachment bool
	// IsIsometric says that the figure is seen in true isometric projection, with its front on the viewer's right.
	IsIsometric bool
	// IsFrontLeft says that the front is on the viewer's left unless the path says otherwise.
	IsFrontLeft bool
	// IsCapeless says that the figure wears nothing.
	IsCapeless bool
	// Factor is how many pixels of the height a unit of a size is; 0 is 1.
	Factor float64
	// WithHat, Turned and WithSizeFirst are the routes of paths with the words hat, and left or right, and with the
	// size before the subject; nil if they are the same.
	WithHat, Turned, WithSizeFirst *CompatRoute
	// IsPosed says that a pose precedes the subject and a part of the figure follows it: PosedRoute has the routes.
	IsPosed bool
	// IsTexture says that the subject is a texture.
	IsTexture bool
}

// Pattern returns the URL with placeholders for the subject and the size, as one of the services has it.
func (r *CompatRoute) Pattern(service string) string {
	switch {
	case r.Kind == KindFile:
		return r.Prefix + "{id}"
	case r.IsPosed:
		return r.Prefix + "{pose}/{id}/{full|bust|face}"
	case service == crafatar && r.Mode == render.Flat:
		return r.Prefix + "{id}?size={size}&overlay"
	case service == crafatar:
		return r.Prefix + "{id}?scale={scale}&overlay"
	case service == mineatar:
		return r.Prefix + "{id}?scale={scale}"
	case service == nmsr:
		return r.Prefix + "{id}?w={width}"
	case service == vzge:
		return r.Prefix + "{size}/{id}"
	default:
		return r.Prefix + "{id}/{size}"
	}
}

// Aspect is a width and a height in any unit: only the ratio counts.
type Aspect struct{ Width, Height int }

// HeightOf returns the height to a width.
func (a Aspect) HeightOf(width int) int {
	a = cmp.Or(a, Aspect{1, 2})
	return width * a.Height / a.Width
}

// WidthOf returns the width to a height: the one that HeightOf has the height of.
func (a Aspect) WidthOf(height int) int {
	a = cmp.Or(a, Aspect{1, 2})
	return (height*a.Width + a.Height - 1) / a.Height
}

// Measure is a length of a picture.
type Measure uint8

// The measures.
const (
	Side   Measure = iota // of a square
	Width                 // of a figure
	Height                // of a figure
)

// Names of services. crafatar.com has been unreachable since November 2025.
const (
	blessing  = "Blessing Skin"
	crafatar  = "Crafatar"
	crafthead = "crafthead"
	cravatar  = "cravatar.eu"
	lapitar   = "Lapitar"
	mcHeads   = "mc-heads.net"
	mcheads   = "mcheads.org"
	mineatar  = "mineatar"
	mineskin  = "mineskin.eu"
	minotar   = "Minotar"
	nmsr      = "NMSR"
	starlight = "Starlight"
	vzge      = "VZGE"
)

const (
	compatSide    = 180 // the default of Minotar, mc-heads.net and crafthead
	nmsrSide      = 512 // the default of NMSR
	mcheadsSide   = 128 // the default of mcheads.org
	discordSide   = 64  // the default of DiscordSRV, and of mcheads.org for what is isometric
	crafatarScale = 6   // the default of Crafatar
)

// CompatWords are the routes of DiscordSRV and DiscordSRV Heads, by the word after the subject.
var CompatWords = map[string]*CompatRoute{
	"head":    {Mode: render.Flat, DefaultSize: discordSide, IsBare: true},
	"helm":    {Mode: render.Flat, DefaultSize: discordSide},
	"overlay": {Mode: render.Flat, DefaultSize: discordSide},
	"skull":   {Mode: render.Isometric, DefaultSize: discordSide, IsFrontLeft: true},
	"bust":    {Mode: render.Bust, DefaultSize: discordSide},
	"body":    {Mode: render.Body, DefaultSize: 2 * discordSide, Measure: Width},
	"player":  {Mode: render.Body, DefaultSize: 8 * discordSide, Measure: Width, IsFrontLeft: true},
	"texture": {Kind: KindFile, Slot: SkinSlot},
}

// CompatQueries are the routes, by their path, with the subject in the parameters name, uuid or texture: of earlier
// versions of DiscordSRV, and of Ely.by.
var CompatQueries = map[string]*CompatRoute{
	"/head.png": {Mode: render.Flat, DefaultSize: discordSide, IsBare: true},
	"/head":     {Mode: render.Flat, DefaultSize: compatSide},
}

// PosedRoute returns the route of a pose and a part of the figure as Starlight names them, nil if there is no such
// part, and our pose that is nearest. A figure in an unknown pose stands.
func PosedRoute(pose, part string) (route *CompatRoute, of render.Pose) {
	route = posedParts[pose][part]
	if route == nil {
		route = posedParts[""][part]
	}
	return route, posesOf[pose]
}

// posesOf are our poses by the poses of Starlight to which they are nearest. In any other pose the figure stands.
var posesOf = map[string]render.Pose{
	"walking": render.Walk, "marching": render.Walk, "trudging": render.Walk, "lunging": render.Walk, "kicking": render.Walk,
	"cheering": render.Wave, "pointing": render.Wave, "relaxing": render.Sit, "reading": render.Sit, "crouching": render.Sneak, "cowering": render.Sneak,
}

// posedParts are the routes by the pose and the part of the figure. A pose without routes has the routes of the empty pose.
var posedParts = func() map[string]map[string]*CompatRoute {
	square := func(mode render.Mode, isIsometric bool) *CompatRoute {
		return &CompatRoute{Mode: mode, DefaultSize: compatSide, IsIsometric: isIsometric}
	}
	figure := func(mode render.Mode, isIsometric bool) *CompatRoute {
		return &CompatRoute{Mode: mode, DefaultSize: 2 * compatSide, Measure: Width, IsIsometric: isIsometric}
	}
	head, front := square(render.Isometric, false), figure(render.Front, false)
	file := &CompatRoute{Kind: KindFile, Slot: SkinSlot}
	return map[string]map[string]*CompatRoute{
		"":          {"full": figure(render.Body, false), "bust": square(render.Bust, false), "face": head, "head": head},
		"isometric": {"full": figure(render.Body, true), "bust": square(render.Bust, true), "face": head},
		"head":      {"full": head, "bust": head, "face": head},
		"skin":      {"default": file, "full": file, "processed": file, "barebones": file},
		"pixel":     {"full": front, "bust": front, "face": square(render.Flat, false)},
	}
}()

// CompatRoutes are the routes of compatible URLs. Routes of Views win over them.
var CompatRoutes = func() (all []*CompatRoute) {
	picture := func(template CompatRoute, services []string, prefixes ...string) {
		for _, prefix := range prefixes {
			route := template
			route.Kind, route.Services, route.Prefix = KindPicture, services, prefix
			all = append(all, &route)
		}
	}
	file := func(slot TextureSlot, isAttachment bool, services []string, prefixes ...string) {
		for _, prefix := range prefixes {
			all = append(all, &CompatRoute{Kind: KindFile, Slot: slot, Services: services, Prefix: prefix, IsAttachment: isAttachment})
		}
	}
	of := func(services ...string) []string { return services }

	// Crafatar's heads are 20 units wide and its figures 20 by 45.1.
	const crafatarHead = 20
	bare := CompatRoute{Mode: render.Flat, DefaultSize: 160, IsBare: true}
	picture(bare, of(crafatar), "/avatars/")
	bare.Mode, bare.DefaultSize, bare.Scale = render.Isometric, crafatarHead*crafatarScale, crafatarHead
	picture(bare, of(crafatar), "/renders/head/")
	bare.Mode, bare.DefaultSize, bare.Scale, bare.Measure = render.Body, 270, 45.1, Height
	bare.Aspect, bare.IsIsometric, bare.IsCapeless = Aspect{200, 451}, true, true
	picture(bare, of(crafatar), "/renders/body/")

	figure := CompatRoute{Mode: render.Body, Measure: Width, Aspect: Aspect{64, 131}, IsIsometric: true, IsCapeless: true}
	figure.DefaultSize = figure.Aspect.HeightOf(mcheadsSide)
	face := CompatRoute{Mode: render.Flat, DefaultSize: compatSide}
	avatar := face
	turned := figure
	avatar.Turned = &turned
	picture(avatar, of(minotar, crafthead, mcHeads, cravatar, mcheads), "/avatar/")
	picture(face, of(minotar, crafthead), "/helm/")
	picture(face, of(cravatar), "/helmavatar/")
	// Mineatar's faces are 8 units wide, its heads 16 high and its figures 17.32 by 39.
	const mineatarFace, mineatarHead, mineatarBody, mineatarSide = 8, 16, 39, 32
	face.IsSizeFirst, face.Scale = true, mineatarFace
	picture(face, of(vzge, nmsr, mineatar), "/face/")

	head := CompatRoute{Mode: render.Isometric, DefaultSize: compatSide}
	withHat := head
	withHat.WithHat, withHat.Scale = &CompatRoute{Mode: render.Flat, DefaultSize: mcheadsSide}, mineatarHead
	picture(withHat, of(mcHeads, cravatar, mcheads, vzge, nmsr, mineatar), "/head/")
	picture(head, of(minotar, crafthead), "/cube/", "/cubehelm/")
	picture(head, of(crafthead), "/armor/cube/")
	picture(head, of(cravatar), "/helmhead/")
	picture(head, of(mineskin), "/headhelm/")
	head.DefaultSize = nmsrSide
	picture(head, of(nmsr), "/headiso/", "/head_iso/")
	head.DefaultSize = discordSide
	picture(head, of(mcheads), "/ioshead/")

	bust := CompatRoute{Mode: render.Bust, DefaultSize: compatSide}
	picture(bust, of(minotar, crafthead, vzge, nmsr), "/bust/")
	picture(bust, of(minotar, crafthead), "/armor/bust/", "/armour/bust/")
	picture(bust, of(lapitar), "/portrait/")
	bust.DefaultSize = nmsrSide
	picture(bust, of(nmsr), "/bodybust/", "/body_bust/")

	body := CompatRoute{Mode: render.Body, DefaultSize: 2 * compatSide, Measure: Width}
	picture(body, of(mcHeads, minotar, crafthead), "/body/")
	large := body
	large.Aspect, large.DefaultSize = Aspect{nmsrSide, 869}, 869
	picture(large, of(nmsr), "/fullbody/", "/full_body/")
	large.IsIsometric = true
	picture(large, of(nmsr), "/fullbodyiso/", "/full_body_iso/")
	figure.DefaultSize = figure.Aspect.HeightOf(discordSide)
	picture(figure, of(mcheads), "/iosbody/")
	figure.Aspect, figure.Scale = Aspect{1732, 3900}, mineatarBody
	figure.DefaultSize = figure.Aspect.HeightOf(compatSide)
	picture(figure, of(mineatar), "/body/full/")
	body.Measure, body.IsSizeFirst, body.DefaultSize = Height, true, render.DefaultHeight
	picture(body, of(vzge, nmsr), "/full/")

	front := CompatRoute{Mode: render.Front, DefaultSize: 2 * compatSide, Measure: Width}
	// Visage leads from a size at its player to the figure of 1.625 times the height.
	player := front
	player.WithSizeFirst = &CompatRoute{Mode: render.Body, Measure: Height, Factor: 1.625}
	picture(player, of(mcHeads, mcheads, lapitar), "/player/")
	picture(front, of(minotar, crafthead), "/armor/body/", "/armour/body/")
	side := front
	for side.Scale = mineatarSide; side.Mode <= render.Right; side.Mode++ {
		picture(side, of(mineatar), "/body/"+side.Mode.String()+"/")
	}
	front.Measure, front.IsSizeFirst, front.DefaultSize = Height, true, render.DefaultHeight
	picture(front, of(vzge, nmsr), "/frontfull/", "/front_full/", "/front/")
	front.Measure, front.IsSizeFirst, front.DefaultSize = Width, false, 2*nmsrSide
	picture(front, of(nmsr), "/frontbust/", "/front_bust/")
	picture(CompatRoute{Mode: render.Body, DefaultSize: 2 * compatSide, IsPosed: true}, of(starlight), "/render/", "/skin-render/")
	picture(CompatRoute{Mode: render.Preview, DefaultSize: render.DefaultHeight, Measure: Height, IsTexture: true}, of(blessing), "/preview/")

	file(SkinSlot, false, of(crafatar), "/skins/")
	file(SkinSlot, false, of(minotar, crafthead, mcHeads, vzge, nmsr, mineatar), "/skin/")
	file(SkinSlot, true, of(minotar, crafthead, mcHeads), "/download/")
	file(SkinSlot, false, of(vzge), "/processedskin/")
	file(SkinSlot, false, of(nmsr), "/texture/")
	file(CapeSlot, false, of(crafatar), "/capes/")
	file(CapeSlot, false, of(crafthead, nmsr), "/cape/")
	file(CapeSlot, false, of(nmsr), "/cloak/")
	// Beside our own, which have names.
	file(SkinSlot, false, nil, "/MinecraftSkins/")
	file(CapeSlot, false, nil, "/cloaks/", "/MinecraftCloaks/")
	return all
}()
