package edge

import "github.com/veneer-skins/veneer/edge/render"

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
	// Measure is what a size in the path, or the parameter size, is.
	Measure Measure
	// IsSizeFirst says which of two numbers in the path is the size. The other one is a texture.
	IsSizeFirst bool
	// Scale is how many pixels of the side or the height a unit of the parameter scale is.
	Scale int
	// IsBare says that the hat and the other layers are shown only with the parameter overlay or
	// helm.
	IsBare bool
	// IsAttachment says that the file is to be saved and not shown.
	IsAttachment bool
}

// Pattern returns the URL with placeholders for the subject and the size, as one of the services has it.
func (r *CompatRoute) Pattern(service string) string {
	switch {
	case r.Kind == KindFile:
		return r.Prefix + "{id}"
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

// Measure is a length of a picture.
type Measure uint8

// The measures.
const (
	Side   Measure = iota // of a square
	Width                 // of a figure, half of its height
	Height                // of a figure
)

// Names of services. crafatar.com has been unreachable since November 2025.
const (
	crafatar  = "Crafatar"
	crafthead = "crafthead"
	cravatar  = "cravatar.eu"
	lapitar   = "Lapitar"
	mcHeads   = "mc-heads.net"
	mcheads   = "mcheads.org"
	mineatar  = "mineatar"
	minotar   = "Minotar"
	nmsr      = "NMSR"
	vzge      = "VZGE"
)

const (
	compatSide    = 180 // the default of Minotar, mc-heads.net and crafthead
	crafatarScale = 6   // the default of Crafatar
)

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

	// Crafatar's heads are 20 units wide and its figures 45 high.
	const crafatarHead, crafatarBody = 20, 45
	bare := CompatRoute{Mode: render.Flat, DefaultSize: 160, IsBare: true}
	picture(bare, of(crafatar), "/avatars/")
	bare.Mode, bare.DefaultSize, bare.Scale = render.Isometric, crafatarHead*crafatarScale, crafatarHead
	picture(bare, of(crafatar), "/renders/head/")
	bare.Mode, bare.DefaultSize, bare.Scale, bare.Measure = render.Body, crafatarBody*crafatarScale, crafatarBody, Height
	picture(bare, of(crafatar), "/renders/body/")

	// Mineatar's faces are 8 units wide, its heads 16 high and its figures 39.
	face := CompatRoute{Mode: render.Flat, DefaultSize: compatSide, Scale: 8}
	picture(face, of(minotar, crafthead, mcHeads, cravatar, mcheads), "/avatar/")
	picture(face, of(minotar, crafthead), "/helm/")
	picture(face, of(cravatar), "/helmavatar/")
	face.IsSizeFirst = true
	picture(face, of(vzge, nmsr, mineatar), "/face/")

	head := CompatRoute{Mode: render.Isometric, DefaultSize: compatSide, Scale: 16}
	picture(head, of(mcHeads, cravatar, mcheads, vzge, nmsr, mineatar), "/head/")
	picture(head, of(minotar, crafthead), "/cube/", "/cubehelm/")
	picture(head, of(crafthead), "/armor/cube/")
	picture(head, of(cravatar), "/helmhead/")
	picture(head, of(nmsr), "/headiso/")
	picture(head, of(mcheads), "/ioshead/")

	bust := CompatRoute{Mode: render.Bust, DefaultSize: compatSide}
	picture(bust, of(minotar, crafthead, vzge, nmsr), "/bust/")
	picture(bust, of(minotar, crafthead), "/armor/bust/", "/armour/bust/")
	picture(bust, of(lapitar), "/portrait/")
	picture(bust, of(nmsr), "/bodybust/")

	body := CompatRoute{Mode: render.Body, DefaultSize: 2 * compatSide, Measure: Width, Scale: 39}
	picture(body, of(mcHeads, minotar, crafthead), "/body/")
	picture(body, of(nmsr), "/fullbody/", "/fullbodyiso/")
	picture(body, of(mcheads), "/iosbody/")
	picture(body, of(mineatar), "/body/full/")
	body.Measure, body.IsSizeFirst, body.DefaultSize = Height, true, render.DefaultHeight
	picture(body, of(vzge, nmsr), "/full/")

	front := CompatRoute{Mode: render.Front, DefaultSize: 2 * compatSide, Measure: Width, Scale: 32}
	picture(front, of(mcHeads, mcheads, lapitar), "/player/")
	picture(front, of(minotar, crafthead), "/armor/body/", "/armour/body/")
	for side := front; side.Mode <= render.Right; side.Mode++ {
		picture(side, of(mineatar), "/body/"+side.Mode.String()+"/")
	}
	front.Measure, front.IsSizeFirst, front.DefaultSize = Height, true, render.DefaultHeight
	picture(front, of(vzge, nmsr), "/frontfull/", "/front/")
	front.IsSizeFirst = false
	picture(front, of(nmsr), "/frontbust/")

	file(SkinSlot, false, of(crafatar), "/skins/")
	file(SkinSlot, false, of(minotar, crafthead, mcHeads, vzge, nmsr, mineatar), "/skin/")
	file(SkinSlot, true, of(minotar, crafthead, mcHeads), "/download/")
	file(SkinSlot, false, of(vzge), "/processedskin/")
	file(SkinSlot, false, of(nmsr), "/texture/")
	file(CapeSlot, false, of(crafatar), "/capes/")
	file(CapeSlot, false, of(crafthead, nmsr), "/cape/")
	file(CapeSlot, false, of(nmsr), "/cloak/")
	file(CapeSlot, false, nil, "/cloaks/") // beside our own /cloaks/{name}
	return all
}()
