package gobench_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/edge/origin/origintest"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
)

// Parameters of the fairness benchmark.
const (
	costlySheets = 200 // of 512 × 512 texels of noise, 1 MB each: more than the edge caches
	avatarRate   = 20  // a second
	fairRound    = 15 * time.Second
	fairRounds   = 3
	cheapSheets  = fairRounds * avatarRate * int(fairRound/time.Second)
)

// BenchmarkFairness measures how long new avatars of 32 pixels take for clients of one network,
// each of another sheet: alone, and while 12 and 100 connections of another network request
// uncached previews of up to 1024 pixels of many sheets of noise. It fails if an avatar does. The
// edge has its default settings.
func BenchmarkFairness(b *testing.B) {
	core := origintest.Start(b)
	directory := b.TempDir()
	files := blobstore.Config{URL: "file://" + directory, Timeout: 5 * time.Second}
	core.Set(storeSheets(b, files))
	edge := stack.NewEdgeAt(b, files, core.URL, origintest.Secret)
	edge.Start(b)
	edge.AwaitReady(b)
	address := edge.Address(b, "public")

	var avatars, previews []string
	for n := range cheapSheets {
		avatars = append(avatars, fmt.Sprintf("/avatar/%d?size=32", costlySheets+n+1))
	}
	for height := 1024; height > 832; height -= 16 { // far more than can be rendered, so that few are repeated
		for n := range costlySheets {
			previews = append(previews, fmt.Sprintf("/preview/%d?height=%d", n+1, height), fmt.Sprintf("/preview/%d?height=%d&png", n+1, height))
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	random.Shuffle(len(previews), func(i, j int) { previews[i], previews[j] = previews[j], previews[i] })
	quiet := &load.Stream{Connections: 16, Rate: avatarRate, Requests: requests(avatars), From: netip.MustParseAddr("127.0.2.1")}
	hostile := &load.Stream{Requests: requests(previews), From: netip.MustParseAddr("127.0.1.1")}
	b.ReportMetric(0, "ns/op")
	var idle float64
	for _, connections := range [fairRounds]int{0, 12, 100} {
		streams := []*load.Stream{quiet}
		hostile.Connections = connections // each sends its next request at once, ignoring Retry-After
		if connections > 0 {
			streams = append(streams, hostile)
		}
		answers, err := load.Run(b.Context(), address, fairRound, streams...)
		if err != nil {
			b.Fatal(err)
		}
		got := answers[0] // only these must be complete: some previews are still due at the end
		if err := got.Check(); err != nil {
			b.Fatal(err)
		}
		ms := func(percent float64) float64 { return got.Percentile(fasthttp.StatusOK, percent).Seconds() * 1000 }
		failed := got.Total() - got.Latencies[fasthttp.StatusOK].TotalCount()
		if connections == 0 {
			idle = ms(99)
		}
		b.Logf("beside %d hostile connections: %d avatars, %d failed; p50 %.1f ms, p99 %.1f ms, %.1f times the idle one, at most %.1f ms",
			connections, got.Total(), failed, ms(50), ms(99), ms(99)/idle, ms(100))
		if failed > 0 {
			b.Errorf("beside %d connections of another network, %d of %d avatars failed", connections, failed, got.Total())
		}
		b.ReportMetric(ms(99), fmt.Sprintf("p99-ms-beside-%d", connections))
		if connections > 0 {
			b.Logf("the hostile network: %d previews, %.0f refused a second", answers[1].Latencies[fasthttp.StatusOK].TotalCount(), answers[1].Rate(fasthttp.StatusServiceUnavailable))
		}
	}
	_, most := edge.Memory(b)
	b.Logf("memory: never more than %d MiB", most>>20)
}

// storeSheets stores costly and cheap sheets, and returns their mappings by tid.
func storeSheets(b *testing.B, files blobstore.Config) map[edgeproto.Key]edgeproto.Mapping {
	b.Helper()
	store, err := blobstore.New(files)
	if err != nil {
		b.Fatal(err)
	}
	if err := store.Init(b.Context()); err != nil {
		b.Fatal(err)
	}
	mappings := map[edgeproto.Key]edgeproto.Mapping{}
	for n := range costlySheets + cheapSheets {
		side := 64
		if n < costlySheets {
			side = 512
		}
		file := origintest.File(b, skintest.Noise(uint64(n), side, side), skin.Classic)
		if err := store.Put(b.Context(), skin.HashOf(file), file); err != nil {
			b.Fatal(err)
		}
		mappings[edgeproto.TIDKey(int64(n+1))] = edgeproto.Mapping{Texture: &edgeproto.Texture{TID: int64(n + 1), Hash: skin.HashOf(file), Type: skin.Classic}}
	}
	return mappings
}
