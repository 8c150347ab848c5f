package skin

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/adler32"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

const signature = "\x89PNG\r\n\x1a\n"

// Colour types of PNGs whose tRNS chunks differ.
const (
	grey       = 0
	trueColour = 2
	palette    = 3
)

// channels are the samples of a pixel by colour type, and depths the bits of a sample, up to 8.
var (
	channels = map[byte]int{grey: 1, trueColour: 3, palette: 1, 4: 2, 6: 4}
	depths   = map[byte]string{grey: "\x01\x02\x04\x08", trueColour: "\x08", palette: "\x01\x02\x04\x08", 4: "\x08", 6: "\x08"}
)

// header is the IHDR chunk of a PNG.
type header struct {
	raw           []byte // the whole chunk
	width, height int
	depth, colour byte
	interlaced    bool
}

// rasterSize returns the size in bytes of the uncompressed rows, each with its filter.
func (h header) rasterSize() int {
	bits := channels[h.colour] * int(h.depth)
	rows := func(width, height int) int { return height * (1 + (width*bits+7)/8) }
	if !h.interlaced {
		return rows(h.width, h.height)
	}
	size := 0
	for _, pass := range [][4]int{{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}} {
		x, y, dx, dy := pass[0], pass[1], pass[2], pass[3]
		size += rows((h.width-x+dx-1)/dx, (h.height-y+dy-1)/dy) // every sheet has pixels in every pass
	}
	return size
}

// chunk is a chunk of a PNG file.
type chunk struct {
	kind string
	data []byte
}

// isCritical reports whether a decoder must understand the chunk.
func (c chunk) isCritical() bool { return c.kind[0]&0x20 == 0 }

// decode returns the exact pixels of a PNG, including the colours under alpha 0. It inflates
// nothing, and allocates no memory for pixels, before checkSize has accepted the width and
// height and every chunk that the pixels need is verified.
func decode(file []byte, checkSize func(width, height int) error) (Sheet, error) {
	head, err := readHeader(file)
	if err != nil {
		return Sheet{}, err
	}
	if err := checkSize(head.width, head.height); err != nil {
		return Sheet{}, err
	}
	found, err := head.parse(file)
	if err != nil {
		return Sheet{}, err
	}
	raster, err := head.inflate(found)
	if err != nil {
		return Sheet{}, err
	}
	return decodeSound(head.assemble(found, raster))
}

// decodeSound returns the pixels of a PNG without damage.
func decodeSound(file []byte) (Sheet, error) {
	picture, err := png.Decode(bytes.NewReader(file))
	if err != nil {
		return Sheet{}, fmt.Errorf("it cannot be decoded: %w", err)
	}
	return sheetOf(picture), nil
}

// readHeader parses the signature and the IHDR chunk, and rejects what no texture has.
func readHeader(file []byte) (header, error) {
	if len(file) == 0 {
		return header{}, errors.New("it is empty")
	}
	rest, isPNG := bytes.CutPrefix(file, []byte(signature))
	if at := bytes.Index(file[:min(len(file), 16)], []byte(signature)); at > 0 { // a script's blank line, a byte order mark
		return header{}, fmt.Errorf("it has %d bytes before the beginning, and only PNG is read", at)
	}
	if !isPNG {
		return header{}, fmt.Errorf("it looks like %s, and only PNG is read", http.DetectContentType(file))
	}
	first, after, err := cutChunk(rest)
	if err != nil {
		return header{}, err
	}
	if first.kind != "IHDR" || len(first.data) != 13 {
		return header{}, fmt.Errorf("it begins with %d bytes of %q, and not with the header of a PNG", len(first.data), first.kind)
	}

	head := header{
		raw:        rest[:len(rest)-len(after)],
		width:      int(binary.BigEndian.Uint32(first.data)),
		height:     int(binary.BigEndian.Uint32(first.data[4:])),
		depth:      first.data[8],
		colour:     first.data[9],
		interlaced: first.data[12] == 1,
	}
	switch methods := first.data[10:]; {
	case head.depth == 16:
		return header{}, errors.New("it has 16 bits a channel, and only 8 are read")
	case strings.IndexByte(depths[head.colour], head.depth) < 0:
		return header{}, fmt.Errorf("its colour type %d with %d bits a channel is no format of PNG", head.colour, head.depth)
	case methods[0] != 0 || methods[1] != 0 || methods[2] > 1:
		return header{}, errors.New("it is compressed, filtered or interlaced by a method that is not of PNG")
	}
	return head, nil
}

// parts are the chunks that make the pixels of a PNG.
type parts struct {
	colours []byte // of PLTE, nil without a palette
	alphas  []byte // of tRNS, nil without
	stream  []byte // of the first IDAT chunks that follow each other
	damage  error  // of the chunk behind them
}

// parse returns the parts of a file. It passes over what libpng passes over: ancillary chunks with a
// wrong checksum, at a wrong place or with impossible data, and all that is behind the raster.
func (h header) parse(file []byte) (parts, error) {
	var p parts
	for rest := file[len(signature)+len(h.raw):]; ; {
		next, after, err := cutChunk(rest)
		switch {
		case err == nil && next.kind == "IDAT":
			p.stream = append(slices.Grow(p.stream, 1), next.data...) // not nil, even of empty chunks
		case p.stream != nil:
			p.damage = err
			return p, nil
		case err != nil && (after == nil || next.isCritical()):
			return p, err
		case err != nil:
		default:
			if err := h.add(&p, next); err != nil {
				return p, err
			}
		}
		rest = after
	}
}

// add adds a chunk before the raster to the parts.
func (h header) add(p *parts, c chunk) error {
	switch {
	case c.kind == "PLTE" && h.colour != palette: // suggested colours for poor displays
	case c.kind == "PLTE" && p.colours != nil:
		return errors.New("it has two palettes")
	case c.kind == "PLTE" && (len(c.data) == 0 || len(c.data) > 3*256 || len(c.data)%3 != 0):
		return fmt.Errorf("its palette has %d bytes, and not three for each of 1 to 256 colours", len(c.data))
	case c.kind == "PLTE":
		p.colours = c.data[:min(len(c.data), 3<<h.depth)]
	case c.kind == "tRNS" && p.alphas == nil:
		p.alphas = h.transparency(c.data, len(p.colours)/3)
	case c.kind == "acTL" && (len(c.data) < 4 || binary.BigEndian.Uint32(c.data) > 1): // frames
		return errors.New("it is animated, which no texture is")
	case c.kind == "IHDR":
		return errors.New("it has two headers")
	case c.kind == "IEND":
		return errors.New("it has no pixel data")
	case c.isCritical():
		return fmt.Errorf("it needs a decoder that knows %q, which no PNG standard does", c.kind)
	}
	return nil
}

// inflate returns the uncompressed rows. It stops at the last byte of the last row: what follows in
// the stream, and its checksum, belong to no pixel.
func (h header) inflate(p parts) ([]byte, error) {
	if h.colour == palette && p.colours == nil {
		return nil, errors.New("it has no palette")
	}
	raster, n := make([]byte, h.rasterSize()), 0
	inflated, err := zlib.NewReader(bytes.NewReader(p.stream))
	if err == nil {
		n, err = io.ReadFull(inflated, raster)
	}
	switch {
	case err == nil:
		return raster, nil
	case p.damage != nil:
		return nil, p.damage
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("it is cut off after %d of %d bytes of pixel data", n, len(raster))
	default:
		return nil, fmt.Errorf("it is damaged in its pixel data: %w", err)
	}
}

// assemble returns a sound PNG of the parts and the rows.
func (h header) assemble(p parts, raster []byte) []byte {
	file := append(make([]byte, 0, len(raster)+len(raster)/1000+4096), signature...)
	file = append(file, h.raw...)
	if p.colours != nil {
		file = appendChunk(file, "PLTE", p.colours)
	}
	if p.alphas != nil {
		file = appendChunk(file, "tRNS", p.alphas)
	}
	file = appendChunk(file, "IDAT", store(raster))
	return appendChunk(file, "IEND", nil)
}

// transparency returns the data of a tRNS chunk for a palette with a number of colours, or for another
// colour type. An invalid chunk is nil, as libpng passes over it.
func (h header) transparency(data []byte, colours int) []byte {
	switch {
	case h.colour == grey && len(data) == 2:
		// Only as many bits count as a sample has; the decoder compares all.
		return []byte{0, data[1] & (1<<h.depth - 1)}
	case h.colour == trueColour && len(data) == 6, h.colour == palette && len(data) > 0 && len(data) <= colours:
		return data
	default:
		return nil
	}
}

// store returns a zlib stream with data as it is (RFC 1950, RFC 1951 section 3.2.4).
func store(data []byte) []byte {
	const most = 1<<16 - 1 // bytes of a block
	stream := append(make([]byte, 0, len(data)+len(data)/1000+64), 0x78, 0x01)
	for block := range slices.Chunk(data, most) {
		stream = append(stream, 0)
		stream = binary.LittleEndian.AppendUint16(stream, uint16(len(block)))
		stream = binary.LittleEndian.AppendUint16(stream, ^uint16(len(block)))
		stream = append(stream, block...)
	}
	stream = append(stream, 1, 0, 0, 0xff, 0xff) // the last block is empty
	return binary.BigEndian.AppendUint32(stream, adler32.Checksum(data))
}

// cutChunk cuts the first chunk off the rest of a file. With an error, the chunk's name is what can
// be read of it, and the rest is nil unless only the checksum is wrong.
func cutChunk(rest []byte) (chunk, []byte, error) {
	const frame = 12 // length, type and checksum, four bytes each
	if len(rest) < frame {
		return chunk{}, nil, errors.New("it is cut off: its pixels are not complete")
	}
	length := int64(binary.BigEndian.Uint32(rest))
	cut := chunk{kind: string(rest[4:8])}
	if length > int64(len(rest)-frame) {
		return cut, nil, fmt.Errorf("it is cut off in its %q chunk", cut.kind)
	}
	end := 8 + int(length)
	if crc32.ChecksumIEEE(rest[4:end]) != binary.BigEndian.Uint32(rest[end:]) {
		return cut, rest[end+4:], fmt.Errorf("it is damaged: the checksum of its %q chunk is wrong", cut.kind)
	}
	cut.data = rest[8:end]
	return cut, rest[end+4:], nil
}

// appendChunk appends a chunk to a file.
func appendChunk(file []byte, kind string, data []byte) []byte {
	file = binary.BigEndian.AppendUint32(file, uint32(len(data)))
	start := len(file)
	file = append(append(file, kind...), data...)
	return binary.BigEndian.AppendUint32(file, crc32.ChecksumIEEE(file[start:]))
}

// sheetOf returns the pixels of a decoded picture with 8 bits a channel.
func sheetOf(picture image.Image) Sheet {
	size := picture.Bounds().Size()
	switch picture := picture.(type) {
	case *image.NRGBA:
		return Sheet{Width: size.X, Height: size.Y, Pix: picture.Pix}
	case *image.RGBA: // the decoder uses it for opaque pictures only
		return Sheet{Width: size.X, Height: size.Y, Pix: picture.Pix}
	}
	// The rest is greyscale, or a palette without premultiplied colours. The conversion is
	// exact; premultiplying on the way would lose the colours under alpha 0.
	sheet := NewSheet(size.X, size.Y)
	for y := range size.Y {
		for x := range size.X {
			if c, ok := color.NRGBAModel.Convert(picture.At(x, y)).(color.NRGBA); ok {
				copy(sheet.row(x, y, 1), []byte{c.R, c.G, c.B, c.A})
			}
		}
	}
	return sheet
}

// rgba is a picture that the encoder never takes for an opaque one, which it would store
// without alpha.
type rgba struct{ *image.NRGBA }

// Opaque returns false.
func (rgba) Opaque() bool { return false }

// encoder reuses its tables. A higher compression level would save some hundredths of a file,
// and let a crafted sheet cost a second of processor time.
var encoder = png.Encoder{BufferPool: new(buffers)}

type buffers struct{ sync.Pool }

// Get returns a pooled buffer, or nil.
func (b *buffers) Get() *png.EncoderBuffer {
	buffer, _ := b.Pool.Get().(*png.EncoderBuffer)
	return buffer
}

// Put returns a buffer to the pool.
func (b *buffers) Put(buffer *png.EncoderBuffer) { b.Pool.Put(buffer) }

// PNG encodes the sheet as a PNG with 8 bits a channel, red, green, blue and alpha, without
// any other chunks. The same pixels always become the same file. It fails for an empty sheet.
func (s Sheet) PNG() ([]byte, error) {
	picture := &image.NRGBA{Pix: s.Pix, Stride: 4 * s.Width, Rect: image.Rect(0, 0, s.Width, s.Height)}
	var pixels image.Image = picture
	if picture.Opaque() { // only then, as the encoder reads an rgba pixel by pixel
		pixels = rgba{picture}
	}
	var file bytes.Buffer
	if err := encoder.Encode(&file, pixels); err != nil {
		return nil, fmt.Errorf("encode sheet: %w", err)
	}
	return file.Bytes(), nil
}
