// Package png writes PNG files of pictures whose pixels are few colours in large
// areas: magnified or projected textures. It looks for what such pictures repeat
// where they repeat it, which takes less time than to search everywhere, and makes
// files about as small as tools that do search everywhere.
//
// The package knows nothing of what the pictures show. Any picture can be
// written, and every file holds exactly the pixels it was given.
package png

import (
	"encoding/binary"
	"fmt"
	"hash/adler32"
	"hash/crc32"
	"math"
)

// The longest side of a picture that can be written, far beyond what is drawn: it
// keeps all positions within 32 bits.
const maxSide = 1 << 13

// Encoder is the scratch memory of one encoding after another. The zero value is
// ready; not for concurrent use.
type Encoder struct {
	colours colours
	raster  raster
	stream  stream
	packer  packer
}

// The colour types of PNG that are written.
const (
	typeRGB     = 2
	typePalette = 3
	typeRGBA    = 6
)

// Append appends the PNG file of width × height pixels (rows from the top, 4 bytes
// RGBA, not premultiplied, stride 4·width) to dst. The file has no chunks but
// those that pixels need. It is an error if a side is below 1 or above 8192 or pix
// has another length.
func (e *Encoder) Append(dst, pix []byte, width, height int) ([]byte, error) {
	if min(width, height) < 1 || max(width, height) > maxSide || len(pix) != 4*width*height {
		return nil, fmt.Errorf("a picture of %d × %d pixels in %d bytes cannot be written", width, height, len(pix))
	}
	e.colours.count(pix, 4*width)
	e.choose(pix, width, height)
	e.packer.plan(&e.stream, 2)

	dst = append(dst, "\x89PNG\r\n\x1a\n"...)
	dst, chunk := openChunk(dst, "IHDR")
	dst = binary.BigEndian.AppendUint32(dst, uint32(width))
	dst = binary.BigEndian.AppendUint32(dst, uint32(height))
	dst = append(dst, e.raster.depth, e.raster.colourType, 0, 0, 0)
	dst = closeChunk(dst, chunk)
	if e.raster.colourType == typePalette {
		dst, chunk = openChunk(dst, "PLTE")
		dst = e.colours.appendRGB(dst)
		dst = closeChunk(dst, chunk)
		if e.colours.translucent > 0 {
			dst, chunk = openChunk(dst, "tRNS")
			dst = e.colours.appendAlpha(dst)
			dst = closeChunk(dst, chunk)
		}
	}
	dst, chunk = openChunk(dst, "IDAT")
	dst = append(dst, 0x78, 0xda) // DEFLATE with a window of 32 KiB, made with care
	dst = e.packer.append(dst, &e.stream)
	dst = binary.BigEndian.AppendUint32(dst, adler32.Checksum(e.stream.bytes))
	dst = closeChunk(dst, chunk)
	dst, chunk = openChunk(dst, "IEND")
	return closeChunk(dst, chunk), nil
}

// attempt is a way to write a picture.
type attempt struct {
	form    form
	filters filters
	prices  prices
	size    int // in bits, of what differs between attempts
}

// choose lays the picture out in the way that makes it small. Which one does
// shows only when the matches are known, so it tries those that may on a sample
// of the rows. The prices found there, or a guess, are left with the packer.
func (e *Encoder) choose(pix []byte, width, height int) {
	// What a copy of the rows that a sample leaves out takes, in bits.
	const again = 3

	forms := e.colours.forms()
	best := attempt{size: math.MaxInt}
	for _, form := range forms {
		e.raster.fill(&e.colours, pix, width, height, form)
		if !e.raster.magnified() && !e.colours.opaque {
			e.project(pix, width, height)
			return
		}
		plausible := e.raster.plausible()
		if len(forms) == 1 && len(plausible) == 1 {
			e.raster.layout(&e.stream, plausible[0], all)
			e.packer.guess(&e.stream)
			return
		}
		for _, f := range plausible {
			omitted := e.raster.layout(&e.stream, f, sample)
			e.packer.guess(&e.stream)
			size := e.packer.plan(&e.stream, 1) + omitted/maxMatch*again + e.paletteSize()
			if size < best.size {
				best = attempt{form: form, filters: f, prices: e.packer.prices, size: size}
			}
		}
	}
	if best.form != forms[len(forms)-1] {
		e.raster.fill(&e.colours, pix, width, height, best.form)
	}
	e.raster.layout(&e.stream, best.filters, all)
	e.packer.prices = best.prices
}

// project lays out a projected picture: one that is neither magnified nor opaque.
// Attempts would take long, and a few numbers tell as much.
func (e *Encoder) project(pix []byte, width, height int) {
	// What a palette saves for each pixel that is not like the one above, in bits.
	const saves = 3.3

	changes := e.raster.changes()
	if float64(e.paletteSize()) > saves*float64(changes) {
		e.raster.fill(&e.colours, pix, width, height, directly)
		changes = e.raster.changes()
	}
	e.raster.layout(&e.stream, e.raster.forProjected(changes), all)
	e.packer.guess(&e.stream)
}

// paletteSize returns how many bits of a file its palette takes.
func (e *Encoder) paletteSize() int {
	const chunkSize = 12 // besides its data
	if e.raster.colourType != typePalette {
		return 0
	}
	size := 3*len(e.colours.list) + chunkSize
	if e.colours.translucent > 0 {
		size += e.colours.translucent + chunkSize
	}
	return 8 * size
}

// openChunk begins a chunk and returns where.
func openChunk(dst []byte, name string) ([]byte, int) {
	dst = append(dst, 0, 0, 0, 0) // its length, which closeChunk knows
	return append(dst, name...), len(dst)
}

// closeChunk ends the chunk whose name begins at the given place.
func closeChunk(dst []byte, at int) []byte {
	binary.BigEndian.PutUint32(dst[at-4:], uint32(len(dst)-at-4))
	return binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[at:]))
}
