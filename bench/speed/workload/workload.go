// Package workload runs synthetic traces through the edge's picture cache, the one of
// edge.Pictures. Only rendering is simulated, and takes no time.
package workload

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/png"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/edge/cache"
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/skin"
)

// Workload is a trace of requests for views, by number.
type Workload struct{ Trace []uint32 }

// New returns a trace with popularities that follow Zipf's law. With shifts, it consists of as many
// parts, and other views are popular in each.
func New(views, requests int, exponent float64, shifts int) Workload {
	random := rand.New(rand.NewPCG(1, 2))
	ranks := load.NewZipf(views, exponent)
	popular := random.Perm(views)
	trace := make([]uint32, requests)
	for i := range trace {
		if shifts > 0 && i > 0 && i%(requests/shifts) == 0 {
			popular = random.Perm(views)
		}
		trace[i] = uint32(popular[ranks.Draw(random)])
	}
	return Workload{trace}
}

// class is a kind of picture, with the number of views that each texture has of it, and the
// least and greatest size of a file in bytes: like real ones from 64 to 512 pixels.
type class struct {
	mode        render.Mode
	views       int
	least, most float64
}

// classes are six flat heads in ten, three isometric heads and one figure.
var classes = []class{{render.Flat, 24, 250, 400}, {render.Isometric, 12, 1200, 5000}, {render.Preview, 4, 4600, 14_000}}

// viewsEach is the number of views of a texture.
const viewsEach = 40

func classOf(number int) class {
	rest := number % viewsEach
	at := slices.IndexFunc(classes, func(c class) bool { rest -= c.views; return rest < 0 })
	return classes[at]
}

func (w Workload) request(number int) edge.Request {
	var hash skin.Hash
	binary.LittleEndian.PutUint32(hash[:], uint32(number/viewsEach))
	return edge.Request{Key: edgeproto.HashKey(hash), View: render.View{Mode: classOf(number).mode, Size: number % viewsEach, Format: render.WebP}}
}

// Size returns the size of a view's picture in bytes.
func (w Workload) Size(number int) int {
	c := classOf(number)
	random := rand.New(rand.NewPCG(uint64(number), 3))
	return int(c.least * math.Pow(c.most/c.least, random.Float64()))
}

// fakeOrigin is both the origin and the renderer of the cache.
type fakeOrigin struct {
	Workload
	block []byte
}

// File returns a skin. Its first texel is the number of the texture.
func (o fakeOrigin) File(_ context.Context, hash skin.Hash) ([]byte, error) {
	texels := image.NewNRGBA(image.Rect(0, 0, 64, 64))
	copy(texels.Pix, hash[:4])
	var file bytes.Buffer
	err := (&png.Encoder{CompressionLevel: png.NoCompression}).Encode(&file, texels)
	return file.Bytes(), err
}

// Render returns constant bytes of the picture's size.
func (o fakeOrigin) Render(sheet, _ skin.Sheet, view render.View) ([]byte, render.Timing, error) {
	size := o.Size(int(binary.LittleEndian.Uint32(sheet.Pix))*viewsEach + view.Size)
	return o.block[:size:size], render.Timing{}, nil
}

// DrawTile draws nothing: there are no sprites in the workload.
func (fakeOrigin) DrawTile(render.Picture, int, skin.Sheet, render.View) error { return nil }

// Encode returns no bytes.
func (fakeOrigin) Encode(render.Picture, render.Format) ([]byte, error) { return nil, nil }

// Cost returns a constant.
func (fakeOrigin) Cost(render.View, int, int) time.Duration { return time.Millisecond }

// RevisionOf returns a constant.
func (fakeOrigin) RevisionOf(render.View) string { return "simulated" }

// StartLookups returns the textures with the hashes in the keys.
func (fakeOrigin) StartLookups(_ context.Context, keys []edgeproto.Key, done edge.LookupsDone) error {
	for i, key := range keys {
		hash, err := skin.ParseHash(strings.TrimPrefix(string(key), edgeproto.HashPrefix))
		if err != nil {
			return err
		}
		go done(i, edgeproto.Mapping{Texture: &edgeproto.Texture{Hash: hash, Type: skin.Classic}}, edgeproto.Cursor{}, nil)
	}
	return nil
}

// WouldReject returns no error.
func (fakeOrigin) WouldReject(edgeproto.Key, netip.Prefix) error { return nil }

// Probe always succeeds.
func (fakeOrigin) Probe(done func(error)) { go done(nil) }

func (w Workload) newPictures(bytes int64) *edge.Pictures {
	p := fakeOrigin{Workload: w, block: make([]byte, 16<<10)}
	mappings := edge.NewResolver(edge.ResolverConfig{Bytes: 1 << 16, NegativeBytes: 1 << 16}, p)
	config := edge.Config{CacheBytes: bytes, TextureCacheBytes: 64 << 20, RenderWorkers: 1, RenderQueuePerWorker: 1, RenderQueueTimeout: time.Minute}
	return edge.NewPictures(config, mappings, p, p, skin.Sheet{})
}

// EdgeHitRatio returns the percentage of hits among the requests from an index on, with a cache of
// a size, and the cache's overhead for a picture besides its bytes.
func (w Workload) EdgeHitRatio(ctx context.Context, bytes int64, from int) (percentage float64, overhead int64, err error) {
	pictures := w.newPictures(bytes)
	hits := 0
	for i, view := range w.Trace {
		picture, err := pictures.Find(ctx, w.request(int(view)))
		if err == nil {
			err = pictures.Load(ctx, w.request(int(view)), &picture)
		}
		switch {
		case err != nil:
			return 0, 0, err
		case len(picture.Body) != w.Size(int(view)):
			return 0, 0, fmt.Errorf("view %d has %d bytes", view, len(picture.Body))
		case picture.Outcome == cache.Hit:
			if i >= from {
				hits++
			}
		case i == 0:
			if overhead, err = cacheBytes(pictures); err != nil {
				return 0, 0, err
			}
			overhead -= int64(len(picture.Body))
		}
	}
	return 100 * float64(hits) / float64(len(w.Trace)-from), overhead, nil
}

// cacheBytes returns the size of the picture cache according to its metrics.
func cacheBytes(pictures *edge.Pictures) (int64, error) {
	registry := prometheus.NewRegistry()
	pictures.Expose(registry)
	families, err := registry.Gather()
	if err != nil {
		return 0, err
	}
	for _, family := range families {
		if family.GetName() == "veneer_edge_picture_cache_bytes" {
			return int64(family.GetMetric()[0].GetGauge().GetValue()), nil
		}
	}
	return 0, errors.New("there is no metric of the cache's bytes")
}
