package skintest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// Mutations returns skins with a chunk of every type, each damaged at one place. They have no
// expected result.
func Mutations() []File {
	texture := FromSheet(sample())
	texture.Before = ancillary([]byte{8, 8, 8, 8}, make([]byte, 6))
	indexed := indexed(4, 16)
	indexed.Interlaced = true
	indexed.Before = slices.Concat(paletteOf(16), alphasOf(9), ancillary([]byte{8, 8, 8}, []byte{1}))
	grey := PNG{Width: 64, Height: 64, Depth: 8, Colour: Grey, Samples: format{colour: Grey, depth: 8}.samples}
	grey.Before = Chunk("tRNS", []byte{0, 9})

	var files []File
	for name, p := range map[string]PNG{"true colours": texture, "a palette": indexed, "grey": grey} {
		chunks := chunksOf(p.File())
		for i, c := range chunks {
			add := func(how string, parts ...[]part) {
				file := []byte(Signature)
				for _, c := range slices.Concat(parts...) {
					file = append(file, Chunk(c.kind, c.data)...)
				}
				files = append(files, File{Name: fmt.Sprintf("%s with %s %s", name, c.kind, how), Type: "steve", Data: file})
			}
			with := func(kind string, data []byte) [][]part {
				return [][]part{chunks[:i], {{kind: kind, data: data}}, chunks[i+1:]}
			}
			others, last := slices.Delete(slices.Clone(chunks), i, i+1), len(chunks)-2
			add("removed", others)
			add("twice", chunks[:i+1], chunks[i:])
			add("behind the header", others[:1], chunks[i:i+1], others[1:])
			add("before the end", others[:last], chunks[i:i+1], others[last:])
			add("empty", with(c.kind, nil)...)
			add("with a byte more", with(c.kind, append(bytes.Clone(c.data), 0))...)
			add("with the other first letter", with(flipCase(c.kind), c.data)...)
			if len(c.data) > 0 {
				add("with a byte less", with(c.kind, c.data[:len(c.data)-1])...)
			}
			for at := 0; at < len(c.data); at += 1 + len(c.data)/5 {
				data := bytes.Clone(c.data)
				data[at] ^= 0xff
				add(fmt.Sprintf("with another byte %d", at), with(c.kind, data)...)
			}
			file := p.File()
			wrongSum, wrongLength, cut := bytes.Clone(file), bytes.Clone(file), file[:c.start+8+len(c.data)/2]
			wrongSum[c.start+8+len(c.data)] ^= 1
			binary.BigEndian.PutUint32(wrongLength[c.start:], uint32(len(c.data)+1))
			for how, data := range map[string][]byte{"with a wrong checksum": wrongSum, "with a wrong length": wrongLength, "cut off": cut} {
				add(how)
				files[len(files)-1].Data = data
			}
		}
	}
	return files
}

// flipCase returns a chunk's name with the other kind of first letter, which says whether decoders
// must know it.
func flipCase(kind string) string {
	first := kind[:1]
	if upper := strings.ToUpper(first); upper != first {
		return upper + kind[1:]
	}
	return strings.ToLower(first) + kind[1:]
}

// ancillary returns chunks of all types that PNG and its extensions define, but for those that make
// the pixels.
func ancillary(bits, background []byte) []byte {
	var chunks [][]byte
	for _, c := range []struct{ kind, data string }{
		{"gAMA", "\x00\x00\xb1\x8f"},
		{"cHRM", "\x00\x00\x7a\x26\x00\x00\x80\x84\x00\x00\xfa\x00\x00\x00\x80\xe8\x00\x00\x75\x30\x00\x00\xea\x60\x00\x00\x3a\x98\x00\x00\x17\x70"},
		{"sRGB", "\x00"},
		{"iCCP", "icc\x00\x00" + string(Deflate([]byte("no profile")))},
		{"sBIT", string(bits)},
		{"bKGD", string(background)},
		{"hIST", strings.Repeat("\x00\x01", 16)},
		{"pHYs", "\x00\x00\x0b\x13\x00\x00\x0b\x13\x01"},
		{"sPLT", "suggested\x00\x08\x01\x02\x03\x04\x00\x01"},
		{"eXIf", "MM\x00*\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00"},
		{"tIME", "\x07\xea\x0b\x1d\x0c\x00\x00"},
		{"oFFs", "\x00\x00\x00\x01\x00\x00\x00\x01\x00"},
		{"pCAL", "scale\x00\x00\x00\x00\x00\x00\x00\x00\xff\x00\x02m\x000\x001"},
		{"sCAL", "\x011\x001"},
		{"sTER", "\x00"},
		{"tEXt", "Title\x00Hello"},
		{"zTXt", "Title\x00\x00" + string(Deflate([]byte("Hello")))},
		{"iTXt", "Title\x00\x00\x00en\x00Title\x00Hello"},
		{"veNr", "private"},
	} {
		chunks = append(chunks, Chunk(c.kind, []byte(c.data)))
	}
	return bytes.Join(chunks, nil)
}
