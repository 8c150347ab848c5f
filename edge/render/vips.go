package render

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"

	"github.com/davidbyttow/govips/v2/vips"

	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/paint"
)

// Config is what a Renderer needs to start.
type Config struct {
	// Log hears what libvips warns of; nil discards it.
	Log *slog.Logger
}

// Renderer draws and encodes pictures. It is safe for concurrent use.
type Renderer struct {
	revision string
	canWebP  bool
	plans    *plans
	brushes  sync.Pool // of *brush
	pixels   sync.Pool // of *[]byte, the memory of pictures that only become files
}

// Start starts libvips and finds out what it can write. A libvips that cannot
// write PNG is an error; one that cannot write WebP is not. There is one
// Renderer a process: after its Close no other can be started.
func Start(config Config) (*Renderer, error) {
	log := config.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	vips.LoggingSettings(func(domain string, level vips.LogLevel, text string) {
		if level <= vips.LogLevelCritical {
			log.Error("libvips complains", "domain", domain, "text", text)
		} else {
			log.Warn("libvips warns", "domain", domain, "text", text)
		}
	}, vips.LogLevelWarning)

	// One thread a picture: callers draw several at once already. No caches: no
	// operation is ever asked for twice with the same input.
	if err := vips.Startup(&vips.Config{ConcurrencyLevel: 1}); err != nil {
		return nil, fmt.Errorf("start libvips: %w", firstLine(err))
	}

	r := &Renderer{plans: newPlans(planBytes)}
	picture := probe()
	asPNG, err := r.Encode(picture, PNG)
	if err != nil {
		return nil, fmt.Errorf("probe libvips: %w", err)
	}
	asWebP, err := r.Encode(picture, WebP)
	r.canWebP = err == nil

	// libvips does not tell which zlib and libwebp it calls, so the files they
	// write speak for them. The architecture counts because the compiler fuses
	// floating point operations on some, which can move the last bit of an edge.
	sum := sha256.New()
	fmt.Fprintf(sum, "%s %s %+v %+v %x %x", runtime.GOARCH, vips.Version, *pngParams(), *webpParams(), asPNG, asWebP)
	if err := r.drawSamples(sum); err != nil {
		return nil, fmt.Errorf("draw samples: %w", err)
	}
	r.revision = fmt.Sprintf("%x", sum.Sum(nil)[:6])
	return r, nil
}

// drawSamples writes pictures of every pose and type to w: how this package draws
// speaks for itself, so that no change of it can keep the revision. Noise has all
// kinds of texels, in as many places as there are.
func (r *Renderer) drawSamples(w io.Writer) error {
	modern, legacy, large := paint.Noise(1, 64, 64), paint.Noise(2, 64, 32), paint.Noise(3, 128, 128)
	for _, sample := range []struct {
		sheet skin.Sheet
		kind  skin.Type
	}{{modern, skin.Steve}, {modern, skin.Alex}, {legacy, skin.Steve}, {large, skin.Alex}, {legacy, skin.Cape}} {
		for _, view := range []View{
			{Pose: Flat, Type: sample.kind, Size: 24},
			{Pose: Flat, Type: sample.kind, Size: 32},
			{Pose: Isometric, Type: sample.kind, Size: 48}, // smooth
			{Pose: Isometric, Type: sample.kind, Size: 64}, // crisp, but for large sheets
			{Pose: Preview, Type: sample.kind, Size: 96},
			{Pose: Preview, Type: sample.kind, Size: 144},
		} {
			if view.Check() != nil {
				continue // a cape has no face
			}
			picture, err := r.Draw(sample.sheet, view)
			if err != nil {
				return err
			}
			if _, err := w.Write(picture.Pix); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close stops libvips. No other method may run or be called any more.
func (r *Renderer) Close() { vips.Shutdown() }

// Revision returns a short token of lower-case hexadecimal digits that differs
// whenever the same view of the same texture could be another file: with the
// drawing, the version of libvips, the encoders and their settings.
func (r *Renderer) Revision() string { return r.revision }

// CanWebP reports whether pictures can be encoded as WebP.
func (r *Renderer) CanWebP() bool { return r.canWebP }

// Encode writes a picture in a format. Nothing but pixels goes into the file,
// and every pixel can be read back as it was; only the colour of transparent
// ones, which nobody sees, WebP chooses to its liking.
func (r *Renderer) Encode(picture Picture, format Format) ([]byte, error) {
	img, err := vips.NewImageFromGoImage(&image.NRGBA{
		Pix:    picture.Pix,
		Stride: 4 * picture.Width,
		Rect:   image.Rect(0, 0, picture.Width, picture.Height),
	})
	if err != nil {
		return nil, fmt.Errorf("hand picture to libvips: %w", firstLine(err))
	}
	// Finalisers come late under load, and a reference held until the end keeps
	// them from coming early, while C still reads.
	defer img.Close()

	var file []byte
	switch format {
	case PNG:
		file, _, err = img.ExportPng(pngParams())
	case WebP:
		file, _, err = img.ExportWebp(webpParams())
		file = bare(file)
	default:
		err = errors.New("no such format")
	}
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", format, firstLine(err))
	}
	return file, nil
}

// pngParams are the settings for PNG: filters only blur the repetition that
// makes magnified texels small.
func pngParams() *vips.PngExportParams {
	params := vips.NewPngExportParams()
	params.StripMetadata = true
	params.Compression = 6
	params.Filter = vips.PngFilterNone
	return params
}

// webpParams are the settings for WebP: more effort takes longer and makes
// flat pictures no smaller.
func webpParams() *vips.WebpExportParams {
	params := vips.NewWebpExportParams()
	params.StripMetadata = true
	params.Lossless = true
	params.ReductionEffort = 2
	return params
}

// bare reduces a lossless WebP file to its header and its pixels: libvips always
// adds an EXIF chunk, which can be half of a small file. It works in place.
func bare(file []byte) []byte {
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

// probe returns a small picture with something in it for every encoder to do:
// repetition, gradients, partly transparent pixels.
func probe() Picture {
	const side = 16
	picture := newPicture(side, side, nil)
	for i := range side * side {
		x, y := i%side, i/side
		copy(picture.Pix[4*i:], []byte{byte(17 * x), byte(17 * y), byte(x * y), byte(255 - 4*(x/4)*(y/4))})
	}
	return picture
}

// firstLine keeps what a govips error says first. The rest is a stack trace;
// and as libvips has one error buffer for the whole process, further lines may
// belong to another picture.
func firstLine(err error) error {
	line, _, _ := strings.Cut(err.Error(), "\n")
	if line = strings.TrimSpace(line); line == "" {
		line = "libvips gives no reason"
	}
	return errors.New(line)
}
