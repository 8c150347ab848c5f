package main

import (
	"fmt"

	"github.com/veneer-skins/veneer/shared/skin"
)

// painting is a sheet with the name of its subject.
type painting struct {
	name  string
	sheet skin.Sheet
}

// figures returns the skins of the artwork: classic and slim ones, among them a legacy sheet
// and an HD one.
func figures() []painting {
	return []painting{
		{"Explorer", explorer()},
		{"Ranger", ranger()},
		{"Astronaut", astronaut()},
		{"Robot", robot()},
		{"Fox", fox()},
		{"Frog Hoodie", frog()},
		{"Mage", mage()},
		{"Knight", knight()},
		{"Gardener", gardener()},
		{"Penguin", penguin()},
		{"Diver", diver()},
		{"Wooden Doll", woodenDoll()},
	}
}

// capes returns the capes of the artwork, each a sheet of 64 × 32 texels.
func capes() []painting {
	return []painting{
		{"Sunrise", sunrise()},
		{"Evergreen", evergreen()},
		{"Night Sky", nightSky()},
	}
}

// randomSkins returns random figures for tests and benchmarks, shaded in all the ways in which
// players shade theirs: with narrow or wide grain, dithered by hand, smooth, in few colours,
// detailed on HD sheets. Every second square one is slim.
func randomSkins() (skins []painting) {
	seed := uint64(len(figures()))
	add := func(style string, count, width, height int, shade func(seed uint64) shader) {
		for i := range count {
			model := skin.Classic
			if seed%2 == 1 && height == width {
				model = skin.Slim
			}
			skins = append(skins, painting{fmt.Sprintf("%s %d", style, i+1), randomSkin(seed, model, width, height, shade(seed))})
			seed++
		}
	}
	add("Fine Grain", 6, 64, 64, func(seed uint64) shader { return grain(seed, 4) })
	add("Grain", 4, 64, 64, func(seed uint64) shader { return grain(seed, 8) })
	add("Coarse Grain", 3, 64, 64, func(seed uint64) shader { return grain(seed, 16) })
	add("Speckle", 2, 64, 64, func(seed uint64) shader { return speckle(seed, 8) })
	add("Dither", 4, 64, 64, func(seed uint64) shader { return dither(seed, 3+int(seed%4), 10) })
	add("Smooth", 2, 64, 64, func(uint64) shader { return smooth })
	add("Plain", 3, 64, 64, func(uint64) shader { return solid })
	add("Old Grain", 2, 64, 32, func(seed uint64) shader { return grain(seed, 10) })
	add("Old Dither", 1, 64, 32, func(seed uint64) shader { return dither(seed, 4, 12) })
	add("Old Plain", 1, 64, 32, func(uint64) shader { return solid })
	add("HD Dither", 1, 128, 128, func(seed uint64) shader { return dither(seed, 5, 8) })
	add("HD Grain", 1, 256, 256, func(seed uint64) shader { return grain(seed, 8) })
	add("HD Smooth", 1, 256, 256, func(uint64) shader { return smooth })
	add("HD Detail", 2, 256, 256, func(seed uint64) shader { return enlarged(4, dither(seed, 4, 12), grain(seed, 3)) })
	add("HD Fine", 1, 512, 512, func(seed uint64) shader { return enlarged(8, grain(seed, 10), smooth) })
	add("HD Enlarged", 1, 512, 512, func(seed uint64) shader { return enlarged(8, grain(seed, 10), solid) })
	return skins
}

// randomCapes returns random capes for tests and benchmarks, shaded in the ways of randomSkins.
func randomCapes() (random []painting) {
	seed := len(capes())
	add := func(name string, width int, shade shader) {
		r := rng(seed)
		seed++
		c := newCanvas(skin.Cape, width, width/2)
		c.shader = shade
		outside := r.pickColour(clothColours)
		c.paintCape(outside, outside.lighten(-40))
		c.emblem(&r, skin.Rect{X: 3, Y: 5, W: 6, H: 6}, r.pickColour(clothColours))
		random = append(random, painting{name, c.Sheet})
	}
	add("Plain Cape", 64, solid)
	add("Grain Cape", 64, grain(1, 8))
	add("HD Smooth Cape", 128, smooth)
	add("HD Grain Cape", 256, grain(2, 6))
	return random
}
