package skin_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Colours of texels: red, green, blue, alpha.
var (
	none  = [4]byte{}
	black = [4]byte{0, 0, 0, 255}
	white = [4]byte{255, 255, 255, 255}
	grey  = [4]byte{128, 128, 128, 255}
	plum  = [4]byte{120, 40, 160, 255}
	flesh = [4]byte{222, 170, 130, 255}
)

var (
	arms      = []skin.Part{skin.RightArm, skin.LeftArm}
	armLayers = []skin.Part{skin.RightSleeve, skin.LeftSleeve}
	bases     = []skin.Part{skin.Head, skin.Body, skin.RightArm, skin.LeftArm, skin.RightLeg, skin.LeftLeg}
	layers    = []skin.Part{skin.Hat, skin.Jacket, skin.RightSleeve, skin.LeftSleeve, skin.RightPants, skin.LeftPants}
)

// wideOnly are the texels of the arms that only the classic model uses: the far half of
// each bottom and of each back.
var wideOnly = []skin.Rect{{X: 50, Y: 16, W: 2, H: 4}, {X: 54, Y: 20, W: 2, H: 12}, {X: 42, Y: 48, W: 2, H: 4}, {X: 46, Y: 52, W: 2, H: 12}}

// change modifies a sheet of a model.
type change func(sheet skin.Sheet, model skin.Type)

// facesOf returns the faces of parts.
func facesOf(model skin.Type, parts ...skin.Part) (faces []skin.Rect) {
	for _, part := range parts {
		box := skin.Faces(part, model)
		faces = append(faces, box.Top, box.Bottom, box.Right, box.Front, box.Left, box.Back)
	}
	return faces
}

// fill paints parts in one colour.
func fill(texel [4]byte, parts ...skin.Part) change {
	return func(sheet skin.Sheet, model skin.Type) {
		for _, face := range facesOf(model, parts...) {
			paintRect(sheet, face, texel)
		}
	}
}

// sleeves paints the upper ten rows of the arms and leaves the hands.
func sleeves(texel [4]byte) change {
	return func(sheet skin.Sheet, model skin.Type) {
		for _, arm := range arms {
			box := skin.Faces(arm, model)
			paintRect(sheet, box.Top, texel)
			for _, side := range []skin.Rect{box.Right, box.Front, box.Left, box.Back} {
				paintRect(sheet, skin.Rect{X: side.X, Y: side.Y, W: side.W, H: 10}, texel)
			}
		}
	}
}

// each modifies every texel of some rectangles in classic units, or of the whole sheet.
func each(to func(texel []byte), areas ...skin.Rect) change {
	return func(sheet skin.Sheet, _ skin.Type) {
		k := sheet.Scale()
		if areas == nil {
			areas = []skin.Rect{{W: 64, H: 64}}
		}
		for _, area := range areas {
			area = area.Scaled(k)
			for y := area.Y; y < area.Y+area.H; y++ {
				for x := area.X; x < area.X+area.W; x++ {
					to(sheet.Pix[sheet.At(x, y):][:4])
				}
			}
		}
	}
}

// onParts modifies every texel of parts.
func onParts(to func(texel []byte), parts ...skin.Part) change {
	return func(sheet skin.Sheet, model skin.Type) {
		each(to, facesOf(model, parts...)...)(sheet, model)
	}
}

// behind paints the texels that no part of the model uses, as programs do that save no
// transparency.
func behind(texel [4]byte) change {
	return func(sheet skin.Sheet, model skin.Type) {
		painted := copied(sheet)
		each(func(to []byte) { copy(to, texel[:]) })(sheet, model)
		for _, face := range facesOf(model, append(slices.Clone(bases), layers...)...) {
			face = face.Scaled(sheet.Scale())
			for y := face.Y; y < face.Y+face.H; y++ {
				copy(sheet.Pix[sheet.At(face.X, y):][:4*face.W], painted.Pix[painted.At(face.X, y):])
			}
		}
	}
}

// flat replaces transparent texels by a colour, including those of layers.
func flat(texel [4]byte) change {
	return each(func(to []byte) {
		if to[3] == 0 {
			copy(to, texel[:])
		}
	})
}

// alpha gives painted texels another alpha.
func alpha(of func() byte) func(texel []byte) {
	return func(texel []byte) {
		if texel[3] > 0 {
			texel[3] = of()
		}
	}
}

// halves paints the left half of each face of the arms in one colour, the rest in another.
func halves(left, right [4]byte) change {
	return func(sheet skin.Sheet, model skin.Type) {
		for _, face := range facesOf(model, arms...) {
			paintRect(sheet, face, right)
			paintRect(sheet, skin.Rect{X: face.X, Y: face.Y, W: 2, H: face.H}, left)
		}
	}
}

// edgeSpots paints one texel beside each strip that only wide arms use.
func edgeSpots(texel [4]byte) change {
	return func(sheet skin.Sheet, _ skin.Type) {
		for _, strip := range wideOnly {
			paintRect(sheet, skin.Rect{X: strip.X - 1, Y: strip.Y + 1, W: 1, H: 1}, texel)
		}
	}
}

// fillUnused fills what slim arms leave of the sheet.
func fillUnused(texel [4]byte) change {
	return func(sheet skin.Sheet, model skin.Type) {
		for _, strip := range wideOnly {
			if model == skin.Slim {
				paintRect(sheet, strip, texel)
			}
		}
	}
}

func always(value byte) func() byte { return func() byte { return value } }

// strays paints some texels of every strip that only wide arms use.
func strays(count int, texel [4]byte) change {
	return func(sheet skin.Sheet, _ skin.Type) {
		for i, strip := range wideOnly {
			for j := range count {
				at := (5*i + 3*j) % (strip.W * strip.H)
				paintRect(sheet, skin.Rect{X: strip.X + at%strip.W, Y: strip.Y + at/strip.W, W: 1, H: 1}, texel)
			}
		}
	}
}

// enlarged returns the sheet with k × k texels for each.
func enlarged(sheet skin.Sheet, k int) skin.Sheet {
	large := skin.NewSheet(k*sheet.Width, k*sheet.Height)
	for y := range large.Height {
		for x := range large.Width {
			copy(large.Pix[large.At(x, y):][:4], sheet.Pix[sheet.At(x/k, y/k):])
		}
	}
	return large
}

// paintings returns ways to paint and to save a skin.
func paintings() []painting {
	random := rand.New(rand.NewPCG(1, 2))
	noise := alpha(func() byte { return byte(128 + random.IntN(128)) })
	grain := func(texel []byte) {
		for i := range 3 {
			texel[i] = byte(min(max(int(texel[i])+random.IntN(25)-12, 0), 255))
		}
	}
	var encoded []skin.Rect // the texels that the game makes opaque
	for _, part := range bases {
		encoded = append(encoded, facesOf(skin.Classic, part)...)
	}
	opaque := each(func(texel []byte) { texel[3] = 255 },
		skin.Rect{W: 32, H: 16}, skin.Rect{Y: 16, W: 64, H: 16}, skin.Rect{X: 16, Y: 48, W: 32, H: 16})
	return []painting{
		{"as painted", nil},
		{"black sleeves", changes{sleeves(black)}},
		{"white sleeves", changes{sleeves(white)}},
		{"black arms", changes{fill(black, arms...)}},
		{"white arms", changes{fill(white, arms...)}},
		{"black arms with a white spot", changes{fill(black, arms...), edgeSpots(white)}},
		{"black arms with a spot that is nearly black", changes{fill(black, arms...), edgeSpots([4]byte{1, 1, 1, 255})}},
		{"black arms of alpha 254 with a white spot", changes{fill([4]byte{0, 0, 0, 254}, arms...), edgeSpots(white)}},
		{"arms half white, half black", changes{halves(white, black)}},
		{"all black", changes{fill(black, bases...)}},
		{"all white", changes{fill(white, bases...)}},
		{"half-transparent", changes{each(alpha(always(128)))}},
		{"half-transparent base", changes{onParts(alpha(always(128)), bases...)}},
		{"alpha 254 in the arms", changes{onParts(alpha(always(254)), arms...)}},
		{"alpha 1 in the arms", changes{onParts(alpha(always(1)), arms...)}},
		{"data in the base's alpha", changes{onParts(noise, bases...)}},
		{"data in all alpha", changes{each(noise)}},
		{"data in the alpha of wide limbs", changes{each(func(texel []byte) { texel[3] = 255 }, encoded...), each(noise, encoded...)}},
		{"black sleeves, data in the alpha of wide limbs", changes{sleeves(black), each(func(texel []byte) { texel[3] = 255 }, encoded...), each(noise, encoded...)}},
		{"all black, data in all alpha", changes{fill(black, bases...), each(noise)}},
		{"grain", changes{each(grain)}},
		{"grey behind", changes{behind(grey)}},
		{"plum behind", changes{behind(plum)}},
		{"black behind", changes{behind(black)}},
		{"white behind", changes{behind(white)}},
		{"no transparency, black", changes{flat(black)}},
		{"no transparency, white", changes{flat(white)}},
		{"no transparency, grey", changes{flat(grey)}},
		{"black sleeves, black behind", changes{sleeves(black), behind(black)}},
		{"black sleeves, no transparency", changes{sleeves(black), flat(black)}},
		{"white sleeves, white behind", changes{sleeves(white), behind(white)}},
		{"black in the strips that only wide arms use", changes{fillUnused(black)}},
		{"no layers", changes{fill(none, layers...)}},
		{"bare arms", changes{fill(flesh, arms...)}},
		{"layers only, whole sleeves", changes{fill(none, bases...), fill(plum, armLayers...)}},
		{"arms in the layer only", changes{fill(none, arms...), fill(flesh, armLayers...)}},
		{"no left arm", changes{fill(none, skin.LeftArm, skin.LeftSleeve)}},
		{"no right arm", changes{fill(none, skin.RightArm, skin.RightSleeve)}},
		{"made opaque as the game does", changes{opaque}},
		{"black sleeves, made opaque as the game does", changes{sleeves(black), opaque}},
		{"a stray texel in each strip", changes{strays(1, plum)}},
		{"two stray texels in each strip", changes{strays(2, plum)}},
		{"a forgotten texel in each strip", changes{strays(1, none)}},
		{"two forgotten texels in each strip", changes{strays(2, none)}},
	}
}

type changes []change

type painting struct {
	name    string
	changes changes
}

// The model of every skin in the corpus is detected, in whichever of these ways it was
// painted.
func TestDetectModel(t *testing.T) {
	t.Parallel()
	figures := skintest.Skins()
	for i, p := range paintings() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p := paintings()[i] // with a random source of its own
			for _, figure := range figures {
				if figure.Sheet.Height < figure.Sheet.Width || strings.Contains(figure.Name, "Noise") {
					continue
				}
				sheet := copied(figure.Sheet)
				for _, change := range p.changes {
					change(sheet, figure.Type)
				}
				testenv.Equal(t, skin.DetectModel(sheet), figure.Type, "%s is detected as", figure.Name)
			}
		})
	}
}

// The scale of a sheet makes no difference.
func TestDetectModelScales(t *testing.T) {
	t.Parallel()
	for _, figure := range []artwork.NamedSheet{
		{Name: "Explorer", Type: skin.Classic, Sheet: artwork.Explorer()},
		{Name: "Ranger", Type: skin.Slim, Sheet: artwork.Ranger()},
	} {
		for _, p := range paintings() {
			sheet := copied(figure.Sheet)
			for _, change := range p.changes {
				change(sheet, figure.Type)
			}
			for k := 1; k <= 8; k++ {
				testenv.Equal(t, skin.DetectModel(enlarged(sheet, k)), figure.Type,
					"%s, %s, scale %d: detected as", figure.Name, p.name, k)
			}
		}
	}
}

// Without evidence the model is Classic.
func TestDetectModelDefault(t *testing.T) {
	t.Parallel()
	f := func(name string, sheet skin.Sheet) {
		t.Helper()
		for k := 1; k <= 8; k++ {
			testenv.Equal(t, skin.DetectModel(enlarged(sheet, k)), skin.Classic, "%s, scale %d: detected as", name, k)
		}
	}

	for _, texel := range [][4]byte{none, black, white, grey} {
		sheet := skin.NewSheet(64, 64)
		paintRect(sheet, skin.Rect{W: 64, H: 64}, texel)
		f(fmt.Sprintf("nothing but %v", texel), sheet)
	}
	f("every texel of another colour", skintest.Marker(64, 64))
	layersOnly := artwork.Ranger()
	fill(none, append(slices.Clone(bases), armLayers...)...)(layersOnly, skin.Slim)
	f("layers without sleeves", layersOnly)

	for _, figure := range skintest.Skins() {
		if figure.Sheet.Height < figure.Sheet.Width {
			f("legacy "+figure.Name, figure.Sheet)
			square := skin.NewSheet(figure.Sheet.Width, figure.Sheet.Width)
			copy(square.Pix, figure.Sheet.Pix)
			if !strings.Contains(figure.Name, "Noise") {
				f("legacy on a square sheet, "+figure.Name, square)
			}
		}
	}
	transparent := skin.NewSheet(64, 32)
	f("a transparent legacy sheet", transparent)
	opaque := skin.NewSheet(64, 32)
	paintRect(opaque, skin.Rect{W: 64, H: 32}, black)
	f("an opaque legacy sheet", opaque)
}

// One transparent texel in a strip is no evidence of slim arms.
func TestDetectModelForgottenTexel(t *testing.T) {
	t.Parallel()
	explorer := artwork.Explorer()
	for _, strip := range wideOnly {
		for i := range strip.W * strip.H {
			sheet := copied(explorer)
			paintRect(sheet, skin.Rect{X: strip.X + i%strip.W, Y: strip.Y + i/strip.W, W: 1, H: 1}, none)
			testenv.Equal(t, skin.DetectModel(sheet), skin.Classic,
				"texel %d of the strip at %d, %d: detected as", i, strip.X, strip.Y)
		}
	}
}

func copied(sheet skin.Sheet) skin.Sheet {
	sheet.Pix = bytes.Clone(sheet.Pix)
	return sheet
}
