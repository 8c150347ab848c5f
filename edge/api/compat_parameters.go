package api

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
)

// compatParameters are the query parameters of compatible URLs.
type compatParameters struct {
	size, width, height, scale int // 0: not given
	yaw                        float64
	overlay, noOverlay         bool
	noCape, back               bool
	omit                       render.Omissions
	model                      skin.Type
	byDefaultSkin              edge.DefaultSkin
	hasYaw, hasDefault         bool
}

func parseCompatParameters(query string) compatParameters {
	params := compatParameters{byDefaultSkin: edge.DefaultAvatar}
	for query != "" {
		var name, value string
		name, value, query = cutParameter(query)
		params.set(name, unescape(value))
	}
	return params
}

// set sets a parameter. The first valid one of repeated ones counts; those that leave something out add up.
func (p *compatParameters) set(name, value string) {
	switch {
	case edge.EqualASCIIFold(name, "size"):
		setOnce(&p.size, value)
	case edge.EqualASCIIFold(name, "w"), edge.EqualASCIIFold(name, "width"), edge.EqualASCIIFold(name, "camerawidth"):
		setOnce(&p.width, value)
	case edge.EqualASCIIFold(name, "h"), edge.EqualASCIIFold(name, "height"), edge.EqualASCIIFold(name, "cameraheight"):
		setOnce(&p.height, value)
	case edge.EqualASCIIFold(name, "scale"):
		setOnce(&p.scale, value)
	case edge.EqualASCIIFold(name, "y"), edge.EqualASCIIFold(name, "yaw"):
		if yaw, err := strconv.ParseFloat(value, 64); err == nil && math.Abs(yaw) < math.MaxInt16 && !p.hasYaw {
			p.yaw, p.hasYaw = yaw, true
		}
	case edge.EqualASCIIFold(name, "overlay"), edge.EqualASCIIFold(name, "helm"):
		if !p.overlay {
			p.overlay, p.noOverlay = true, isFalse(value)
		}
	case edge.EqualASCIIFold(name, "no"), edge.EqualASCIIFold(name, "exclude"):
		p.leaveOut(value)
	case edge.EqualASCIIFold(name, "nolayers"):
		p.omit |= render.OmitHat | render.OmitLayers
	case edge.EqualASCIIFold(name, "noshading"):
		p.omit |= render.OmitLight
	case edge.EqualASCIIFold(name, "capeenabled"):
		p.noCape = p.noCape || isFalse(value)
	case edge.EqualASCIIFold(name, "back"):
		p.back = !isFalse(value)
	case edge.EqualASCIIFold(name, "model"):
		p.setModel(value)
	case edge.EqualASCIIFold(name, "slim"), edge.EqualASCIIFold(name, "alex"), edge.EqualASCIIFold(name, "wide"), edge.EqualASCIIFold(name, "steve"):
		p.setModel(name)
	case edge.EqualASCIIFold(name, "default"):
		p.setDefault(value)
	}
}

// isFalse reports whether a parameter that counts by its presence is there to say no.
func isFalse(value string) bool {
	return edge.EqualASCIIFold(value, "false") || edge.EqualASCIIFold(value, "no") || value == "0"
}

// leaveOut adds what a list leaves out. It knows the words of NMSR.
func (p *compatParameters) leaveOut(list string) {
	for list != "" {
		var name string
		name, list, _ = strings.Cut(list, ",")
		switch name = strings.TrimSpace(name); {
		case edge.EqualASCIIFold(name, "shading"):
			name = "light"
		case edge.EqualASCIIFold(name, "helmet"), edge.EqualASCIIFold(name, "hat_layer"):
			name = "hat"
		case edge.EqualASCIIFold(name, "overlay"), edge.EqualASCIIFold(name, "overlays"), edge.EqualASCIIFold(name, "body_layers"):
			name = "layers"
		}
		one, _ := edge.Omissions.Parse(name)
		p.omit |= one.Omit
		p.noCape = p.noCape || one.Cape
	}
}

func (p *compatParameters) setModel(name string) { p.model = cmp.Or(p.model, modelNamed(name)) }

// modelNamed returns the model of a name, 0 for any other word.
func modelNamed(name string) skin.Type {
	switch {
	case edge.EqualASCIIFold(name, "slim"), edge.EqualASCIIFold(name, "alex"):
		return skin.Slim
	case edge.EqualASCIIFold(name, "default"), edge.EqualASCIIFold(name, "classic"), edge.EqualASCIIFold(name, "wide"), edge.EqualASCIIFold(name, "steve"):
		return skin.Classic
	default:
		return 0
	}
}

// setDefault sets the default avatar. Of a UUID it is the one that the game shows for it. Addresses
// of pictures elsewhere are ignored, since a redirect to any address would help phishing.
func (p *compatParameters) setDefault(value string) {
	var scratch [36]byte
	uuid, isUUID := appendUUID(scratch[:0], value)
	byDefaultSkin, ok := edge.DefaultSkins.Parse(value)
	if p.hasDefault {
		return
	}
	p.hasDefault = true
	switch {
	case ok:
		p.byDefaultSkin = byDefaultSkin
	case edge.EqualASCIIFold(value, "mhf_steve"), edge.EqualASCIIFold(value, "steve"):
		p.byDefaultSkin = edge.DefaultClassic
	case edge.EqualASCIIFold(value, "mhf_alex"), edge.EqualASCIIFold(value, "alex"), isUUID && edge.DefaultModel(unsafeString(uuid)) == skin.Slim:
		p.byDefaultSkin = edge.DefaultSlim
	case isUUID:
		p.byDefaultSkin = edge.DefaultClassic
	default:
		p.hasDefault = false
	}
}

// defaultSkinNamed returns the default skin that a name stands for at other services if there is no such player, else
// the site's default avatar.
func defaultSkinNamed(name string) edge.DefaultSkin {
	switch {
	case edge.EqualASCIIFold(name, "mhf_alex"), edge.EqualASCIIFold(name, "x-alex"):
		return edge.DefaultSlim
	case edge.EqualASCIIFold(name, "mhf_steve"), edge.EqualASCIIFold(name, "x-steve"):
		return edge.DefaultClassic
	default:
		return edge.DefaultAvatar
	}
}

// sizeOf returns the side or the height in pixels.
func (p *compatParameters) sizeOf(path *compatPath) int {
	route := path.route
	const maxScale = 10 // of Crafatar, which some programs give as size
	scale := p.scale
	if route.IsBare && p.size <= maxScale {
		scale = cmp.Or(scale, p.size)
	}
	switch size := cmp.Or(path.size, p.size); {
	case scale > 0 && route.Scale > 0 && path.size == 0:
		return int(float64(scale) * route.Scale)
	case size > 0 && route.Measure == edge.Width:
		return route.Aspect.HeightOf(size)
	case size > 0:
		return int(float64(size) * cmp.Or(route.Factor, 1))
	case p.hasBoth(path):
		return p.height
	case p.width > 0 && route.Measure != edge.Side:
		return route.Aspect.HeightOf(p.width)
	case p.width > 0:
		return p.width
	case p.height > 0:
		return p.height
	default:
		return route.DefaultSize
	}
}

// widthOf returns the width in pixels of a figure with a height.
func (p *compatParameters) widthOf(path *compatPath, height int) int {
	if p.hasBoth(path) {
		return p.width
	}
	return path.route.Aspect.WidthOf(height)
}

// hasBoth reports whether a figure has the width and the height of the parameters.
func (p *compatParameters) hasBoth(path *compatPath) bool {
	return path.route.Measure != edge.Side && p.width > 0 && p.height > 0 && cmp.Or(path.size, p.size) == 0
}

// omissions returns what a picture in a mode leaves out.
func (p *compatParameters) omissions(mode render.Mode, path *compatPath) render.Omissions {
	omit := p.omit
	if path.noHat || mode == render.Flat && omit&render.OmitLayers != 0 { // a face has no other layer
		omit |= render.OmitHat
	}
	if p.noOverlay || path.route.IsBare && !p.overlay && !path.overlay {
		omit |= render.OmitHat | render.OmitLayers
	}
	return omit
}

// attitude returns the attitude of a head or a figure: left and right are where its front is.
func (p *compatParameters) attitude(mode render.Mode, path *compatPath) render.Attitude {
	const frontRight, frontLeft, half = 1, 7, render.TurnCount / 2
	own, tilt := mode.DefaultAttitude()
	switch {
	case path.route.IsIsometric:
		own, tilt = frontRight, render.TiltIso
	case path.route.IsFrontLeft:
		own = frontLeft
	}
	turn := own
	switch {
	case p.hasYaw:
		turn = turnOf(own, p.yaw, mode == render.Isometric, path.isSizeFirst)
	case path.left:
		turn = frontLeft
	case path.right:
		turn = frontRight
	}
	if p.back {
		turn += half
	}
	return mode.Attitude((turn%render.TurnCount+render.TurnCount)%render.TurnCount, tilt)
}

// turnOf returns the turn of a yaw in degrees, given the turn of the service's own yaw, in which the front is on one
// side. VZGE, which has the size first, adds the yaw to its own; others have it in place of their own. As their own are as
// little as 20 degrees, the first eighth of a turn begins at 10.
func turnOf(own int, yaw float64, isHead, isAdded bool) int {
	eighths := func(yaw float64) int {
		const eighth, least, own = 45, 10, 20
		count := math.Floor((math.Abs(yaw) + eighth - own) / eighth)
		if math.Abs(yaw) >= least {
			count = max(count, 1)
		}
		return int(math.Copysign(count, yaw))
	}
	ownYaw := 20.0
	if isHead && isAdded {
		ownYaw = -35
	}
	if isAdded {
		yaw += ownYaw
	}
	if (own < render.TurnCount/2) != (ownYaw > 0) { // it turns the other way
		yaw = -yaw
	}
	return eighths(yaw)
}

// setOnce sets a number to a size, unless it is set. Other services read the digits that a value begins with, as of
// 64.png.
func setOnce(number *int, value string) {
	if *number != 0 {
		return
	}
	size, ok := parseSize(value)
	if digits := leadingDigits(value); !ok && digits > 0 {
		size = max(1, positiveInteger(value[:digits]))
	}
	*number = size
}

// positiveInteger returns an integer, or 0 if a text is none or not positive. It is small enough to
// be multiplied.
func positiveInteger(text string) int {
	n, ok := parseInteger(text)
	if !ok {
		return 0
	}
	return int(min(max(n, 0), math.MaxInt16))
}
