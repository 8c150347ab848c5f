package gobench_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sys/unix"

	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/edge/origin/origintest"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
)

// Parameters of the flood benchmark.
const (
	// floodTextures are many more than fit into the edge's memory, so that most misses must
	// fetch and decode a texture.
	floodTextures = 8000
	floodHits     = 1000
	floodViews    = 100_000 // a sample of all views
	floodRounds   = 11
	floodRound    = 4 * time.Second
	hitsShare     = 0.2 // of the rate at which hits saturate the edge
	floodFactor   = 5   // times the rate at which the edge can render
)

// BenchmarkFlood measures the latency of hits while many more pictures are requested than can be
// rendered. The edge has one processor and everything else another. Hits are requested at a fifth
// of the rate that saturates the edge: alone, and beside a flood of uncached views at five times
// the rate at which the edge can render them. The two alternate.
func BenchmarkFlood(b *testing.B) {
	if runtime.NumCPU() < 2 {
		b.Fatal("the edge and the load need a processor each")
	}
	b.Run("of=heads", func(b *testing.B) { flood(b, heads) })
	b.Run("of=all", func(b *testing.B) { flood(b, func(tid int) []string { return append(heads(tid), figures(tid)...) }) })
}

func flood(b *testing.B, viewsOf func(tid int) []string) {
	b.Helper()
	edge := startPinned(b)
	address := edge.Address(b, "public")
	hits := &load.Stream{Connections: 32, Requests: requests(hotPaths(b, address))}
	var paths []string
	for tid := range floodTextures {
		paths = append(paths, viewsOf(tid+1)...)
	}
	random := rand.New(rand.NewPCG(1, 2))
	random.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
	views := &load.Stream{Connections: 8, Requests: requests(paths[:floodViews])}

	// Twice, as the edge must first cache the mappings and sample maps.
	for range 2 {
		hits.Rate, views.Rate = 0, 0
		hits.Rate = hitsShare * runRound(b, address, hits)[0].Rate(fasthttp.StatusOK)
		views.Rate = floodFactor * runRound(b, address, views)[0].Rate(fasthttp.StatusOK)
	}
	views.Connections = 1024 // more than the render queue holds
	before, _ := edge.Memory(b)
	b.Logf("hits saturate the edge at %.0f/s, and it draws %.0f/s", hits.Rate/hitsShare, views.Rate/floodFactor)

	var alone, flooded [3][]float64 // percentiles of hits in milliseconds, by round
	var drawn, shed, wait, late []float64
	for round := range floodRounds {
		measurements := []func(){
			func() { addPercentiles(b, &alone, runRound(b, address, hits)[0]) },
			func() {
				answers := runRound(b, address, hits, views)
				addPercentiles(b, &flooded, answers[0])
				late = append(late, answers[0].Late.Seconds()*1000)
				drawn = append(drawn, answers[1].Rate(fasthttp.StatusOK))
				shed = append(shed, answers[1].Rate(fasthttp.StatusServiceUnavailable))
				wait = append(wait, answers[1].Percentile(fasthttp.StatusOK, 99).Seconds())
			},
		}
		if round%2 == 1 {
			slices.Reverse(measurements)
		}
		for _, measure := range measurements {
			measure()
		}
	}
	after, most := edge.Memory(b)

	for _, condition := range []struct {
		name string
		hits [3][]float64
	}{{"alone", alone}, {"flooded", flooded}} {
		b.Logf("hits at %.0f/s, %s: medians of p50 %.3f ms, p99 %.3f ms, p99.9 %.3f ms; p99 by round %.3f",
			hits.Rate, condition.name, median(condition.hits[0]), median(condition.hits[1]), median(condition.hits[2]), condition.hits[1])
	}
	b.Logf("longest delay of the load generator in a round during the flood: %.1f ms", late)
	b.Logf("of %.0f new views per second %.0f were rendered, 99 %% of them within %.2f s, and %.0f shed", views.Rate, median(drawn), median(wait), median(shed))
	b.Logf("memory: %d MiB before, %d MiB after, never more than %d MiB", before>>20, after>>20, most>>20)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(alone[1]), "alone-p99-ms")
	b.ReportMetric(median(flooded[1]), "flooded-p99-ms")
	b.ReportMetric(median(flooded[1])/median(alone[1]), "ratio")
	b.ReportMetric(100*median(shed)/views.Rate, "%-shed")
	b.ReportMetric(float64(most>>20), "most-MiB")
}

// runRound sends streams for a round.
func runRound(b *testing.B, address string, streams ...*load.Stream) []load.Answers {
	b.Helper()
	answers, err := load.Run(b.Context(), address, floodRound, streams...)
	for i := 0; err == nil && i < len(answers); i++ {
		err = answers[i].Check()
	}
	if err != nil {
		b.Fatal(err)
	}
	return answers
}

// addPercentiles adds the percentiles of a round, in which all answers must be hits.
func addPercentiles(b *testing.B, rounds *[3][]float64, hits load.Answers) {
	b.Helper()
	if n := hits.Latencies[fasthttp.StatusOK].TotalCount(); n != hits.Total() {
		b.Fatalf("of %d hits only %d are 200", hits.Total(), n)
	}
	for i, percent := range []float64{50, 99, 99.9} {
		rounds[i] = append(rounds[i], hits.Percentile(fasthttp.StatusOK, percent).Seconds()*1000)
	}
}

// heads returns the paths of all avatars of a texture.
func heads(tid int) (paths []string) {
	for size := 8; size <= 512; size += 8 {
		for _, kind := range []string{"", "&png", "&3d", "&3d&png"} {
			paths = append(paths, fmt.Sprintf("/avatar/%d?size=%d%s", tid, size, kind))
		}
	}
	return paths
}

// figures returns the paths of all previews of a texture.
func figures(tid int) (paths []string) {
	for height := 64; height <= 1024; height += 16 {
		paths = append(paths, fmt.Sprintf("/preview/%d?height=%d", tid, height), fmt.Sprintf("/preview/%d?height=%d&png", tid, height))
	}
	return paths
}

// hotPaths returns paths of avatars by player name, and requests them so that the edge has them
// cached.
func hotPaths(b *testing.B, address string) (paths []string) {
	b.Helper()
	for player := range floodHits {
		path := fmt.Sprintf("/avatar/player/p%d", player)
		for range 2 {
			request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
			request.SetRequestURI("http://" + address + path)
			if err := fasthttp.Do(request, response); err != nil || response.StatusCode() != fasthttp.StatusOK {
				b.Fatalf("%s: %d, %v", path, response.StatusCode(), err)
			}
			fasthttp.ReleaseRequest(request)
			fasthttp.ReleaseResponse(response)
		}
		paths = append(paths, path)
	}
	return paths
}

func requests(paths []string) (all [][]byte) {
	for _, path := range paths {
		all = append(all, []byte("GET "+path+" HTTP/1.1\r\nHost: bench\r\n\r\n"))
	}
	return all
}

// startPinned returns an edge that runs on the last processor, while the benchmark and the stand-in
// for core run on the others.
func startPinned(b *testing.B) *stack.Process {
	b.Helper()
	core := origintest.Start(b)
	directory := b.TempDir()
	files := blobstore.Config{URL: "file://" + directory, Timeout: 5 * time.Second}
	core.Set(storeTextures(b, files))
	edge := stack.NewEdgeAt(b, files, core.URL, origintest.Secret)

	var own, others, all unix.CPUSet
	for cpu := range runtime.NumCPU() {
		all.Set(cpu)
		others.Set(cpu)
	}
	own.Set(runtime.NumCPU() - 1)
	others.Clear(runtime.NumCPU() - 1)
	// All existing threads of the Go runtime, and so their children.
	runThreadsOn(b, &others)
	b.Cleanup(func() { runThreadsOn(b, &all) })
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.SchedSetaffinity(0, &own); err != nil {
		b.Fatal(err)
	}
	edge.Start(b) // inherits the affinity of this thread
	if err := unix.SchedSetaffinity(0, &others); err != nil {
		b.Fatal(err)
	}
	edge.AwaitReady(b)
	return edge
}

func runThreadsOn(b *testing.B, cpus *unix.CPUSet) {
	b.Helper()
	threads, err := filepath.Glob("/proc/self/task/*")
	if err != nil {
		b.Fatal(err)
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(filepath.Base(thread))
		if err == nil {
			err = unix.SchedSetaffinity(id, cpus)
		}
		if err != nil && !os.IsNotExist(err) {
			b.Fatal(err)
		}
	}
}

// storeTextures stores many different textures, and returns their mappings by tid and player name.
func storeTextures(b *testing.B, files blobstore.Config) map[edgeproto.Key]edgeproto.Mapping {
	b.Helper()
	store, err := blobstore.New(files)
	if err != nil {
		b.Fatal(err)
	}
	if err := store.Init(b.Context()); err != nil {
		b.Fatal(err)
	}
	mappings := map[edgeproto.Key]edgeproto.Mapping{}
	skins := skintest.Skins()
	for i := range floodTextures {
		like := skins[i%len(skins)]
		sheet := skin.Sheet{Width: like.Sheet.Width, Height: like.Sheet.Height, Pix: slices.Clone(like.Sheet.Pix)}
		// A texel of the face, so that every picture is different, too.
		texel := sheet.Pix[sheet.At(9*sheet.Scale(), 9*sheet.Scale()):]
		texel[0], texel[1], texel[2] = byte(i), byte(i>>8), 77
		file := origintest.File(b, sheet, like.Type)
		if err := store.Put(b.Context(), skin.HashOf(file), file); err != nil {
			b.Fatal(err)
		}
		texture := &edgeproto.Texture{TID: int64(i + 1), Hash: skin.HashOf(file), Type: like.Type}
		mappings[edgeproto.TIDKey(texture.TID)] = edgeproto.Mapping{Texture: texture}
		if i < floodHits {
			name := fmt.Sprintf("p%d", i)
			mappings[edgeproto.NameKey(name)] = edgeproto.Mapping{Player: &edgeproto.Player{PID: int64(i + 1), Name: name, Skin: texture}}
		}
	}
	return mappings
}
