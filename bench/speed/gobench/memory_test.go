package gobench_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/png"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/edge/origin/origintest"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
)

const (
	// maxResident is the memory limit of an edge with its default settings.
	maxResident = 512 << 20
	// Flat avatars of so many sizes, as WebP and as PNG.
	viewSizes, viewsOfTexture = 32, 64
)

// BenchmarkMemory requests different pictures from an edge with its default settings, in Zipf order
// until it has rendered two million, and players that do not exist in between. It fails if the
// edge's memory exceeds the limit, or keeps growing. With -short there are a hundred times fewer
// pictures, which says little.
func BenchmarkMemory(b *testing.B) {
	distinct := 2_000_000
	if testing.Short() {
		distinct /= 100
	}
	files := blobstore.Config{URL: "file://" + b.TempDir(), Timeout: 5 * time.Second}
	core := origintest.Start(b)
	hashes := putTextures(b, files, core, 2*distinct/viewsOfTexture)
	edge := stack.NewEdgeAt(b, files, core.URL, origintest.Secret)
	edge.Set("EDGE_LOG_SAMPLE_RATE", "0")
	edge.Start(b)
	edge.AwaitReady(b)
	address := "http://" + edge.Address(b, "public")
	warmSampleMaps(b, address, hashes[0])

	z := newPopularity(len(hashes)*viewsOfTexture, 0.8)
	seen, total := make([]atomic.Bool, z.n()), int64(distinct)
	var requests, remaining atomic.Int64
	remaining.Store(total)
	var clients sync.WaitGroup
	for v := range 32 {
		clients.Go(func() {
			client := &fasthttp.Client{}
			defer client.CloseIdleConnections()
			random := rand.New(rand.NewPCG(1, uint64(v)))
			for remaining.Load() > 0 && !b.Failed() {
				view := z.draw(random)
				ok := get(b, client, fasthttp.StatusOK, fmt.Sprintf("%s/avatar/hash/%s%s?size=%d", address,
					hashes[view/viewsOfTexture], []string{".webp", ".png"}[view%2], 8*(1+view/2%viewSizes)))
				if ok && !seen[view].Swap(true) {
					remaining.Add(-1)
				}
				if n := requests.Add(1); n%4 == 0 {
					get(b, client, fasthttp.StatusNotFound, fmt.Sprintf("%s/avatar/player/no_%d", address, n))
				}
			}
		})
	}

	resident := []int64{0} // peak in each fortieth of the views
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for done := int64(0); done < total && !b.Failed(); <-tick.C {
		last := len(resident) - 1
		resident[last] = max(resident[last], edge.Resident(b))
		if done = total - remaining.Load(); done >= total*int64(len(resident))/40 {
			b.Logf("%8d views, %8d requests: at most %d MiB", done, requests.Load(), resident[last]>>20)
			resident = append(resident, 0)
		}
	}
	clients.Wait()
	half := resident[len(resident)/2:]
	third, fourth := slices.Max(half[:len(half)/2]), slices.Max(half[len(half)/2:])
	if most := slices.Max(resident); most >= maxResident {
		b.Errorf("the edge used %d MiB; want less than %d", most>>20, maxResident>>20)
	}
	if float64(fourth) > 1.02*float64(third) {
		b.Errorf("the edge used %d MiB in the last quarter, and %d in the one before; want no growth", fourth>>20, third>>20)
	}
	b.ReportMetric(float64(slices.Max(resident)>>20), "MiB")
	b.ReportMetric(0, "ns/op")
}

// putTextures stores so many skins that differ in one texel, and adds their mappings to core.
func putTextures(b *testing.B, files blobstore.Config, core *origintest.Core, n int) []skin.Hash {
	b.Helper()
	store, err := blobstore.New(files)
	if err != nil {
		b.Fatal(err)
	}
	if err := store.Init(b.Context()); err != nil {
		b.Fatal(err)
	}
	hashes := make([]skin.Hash, n)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range 8 * runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			sheet := artwork.Default()
			sheet.Pix = slices.Clone(sheet.Pix)
			picture := &image.NRGBA{Pix: sheet.Pix, Stride: 4 * sheet.Width, Rect: image.Rect(0, 0, sheet.Width, sheet.Height)}
			encoder := png.Encoder{CompressionLevel: png.BestSpeed}
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				binary.BigEndian.PutUint32(sheet.Pix, uint32(i)<<8|0xff) // visible in no picture
				var file bytes.Buffer
				if err := encoder.Encode(&file, picture); err != nil {
					b.Error(err)
					return
				}
				hashes[i] = skin.HashOf(file.Bytes())
				if err := store.Put(b.Context(), hashes[i], file.Bytes()); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	workers.Wait()
	known := map[edgeproto.Key]edgeproto.Mapping{}
	for i, hash := range hashes {
		known[edgeproto.HashKey(hash)] = edgeproto.Mapping{Texture: &edgeproto.Texture{TID: int64(i + 1), Hash: hash, Type: skin.Classic}}
	}
	core.Set(known)
	return hashes
}

// warmSampleMaps has the edge render a picture of every size with a sample map, so that its cache
// of them is as large as it ever is.
func warmSampleMaps(b *testing.B, address string, hash skin.Hash) {
	b.Helper()
	client := &fasthttp.Client{}
	defer client.CloseIdleConnections()
	for size := 8; size <= 512; size += 8 {
		get(b, client, fasthttp.StatusOK, fmt.Sprintf("%s/avatar/hash/%s?3d&size=%d", address, hash, size))
		get(b, client, fasthttp.StatusOK, fmt.Sprintf("%s/preview/hash/%s?height=%d", address, hash, 2*size))
	}
}

// get gets a URL and reports whether the answer has a status. The only other one allowed is 503,
// for an overloaded edge.
func get(b *testing.B, client *fasthttp.Client, want int, url string) bool {
	b.Helper()
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	request.SetRequestURI(url)
	if err := client.Do(request, response); err != nil {
		b.Errorf("%s: %v", url, err)
		return false
	}
	got := response.StatusCode()
	if got != want && got != fasthttp.StatusServiceUnavailable {
		b.Errorf("%s: %d; want %d", url, got, want)
	}
	return got == want
}

// popularity draws numbers in Zipf order, where the most popular ones are any of them.
type popularity struct {
	ranks   load.Zipf
	popular []int
}

func newPopularity(n int, exponent float64) popularity {
	return popularity{ranks: load.NewZipf(n, exponent), popular: rand.New(rand.NewPCG(2, 3)).Perm(n)}
}

func (p popularity) n() int { return len(p.popular) }

func (p popularity) draw(random *rand.Rand) int { return p.popular[p.ranks.Draw(random)] }
