package paint

import (
	"fmt"

	"github.com/veneer-skins/veneer/shared/skin"
)

// Corpus returns fifty skins for benchmarks, always the same: those of Skins, and random ones
// shaded in all the ways in which players shade theirs: with narrow or wide grain, dithered
// by hand, smooth, in few colours, detailed on HD sheets. Three are pure noise, the worst
// case of an upload.
func Corpus() []NamedSheet {
	corpus := Skins()
	add := func(style string, count, width, height int, shade func(seed uint64) shader) {
		for i := range count {
			seed := uint64(len(corpus))
			model := skin.Classic
			if seed%2 == 1 && height == width {
				model = skin.Slim
			}
			corpus = append(corpus, NamedSheet{
				Name: fmt.Sprintf("%s %d", style, i+1), Type: model, Sheet: randomSkin(seed, model, width, height, shade(seed)),
			})
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
	return append(corpus,
		NamedSheet{Name: "Noise", Type: skin.Slim, Sheet: Noise(101, 64, 64)},
		NamedSheet{Name: "Old Noise", Type: skin.Classic, Sheet: Noise(102, 64, 32)},
		NamedSheet{Name: "HD Noise", Type: skin.Slim, Sheet: Noise(103, 128, 128)},
	)
}

// CorpusCapes returns eight capes for benchmarks, always the same: those of Capes, and others
// shaded in the ways of Corpus.
func CorpusCapes() []NamedSheet {
	capes := Capes()
	add := func(name string, width int, shade shader) {
		r := rng(len(capes))
		c := newCanvas(skin.Cape, width, width/2)
		c.shader = shade
		outside := r.pickColour(clothColours)
		c.paintCape(outside, outside.lighten(-40))
		c.emblem(&r, skin.Rect{X: 3, Y: 5, W: 6, H: 6}, r.pickColour(clothColours))
		capes = append(capes, NamedSheet{Name: name, Type: skin.Cape, Sheet: c.Sheet})
	}
	add("Plain Cape", 64, solid)
	add("Grain Cape", 64, grain(1, 8))
	add("HD Smooth Cape", 128, smooth)
	add("HD Grain Cape", 256, grain(2, 6))
	return append(capes, NamedSheet{Name: "Noise Cape", Type: skin.Cape, Sheet: Noise(104, 64, 32)})
}
