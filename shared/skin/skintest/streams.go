package skintest

import (
	"bytes"
	"compress/flate"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"hash/adler32"
	"slices"
	"strings"

	"github.com/veneer-skins/veneer/shared/skin"
)

// streams are invalid zlib streams.
func streams() []File {
	p := FromSheet(sample())
	raster := p.Raster()
	stream := Deflate(raster)
	with := func(stream []byte) []byte { return p.with(Chunk("IDAT", stream)) }
	changed := func(at int, bits byte) []byte {
		stream := bytes.Clone(stream)
		stream[(at+len(stream))%len(stream)] ^= bits
		return with(stream)
	}
	// raw returns a file with the given deflate blocks.
	raw := func(blocks ...byte) []byte {
		return with(binary.BigEndian.AppendUint32(append([]byte("\x78\x9c"), blocks...), adler32.Checksum(raster)))
	}
	const refusal, short = "damaged in its pixel data", "bytes of pixel data"
	return []File{
		rejected("a raster that is a text", refusal, with([]byte("<script>alert(1)</script>"))),
		rejected("an empty raster", short, with(nil)),
		rejected("a raster that is not compressed", refusal, with(raster)),
		rejected("a raster compressed by gzip", refusal, with(gzipFile(raster))),
		rejected("a raster compressed without a frame", refusal, with(stream[2:len(stream)-4])),
		rejected("an empty stream", short, with(Deflate(nil))),
		accepted("a wrong sum of the raster", changed(-1, 1), ""),
		rejected("a wrong sum of the stream's header", "zlib: invalid header", changed(1, 1)),
		rejected("a stream by an unknown method", "zlib: invalid header", with(append([]byte("\x79\x1a"), stream[2:]...))),
		rejected("a window of 64 KiB", "zlib: invalid header", with(append([]byte("\x88\x1c"), stream[2:]...))),
		rejected("a dictionary that nobody has", "zlib: invalid dictionary", with(withDictionary(raster))),
		rejected("a stream cut off in its header", short, with(stream[:1])),
		accepted("a stream without its sum", with(stream[:len(stream)-4]), ""),
		rejected("a stream cut off in the middle", short, with(stream[:len(stream)/2])),
		rejected("a block of a kind that does not exist", "corrupt input", raw(0b111)),
		rejected("a plain block whose length is wrong", "corrupt input", raw(1, 4, 0, 0, 0, 'a', 'b', 'c', 'd')),
		rejected("a plain block that is not there", short, raw(1, 0xff, 0xff, 0, 0)),
		rejected("a copy from before the beginning", "corrupt input", raw(0x4b, 0x04, 0x12, 0x00)),
		rejected("a code that means more than one thing", "corrupt input", raw(0x05, 0x00, 0x92, 0x04)),
		rejected("a row too few", short, with(Deflate(raster[1+4*64:]))),
		rejected("a byte too few", short, with(Deflate(raster[:len(raster)-1]))),
		accepted("a byte too many", with(Deflate(append(bytes.Clone(raster), 0))), ""),
		accepted("a row too many", with(Deflate(append(bytes.Clone(raster), raster[:1+4*64]...))), ""),
		accepted("a raster that is there twice", with(Deflate(slices.Concat(raster, raster))), ""),
		accepted("a page of 64 KiB behind the stream", with(append(bytes.Clone(stream), bytes.Repeat([]byte("<script>"), 8192)...)), "<script>"),
		accepted("a page behind the stream", with(append(bytes.Clone(stream), "<script>alert(1)</script>"...)), "<script>"),
		accepted("a raster in plain blocks", with(deflateAt(flate.NoCompression, raster)), ""),
		accepted("a raster without copies", with(deflateAt(flate.HuffmanOnly, raster)), ""),
		accepted("a raster compressed as far as it goes", with(deflateAt(flate.BestCompression, raster)), ""),
		accepted("a raster of which each byte is a chunk", p.with(split(stream, 1)...), ""),
		accepted("a raster with empty chunks in between", p.with(Chunk("IDAT", nil), Chunk("IDAT", stream[:9]), Chunk("IDAT", nil), Chunk("IDAT", stream[9:]), Chunk("IDAT", nil)), ""),
	}
}

// deflateAt returns the zlib stream of data at a compression level.
func deflateAt(level int, data []byte) []byte {
	var stream bytes.Buffer
	writer, _ := zlib.NewWriterLevel(&stream, level) // all levels are valid
	_, _ = writer.Write(data)                        // a buffer never fails
	_ = writer.Close()
	return stream.Bytes()
}

// withDictionary returns a zlib stream with a preset dictionary.
func withDictionary(data []byte) []byte {
	var stream bytes.Buffer
	writer, _ := zlib.NewWriterLevelDict(&stream, zlib.DefaultCompression, data[:100])
	_, _ = writer.Write(data)
	_ = writer.Close()
	return stream.Bytes()
}

// split returns a stream in IDAT chunks of size bytes.
func split(stream []byte, size int) [][]byte {
	var chunks [][]byte
	for part := range slices.Chunk(stream, size) {
		chunks = append(chunks, Chunk("IDAT", part))
	}
	return chunks
}

// filters are rasters with valid and invalid filters.
func filters() []File {
	var files []File
	p := FromSheet(sample())
	for _, wrong := range []struct {
		filter byte
		row    int
	}{{5, 0}, {9, 31}, {'<', 63}, {255, 0}} {
		raster := p.Raster()
		raster[wrong.row*(1+4*64)] = wrong.filter
		files = append(files, rejected(fmt.Sprintf("filter %d in row %d", wrong.filter, wrong.row), "bad filter type", p.with(Chunk("IDAT", Deflate(raster)))))
	}
	mixed := filtered(sample(), func(y int) byte { return byte(y % 5) })
	files = append(files, accepted("rows of every filter in turn", p.with(Chunk("IDAT", Deflate(mixed))), ""))
	for filter := range byte(5) {
		raster := filtered(sample(), func(int) byte { return filter })
		files = append(files, accepted(fmt.Sprintf("rows of filter %d", filter), p.with(Chunk("IDAT", Deflate(raster))), ""))
	}
	return files
}

// filtered returns the raster of a sheet, with a filter for each row.
func filtered(sheet skin.Sheet, filter func(y int) byte) []byte {
	var raster []byte
	length := 4 * sheet.Width
	for y := range sheet.Height {
		row, above := sheet.Pix[y*length:][:length], make([]byte, length)
		if y > 0 {
			above = sheet.Pix[(y-1)*length:][:length]
		}
		raster = append(raster, filter(y))
		for i, value := range row {
			var left, corner byte
			if i >= 4 {
				left, corner = row[i-4], above[i-4]
			}
			raster = append(raster, value-predict(filter(y), left, above[i], corner))
		}
	}
	return raster
}

// bombs are small files that inflate to large ones.
func bombs() []File {
	const gibibyte = 1 << 30
	p := FromSheet(sample())
	idat := Chunk("IDAT", Deflate(p.Raster()))
	bomb, smaller := zeros(gibibyte), zeros(1000<<20) // leaves room for a raster
	before := func(chunk []byte) PNG {
		p := p
		p.Before = chunk
		return p
	}
	interlaced, giant, tiny := p, p, p
	interlaced.Interlaced = true
	giant.Width, giant.Height = 16<<10, 16<<10
	tiny.Width, tiny.Height, tiny.Depth, tiny.Colour = 64, 64, 1, Grey
	largest := p
	largest.Width, largest.Height = 512, 512
	black := sheetOf(64, 64, func(int, int) [4]byte { return [4]byte{0, 0, 0, 255} })
	// Only the first bytes are inflated, which are the raster.
	zero := func(name string, sheet skin.Sheet, data []byte) File {
		return File{Name: name, Type: "steve", Data: data, Sheet: sheet}
	}
	return []File{
		zero("a raster of a GiB", skin.NewSheet(64, 64), p.with(Chunk("IDAT", bomb))),
		zero("a raster of half a GiB in small chunks", skin.NewSheet(64, 64), p.with(split(zeros(gibibyte/2), 64)...)),
		zero("a raster of a GiB, interlaced", skin.NewSheet(64, 64), interlaced.with(Chunk("IDAT", bomb))),
		zero("a raster of a GiB in the largest sheet", skin.NewSheet(512, 512), largest.with(Chunk("IDAT", bomb))),
		zero("a raster of a GiB of one bit", black, tiny.with(Chunk("IDAT", bomb))),
		rejected("a raster of a GiB that is sound", "it is 16384 × 16384 pixels", giant.with(Chunk("IDAT", bomb))),
		accepted("a raster of half a GiB behind the true one", p.with(idat, Chunk("IDAT", zeros(gibibyte/2))), ""),
		accepted("a text of 1,000 MiB", before(Chunk("zTXt", append([]byte("Title\x00\x00"), smaller...))).with(idat), ""),
		accepted("an international text of 1,000 MiB", before(Chunk("iTXt", append([]byte("Title\x00\x01\x00en\x00Title\x00"), smaller...))).with(idat), ""),
		accepted("a profile of 1,000 MiB", before(Chunk("iCCP", append([]byte("icc\x00\x00"), smaller...))).with(idat), ""),
		accepted("a picture of half a GiB behind the end", slices.Concat(p.with(idat), giant.with(Chunk("IDAT", zeros(gibibyte/2)))), ""),
	}
}

// zeros returns a zlib stream of about n zeros. It has the best ratio of deflate: two bits
// for a copy of 258 zeros, the maximum.
func zeros(n int) []byte {
	stream := []byte("\x78\xda" + "\x00\x01\x00\xfe\xff\x00") // a zero in a stored block, for the first copy
	bits := "1" + "01" +                                      // the last block, with dynamic codes:
		"10111" + "00000" + "0111" + // 286 for lengths, 1 for distances, 18 for these lists
		"000" + "000" + "100" + strings.Repeat("000", 14) + "100" + // 0 is the code of 1, 1 that of 18
		"1" + "1111111" + "1" + "1101011" + // 138 and 118 unused: all literals
		"0" + // 0 is the code of the end
		"1" + "1000100" + // 28 unused
		"0" + // 1 is the code of a copy of 258
		"0" + // 0 is the code of distance 1
		"10" + "10" + "10" // the first copies
	for i := 0; i < len(bits); i += 8 {
		var value byte
		for j := range 8 {
			value |= (bits[i+j] - '0') << j
		}
		stream = append(stream, value)
	}
	copies := 3 + 4*(n/(4*258))
	stream = append(stream, bytes.Repeat([]byte{0b01010101}, copies/4)...)
	stream = append(stream, 0) // the end
	return binary.BigEndian.AppendUint32(stream, uint32((1+258*copies)%65521)<<16|1)
}

// manyChunks are files of very many chunks.
func manyChunks() []File {
	p := FromSheet(sample())
	idat := Chunk("IDAT", Deflate(p.Raster()))
	const most = 80_000 // of 12 bytes each
	with := func(chunk []byte) []byte {
		p := p
		p.Before = bytes.Repeat(chunk, most)
		return p.with(idat)
	}
	var texts []byte
	for i := range 40_000 {
		texts = append(texts, Chunk("tEXt", fmt.Appendf(nil, "%d\x00x", i))...)
	}
	named := p
	named.Before = texts
	return []File{
		accepted("80,000 empty texts", with(Chunk("tEXt", nil)), ""),
		accepted("80,000 empty chunks that nobody knows", with(Chunk("veNr", nil)), ""),
		accepted("40,000 texts with different names", named.with(idat), ""),
		rejected("40,000 headers", "two headers", Join(bytes.Repeat(p.Header(), 40_000), idat, Chunk("IEND", nil))),
		rejected("a raster of 80,000 empty chunks", "bytes of pixel data", p.with(bytes.Repeat(Chunk("IDAT", nil), most))),
		rejected("a raster of 75,000 chunks of one byte", "damaged in its pixel data", p.with(bytes.Repeat(Chunk("IDAT", []byte{0}), 75_000))),
		accepted("a raster before and behind 80,000 empty chunks", p.with(bytes.Repeat(Chunk("IDAT", nil), most/2), idat, bytes.Repeat(Chunk("IDAT", nil), most/2)), ""),
		accepted("80,000 empty palettes beside true colours", with(Chunk("PLTE", nil)), ""),
		rejected("80,000 ends of the raster", "cut off after 0 of", p.with(bytes.Repeat(slices.Concat(Chunk("IDAT", nil), Chunk("tEXt", nil)), most/2))),
	}
}

// slowFiles are valid files that take the most time and memory to decode and encode.
func slowFiles() []File {
	sheets := []struct {
		name  string
		sheet skin.Sheet
	}{
		{"the largest sheet of one colour", skin.NewSheet(512, 512)},
		{"the largest sheet of noise that the file has room for", halfNoise(512)},
		{"the largest sheet of rows that hardly differ", nearlyEqualRows(512)},
	}
	var files []File
	large := Noise(3, 512, 512)
	for _, s := range sheets {
		p := FromSheet(s.sheet)
		files = append(files, File{Name: s.name, Type: "steve", Data: p.File(), Sheet: s.sheet})
		p.Interlaced = true
		files = append(files, File{Name: s.name + ", interlaced", Type: "steve", Data: p.File(), Sheet: s.sheet})
	}
	for _, f := range []format{
		{"the largest sheet of a palette", Palette, 8, slices.Concat(paletteOf(256), alphasOf(256)), paletteTexel(256, 256)},
		{"the largest sheet of grey", Grey, 8, nil, func(s []byte) [4]byte { return [4]byte{s[0], s[0], s[0], 255} }},
	} {
		samples := func(x, y int) []byte { return large.Pix[large.At(x, y):][:1] }
		p := PNG{Width: 512, Height: 512, Depth: f.depth, Colour: f.colour, Interlaced: true, Before: f.before, Samples: samples}
		files = append(files, File{Name: f.name, Type: "steve", Data: p.File(), Sheet: sheetOf(512, 512, func(x, y int) [4]byte { return f.texel(samples(x, y)) })})
	}
	return files
}

// halfNoise returns a square sheet with as much noise as fits into an accepted file: blue and
// alpha are constant.
func halfNoise(side int) skin.Sheet {
	sheet := Noise(3, side, side)
	for i := range side * side {
		sheet.Pix[4*i+2], sheet.Pix[4*i+3] = 0, 255
	}
	return sheet
}

// nearlyEqualRows returns a square sheet in which each row is the one above plus a random bit
// in every byte. There are many short matches and no long ones, the slowest case for
// compression.
func nearlyEqualRows(side int) skin.Sheet {
	sheet := skin.NewSheet(side, side)
	random, row := Noise(7, side, side).Pix, 4*side
	for i := range sheet.Pix {
		if sheet.Pix[i] = random[i] & 1; i >= row {
			sheet.Pix[i] += sheet.Pix[i-row]
		}
	}
	return sheet
}
