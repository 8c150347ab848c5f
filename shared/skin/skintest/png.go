// Package skintest makes sheets, and valid and hostile PNG files, for tests and benchmarks. It
// reads stored textures independently of the decoder under test.
package skintest

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"

	"github.com/veneer-skins/veneer/shared/skin"
)

// Signature is the signature of PNG files.
const Signature = "\x89PNG\r\n\x1a\n"

// Colour types of PNG.
const (
	Grey            = 0
	TrueColour      = 2
	Palette         = 3
	GreyAlpha       = 4
	TrueColourAlpha = 6
)

// channels is the number of samples of a pixel, by colour type.
var channels = map[byte]int{Grey: 1, TrueColour: 3, Palette: 1, GreyAlpha: 2, TrueColourAlpha: 4}

// PNG writes any PNG, valid or not, from its parts.
type PNG struct {
	Width, Height int
	Depth, Colour byte
	Interlaced    bool
	// Before are whole chunks between the header and the raster, After those behind it.
	Before, After []byte
	// Samples returns the samples of a pixel, each in the low bits of a byte.
	Samples func(x, y int) []byte
}

// FromSheet returns the plain PNG of a sheet.
func FromSheet(sheet skin.Sheet) PNG {
	return PNG{
		Width: sheet.Width, Height: sheet.Height, Depth: 8, Colour: TrueColourAlpha,
		Samples: func(x, y int) []byte { return sheet.Pix[sheet.At(x, y):][:4] },
	}
}

// Blank returns the file of a transparent black sheet.
func Blank(width, height int) []byte {
	p := PNG{Width: width, Height: height, Depth: 8, Colour: TrueColourAlpha}
	return Join(p.Header(), Chunk("IDAT", Deflate(make([]byte, (1+4*width)*height))), Chunk("IEND", nil))
}

// File returns the whole file.
func (p PNG) File() []byte { return p.with(Chunk("IDAT", Deflate(p.Raster()))) }

// with returns the file with other chunks for its raster.
func (p PNG) with(rasters ...[]byte) []byte {
	return Join(p.Header(), p.Before, bytes.Join(rasters, nil), p.After, Chunk("IEND", nil))
}

// Header returns the IHDR chunk.
func (p PNG) Header() []byte {
	data := binary.BigEndian.AppendUint32(nil, uint32(p.Width))
	data = binary.BigEndian.AppendUint32(data, uint32(p.Height))
	data = append(data, p.Depth, p.Colour, 0, 0, 0)
	if p.Interlaced {
		data[12] = 1
	}
	return Chunk("IHDR", data)
}

// pass is an interlacing pass: every dx-th pixel of every dy-th row, beginning at x and y.
type pass struct{ x, y, dx, dy int }

// passes are the seven passes of Adam7.
var passes = []pass{
	{0, 0, 8, 8},
	{4, 0, 8, 8},
	{0, 4, 4, 8},
	{2, 0, 4, 4},
	{0, 2, 2, 4},
	{1, 0, 2, 2},
	{0, 1, 1, 2},
}

// Raster returns the uncompressed rows, without filters.
func (p PNG) Raster() []byte {
	order := []pass{{0, 0, 1, 1}}
	if p.Interlaced {
		order = passes
	}
	var raster []byte
	for _, s := range order {
		for y := s.y; y < p.Height && s.x < p.Width; y += s.dy {
			raster = append(raster, 0) // no filter
			var bits, filled uint
			for x := s.x; x < p.Width; x += s.dx {
				for _, sample := range p.Samples(x, y) {
					bits = bits<<p.Depth | uint(sample)
					if filled += uint(p.Depth); filled == 8 {
						raster = append(raster, byte(bits))
						bits, filled = 0, 0
					}
				}
			}
			if filled > 0 {
				raster = append(raster, byte(bits<<(8-filled)))
			}
		}
	}
	return raster
}

// Join returns the file with some chunks.
func Join(chunks ...[]byte) []byte { return append([]byte(Signature), bytes.Join(chunks, nil)...) }

// Chunk returns a whole chunk.
func Chunk(kind string, data []byte) []byte {
	file := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	file = append(append(file, kind...), data...)
	return binary.BigEndian.AppendUint32(file, crc32.ChecksumIEEE(file[4:]))
}

// Deflate returns the zlib stream of data.
func Deflate(data []byte) []byte {
	var stream bytes.Buffer
	writer := zlib.NewWriter(&stream)
	_, _ = writer.Write(data) // a buffer never fails
	_ = writer.Close()
	return stream.Bytes()
}

// FixChecksums corrects the checksums of all chunks, so that mutations of a fuzzer are not
// rejected at once.
func FixChecksums(file []byte) {
	for rest := file[min(len(Signature), len(file)):]; len(rest) >= 12; {
		length := int64(binary.BigEndian.Uint32(rest))
		if length > int64(len(rest)-12) {
			return
		}
		end := 8 + int(length)
		binary.BigEndian.PutUint32(rest[end:], crc32.ChecksumIEEE(rest[4:end]))
		rest = rest[end+4:]
	}
}
