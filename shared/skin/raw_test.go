package skin_test

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/veneer-skins/veneer/shared/skin"
)

const signature = "\x89PNG\r\n\x1a\n"

// Colour types of PNG.
const (
	grey, trueColour, palette, greyAlpha, trueColourAlpha = 0, 2, 3, 4, 6
)

// raw writes any PNG, sound or not, from its parts.
type raw struct {
	width, height int
	depth, colour byte
	interlaced    bool
	// before are whole chunks between the header and the raster, after behind it.
	before, after []byte
	// samples returns the samples of a pixel, each in the low bits of a byte.
	samples func(x, y int) []byte
}

// passes are where the seven passes of an interlaced raster begin and how far
// apart their pixels are.
var passes = []struct{ x, y, dx, dy int }{
	{0, 0, 8, 8},
	{4, 0, 8, 8},
	{0, 4, 4, 8},
	{2, 0, 4, 4},
	{0, 2, 2, 4},
	{1, 0, 2, 2},
	{0, 1, 1, 2},
}

func (r raw) raster() []byte {
	var raster []byte
	pass := func(x0, y0, dx, dy int) {
		for y := y0; y < r.height; y += dy {
			raster = append(raster, 0) // no filter
			var bits, filled uint
			for x := x0; x < r.width; x += dx {
				for _, sample := range r.samples(x, y) {
					bits = bits<<r.depth | uint(sample)
					if filled += uint(r.depth); filled == 8 {
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
	if !r.interlaced {
		pass(0, 0, 1, 1)
		return raster
	}
	for _, p := range passes {
		pass(p.x, p.y, p.dx, p.dy)
	}
	return raster
}

func (r raw) header() []byte {
	data := binary.BigEndian.AppendUint32(nil, uint32(r.width))
	data = binary.BigEndian.AppendUint32(data, uint32(r.height))
	data = append(data, r.depth, r.colour, 0, 0, 0)
	if r.interlaced {
		data[12] = 1
	}
	return chunk("IHDR", data)
}

func (r raw) file(tb testing.TB) []byte {
	tb.Helper()
	return bytes.Join([][]byte{
		[]byte(signature), r.header(), r.before, chunk("IDAT", deflate(tb, r.raster())), r.after, chunk("IEND", nil),
	}, nil)
}

// rawOf returns the plain PNG of a sheet.
func rawOf(sheet skin.Sheet) raw {
	return raw{
		width: sheet.Width, height: sheet.Height, depth: 8, colour: trueColourAlpha,
		samples: func(x, y int) []byte { return sheet.Pix[sheet.At(x, y):][:4] },
	}
}

// blank returns the PNG of a transparent black sheet.
func blank(tb testing.TB, width, height int) []byte {
	tb.Helper()
	return bytes.Join([][]byte{
		[]byte(signature),
		raw{width: width, height: height, depth: 8, colour: trueColourAlpha}.header(),
		chunk("IDAT", deflate(tb, make([]byte, (1+4*width)*height))),
		chunk("IEND", nil),
	}, nil)
}

func chunk(kind string, data []byte) []byte {
	file := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	file = append(append(file, kind...), data...)
	return binary.BigEndian.AppendUint32(file, crc32.ChecksumIEEE(file[4:]))
}

func deflate(tb testing.TB, data []byte) []byte {
	tb.Helper()
	var file bytes.Buffer
	writer := zlib.NewWriter(&file)
	if _, err := writer.Write(data); err != nil {
		tb.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		tb.Fatal(err)
	}
	return file.Bytes()
}

// mend puts right every checksum of a PNG, so that what a fuzzer has changed is
// read and not refused at once.
func mend(file []byte) {
	for rest := file[min(len(signature), len(file)):]; len(rest) >= 12; {
		length := int64(binary.BigEndian.Uint32(rest))
		if length > int64(len(rest)-12) {
			return
		}
		end := 8 + int(length)
		binary.BigEndian.PutUint32(rest[end:], crc32.ChecksumIEEE(rest[4:end]))
		rest = rest[end+4:]
	}
}
