package skintest

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"image"
	"image/color/palette"
	"image/gif"
	"image/jpeg"
	"slices"

	"github.com/veneer-skins/veneer/shared/skin"
)

// document is a PDF with a script.
const document = "%PDF-1.4\n1 0 obj<</Type/Catalog/OpenAction<</S/JavaScript/JS(app.alert(1))>>>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF"

// animations are animated pictures.
func animations() []File {
	p := FromSheet(sample())
	idat := Chunk("IDAT", Deflate(p.Raster()))
	control := Chunk("acTL", []byte{0, 0, 0, 2, 0, 0, 0, 0})
	frame := func(number byte) []byte {
		return Chunk("fcTL", []byte{0, 0, 0, number, 0, 0, 0, 64, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0})
	}
	second := Chunk("fdAT", append([]byte{0, 0, 0, 2}, Deflate(p.Raster())...))
	header, iend := p.Header(), Chunk("IEND", nil)
	return []File{
		rejected("an animation", "animated", Join(header, control, frame(0), idat, frame(1), second, iend)),
		rejected("an animation of which the picture is no part", "animated", Join(header, control, idat, frame(0), second, iend)),
		rejected("an animation of two billion frames", "animated", Join(header, Chunk("acTL", []byte{0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0}), frame(0), idat, iend)),
		accepted("an animation of one frame", Join(header, Chunk("acTL", []byte{0, 0, 0, 1, 0, 0, 0, 0}), frame(0), idat, iend), "fcTL"),
		rejected("an animation without a number of frames", "animated", Join(header, Chunk("acTL", nil), frame(0), idat, iend)),
		accepted("an animation that is told of too late", Join(header, idat, control, frame(1), second, iend), "fdAT"),
		rejected("an animation that is cut off", "animated", Join(header, control, frame(0), idat)),
		accepted("frames without an animation", Join(header, frame(0), idat, frame(1), second, iend), "fdAT"),
	}
}

// polyglots are pictures that are valid in another format as well.
func polyglots() []File {
	const page = "<html><script>alert(document.domain)</script></html>"
	p := FromSheet(sample())
	valid := p.File()
	var files []File
	for _, other := range []struct{ name, content, payload string }{
		{"a page", page, "<script>"},
		{"a script", "\n/*<!--*/=1;alert(1)//-->", "alert(1)"},
		{"a program of the server's", "<?php system($_GET['c']); ?>", "<?php"},
		{"an archive", string(zipFile([]byte("content"))), "PK\x03\x04"},
		{"a PDF", document, "%PDF"},
		{"a GIF", string(gifFile()), "GIF89a"},
		{"a JPEG", string(jpegFile()), "JFIF"},
		{"a compressed archive", string(gzipFile([]byte("content"))), "\x1f\x8b\x08"},
		{"600 KiB of pages", string(bytes.Repeat([]byte(page), 600<<10/len(page))), "<script>"},
	} {
		files = append(files, accepted(other.name+" behind the end", append(bytes.Clone(valid), other.content...), other.payload))
	}
	for _, where := range []struct {
		kind, begin string
		compressed  bool
	}{
		{"tEXt", "Comment\x00", false},
		{"tEXt", "", false}, // without a keyword
		{"zTXt", "Comment\x00\x00", true},
		{"zTXt", "Comment\x00\x00", false}, // not compressed
		{"iTXt", "XML:com.adobe.xmp\x00\x00\x00\x00\x00", false},
		{"iTXt", "Comment\x00\x01\x00\x00\x00", true},
		{"iCCP", "icc\x00\x00", true},
		{"iCCP", "icc\x00\x00", false},
		{"eXIf", "MM\x00*", false},
		{"sPLT", "suggested\x00\x08", false},
		{"pCAL", "", false},
		{"gIFx", "", false},
		{"prVt", "", false},
	} {
		content := []byte(page)
		name := "a page in " + where.kind
		if where.compressed {
			content = Deflate(content)
			name += ", compressed"
		} else if where.begin == "" {
			name += " and nothing else"
		}
		for _, behind := range []bool{false, true} {
			p, name := p, name
			if chunk := Chunk(where.kind, append([]byte(where.begin), content...)); behind {
				p.After, name = chunk, name+", behind the raster"
			} else {
				p.Before = chunk
			}
			files = append(files, accepted(name, p.File(), string(content)))
		}
	}
	return append(files, inPixels()...)
}

// inPixels are pictures with hidden data in their colours.
func inPixels() []File {
	// Three bytes of each are a colour.
	const hidden = "<script>alert(1)</script>//"
	unused := indexed(8, 0)
	unused.Before = Chunk("PLTE", append(make([]byte, 3), hidden...))
	unused.Samples = func(int, int) []byte { return []byte{0} }
	beside := FromSheet(sample())
	beside.Before = Chunk("PLTE", []byte(hidden))
	alphas := indexed(8, 0)
	alphas.Before = slices.Concat(paletteOf(256), Chunk("tRNS", []byte("\xff"+hidden)))
	alphas.Samples = unused.Samples
	used := skin.NewSheet(64, 64)
	for i := range used.Pix {
		used.Pix[i] = []byte{noise[0], noise[1], noise[2], 255}[i%4]
	}

	// Pixels are stored, even invisible ones. They may spell a page, which is why textures
	// are served as pictures only.
	under := sample()
	for i := range len(hidden) / 3 {
		copy(under.Pix[4*i:], append([]byte(hidden[3*i:3*i+3]), 0))
	}
	return []File{
		{Name: "a page in colours that are not used", Type: "steve", Data: unused.File(), Sheet: sheetOf(64, 64, func(int, int) [4]byte { return [4]byte{0, 0, 0, 255} }), Payload: hidden},
		{Name: "a page in alphas that are not used", Type: "steve", Data: alphas.File(), Sheet: used, Payload: hidden},
		accepted("a page in a palette beside true colours", beside.File(), hidden),
		{Name: "a page in colours that are transparent", Type: "steve", Data: FromSheet(under).File(), Sheet: under},
	}
}

func zipFile(content []byte) []byte {
	var file bytes.Buffer
	archive := zip.NewWriter(&file)
	entry, _ := archive.Create("index.html") // a buffer never fails
	_, _ = entry.Write(content)
	_ = archive.Close()
	return file.Bytes()
}

func gzipFile(content []byte) []byte {
	var file bytes.Buffer
	writer := gzip.NewWriter(&file)
	_, _ = writer.Write(content) // a buffer never fails
	_ = writer.Close()
	return file.Bytes()
}

func gifFile() []byte {
	var file bytes.Buffer
	_ = gif.Encode(&file, image.NewPaletted(image.Rect(0, 0, 64, 64), palette.WebSafe), nil) // a buffer never fails
	return file.Bytes()
}

// jpegFile returns a JPEG with a JFIF segment, which Go's encoder omits.
func jpegFile() []byte {
	var file bytes.Buffer
	_ = jpeg.Encode(&file, image.NewGray(image.Rect(0, 0, 64, 64)), nil) // a buffer never fails
	return slices.Concat([]byte("\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"), file.Bytes()[2:])
}
