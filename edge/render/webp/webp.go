// Package webp writes lossless WebP (VP8L; RFC 9649, section 3) of pictures that
// are made of texels. It takes any picture, and every pixel can be read back as it
// was, but what it tries is chosen for what skins look like:
//
//   - A row mostly equals the one above, in whole or in long stretches, and a pixel
//     the one on its left. Where neither holds, at the slanted borders of texels,
//     the border moves two or three pixels a row, so copies are looked for at these
//     few distances, and at places where the same change of colour was seen last.
//   - Colours are few and come again, so the colour cache or a palette tells most
//     pixels that are not copied. Pictures of up to 256 colours are described both
//     as they are and by a palette, unless one of the two can hardly win.
//   - Where texels are as small as pixels, neighbours are alike rather than equal;
//     then what each pixel differs by from what four predictors expect is tried.
//
// Of each way a quick sketch is made and priced, and only the best is refined: to
// the cheapest tokens by the prices that the sketch taught. Prices are counted in
// sixteenths of a bit.
//
// The cross-colour transform, the other ten predictors, more than two groups of
// codes and a search for the best copies anywhere gain next to nothing on such
// pictures and are never used; nor is anything lossy.
package webp

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/veneer-skins/veneer/edge/render/internal/prefix"
)

// maxSide is the longest side of a picture that the format allows, in pixels.
const maxSide = 1 << 14

// Encoder is the memory that one encoding after another uses. The zero value is
// ready. An Encoder must not be used by two at once.
type Encoder struct {
	w      prefix.Writer
	stream stream
	aux    stream // for the images that tell of others

	picture         raster
	opaque          bool
	novel           int // pixels that differ from the one above and from the one before
	colours         colours
	greenSubtracted raster     // the picture with its green taken from red and blue
	palette         raster     // its colours
	indexed         raster     // the picture as places in them
	prediction      prediction // of lessGreen

	directDraft, paletteDraft, indexedDraft, modesDraft, residualDraft draft
}

// Append appends to dst the WebP file of width × height pixels: rows from the top,
// four bytes a pixel (red, green, blue, alpha; not premultiplied), the stride being
// exactly 4 × width. The colours of transparent pixels are kept. The file is a RIFF
// header and one VP8L chunk. Either side may have 1 to 16384 pixels, of which many
// readers take one less; any other size, or a length of pix that does not match, is
// an error, and dst is returned as it was. Once the Encoder has written a picture
// of the size, and if dst has room, nothing is allocated.
func (e *Encoder) Append(dst, pix []byte, width, height int) ([]byte, error) {
	if width < 1 || height < 1 || width > maxSide || height > maxSide || len(pix) != 4*width*height {
		return dst, fmt.Errorf("a picture of %d × %d pixels in %d bytes cannot be WebP", width, height, len(pix))
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

// header writes what stands before the transforms (RFC 9649, section 3.4).
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

// load reads the pixels and finds out where they repeat and how many colours they
// have.
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
					// Wherever a colour comes first, it is new.
					e.novel++
					e.colours.add(v)
					all &= v
				}
				last = v
			}
			to[x] = v
			x++
			// Equal pixels are the rule: two at a time.
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

// argb returns the first pixel of p as a raster holds it.
func argb(p []byte) uint32 {
	v := binary.LittleEndian.Uint32(p)
	return v&0xff00ff00 | v>>16&255 | v&255<<16
}

// When which ways of describing a picture are tried. Its novel pixels tell how much
// it changes, and the bounds are what pictures of skins showed: beyond them another
// way hardly ever wins, or wins next to nothing for its time.
const (
	// Texels are as small as pixels where more than one run in two begins with a
	// novel pixel: at the edges of larger ones most runs go on from above.
	runsPerNovelIfNoisy = 2

	// Crisp pictures change little by little where as many as one run in three does.
	// Finding that out takes the time of a sketch, which only large ones repay.
	runsPerNovelIfFine = 3
	pixelsIfFine       = 1 << 16

	// A palette wins where every colour comes anew twice, and so often more that what
	// telling the palette takes is made up for.
	novelPerColour = 2
	novelToRepay   = 128

	// Prediction wins in noisy pictures where one pixel in four is novel: too few
	// colours come again for a cache. Small ones vary more, and trying all ways takes
	// them no time.
	pixelsPerNovel  = 4
	pixelsToPredict = 1 << 13
)

// describe writes the picture in the way that seems to be the shortest. Ways that
// hardly ever win are not tried.
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
		// What the differences cost is overestimated, but in vast images not so much that
		// finding out would repay its time.
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

// draftIndexed describes the picture by a palette.
func (e *Encoder) draftIndexed(kind kind) {
	palette := e.colours.sorted()
	e.buildPalette(palette)
	e.indexPixels(palette)
	e.aux.draft(&e.paletteDraft, &e.palette, crisp)
	kind.indices = e.indexed.width == e.picture.width // one a pixel
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

// The kinds of transforms (RFC 9649, section 3.5), as they are written: after a bit
// that says that there is one.
const (
	predictorTransform     = 0<<1 | 1
	subtractGreenTransform = 2<<1 | 1
	paletteTransform       = 3<<1 | 1
)

// subtractGreen sets greenSubtracted: greys then differ in green alone (RFC 9649, section
// 3.5.3).
func (e *Encoder) subtractGreen() {
	r := &e.greenSubtracted
	r.copyLayout(&e.picture)
	for i, v := range e.picture.px {
		green := v >> 8 & 255
		r.px[i] = v&0xff00ff00 | (v&0xff00ff|0xff00ff00-(green<<16|green))&0xff00ff
	}
}
