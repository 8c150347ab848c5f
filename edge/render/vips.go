package render

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"io"
	"log/slog"
	"math"
	"runtime"
	"strings"
	"sync"

	"github.com/davidbyttow/govips/v2/vips"

	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/paint"
)

// Config is what a Renderer needs to start.
type Config struct {
	// Encoder writes the files.
	Encoder Encoder
	// Log hears what libvips warns of; nil discards it.
	Log *slog.Logger
}

// Renderer draws and encodes pictures. It is safe for concurrent use. Start returns
// one that is ready; the zero Renderer is not.
type Renderer struct {
	encoder     Encoder
	revision    string
	canWebP     bool
	sampleMaps  *mapCache
	painters    sync.Pool // of *brush
	pixels      sync.Pool // of *[]byte, the memory of pictures that only become files
	encoderPool sync.Pool // of *writers
}

// vipsRefs counts the Renderers with libvips that are not closed. It is one for all
// of them, and never starts again in a process that stopped it.
var vipsRefs struct {
	sync.Mutex
	count int
}

// Start returns a Renderer. With Libvips as its encoder it starts libvips, unless
// another Renderer has, and finds out what that can write: if not PNG, that is an
// error; if not WebP, it is not. When all Renderers of a process that have libvips are
// closed, no other with it can be started.
func Start(config Config) (*Renderer, error) {
	log := config.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if config.Encoder == Libvips {
		if err := startLibvips(log); err != nil {
			return nil, err
		}
	}
	r := &Renderer{encoder: config.Encoder, sampleMaps: newMapCache(mapCacheBytes)}
	if err := r.selfTest(); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// startLibvips starts libvips if it does not run.
func startLibvips(log *slog.Logger) error {
	vipsRefs.Lock()
	defer vipsRefs.Unlock()
	if vipsRefs.count > 0 {
		vipsRefs.count++
		return nil
	}
	vips.LoggingSettings(func(domain string, level vips.LogLevel, text string) {
		if level <= vips.LogLevelCritical {
			log.Error("libvips error", "domain", domain, "text", text)
		} else {
			log.Warn("libvips warning", "domain", domain, "text", text)
		}
	}, vips.LogLevelWarning)

	// One thread a picture: callers draw several at once already. No caches: no
	// operation is ever asked for twice with the same input.
	if err := vips.Startup(&vips.Config{ConcurrencyLevel: 1}); err != nil {
		return fmt.Errorf("start libvips: %w", firstLine(err))
	}
	vipsRefs.count++
	return nil
}

// selfTest finds out what the Renderer can write and what sets its files apart.
func (r *Renderer) selfTest() error {
	picture := probeImage()
	if _, err := r.Encode(picture, PNG); err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	_, err := r.Encode(picture, WebP)
	r.canWebP = err == nil

	// The architecture counts because the compiler fuses floating point operations
	// on some, which can move the last bit of an edge.
	sum := sha256.New()
	fmt.Fprintf(sum, "%s %s", runtime.GOARCH, r.encoder)
	if r.encoder == Libvips {
		for _, pixels := range []int{maxThoroughWebP, maxThoroughPNG, math.MaxInt} {
			fmt.Fprintf(sum, " %s %+v %+v", vips.Version, *pngParams(pixels), *webpParams(pixels))
		}
	}
	if err := r.fingerprint(sum); err != nil {
		return fmt.Errorf("draw samples: %w", err)
	}
	r.revision = fmt.Sprintf("%x", sum.Sum(nil)[:6])
	return nil
}

// fingerprint writes files to w of pictures that reach every branch of the drawing:
// how this package draws and writes speaks for itself, and so do the libraries that
// libvips calls and does not tell the versions of, so that no change of them can keep
// the revision. Noise has all kinds of texels, in as many places as there are; the
// default skin is of few colours, which encoders treat otherwise.
func (r *Renderer) fingerprint(w io.Writer) error {
	modern, legacy, fine, finest := paint.Noise(1, 64, 64), paint.Noise(2, 64, 32), paint.Noise(3, 256, 256), paint.Noise(4, 512, 512)
	few, hatless := paint.Default(), paint.Noise(5, 64, 32)
	for i := 3; i < len(hatless.Pix); i += 4 {
		hatless.Pix[i] = 255
	}
	for _, sample := range []struct {
		sheet skin.Sheet
		kind  skin.Type
		pose  Pose
		sizes []int
	}{
		// What encoders treat in other ways: of few colours and of many, small, large
		// and very large.
		{few, skin.Classic, Flat, []int{96, 512}},
		{few, skin.Classic, Isometric, []int{128, 512}},
		{few, skin.Classic, Preview, []int{400, 1024}},
		{modern, skin.Classic, Isometric, []int{512}},
		{modern, skin.Classic, Preview, []int{400}},
		{modern, skin.Classic, Flat, []int{24, 32}},      // whole texels
		{fine, skin.Classic, Flat, []int{24, 40}},        // several in a pixel, and parts of them
		{modern, skin.Classic, Isometric, []int{48, 64}}, // smooth and crisp
		{fine, skin.Classic, Isometric, []int{64, 240}},
		{finest, skin.Classic, Isometric, []int{264}}, // without a plan
		{finest, skin.Classic, Preview, []int{1024}},  // the most work for encoders
		{modern, skin.Classic, Preview, []int{96, 144}},
		{modern, skin.Slim, Preview, []int{96, 144}},
		{legacy, skin.Classic, Preview, []int{144}},
		{hatless, skin.Classic, Preview, []int{144}},
		{legacy, skin.Cape, Preview, []int{64}},
		{paint.Noise(6, 512, 256), skin.Cape, Preview, []int{64, 240}}, // shrunk and stretched
		{paint.Wings(), skin.Cape, Preview, []int{64, 112}},
	} {
		for _, size := range sample.sizes {
			picture, err := r.Draw(sample.sheet, View{Pose: sample.pose, Type: sample.kind, Size: size})
			if err != nil {
				return err
			}
			for _, format := range r.formats() {
				file, err := r.Encode(picture, format)
				if err != nil {
					return err
				}
				if _, err := w.Write(file); err != nil {
					return fmt.Errorf("add sample: %w", err)
				}
			}
		}
	}
	return nil
}

// formats returns what the Renderer can write.
func (r *Renderer) formats() []Format {
	if r.canWebP {
		return []Format{PNG, WebP}
	}
	return []Format{PNG}
}

// Close stops libvips if this was the last Renderer that has it. No other method may
// run or be called any more.
func (r *Renderer) Close() {
	if r.encoder != Libvips {
		return
	}
	vipsRefs.Lock()
	defer vipsRefs.Unlock()
	if vipsRefs.count--; vipsRefs.count == 0 {
		vips.Shutdown()
	}
}

// Revision returns a short token of lower-case hexadecimal digits that differs
// whenever the same view of the same texture could be another file: with the
// drawing, the version of libvips, the encoders and their settings.
func (r *Renderer) Revision() string { return r.revision }

// CanWebP reports whether pictures can be encoded as WebP.
func (r *Renderer) CanWebP() bool { return r.canWebP }

// encodeLibvips lets libvips write a picture.
func encodeLibvips(picture Picture, format Format) ([]byte, error) {
	img, err := vips.NewImageFromGoImage(&image.NRGBA{
		Pix:    picture.Pix,
		Stride: 4 * picture.Width,
		Rect:   image.Rect(0, 0, picture.Width, picture.Height),
	})
	if err != nil {
		return nil, firstLine(err)
	}
	// Finalisers come late under load, and a reference held until the end keeps
	// them from coming early, while C still reads.
	defer img.Close()

	pixels := picture.Width * picture.Height
	var file []byte
	switch format {
	case PNG:
		file, _, err = img.ExportPng(pngParams(pixels))
	case WebP:
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

// How many pixels a picture has at most that libvips takes its time for. A preview of 400
// pixels has fewer of either. WebP of larger ones would take 150 to 600 ms, and PNG up to
// 120 ms.
const (
	maxThoroughWebP = 5 << 15
	maxThoroughPNG  = 3 << 18
)

// pngParams are the settings for PNG of a picture of so many pixels: filters only blur the
// repetition that makes magnified texels small.
func pngParams(pixels int) *vips.PngExportParams {
	params := vips.NewPngExportParams()
	params.StripMetadata = true
	params.Compression = 6
	if pixels > maxThoroughPNG {
		params.Compression = 3
	}
	params.Filter = vips.PngFilterNone
	return params
}

// webpParams are the settings for WebP of a picture of so many pixels: more effort takes
// longer and makes flat pictures no smaller.
func webpParams(pixels int) *vips.WebpExportParams {
	params := vips.NewWebpExportParams()
	params.StripMetadata = true
	params.Lossless = true
	params.ReductionEffort = 2
	if pixels > maxThoroughWebP {
		params.ReductionEffort = 0
	}
	return params
}

// stripToVP8L reduces a lossless WebP file to its header and its pixels: libvips always
// adds an EXIF chunk, which can be half of a small file. It works in place.
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

// probeImage returns a small picture with something in it for every encoder to do:
// repetition, gradients, partly transparent pixels.
func probeImage() Picture {
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
