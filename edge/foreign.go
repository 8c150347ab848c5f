package edge

import "github.com/veneer-skins/veneer/edge/render"

// Foreign is an address of other services that serve skins, which plugins and sites are set to.
// After the prefix come a player's name, its UUID, a texture's number or its hash, and for most
// pictures a size, each as a segment of the path. Package api has the rules.
type Foreign struct {
	Prefix   string   // one or two segments, with slashes at both ends
	Services []string // that have the address, none if it is our own with other subjects
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

// Pattern returns the address with placeholders for the subject and the size, as one of its services has it.
func (f *Foreign) Pattern(service string) string {
	switch {
	case f.Kind == KindFile:
		return f.Prefix + "{id}"
	case service == crafatar && f.Mode == render.Flat:
		return f.Prefix + "{id}?size={size}&overlay"
	case service == crafatar:
		return f.Prefix + "{id}?scale={scale}&overlay"
	case service == mineatar:
		return f.Prefix + "{id}?scale={scale}"
	case service == nmsr:
		return f.Prefix + "{id}?w={width}"
	case service == vzge:
		return f.Prefix + "{size}/{id}"
	default:
		return f.Prefix + "{id}/{size}"
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
	foreignSide   = 180 // the default of Minotar, mc-heads.net and crafthead
	crafatarScale = 6   // the default of Crafatar
)

// Foreigns are the addresses of other services. Addresses of Views win over them.
var Foreigns = func() (all []*Foreign) {
	picture := func(template Foreign, prefixes ...string) {
		for _, prefix := range prefixes {
			address := template
			address.Kind, address.Prefix = KindPicture, prefix
			all = append(all, &address)
		}
	}
	file := func(slot TextureSlot, isAttachment bool, services []string, prefixes ...string) {
		for _, prefix := range prefixes {
			all = append(all, &Foreign{Kind: KindFile, Slot: slot, Services: services, Prefix: prefix, IsAttachment: isAttachment})
		}
	}
	of := func(services ...string) []string { return services }

	// Crafatar's heads are 20 units wide and its figures 45 high.
	const crafatarHead, crafatarBody = 20, 45
	picture(Foreign{Services: of(crafatar), Mode: render.Flat, DefaultSize: 160, IsBare: true}, "/avatars/")
	picture(Foreign{Services: of(crafatar), Mode: render.Isometric, DefaultSize: crafatarHead * crafatarScale, Scale: crafatarHead, IsBare: true}, "/renders/head/")
	picture(Foreign{Services: of(crafatar), Mode: render.Body, DefaultSize: crafatarBody * crafatarScale, Measure: Height, Scale: crafatarBody, IsBare: true}, "/renders/body/")

	// Mineatar's faces are 8 units wide, its heads 16 high and its figures 39.
	face := Foreign{Mode: render.Flat, DefaultSize: foreignSide, Scale: 8}
	face.Services = of(minotar, crafthead, mcHeads, cravatar, mcheads)
	picture(face, "/avatar/")
	face.Services = of(minotar, crafthead)
	picture(face, "/helm/")
	face.Services = of(cravatar)
	picture(face, "/helmavatar/")
	face.Services, face.IsSizeFirst = of(vzge, nmsr, mineatar), true
	picture(face, "/face/")

	head := Foreign{Mode: render.Isometric, DefaultSize: foreignSide, Scale: 16}
	head.Services = of(mcHeads, cravatar, mcheads, vzge, nmsr, mineatar)
	picture(head, "/head/")
	head.Services = of(minotar, crafthead)
	picture(head, "/cube/", "/cubehelm/")
	head.Services = of(crafthead)
	picture(head, "/armor/cube/")
	head.Services = of(cravatar)
	picture(head, "/helmhead/")
	head.Services = of(nmsr)
	picture(head, "/headiso/")
	head.Services = of(mcheads)
	picture(head, "/ioshead/")

	bust := Foreign{Mode: render.Bust, DefaultSize: foreignSide}
	bust.Services = of(minotar, crafthead, vzge, nmsr)
	picture(bust, "/bust/")
	bust.Services = of(minotar, crafthead)
	picture(bust, "/armor/bust/", "/armour/bust/")
	bust.Services = of(lapitar)
	picture(bust, "/portrait/")
	bust.Services = of(nmsr)
	picture(bust, "/bodybust/")

	body := Foreign{Mode: render.Body, DefaultSize: 2 * foreignSide, Measure: Width, Scale: 39}
	body.Services = of(mcHeads, minotar, crafthead)
	picture(body, "/body/")
	body.Services = of(nmsr)
	picture(body, "/fullbody/", "/fullbodyiso/")
	body.Services = of(mcheads)
	picture(body, "/iosbody/")
	body.Services = of(mineatar)
	picture(body, "/body/full/")
	body.Services, body.Measure, body.IsSizeFirst, body.DefaultSize = of(vzge, nmsr), Height, true, render.DefaultHeight
	picture(body, "/full/")

	front := Foreign{Mode: render.Front, DefaultSize: 2 * foreignSide, Measure: Width, Scale: 32}
	front.Services = of(mcHeads, mcheads, lapitar)
	picture(front, "/player/")
	front.Services = of(minotar, crafthead)
	picture(front, "/armor/body/", "/armour/body/")
	front.Services = of(mineatar)
	picture(front, "/body/front/")
	side := front
	side.Mode = render.Back
	picture(side, "/body/back/")
	side.Mode = render.Left
	picture(side, "/body/left/")
	side.Mode = render.Right
	picture(side, "/body/right/")
	front.Measure, front.IsSizeFirst, front.DefaultSize = Height, true, render.DefaultHeight
	front.Services = of(vzge, nmsr)
	picture(front, "/frontfull/", "/front/")
	front.Services, front.IsSizeFirst = of(nmsr), false
	picture(front, "/frontbust/")

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
