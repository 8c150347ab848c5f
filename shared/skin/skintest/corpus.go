package skintest

import (
	"bytes"
	"slices"

	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
)

// File is an upload, and its expected result.
type File struct {
	Name string // completes the sentence "a user uploads …"
	Type string // as the uploader declares it
	Data []byte

	// WantError is a part of the expected error; empty if the file is accepted.
	WantError string
	// Sheet is the stored sheet of an accepted file.
	Sheet skin.Sheet
	// Payload must not be in the stored file.
	Payload string
}

// Corpus returns files of all kinds that are known to harm readers or servers of PNG, and
// valid ones that look similar. None is larger than the default limit.
func Corpus() []File {
	return slices.Concat(
		formats(), wrongFormats(), notPNGs(), truncations(), corruptions(), chunkOrders(),
		palettes(), transparencies(), dimensions(), streams(), filters(), bombs(), manyChunks(),
		animations(), polyglots(), slowFiles(),
	)
}

// sample is the sheet of most files.
func sample() skin.Sheet { return artwork.Explorer() }

// rejected returns a skin that must be rejected.
func rejected(name, refusal string, data []byte) File {
	return File{Name: name, Type: "steve", Data: data, WantError: refusal}
}

// accepted returns a skin that must be stored as the sample.
func accepted(name string, data []byte, payload string) File {
	return File{Name: name, Type: "steve", Data: data, Sheet: sample(), Payload: payload}
}

// sheetOf returns a sheet with the results of a function as texels.
func sheetOf(width, height int, texel func(x, y int) [4]byte) skin.Sheet {
	sheet := skin.NewSheet(width, height)
	for y := range height {
		for x := range width {
			t := texel(x, y)
			copy(sheet.Pix[sheet.At(x, y):], t[:])
		}
	}
	return sheet
}

// noise is the source of colours that do not matter.
var noise = Noise(11, 64, 64).Pix

// notPNGs are files in other formats.
func notPNGs() []File {
	const refusal = "only PNG is read"
	files := []File{
		rejected("nothing", "it is empty", []byte{}),
		rejected("one byte", refusal, []byte{0x89}),
		rejected("half a signature", refusal, []byte(Signature[:5])),
		rejected("a signature whose line ends were changed", refusal, append([]byte("\x89PNG\n\x1a\n"), FromSheet(sample()).File()[8:]...)),
		rejected("a signature without its high bit", refusal, append([]byte("\x09PNG\r\n\x1a\n"), FromSheet(sample()).File()[8:]...)),
		rejected("a MNG", refusal, []byte("\x8aMNG\r\n\x1a\n\x00\x00\x00\x1cMHDR")),
		rejected("a JNG", refusal, []byte("\x8bJNG\r\n\x1a\n\x00\x00\x00\x10JHDR")),
		rejected("a JPEG", "it looks like image/jpeg", jpegFile()),
		rejected("a GIF", "it looks like image/gif", gifFile()),
		rejected("a WebP", "it looks like image/webp", []byte("RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00")),
		rejected("a BMP", "it looks like image/bmp", append([]byte("BM\x46\x00\x00\x00\x00\x00\x00\x00\x36\x00\x00\x00\x28\x00\x00\x00"), make([]byte, 52)...)),
		rejected("an AVIF", refusal, []byte("\x00\x00\x00\x1cftypavif\x00\x00\x00\x00mif1avifmiaf")),
		rejected("an icon", "it looks like image/x-icon", []byte("\x00\x00\x01\x00\x01\x00\x10\x10\x00\x00")),
		rejected("an SVG", refusal, []byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`)),
		rejected("an XML with entities", refusal, []byte(`<?xml version="1.0"?><!DOCTYPE r [<!ENTITY e SYSTEM "file:///etc/passwd">]><r>&e;</r>`)),
		rejected("a blank line before", "it has 2 bytes before the beginning", append([]byte("\r\n"), FromSheet(sample()).File()...)),
		rejected("a page", "it looks like text/html", []byte("<!DOCTYPE html><script>alert(1)</script>")),
		rejected("a script", refusal, []byte("<?php system($_GET['c']); ?>")),
		rejected("a text", "it looks like text/plain", []byte("This is no picture.")),
		rejected("a text of UTF-16", refusal, []byte("\xff\xfeT\x00e\x00x\x00t\x00")),
		rejected("an archive", "it looks like application/zip", zipFile([]byte("content"))),
		rejected("a compressed PNG", "it looks like application/x-gzip", gzipFile(FromSheet(sample()).File())),
		rejected("a program", refusal, append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 64)...)),
		rejected("a PDF", "it looks like application/pdf", []byte(document)),
		rejected("a mebibyte of zeros", refusal, make([]byte, 1<<20)),
	}
	for _, prefix := range []struct{ name, text string }{
		{"a page", "<html><script>alert(1)</script></html>"},
		{"a PDF", document},
		{"an archive", string(zipFile([]byte("content")))},
		{"a script", "#!/bin/sh\nexit 1\n"},
		{"a byte order mark", "\xef\xbb\xbf"},
		{"a space", " "},
	} {
		files = append(files, rejected(prefix.name+" before a PNG", refusal, append([]byte(prefix.text), FromSheet(sample()).File()...)))
	}
	return files
}

// truncations are a valid file, truncated at and within each part: without IEND it is complete.
func truncations() []File {
	p := FromSheet(sample())
	p.Before = Chunk("tEXt", []byte("Title\x00Hello"))
	file := p.File()
	files := []File{rejected("a signature and no more", "it is cut off", file[:len(Signature)])}
	add := func(name string, at int) {
		if at >= len(file)-len(Chunk("IEND", nil)) {
			files = append(files, accepted(name, file[:at], ""))
		} else {
			files = append(files, rejected(name, "it is cut off", file[:at]))
		}
	}
	at := len(Signature)
	for _, chunk := range chunksOf(file) {
		frame, data := chunk.start, len(chunk.data)
		for _, cut := range []struct {
			name string
			at   int
		}{
			{"in the length of", frame + 2},
			{"behind the length of", frame + 4},
			{"in the name of", frame + 6},
			{"behind the name of", frame + 8},
			{"in", frame + 8 + data/2},
			{"behind the data of", frame + 8 + data},
			{"in the checksum of", frame + 8 + data + 2},
			{"a byte before the end of", frame + 8 + data + 3},
		} {
			if cut.at > at { // IEND has no data
				add("a file cut off "+cut.name+" "+chunk.kind, cut.at)
				at = cut.at
			}
		}
		if at = frame + 12 + data; at < len(file) {
			add("a file cut off behind "+chunk.kind, at)
		}
	}
	return files
}

// corruptions are files with one flipped bit, or a wrong length.
func corruptions() []File {
	p := indexed(8, 256)
	p.Before = append(p.Before, Chunk("tEXt", []byte("Title\x00Hello"))...)
	file := p.File()
	var files []File
	for _, chunk := range chunksOf(file) {
		add := func(name string, data []byte, refusal string) {
			if chunk.kind == "tEXt" || chunk.kind == "IEND" { // which are no part of the pixels
				f := texels(name, p, paletteTexel(256, 0))
				f.Data = data
				files = append(files, f)
			} else {
				files = append(files, rejected(name, refusal, data))
			}
		}
		refusal := `the checksum of its "` + chunk.kind + `" chunk is wrong`
		wrongSum := bytes.Clone(file)
		wrongSum[chunk.start+8+len(chunk.data)] ^= 1
		add("a wrong checksum of "+chunk.kind, wrongSum, refusal)
		if len(chunk.data) > 0 {
			wrongBit := bytes.Clone(file)
			wrongBit[chunk.start+8+len(chunk.data)/2] ^= 0x10
			add("a changed bit in "+chunk.kind, wrongBit, refusal)
		}
		wrongName := bytes.Clone(file)
		wrongName[chunk.start+5] ^= 0x20
		add("a changed letter of "+chunk.kind, wrongName, "the checksum of its")
	}
	for _, length := range []struct{ name, bytes string }{
		{"2³¹ - 1", "\x7f\xff\xff\xff"},
		{"2³¹", "\x80\x00\x00\x00"},
		{"2³² - 1", "\xff\xff\xff\xff"},
		{"2³² - 12", "\xff\xff\xff\xf4"}, // plus the chunk's 12 bytes it overflows to 0
	} {
		plain := FromSheet(sample())
		for _, kind := range []string{"IDAT", "tEXt"} {
			broken := Join(plain.Header(), []byte(length.bytes+kind), Deflate(plain.Raster()), []byte("----"), Chunk("IEND", nil))
			files = append(files, rejected(kind+" of "+length.name+" bytes", `it is cut off in its "`+kind+`" chunk`, broken))
		}
		files = append(files, rejected("a header of "+length.name+" bytes", `it is cut off in its "IHDR" chunk`, Join([]byte(length.bytes), plain.Header()[4:])))
	}
	return files
}

// chunkOrders are files with missing, duplicate, unknown or misplaced chunks.
func chunkOrders() []File {
	p := FromSheet(sample())
	header, idat, iend := p.Header(), Chunk("IDAT", Deflate(p.Raster())), Chunk("IEND", nil)
	half := len(idat) / 2
	first, second := Chunk("IDAT", idat[8:half]), Chunk("IDAT", idat[half:len(idat)-4])
	text := Chunk("tEXt", []byte("Title\x00Hello"))
	between := func(kind string, data []byte) []byte { return Join(header, Chunk(kind, data), idat, iend) }
	headerOf := func(at int, value byte) []byte {
		data := bytes.Clone(header[8:21])
		data[at] = value
		return Join(Chunk("IHDR", data), idat, iend)
	}
	return []File{
		rejected("no header", "not with the header", Join(idat, iend)),
		rejected("nothing but an end", "not with the header", Join(iend)),
		rejected("a text before the header", "not with the header", Join(text, header, idat, iend)),
		rejected("a header for telephones", "not with the header", Join(Chunk("CgBI", []byte{0x50, 0, 0x20, 6}), header, idat, iend)),
		rejected("a header of 12 bytes", "not with the header", Join(Chunk("IHDR", header[8:20]), idat, iend)),
		rejected("a header of 14 bytes", "not with the header", Join(Chunk("IHDR", append(bytes.Clone(header[8:21]), 0)), idat, iend)),
		rejected("an empty header", "not with the header", Join(Chunk("IHDR", nil), idat, iend)),
		rejected("two headers", "it has two headers", Join(header, header, idat, iend)),
		accepted("a header behind the raster", Join(header, idat, header, iend), ""),
		rejected("an unknown compression", "by a method", headerOf(10, 1)),
		rejected("an unknown family of filters", "by a method", headerOf(11, 1)),
		rejected("an unknown interlacing", "by a method", headerOf(12, 2)),
		rejected("no raster", "it has no pixel data", Join(header, iend)),
		rejected("a raster in two places", "bytes of pixel data", Join(header, first, text, second, iend)),
		accepted("a raster twice", Join(header, idat, idat, iend), ""),
		rejected("a raster behind the end", "it has no pixel data", Join(header, iend, idat)),
		accepted("an end with data", Join(header, idat, Chunk("IEND", []byte("<script>"))), "<script>"),
		accepted("no end", Join(header, idat), ""),
		rejected("a chunk that a decoder must know", `knows "NEWS"`, between("NEWS", nil)),
		accepted("a chunk that a decoder must know, behind the raster", Join(header, idat, Chunk("NEWS", nil), iend), ""),
		rejected("a chunk without a name", `knows "\x00\x00\x00\x00"`, between("\x00\x00\x00\x00", nil)),
		rejected("a chunk named by a new line", `knows "\r\n\r\n"`, between("\r\n\r\n", nil)),
		rejected("a header in small letters", "not with the header", Join(Chunk("ihdr", header[8:21]), idat, iend)),
		rejected("a raster in small letters", "it has no pixel data", Join(header, Chunk("idat", idat[8:len(idat)-4]), iend)),
		accepted("a chunk that a decoder need not know", between("veNr", []byte("<script>")), "<script>"),
		accepted("a chunk that is to be copied by all", between("venr", []byte("<script>")), "<script>"),
		accepted("a raster in two parts", Join(header, first, second, iend), ""),
		accepted("texts around the raster", Join(header, text, idat, text, iend), "Hello"),
		accepted("a second end", Join(header, idat, iend, iend), ""),
		accepted("a text behind the end", Join(header, idat, iend, text), "Hello"),
		accepted("metadata", Join(header, bytes.Join([][]byte{
			Chunk("gAMA", []byte{0, 0, 0, 1}), // nearly black, if it were applied
			Chunk("cHRM", make([]byte, 32)),
			Chunk("sRGB", []byte{9}),
			Chunk("sBIT", []byte{1, 1, 1, 1}),
			Chunk("bKGD", make([]byte, 6)),
			Chunk("pHYs", []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 1}),
			Chunk("hIST", []byte{1}),
			Chunk("tIME", []byte("<script")),
		}, nil), idat, iend), "<script"),
	}
}

// part is a chunk of a file.
type part struct {
	start int // offset in the file
	kind  string
	data  []byte
}

// chunksOf returns the chunks of a valid file.
func chunksOf(file []byte) []part {
	var parts []part
	for at := len(Signature); at < len(file); {
		length := int(file[at])<<24 | int(file[at+1])<<16 | int(file[at+2])<<8 | int(file[at+3])
		parts = append(parts, part{start: at, kind: string(file[at+4 : at+8]), data: file[at+8 : at+8+length]})
		at += 12 + length
	}
	return parts
}
