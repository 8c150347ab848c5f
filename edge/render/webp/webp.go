// Package webp writes lossless WebP (VP8L; RFC 9649, section 3) of pictures that are made of
// texels. It takes any picture and keeps every pixel, but what it tries is tuned to pictures of
// skins:
//
//   - A row mostly equals the one above, in whole or in long stretches, and a pixel the one on its
//     left. At the slanted borders of texels neither holds, but the border moves two or three pixels
//     a row, so copies are tried at these few distances, and from the last places with the same
//     change of colour.
//   - Colours are few and repeat, so the colour cache or a palette covers most pixels that are not
//     copied. Pictures of up to 256 colours are drafted both with and without a palette, unless one
//     of the two can hardly win.
//   - Where texels are as small as pixels, neighbours are similar rather than equal. Then the
//     residuals of four predictors are tried.
//
// Each way is drafted and its cost estimated; only the best draft is refined, to the cheapest
// tokens by the costs that the draft gives. Costs are in sixteenths of a bit.
//
// The cross-colour transform, the other ten predictors, more than two groups of codes and a
// full search for copies gain next to nothing on such pictures and are never used; nor is
// anything lossy.
package webp

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/veneer-skins/veneer/edge/render/internal/prefix"
)

// maxSide is the longest side of a picture that the format allows, in pixels.
const maxSide = 1 << 14

// Encoder is the scratch memory of consecutive encodings. The zero value is ready. It is not
// safe for concurrent use.
type Encoder struct {
	w      prefix.Writer
	stream stream
	aux    stream // for auxiliary images: palette, predictors, entropy groups

	picture         raster
	opaque          bool
	novel           int // pixels that differ from the one above and from the previous one
	colours         colours
	greenSubtracted raster     // the picture after the subtract-green transform
	palette         raster     // the palette, as an image
	indexed         raster     // the picture as indices of the palette
	prediction      prediction // of greenSubtracted

	directDraft, paletteDraft, indexedDraft, modesDraft, residualDraft draft
}

// Append appends the WebP file of width × height pixels to dst: rows from the top, four bytes a
// pixel (red, green, blue, alpha; not premultiplied), the stride being exactly 4 × width. The
// colours of transparent pixels are kept. The file is a RIFF header and one VP8L chunk. Sides
// of 1 to 16384 pixels are allowed, though many decoders accept one less. Any other size, or a
// length of pix that does not match, is an error, and dst is returned unchanged. If the Encoder
// has written a picture of that size before, and dst has room, nothing is allocated.
func (e *Encoder) Append(dst, pix []byte, width, height int) ([]byte, error) {
	if width < 1 || height < 1 || width > maxSide || height > maxSide || len(pix) != 4*width*height {
		return dst, fmt.Errorf("a picture of %d × %d pixels in %d bytes cannot be encoded as WebP", width, height, len(pix))
	}
	e.load(pix, width, height)

	const headers = 20
	start := len(dst)
	dst = append(dst, "RIFF....WEBPVP8L...."...)
	e.w.Reset(dst)
	e.header(width, height)
	e.describe()
	dst = e.w.Bytes()
	size := len(dst) - start - headers
	binary.LittleEndian.PutUint32(dst[start+16:], uint32(size))
	if size%2 == 1 {
		dst = append(dst, 0)
	}
	binary.LittleEndian.PutUint32(dst[start+4:], uint32(len(dst)-start-8))
	return dst, nil
}

// header writes the VP8L header (RFC 9649, section 3.4).
func (e *Encoder) header(width, height int) {
	e.w.Write(0x2f, 8)
	e.w.Write(uint64(width-1), 14)
	e.w.Write(uint64(height-1), 14)
	alpha := uint64(1)
	if e.opaque {
		alpha = 0
	}
	e.w.Write(alpha, 1)
	e.w.Write(0, 3) // the version
}

// load reads the pixels and finds where they repeat and which colours they have.
func (e *Encoder) load(pix []byte, width, height int) {
	r := &e.picture
	r.reset(width, height)
	e.colours.reset()
	e.novel = 0
	stride := 4 * width
	all := uint32(0xffffffff)
	last := ^argb(pix)
	for y := range height {
		from, row := y*width, pix[y*stride:][:stride]
		to := r.px[from:][:width]
		r.same[y] = y > 0 && bytes.Equal(row, pix[(y-1)*stride:][:stride])
		if r.same[y] {
			copy(to, r.px[from-width:])
			r.runs = append(r.runs, int32(from))
			last = to[width-1]
			continue
		}
		above := r.px[max(0, from-width):][:width]
		for x := 0; x < width; {
			v := argb(row[4*x:])
			if v != last {
				r.runs = append(r.runs, int32(from+x))
				if v != above[x] || y == 0 {
					// The first pixel of every colour is such a pixel.
					e.novel++
					e.colours.add(v)
					all &= v
				}
				last = v
			}
			to[x] = v
			x++
			// Most pixels equal the previous one: two at a time.
			two := uint64(binary.LittleEndian.Uint32(row[4*x-4:])) * (1<<32 + 1)
			for x+2 <= width && binary.LittleEndian.Uint64(row[4*x:]) == two {
				to[x], to[x+1] = v, v
				x += 2
			}
		}
	}
	e.opaque = all>>24 == 255
	r.findAlike()
}

// argb returns the first pixel of p in the format of rasters.
func argb(p []byte) uint32 {
	v := binary.LittleEndian.Uint32(p)
	return v&0xff00ff00 | v>>16&255 | v&255<<16
}

// Which ways of encoding a picture are tried. Its novel pixels measure how much it changes. The
// bounds come from pictures of skins: beyond them another way hardly ever wins, or gains next
// to nothing for its time.
const (
	// Texels are as small as pixels where more than one run in two begins with a novel pixel:
	// at the edges of larger ones most runs continue from above.
	runsPerNovelIfNoisy = 2

	// Crisp pictures change little by little where as many as one run in three does. Prediction
	// is then drafted as well, which pays off for large pictures only.
	runsPerNovelIfFine = 3
	pixelsIfFine       = 1 << 16

	// A palette wins where every colour is novel twice, plus what makes up for the size of the
	// palette.
	novelPerColour = 2
	novelToRepay   = 128

	// Prediction wins in noisy pictures where one pixel in four is novel: too few colours
	// repeat for a cache. Small pictures vary more, and trying all ways takes no time there.
	pixelsPerNovel  = 4
	pixelsToPredict = 1 << 13
)

// describe writes the picture in the way with the lowest estimated cost. Ways that hardly ever
// win are not tried.
func (e *Encoder) describe() {
	fitPalette, pixels, runs := e.colours.fitPalette(), len(e.picture.px), len(e.picture.runs)
	noisy := runsPerNovelIfNoisy*e.novel > runs
	fine := noisy || pixels >= pixelsIfFine && runsPerNovelIfFine*e.novel > runs
	mustIndex := fitPalette && e.novel >= novelPerColour*len(e.colours.list)+novelToRepay
	mustPredict := noisy && pixels >= pixelsToPredict && pixelsPerNovel*e.novel >= pixels
	kind := crisp
	if noisy {
		kind = smooth
	}

	var write func()
	var lowest uint64
	offer := func(way func(), cost uint64) {
		if write == nil || cost < lowest {
			write, lowest = way, cost
		}
	}
	if fitPalette {
		e.draftIndexed(kind)
		offer(e.writeIndexed, e.paletteDraft.cost+e.indexedDraft.cost)
	}
	if !mustIndex || fine {
		e.subtractGreen()
	}
	if !mustIndex && !mustPredict {
		e.stream.draft(&e.directDraft, &e.greenSubtracted, kind)
		offer(e.writeDirect, e.directDraft.cost)
	}
	if fine {
		e.prediction.choose(&e.greenSubtracted)
		// The estimated cost of residuals is too high, but in vast images not so much that
		// drafting them would be worth its time.
		fine = runs <= maxRefinedRuns || write == nil || e.prediction.cost < lowest
	}
	if fine {
		e.prediction.predict(&e.greenSubtracted)
		e.aux.draft(&e.modesDraft, &e.prediction.modes, crisp)
		e.stream.draft(&e.residualDraft, &e.prediction.residual, difference)
		offer(e.writePredicted, e.modesDraft.cost+e.residualDraft.cost)
	}
	write()
}

// draftIndexed drafts the picture with a palette.
func (e *Encoder) draftIndexed(kind kind) {
	palette := e.colours.sorted()
	e.buildPalette(palette)
	e.indexPixels(palette)
	e.aux.draft(&e.paletteDraft, &e.palette, crisp)
	kind.indices = e.indexed.width == e.picture.width // one index a pixel
	e.stream.draft(&e.indexedDraft, &e.indexed, kind)
}

func (e *Encoder) writeDirect() {
	e.w.Write(subtractGreenTransform, 3)
	e.w.Write(0, 1)
	e.stream.writePicture(&e.w, &e.greenSubtracted, &e.directDraft, &e.aux)
}

func (e *Encoder) writeIndexed() {
	e.w.Write(paletteTransform, 3)
	e.w.Write(uint64(e.palette.width-1), 8)
	e.aux.writeAux(&e.w, &e.palette, &e.paletteDraft)
	e.w.Write(0, 1)
	e.stream.writePicture(&e.w, &e.indexed, &e.indexedDraft, &e.aux)
}

func (e *Encoder) writePredicted() {
	e.w.Write(subtractGreenTransform, 3)
	e.w.Write(predictorTransform, 3)
	e.w.Write(uint64(e.prediction.tileBits-2), 3)
	e.aux.writeAux(&e.w, &e.prediction.modes, &e.modesDraft)
	e.w.Write(0, 1)
	e.stream.writePicture(&e.w, &e.prediction.residual, &e.residualDraft, &e.aux)
}

// The types of transforms (RFC 9649, section 3.5), as they are written: after a bit that says
// that there is one.
const (
	predictorTransform     = 0<<1 | 1
	subtractGreenTransform = 2<<1 | 1
	paletteTransform       = 3<<1 | 1
)

// subtractGreen sets greenSubtracted: greys then differ in green only (RFC 9649, section
// 3.5.3).
func (e *Encoder) subtractGreen() {
	r := &e.greenSubtracted
	r.copyLayout(&e.picture)
	for i, v := range e.picture.px {
		green := v >> 8 & 255
		r.px[i] = v&0xff00ff00 | (v&0xff00ff|0xff00ff00-(green<<16|green))&0xff00ff
	}
}
