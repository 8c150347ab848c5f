package edge

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/veneer-skins/veneer/edge/render"
)

// Parameter is a query parameter of views, for documents.
type Parameter struct {
	Name string
	// Values are all that it may have, or what these are in one phrase.
	Values []string
	Help   string
}

// anyValue is of parameters that count by their presence.
const anyValue = "any value"

// tilts are the values of the parameter tilt.
var tilts = [...]string{render.TiltIso: "iso", render.Tilt25: "25", render.TiltLevel: "0"}

// Parameters are the query parameters of all views, in the order of View.Parameters.
var Parameters = []Parameter{
	{"size", pixels(render.Flat), "the side, rounded up to a multiple of 8"},
	{"height", pixels(render.Body), "the height, rounded up to a multiple of 16"},
	{"3d", []string{anyValue}, "the head in three dimensions"},
	{"turn", []string{"0", "1", "2", "3", "4", "5", "6", "7"}, "eighths of a full turn: 0 shows the front, 1 the front on the viewer's right, 4 the back, 7 the front on the viewer's left"},
	{"tilt", tilts[:], "the elevation of the viewer in degrees; iso is 35.264"},
	{"pose", []string{"stand", "walk", "wave", "sit", "sneak"}, "how the figure stands"},
	{"wear", []string{"cape", "elytra", "none"}, "what a player with a cape wears on the back; users and textures have none"},
	{"no", []string{"hat", "layers", "light", "cape"}, "what is left out, a list with commas; layers are all but the hat"},
	{"exact", []string{anyValue}, "as many pixels as asked for, without rounding up"},
	{"default", []string{"404", "avatar", "classic", "slim"}, "what is shown without such a player or skin: an error, the default skin that the game gives the UUID, or one of them. Without the parameter a user has classic, all others have 404"},
	{"download", []string{anyValue}, "browsers save the file"},
	{"png", []string{anyValue}, "PNG in place of WebP, as with .png at the end of the path"},
}

// pixels returns the range of sizes in a mode.
func pixels(mode render.Mode) []string {
	return []string{fmt.Sprintf("%d to %d pixels", mode.SizeOf(0), mode.SizeOf(math.MaxInt32))}
}

// Use is what views make of a parameter.
type Use struct {
	Views   []string // the first segments of their paths, each with a slash before it
	Default string   // the value by default, empty for none
}

// Uses returns which views have the parameter. Those with one default are together.
func (p Parameter) Uses() (uses []Use) {
	for _, view := range Views {
		if !slices.Contains(view.Parameters(view.Routes[0].Subject), p.Name) {
			continue
		}
		if byDefault := view.defaultOf(p.Name); len(uses) == 0 || uses[len(uses)-1].Default != byDefault {
			uses = append(uses, Use{Default: byDefault})
		}
		use := &uses[len(uses)-1]
		if name := "/" + view.Name(); !slices.Contains(use.Views, name) {
			use.Views = append(use.Views, name)
		}
	}
	return uses
}

// defaultOf returns the value that a parameter has by default, empty for none.
func (v *View) defaultOf(parameter string) string {
	switch parameter {
	case "size", "height":
		return strconv.Itoa(v.Picture.DefaultSize)
	case "turn":
		turn, _ := v.Picture.Mode.DefaultAttitude()
		return strconv.Itoa(turn)
	case "tilt":
		_, tilt := v.Picture.Mode.DefaultAttitude()
		return tilts[tilt]
	case "pose":
		return "stand"
	case "wear":
		return "cape"
	}
	return ""
}
