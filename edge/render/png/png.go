// Package png writes PNG files of pictures of few colours in large areas: magnified or
// projected textures. Its DEFLATE encoder looks for repetitions only where such pictures have
// them, which is faster than a full search, and the files are about as small as an
// optimising tool's.
//
// The package knows nothing of what the pictures show. Any picture can be written, and every
// file has exactly the pixels it was given.
package png

import (
	"encoding/binary"
	"fmt"
	"hash/adler32"
	"hash/crc32"
)

// maxSide is the longest side of a picture that can be written, far beyond what is drawn. It
// keeps all positions within 32 bits.
const maxSide = 1 << 13

// Encoder is the scratch memory of consecutive encodings. The zero value is ready. It is not
// safe for concurrent use.
type Encoder struct {
	colours  colours
	raster   raster
	stream   stream
	deflater deflater
}

// The colour types of PNG in use.
const (
	typeRGB     = 2
	typePalette = 3
	typeRGBA    = 6
)

// Append appends the PNG file of width × height pixels to dst: rows from the top, 4 bytes RGBA,
// not premultiplied, stride 4·width. The file has no ancillary chunks but tRNS. It is an error
// if a side is below 1 or above 8192 or pix has another length; dst is then returned unchanged.
func (e *Encoder) Append(dst, pix []byte, width, height int) ([]byte, error) {
	if min(width, height) < 1 || max(width, height) > maxSide || len(pix) != 4*width*height {
		return dst, fmt.Errorf("a picture of %d × %d pixels in %d bytes cannot be encoded as PNG", width, height, len(pix))
	}
	e.colours.count(pix, 4*width)
	e.chooseLayout(pix, width, height)
	passes := 2
	if e.raster.colourType == typeRGBA {
		passes = 1 // the initial costs are close, and a second pass saves 1 %
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
	dst = append(dst, 0x78, 0xda) // DEFLATE with a window of 32 KiB, best compression
	dst = e.deflater.append(dst, &e.stream)
	dst = binary.BigEndian.AppendUint32(dst, adler32.Checksum(e.stream.bytes))
	dst = closeChunk(dst, chunk)
	dst, chunk = openChunk(dst, "IEND")
	return closeChunk(dst, chunk), nil
}

// chooseLayout chooses colour type and filters and fills the stream. It leaves initial costs
// with the deflater.
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
		// Among that many rows without repetition any palette is cheap, and trials are
		// expensive.
		e.chooseForm(pix, width, height)
	default:
		e.raster.layout(&e.stream, e.raster.forCrisp(&e.colours), all)
		e.deflater.estimate(&e.stream)
	}
}

// chooseForm lays out a picture with a costly palette, which has been filled in. Whether the
// palette pays off shows only after the search for matches, so both forms are tried on a sample
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

// trialSize returns the size in bits of the picture as it has been filled in, as far as it
// differs between forms.
func (e *Encoder) trialSize() int {
	// Bits per match that copies rows which are not in the sample.
	const repeatBits = 3

	omitted := e.raster.layout(&e.stream, e.raster.forCrisp(&e.colours), sample)
	e.deflater.estimate(&e.stream)
	e.deflater.parse(&e.stream, 1)
	return e.deflater.size(&e.stream) + omitted/maxMatch*repeatBits + e.paletteSize()
}

// layoutProjected lays out a projected picture: one that is neither magnified nor opaque.
// Trials would take long, and a few numbers predict as much.
func (e *Encoder) layoutProjected(pix []byte, width, height int) {
	// Bits that a palette saves for each pixel that differs from the one above.
	const savedPerChange = 3.3

	changes := e.raster.changes()
	if float64(e.paletteSize()) > savedPerChange*float64(changes) {
		e.raster.fill(&e.colours, pix, width, height, byColour)
		changes = e.raster.changes()
	}
	e.raster.layout(&e.stream, e.raster.forProjected(changes), all)
	e.deflater.estimate(&e.stream)
}

// paletteSize returns the size in bits of the palette in the file.
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

// openChunk begins a chunk and returns the position of its name.
func openChunk(dst []byte, name string) ([]byte, int) {
	dst = append(dst, 0, 0, 0, 0) // its length, set by closeChunk
	return append(dst, name...), len(dst)
}

// closeChunk ends the chunk that has its name at the given position.
func closeChunk(dst []byte, at int) []byte {
	binary.BigEndian.PutUint32(dst[at-4:], uint32(len(dst)-at-4))
	return binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[at:]))
}
