package edge

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

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

// Values are the values of a parameter. Parsing, error messages and documents are made from them.
type Values[T comparable] []struct {
	Name  string // in lower case
	Value T
}

// The values of parameters that name one of a few, in the order of documents.
var (
	Tilts        = Values[render.Tilt]{{"iso", render.TiltIso}, {"25", render.Tilt25}, {"0", render.TiltLevel}}
	Poses        = Values[render.Pose]{{"stand", render.Stand}, {"walk", render.Walk}, {"wave", render.Wave}, {"sit", render.Sit}, {"sneak", render.Sneak}}
	Wears        = Values[render.Wear]{{"cape", render.WearCape}, {"elytra", render.WearElytra}, {"none", render.WearNothing}}
	Omissions    = Values[Omission]{{"hat", Omission{Omit: render.OmitHat}}, {"layers", Omission{Omit: render.OmitLayers}}, {"light", Omission{Omit: render.OmitLight}}, {"cape", Omission{Cape: true}}}
	DefaultSkins = Values[DefaultSkin]{{"404", DefaultNone}, {"avatar", DefaultAvatar}, {"classic", DefaultClassic}, {"slim", DefaultSlim}}
)

// Omission is what a picture leaves out. The cape is no part of the skin.
type Omission struct {
	Omit render.Omissions
	Cape bool
}

// Parse returns the value with a name in any case.
func (v Values[T]) Parse(name string) (value T, ok bool) {
	for i := range v {
		if EqualASCIIFold(name, v[i].Name) {
			return v[i].Value, true
		}
	}
	return value, false
}

// Names returns the names of all values.
func (v Values[T]) Names() []string {
	names := make([]string, len(v))
	for i := range v {
		names[i] = v[i].Name
	}
	return names
}

// NameOf returns the name of a value.
func (v Values[T]) NameOf(value T) string {
	for i := range v {
		if v[i].Value == value {
			return v[i].Name
		}
	}
	return ""
}

// List returns the names with commas and a conjunction before the last one, as in error messages.
func (v Values[T]) List(conjunction string) string {
	names, last := v.Names(), len(v)-1
	return strings.Join(names[:last], ", ") + " " + conjunction + " " + names[last]
}

// EqualASCIIFold reports whether a string equals a name but for the case of ASCII letters. The name is given in lower
// case.
func EqualASCIIFold(text, name string) bool {
	if len(text) != len(name) {
		return false
	}
	for i := range len(name) {
		c := text[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != name[i] {
			return false
		}
	}
	return true
}

// Parameters are the query parameters of all views, in the order of View.Parameters.
var Parameters = []Parameter{
	{"size", pixels(render.Flat), "the side, rounded up to a multiple of 8"},
	{"height", pixels(render.Body), "the height, rounded up to a multiple of 16"},
	{"width", []string{"a quarter to three quarters of the height"}, "the width, by default half of the height; what is added or taken away is margin, and a figure that would not fit is smaller"},
	{"3d", []string{anyValue}, "the head in three dimensions"},
	{"turn", []string{"0", "1", "2", "3", "4", "5", "6", "7"}, "eighths of a full turn: 0 shows the front, 1 the front on the viewer's right, 4 the back, 7 the front on the viewer's left"},
	{"tilt", Tilts.Names(), "the elevation of the viewer in degrees; iso is 35.264"},
	{"pose", Poses.Names(), "how the figure stands"},
	{"wear", Wears.Names(), "what a player with a cape wears on the back; users and textures have none"},
	{"background", []string{"a colour as RRGGBB"}, "the colour behind the figures, in place of the usual green"},
	{"no", Omissions.Names(), "what is left out, a list with commas; layers are all but the hat"},
	{"exact", []string{anyValue}, "as many pixels as asked for, without rounding up"},
	{"default", DefaultSkins.Names(), "what is shown without such a player or skin: an error, the default skin that the game gives the UUID, or one of them. Without the parameter a user has classic, all others have 404"},
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
		return Tilts.NameOf(tilt)
	case "pose":
		return Poses.NameOf(render.Stand)
	case "wear":
		return Wears.NameOf(render.WearCape)
	}
	return ""
}
