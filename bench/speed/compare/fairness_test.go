package compare

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/edge/origin/origintest"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
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
	edge := newEdge(b, func(files *blobstore.Store) map[edgeproto.Key]edgeproto.Mapping {
		mappings := map[edgeproto.Key]edgeproto.Mapping{}
		for n := range costlySheets + cheapSheets {
			side := 64
			if n < costlySheets {
				side = 512
			}
			file := origintest.File(b, skintest.Noise(uint64(n), side, side), skin.Classic)
			testenv.Do(b, files.Put(b.Context(), skin.HashOf(file), file))
			mappings[edgeproto.TIDKey(int64(n+1))] = texture(n+1, skin.HashOf(file))
		}
		return mappings
	})
	quiet := &load.Stream{Connections: 16, Rate: avatarRate, From: netip.MustParseAddr("127.0.2.1")}
	hostile := &load.Stream{From: netip.MustParseAddr("127.0.1.1")}
	request := func(to *load.Stream, path string, values ...any) {
		to.Requests = append(to.Requests, load.Get(fmt.Sprintf(path, values...)))
	}
	for n := range cheapSheets {
		request(quiet, "/avatar/%d?size=32", costlySheets+n+1)
	}
	for height := 1024; height > 832; height -= 16 { // far more than can be rendered, so that few are repeated
		for n := range costlySheets {
			request(hostile, "/preview/%d?height=%d", n+1, height)
			request(hostile, "/preview/%d?height=%d&png", n+1, height)
		}
	}
	all := hostile.Requests
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	b.ReportMetric(0, "ns/op")
	var idle float64
	for _, connections := range [fairRounds]int{0, 12, 100} {
		streams := []*load.Stream{quiet}
		hostile.Connections = connections // each sends its next request at once, ignoring Retry-After
		if connections > 0 {
			streams = append(streams, hostile)
		}
		answers := testenv.Must(load.Run(b.Context(), edge.Address(b, "public"), fairRound, streams...))(b)
		got := answers[0] // only these must be complete: some previews are still due at the end
		testenv.Do(b, got.Check())
		p := func(percent float64) float64 { return milliseconds(got.Percentile(fasthttp.StatusOK, percent)) }
		if connections == 0 {
			idle = p(99)
		}
		if failed := got.Total() - got.Latencies[fasthttp.StatusOK].TotalCount(); failed > 0 {
			b.Errorf("beside %d connections of another network, %d of %d avatars failed", connections, failed, got.Total())
		}
		b.Logf("beside %d hostile connections: %d avatars; p50 %.1f ms, p99 %.1f ms, %.1f times the idle one, at most %.1f ms",
			connections, got.Total(), p(50), p(99), p(99)/idle, p(100))
		b.ReportMetric(p(99), fmt.Sprintf("p99-ms-beside-%d", connections))
		if connections > 0 {
			b.Logf("the hostile network: %d previews, %.0f refused a second", answers[1].Latencies[fasthttp.StatusOK].TotalCount(), answers[1].Rate(fasthttp.StatusServiceUnavailable))
		}
	}
	_, most := edge.Memory(b)
	b.Logf("memory: never more than %d MiB", most>>20)
}
