// Package vips encodes pictures with libvips, that is with zlib and libwebp: slower than
// render.NativeEncoder, and its files are larger. All cgo of edge is here and in libwebp below.
//
// Each picture is one call into libvips. Its caches are off and it uses one thread, because the
// renderer encodes several pictures concurrently already.
package vips

import (
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"log/slog"
	"strings"
	"sync"

	govips "github.com/davidbyttow/govips/v2/vips"

	"github.com/veneer-skins/veneer/edge/render"
)

// Encoder encodes with libvips. It is safe for concurrent use. Start returns one; the zero value
// is not ready.
type Encoder struct {
	canWebP  bool
	revision string
}

var _ render.Encoder = (*Encoder)(nil)

// refs counts the Encoders and Reducers that are not closed. libvips is shared by all of them, and cannot start
// again in a process that has stopped it.
var refs struct {
	sync.Mutex
	count int
}

// Start starts libvips, unless it runs, and returns an Encoder. It is an error if libvips cannot
// write PNG; whether it can write WebP, Supports tells. The log gets libvips' warnings; nil
// discards them. After all Encoders of a process are closed, Start must not be called again.
func Start(log *slog.Logger) (*Encoder, error) {
	if err := start(log); err != nil {
		return nil, err
	}
	e := new(Encoder)
	if err := e.selfTest(); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// start starts libvips if it does not run.
func start(log *slog.Logger) error {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	refs.Lock()
	defer refs.Unlock()
	if refs.count > 0 {
		refs.count++
		return nil
	}
	govips.LoggingSettings(func(domain string, level govips.LogLevel, text string) {
		if level <= govips.LogLevelCritical {
			log.Error("libvips error", "domain", domain, "text", text)
		} else {
			log.Warn("libvips warning", "domain", domain, "text", text)
		}
	}, govips.LogLevelWarning)
	// No caches, because no operation is repeated with the same input.
	if err := govips.Startup(&govips.Config{ConcurrencyLevel: 1}); err != nil {
		return fmt.Errorf("start libvips: %w", firstLine(err))
	}
	refs.count++
	return nil
}

// Close stops libvips if nothing else uses it. No other method may run or be called any more.
func (*Encoder) Close() { stop() }

// stop stops libvips if nothing else uses it.
func stop() {
	refs.Lock()
	defer refs.Unlock()
	if refs.count--; refs.count == 0 {
		govips.Shutdown()
	}
}

// Memory returns how many bytes libvips uses for pixels, and the peak of that. Both are 0 before
// Start.
func Memory() (bytes, peak int64) {
	refs.Lock()
	defer refs.Unlock()
	if refs.count == 0 {
		return 0, 0
	}
	var stats govips.MemoryStats
	govips.ReadVipsMemStats(&stats)
	return stats.Mem, stats.MemHigh
}

// Supports reports whether this libvips can write a format.
func (e *Encoder) Supports(format render.Format) bool {
	return format == render.PNG || format == render.WebP && e.canWebP
}

// Revision returns a token of hexadecimal digits that differs with the version of libvips, its
// settings, and the files that it and the libraries below it write of samples.
func (e *Encoder) Revision() string { return e.revision }

// Encode encodes a picture. The colours of transparent pixels may change.
func (*Encoder) Encode(picture render.Picture, format render.Format) ([]byte, error) {
	img, err := govips.NewImageFromGoImage(&image.NRGBA{
		Pix:    picture.Pix,
		Stride: 4 * picture.Width,
		Rect:   image.Rect(0, 0, picture.Width, picture.Height),
	})
	if err != nil {
		return nil, firstLine(err)
	}
	// Finalisers run late under load. Close also keeps the reference alive until C has read all.
	defer img.Close()

	pixels := picture.Width * picture.Height
	var file []byte
	switch format {
	case render.PNG:
		file, _, err = img.ExportPng(pngParams(pixels))
	case render.WebP:
		file, _, err = img.ExportWebp(webpParams(pixels))
		file = stripToVP8L(file)
	default:
		err = errors.New("no such format")
	}
	if err != nil {
		return nil, firstLine(err)
	}
	return file, nil
}

// The sizes in pixels up to which pictures are compressed with more effort. A preview of 400 pixels
// has fewer than either. WebP of larger pictures would take 150 to 600 ms, and PNG up to 120 ms.
const (
	maxThoroughWebP = 5 << 15
	maxThoroughPNG  = 3 << 18
)

// pngParams are the settings for PNG of a picture of that many pixels. Rows are unfiltered, because
// filters only obscure the repetitions of magnified texels.
func pngParams(pixels int) *govips.PngExportParams {
	params := govips.NewPngExportParams()
	params.StripMetadata = true
	params.Compression = 6
	if pixels > maxThoroughPNG {
		params.Compression = 3
	}
	params.Filter = govips.PngFilterNone
	return params
}

// webpParams are the settings for WebP of a picture of that many pixels. More effort takes longer
// and makes flat pictures no smaller.
func webpParams(pixels int) *govips.WebpExportParams {
	params := govips.NewWebpExportParams()
	params.StripMetadata = true
	params.Lossless = true
	params.ReductionEffort = 2
	if pixels > maxThoroughWebP {
		params.ReductionEffort = 0
	}
	return params
}

// stripToVP8L reduces a lossless WebP file to its header and its pixels: libvips always adds an
// EXIF chunk, which can be half of a small file. It works in place.
func stripToVP8L(file []byte) []byte {
	const fileHeader, chunkHeader = 12, 8
	for at := fileHeader; at+chunkHeader <= len(file); {
		length := int(binary.LittleEndian.Uint32(file[at+4:]))
		end := at + chunkHeader + length + length%2
		if end > len(file) {
			break
		}
		if string(file[at:at+4]) == "VP8L" {
			file = append(file[:fileHeader], file[at:end]...)
			binary.LittleEndian.PutUint32(file[4:], uint32(len(file)-8))
			return file
		}
		at = end
	}
	return file
}

// firstLine returns the first line of a govips error. The rest is a stack trace; and as libvips has
// one error buffer for the whole process, further lines may belong to another picture.
func firstLine(err error) error {
	line, _, _ := strings.Cut(err.Error(), "\n")
	if line = strings.TrimSpace(line); line == "" {
		line = "libvips gives no reason"
	}
	return errors.New(line)
}
