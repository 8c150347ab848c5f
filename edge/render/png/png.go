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
)

// The longest side of a picture that can be written, far beyond what is drawn: it
// keeps all positions within 32 bits.
const maxSide = 1 << 13

// Encoder is the scratch memory of one encoding after another. The zero value is
// ready; not for concurrent use.
type Encoder struct {
	colours  colours
	raster   raster
	stream   stream
	deflater deflater
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
// has another length, and dst is returned as it was.
func (e *Encoder) Append(dst, pix []byte, width, height int) ([]byte, error) {
	if min(width, height) < 1 || max(width, height) > maxSide || len(pix) != 4*width*height {
		return dst, fmt.Errorf("a picture of %d × %d pixels in %d bytes cannot be written", width, height, len(pix))
	}
	e.colours.count(pix, 4*width)
	e.chooseLayout(pix, width, height)
	passes := 2
	if e.raster.colourType == typeRGBA {
		passes = 1 // the guess is close, and a second saves one in a hundred
	}
	e.deflater.parse(&e.stream, passes)

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
	dst = e.deflater.append(dst, &e.stream)
	dst = binary.BigEndian.AppendUint32(dst, adler32.Checksum(e.stream.bytes))
	dst = closeChunk(dst, chunk)
	dst, chunk = openChunk(dst, "IEND")
	return closeChunk(dst, chunk), nil
}

// chooseLayout lays the picture out in a way that makes it small. The prices found on the
// way, or a guess, are left with the packer.
func (e *Encoder) chooseLayout(pix []byte, width, height int) {
	form := byPalette
	if e.colours.overflow {
		form = byColour
	}
	e.raster.fill(&e.colours, pix, width, height, form)
	switch {
	case !e.raster.magnified() && !e.colours.opaque:
		e.layoutProjected(pix, width, height)
	case form == byPalette && len(e.colours.list) >= costlyPalette && (e.raster.magnified() || len(e.raster.rows) <= vastNodes):
		// In vast rows all of which are told, any palette is cheap, and attempts are not.
		e.chooseForm(pix, width, height)
	default:
		e.raster.layout(&e.stream, e.raster.forCrisp(&e.colours), all)
		e.deflater.estimate(&e.stream)
	}
}

// chooseForm lays out a picture that has been filled in by a dear palette. Whether it
// pays shows only when the matches are known, so both forms are tried on a sample
// of the rows.
func (e *Encoder) chooseForm(pix []byte, width, height int) {
	indexed := e.trialSize()
	costs := e.deflater.costs
	e.raster.fill(&e.colours, pix, width, height, byColour)
	if e.trialSize() > indexed {
		e.raster.fill(&e.colours, pix, width, height, byPalette)
		e.deflater.costs = costs
	}
	e.raster.layout(&e.stream, e.raster.forCrisp(&e.colours), all)
}

// trialSize returns how many bits of a file the picture takes as it has been filled in,
// as far as that differs between forms.
func (e *Encoder) trialSize() int {
	// What a copy of the rows that a sample leaves out takes, in bits.
	const repeatBits = 3

	omitted := e.raster.layout(&e.stream, e.raster.forCrisp(&e.colours), sample)
	e.deflater.estimate(&e.stream)
	e.deflater.parse(&e.stream, 1)
	return e.deflater.size(&e.stream) + omitted/maxMatch*repeatBits + e.paletteSize()
}

// layoutProjected lays out a projected picture: one that is neither magnified nor opaque.
// Attempts would take long, and a few numbers tell as much.
func (e *Encoder) layoutProjected(pix []byte, width, height int) {
	// What a palette saves for each pixel that is not like the one above, in bits.
	const savedPerChange = 3.3

	changes := e.raster.changes()
	if float64(e.paletteSize()) > savedPerChange*float64(changes) {
		e.raster.fill(&e.colours, pix, width, height, byColour)
		changes = e.raster.changes()
	}
	e.raster.layout(&e.stream, e.raster.forProjected(changes), all)
	e.deflater.estimate(&e.stream)
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
