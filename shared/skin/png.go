package skin

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"sync"
)

const signature = "\x89PNG\r\n\x1a\n"

// Colour types of PNGs with one sample per pixel.
const (
	grey    = 0
	palette = 3
)

// header is the part of a PNG's IHDR chunk that is needed here.
type header struct {
	width, height int
	depth, colour byte
}

// chunk is a chunk of a PNG file.
type chunk struct {
	kind string
	data []byte
	raw  []byte // the whole chunk: length, type, data and checksum
}

// decode returns the exact pixels of a PNG, including the colours under alpha 0. It decodes
// no pixel, and allocates no memory for pixels, before checkSize has accepted the width and
// height and every chunk is verified. A raster that inflates to more than the header says is
// rejected at the first byte too many.
func decode(file []byte, checkSize func(width, height int) error) (Sheet, error) {
	head, err := readHeader(file)
	if err != nil {
		return Sheet{}, err
	}
	if err := checkSize(head.width, head.height); err != nil {
		return Sheet{}, err
	}
	stripped, err := strip(file, head)
	if err != nil {
		return Sheet{}, err
	}
	picture, err := png.Decode(bytes.NewReader(stripped))
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
	if !isPNG {
		return header{}, fmt.Errorf("it looks like %s, and only PNG is read", http.DetectContentType(file))
	}
	first, _, err := cutChunk(rest)
	if err != nil {
		return header{}, err
	}
	if first.kind != "IHDR" || len(first.data) != 13 {
		return header{}, fmt.Errorf("it begins with %d bytes of %q, and not with the header of a PNG", len(first.data), first.kind)
	}

	head := header{
		width:  int(binary.BigEndian.Uint32(first.data)),
		height: int(binary.BigEndian.Uint32(first.data[4:])),
		depth:  first.data[8],
		colour: first.data[9],
	}
	if head.depth == 16 {
		return header{}, errors.New("it has 16 bits a channel, and only 8 are read")
	}
	return head, nil
}

// strip returns the PNG with only the chunks that make its pixels: without text, colour
// profile, gamma, and anything after the end. Every chunk must be complete, and every
// critical chunk known.
func strip(file []byte, head header) ([]byte, error) {
	stripped := append(make([]byte, 0, len(file)), signature...)
	rest := file[len(signature):]
	var raster []byte
	rasters, colours := 0, 0
	for previous := ""; previous != "IEND"; {
		next, after, err := cutChunk(rest)
		if err != nil {
			return nil, err
		}
		if previous == "IDAT" && next.kind != "IDAT" {
			// The decoder would allocate memory for each of very many chunks.
			stripped = appendChunk(stripped, "IDAT", raster)
		}
		switch {
		case next.kind == "IDAT":
			if previous != "IDAT" {
				rasters++
			}
			if rasters > 1 {
				return nil, errors.New("its pixel data is interrupted by other data")
			}
			raster = append(raster, next.data...)
		case next.kind == "tRNS" && head.colour == grey && len(next.data) == 2:
			// Only as many bits count as a sample has; the decoder compares all.
			stripped = appendChunk(stripped, "tRNS", []byte{0, next.data[1] & (1<<head.depth - 1)})
		case next.kind == "tRNS" && head.colour == palette && colours > 0 && len(next.data) > colours:
			// Some decoders would use these alphas, others not.
			return nil, errors.New("it has more alphas than colours")
		case next.kind == "PLTE":
			colours = len(next.data) / 3
			stripped = append(stripped, next.raw...)
		case next.kind == "IHDR" || next.kind == "tRNS" || next.kind == "IEND":
			stripped = append(stripped, next.raw...)
		case next.kind == "acTL":
			return nil, errors.New("it is animated, which no texture is")
		case next.kind[0]&0x20 == 0:
			return nil, fmt.Errorf("it needs a decoder that knows %q, which no PNG standard does", next.kind)
		}
		previous, rest = next.kind, after
	}
	return stripped, nil
}

// cutChunk cuts the first chunk off the rest of a file.
func cutChunk(rest []byte) (chunk, []byte, error) {
	const frame = 12 // length, type and checksum, four bytes each
	if len(rest) < frame {
		return chunk{}, nil, errors.New("it is cut off: a PNG ends with an IEND chunk")
	}
	length := int64(binary.BigEndian.Uint32(rest))
	kind := string(rest[4:8])
	if length > int64(len(rest)-frame) {
		return chunk{}, nil, fmt.Errorf("it is cut off in its %q chunk", kind)
	}
	end := 8 + int(length)
	if crc32.ChecksumIEEE(rest[4:end]) != binary.BigEndian.Uint32(rest[end:]) {
		return chunk{}, nil, fmt.Errorf("it is damaged: the checksum of its %q chunk is wrong", kind)
	}
	return chunk{kind: kind, data: rest[8:end], raw: rest[:end+4]}, rest[end+4:], nil
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
