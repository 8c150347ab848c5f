// Package artwork has the project's own skins and capes as PNG files: the skin of avatars of
// subjects without one, and the textures of the demo. They are original, and have the licence of
// the repository.
package artwork

import (
	"embed"
	"fmt"
	"strings"

	"github.com/veneer-skins/veneer/shared/skin"
)

//go:embed *.png
var files embed.FS

// The linker leaves files out of a program that needs only the default skin.
//
//go:embed wooden_doll.png
var defaultFile embed.FS

// NamedSheet is a texture with the name of its subject.
type NamedSheet struct {
	Name  string
	Type  skin.Type
	Sheet skin.Sheet
}

// Skins returns all skins: classic and slim ones, among them a legacy sheet and an HD one.
func Skins() []NamedSheet {
	return []NamedSheet{
		{Name: "Explorer", Type: skin.Classic, Sheet: Explorer()},
		{Name: "Ranger", Type: skin.Slim, Sheet: Ranger()},
		{Name: "Astronaut", Type: skin.Classic, Sheet: Astronaut()},
		{Name: "Robot", Type: skin.Classic, Sheet: Robot()},
		{Name: "Fox", Type: skin.Classic, Sheet: Fox()},
		{Name: "Frog Hoodie", Type: skin.Slim, Sheet: FrogHoodie()},
		{Name: "Mage", Type: skin.Classic, Sheet: Mage()},
		{Name: "Knight", Type: skin.Classic, Sheet: Knight()},
		{Name: "Gardener", Type: skin.Classic, Sheet: Gardener()},
		{Name: "Penguin", Type: skin.Classic, Sheet: Penguin()},
		{Name: "Diver", Type: skin.Slim, Sheet: Diver()},
		{Name: "Wooden Doll", Type: skin.Classic, Sheet: Default()},
	}
}

// Capes returns all capes, each a sheet of 64 × 32 texels.
func Capes() []NamedSheet {
	return []NamedSheet{
		{Name: "Sunrise", Type: skin.Cape, Sheet: Sunrise()},
		{Name: "Evergreen", Type: skin.Cape, Sheet: Evergreen()},
		{Name: "Night Sky", Type: skin.Cape, Sheet: NightSky()},
	}
}

// Default returns the default skin of players without one: a doll of light wood.
func Default() skin.Sheet { return Decode(defaultFile, "Wooden Doll") }

// Explorer returns a classic skin with translucent goggles, an open coat and dust on its
// sleeves.
func Explorer() skin.Sheet { return Decode(files, "Explorer") }

// Ranger returns a slim skin: long red hair, a moss green tunic and a lowered hood.
func Ranger() skin.Sheet { return Decode(files, "Ranger") }

// Astronaut returns a classic skin with a helmet and a translucent visor.
func Astronaut() skin.Sheet { return Decode(files, "Astronaut") }

// Robot returns a classic skin on an HD sheet, 128 texels wide, with a screen for a face.
func Robot() skin.Sheet { return Decode(files, "Robot") }

// Fox returns a classic skin: a fox with a scarf.
func Fox() skin.Sheet { return Decode(files, "Fox") }

// FrogHoodie returns a slim skin: a hoodie with the eyes of a frog.
func FrogHoodie() skin.Sheet { return Decode(files, "Frog Hoodie") }

// Mage returns a classic skin: a long robe with stars, a white beard and a hat.
func Mage() skin.Sheet { return Decode(files, "Mage") }

// Knight returns a classic skin: plate armour, a visor with eyes behind it, and a tabard with a
// star.
func Knight() skin.Sheet { return Decode(files, "Knight") }

// Gardener returns a classic skin on a legacy sheet, half as high as wide, with a straw hat.
func Gardener() skin.Sheet { return Decode(files, "Gardener") }

// Penguin returns a classic skin: a penguin with a bow tie.
func Penguin() skin.Sheet { return Decode(files, "Penguin") }

// Diver returns a slim skin: a wet suit, and a mask with translucent glass.
func Diver() skin.Sheet { return Decode(files, "Diver") }

// Sunrise returns a cape with a sunrise over the sea.
func Sunrise() skin.Sheet { return Decode(files, "Sunrise") }

// Evergreen returns a cape with a fir tree and a golden hem.
func Evergreen() skin.Sheet { return Decode(files, "Evergreen") }

// NightSky returns a cape with the moon and stars.
func NightSky() skin.Sheet { return Decode(files, "Night Sky") }

// Decode decodes the file of an embedded texture, "night_sky.png" for the name Night Sky. Each
// call returns a sheet of its own, which the caller may change. It panics for a name without a
// file.
func Decode(files embed.FS, name string) skin.Sheet {
	file, err := files.ReadFile(strings.ReplaceAll(strings.ToLower(name), " ", "_") + ".png")
	if err != nil {
		panic(err)
	}
	sheet, err := skin.Decode(file)
	if err != nil {
		panic(fmt.Errorf("%s: %w", name, err))
	}
	return sheet
}
