package compare

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/speed/baseline"
	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/edge/render/vips/libwebp"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/testenv"
)

const (
	coldWarmUp      = 2
	coldRounds      = 11
	coldEach        = 2 * time.Second // or until the views of a round are used up
	coldConnections = 8               // concurrent requests
	stampedeClients = 500             // clients that request one new picture at the same time
	stampedeSize    = 256

	// The sizes of the views, from the smallest.
	coldLeast, coldStep, coldSizes = 64, 16, 12
	// viewStride visits every view in an order that mixes sizes: it is prime, so it is coprime
	// to any number of views that is not its multiple.
	viewStride = 123_457
)

// viewFunc returns a target's path for a view of a skin as PNG.
type viewFunc func(size int, hash skin.Hash) string

// rendering opens the servers that render. Each gets the same views in the same rounds.
func rendering(flat bool, measure func(e *env, t *target, path viewFunc) func(round int) outcome) func(e *env) []subject {
	return func(e *env) []subject {
		e.warmMappings()
		own := edgeTarget("Veneer", e.site.Edge).subject(func(t *target) func(int) outcome {
			return measure(e, t, func(size int, hash skin.Hash) string {
				return fmt.Sprintf("/avatar/hash/%s?png&size=%d%s", hash, size, map[bool]string{true: "&3d"}[!flat])
			})
		})
		modules := filepath.Join(e.Root, ".dev/node/sharp")
		others := []*target{
			e.open("sharp behind Node", "", baseline.Sharp(modules), func() *baseline.Server { return baseline.StartSharp(e, e.site.Textures, modules) }),
			e.open("net/http and image/png", "", baseline.ImagePNG, func() *baseline.Server { return baseline.ImagePNG.Start(e, e.site.Textures) }),
		}
		for _, t := range others {
			t.cannot = ""
			if !flat && t.missing == nil {
				t.cannot = "it cuts rectangles out of a picture and cannot draw anything in space"
			}
		}
		return append([]subject{own}, subjects(others, func(t *target) func(int) outcome { return measure(e, t, baseline.FlatTarget) })...)
	}
}

// warmMappings makes the edge resolve once the hashes that will be rendered: the other servers are
// given the file names.
func (e *env) warmMappings() {
	skins := e.unusedSkins()
	if e.mappingsWarm {
		return
	}
	e.mappingsWarm = true
	defer e.progress("filling the edge's mapping cache")()
	stream := streamOf(coldConnections, fasthttp.StatusOK)
	for _, hash := range skins { // in a size that is not used elsewhere
		stream.Requests = append(stream.Requests, load.Get(fmt.Sprintf("/avatar/hash/%s?size=8", hash)))
	}
	stream.Order = load.Once(len(skins))
	e.send(edgeTarget("edge", e.site.Edge), time.Minute, stream)
}

func (e *env) cold(t *target, path viewFunc) func(round int) outcome {
	skins := e.unusedSkins()
	views := len(skins) * coldSizes
	perRound := views / (coldWarmUp + coldRounds) // no picture is requested twice
	return func(round int) outcome {
		stream, paths := streamOf(coldConnections, fasthttp.StatusOK), make([]string, perRound)
		for i := range paths {
			n := (round*perRound + i) * viewStride % views
			paths[i] = path(coldLeast+coldStep*(n/len(skins)), skins[n%len(skins)])
		}
		stream.Requests = gets(paths)
		requested, next := 0, load.Once(perRound)
		stream.Order = func() int {
			i := next()
			requested = max(requested, i+1)
			return i
		}
		var s sample
		e.decodeSample(stream, func(request int) string { return paths[request] }, func() { s = e.measure(t, e.duration(coldEach), stream) })
		if len(t.operators) > 0 && int(s.renders) != requested {
			e.Fatalf("%d pictures were requested, and %.0f rendered", requested, s.renders)
		}
		return s.outcome(t)
	}
}

// stampede returns the measurement of how long many clients wait for one new picture.
func (e *env) stampede(t *target, path viewFunc) func(round int) outcome {
	skins := e.unusedSkins()
	return func(round int) outcome {
		view := path(stampedeSize, skins[round])
		stream := streamOf(stampedeClients, fasthttp.StatusOK, load.Get(view))
		stream.Order = load.Repeat(1, stampedeClients)
		var s sample
		e.decodeSample(stream, func(int) string { return view }, func() { s = e.measure(t, 30*time.Second, stream) })
		if s.Total() != stampedeClients {
			testenv.Do(e, errors.New("not all have got an answer"))
		}
		return outcome{float64(s.All().Max()) / 1e6, []namedFigure{s.percentile(50)}}
	}
}

// encoderEach is the duration of a round of an encoder. Parameters of libwebp make it about as thorough
// as Veneer's own encoder.
const (
	encoderEach    = 1500 * time.Millisecond
	libwebpMethod  = 1
	libwebpQuality = 20
)

// encoding opens the encoders, which encode the same pixels in this program.
func (e *env) encoding() []subject {
	native := render.New(nil)
	_, _ = e.version(baseline.Libwebp) // it is linked
	e.addSetting("libwebp's method and quality", fmt.Sprint(libwebpMethod, " and ", libwebpQuality))
	var pictures []render.Picture
	for _, texture := range artwork.Skins() {
		for _, view := range []render.View{
			{Mode: render.Flat, Size: 64}, {Mode: render.Flat, Size: 128}, {Mode: render.Isometric, Size: 128}, {Mode: render.Preview, Size: 400},
		} {
			view.Type = texture.Type
			pictures = append(pictures, testenv.Must(native.Draw(texture.Sheet, skin.Sheet{}, view))(e))
		}
	}
	return []subject{
		{name: "Veneer", measure: e.measureEncoding(pictures, func(p render.Picture) ([]byte, error) { return native.Encode(p, render.WebP) })},
		{name: "libwebp", measure: e.measureEncoding(pictures, func(p render.Picture) ([]byte, error) {
			return libwebp.Encode(p.Pix, p.Width, p.Height, libwebpMethod, libwebpQuality)
		})},
	}
}

// measureEncoding returns the measurement of an encoder's pictures a second, on the servers'
// processor. It encodes all pictures the same number of times.
func (e *env) measureEncoding(pictures []render.Picture, encode func(render.Picture) ([]byte, error)) func(round int) outcome {
	return func(int) outcome {
		defer testenv.Must(load.Pin(e.serverCPU))(e)()
		began, files, bytes := time.Now(), 0, 0
		for time.Since(began) < e.duration(encoderEach) && e.Context().Err() == nil {
			for _, p := range pictures {
				bytes += len(testenv.Must(encode(p))(e))
				files++
			}
		}
		return outcome{float64(files) / time.Since(began).Seconds(), []namedFigure{{"size", "bytes/picture", float64(bytes) / float64(files)}}}
	}
}
