// Command artwork paints the textures that are part of the repository: those of
// shared/skin/artwork, and the random ones of shared/skin/skintest. It writes them as PNG files
// into the directory shared/skin, which its argument names. The pixels are the same each time.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/veneer-skins/veneer/shared/skin"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "artwork:", err)
		os.Exit(1)
	}
}

// Directories of the files in shared/skin.
const (
	artworkDir = "artwork"
	randomDir  = "skintest/sheets"
)

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("the argument must be the directory shared/skin")
	}
	return errors.Join(
		write(filepath.Join(args[0], artworkDir), slices.Concat(figures(), capes())),
		write(filepath.Join(args[0], randomDir), slices.Concat(randomSkins(), randomCapes())),
	)
}

// write writes paintings into a directory, each to a file named after it.
func write(directory string, paintings []painting) error {
	for _, p := range paintings {
		file, err := encode(p.sheet)
		if err != nil {
			return fmt.Errorf("encode %s: %w", p.name, err)
		}
		name := strings.ReplaceAll(strings.ToLower(p.name), " ", "_") + ".png"
		if err := os.WriteFile(filepath.Join(directory, name), file, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// encode returns the smallest PNG that image/png makes of a sheet: with a palette, which saves
// up to half, or without.
func encode(sheet skin.Sheet) ([]byte, error) {
	bounds := image.Rect(0, 0, sheet.Width, sheet.Height)
	forms := []image.Image{&image.NRGBA{Pix: sheet.Pix, Stride: 4 * sheet.Width, Rect: bounds}}
	if indexed := index(sheet, bounds); indexed != nil {
		forms = append(forms, indexed)
	}
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	var smallest []byte
	for _, form := range forms {
		var file bytes.Buffer
		if err := encoder.Encode(&file, form); err != nil {
			return nil, err
		}
		if smallest == nil || file.Len() < len(smallest) {
			smallest = file.Bytes()
		}
	}
	return smallest, nil
}

// index returns a sheet with a palette, in the order in which the colours occur. It returns nil
// for a sheet of more than 256 colours.
func index(sheet skin.Sheet, bounds image.Rectangle) *image.Paletted {
	indexed := image.NewPaletted(bounds, nil)
	entries := map[color.NRGBA]uint8{}
	for i := range indexed.Pix {
		texel := sheet.Pix[4*i:]
		colour := color.NRGBA{R: texel[0], G: texel[1], B: texel[2], A: texel[3]}
		entry, known := entries[colour]
		if !known {
			if len(entries) == 256 {
				return nil
			}
			entry = uint8(len(entries))
			entries[colour] = entry
			indexed.Palette = append(indexed.Palette, colour)
		}
		indexed.Pix[i] = entry
	}
	return indexed
}
