package e2e

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/edge/origin/origintest"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/httpserver/httpservertest"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// An edge with EDGE_CACHE_DIR has its pictures after a restart, though the store has lost their files, and begins without
// them if the file it kept is damaged.
func TestRestartKeepsPictures(t *testing.T) {
	t.Parallel()
	k := startKeptEdge(t, 20)
	before := make([]string, len(k.paths))
	for at, path := range k.paths {
		before[at] = k.get(t, path)
	}
	hits := func(want int) {
		t.Helper()
		for at, path := range k.paths {
			testenv.Equal(t, k.get(t, path), before[at], "%s after a restart", path)
		}
		testenv.Contains(t, metricsOf(t, k.edge), fmt.Sprintf("\nveneer_edge_picture_cache_hits_total %d\n", want), "metrics")
	}
	testenv.Do(t, k.edge.Stop(t))
	k.edge.StartReady(t)
	hits(len(k.paths))
	testenv.Do(t, k.edge.Stop(t))
	stack.WriteFile(t, k.directory, "pictures", "damaged")
	k.edge.StartReady(t)
	hits(0)
}

// keptEdge is an edge with EDGE_CACHE_DIR, and paths of pictures of different textures.
type keptEdge struct {
	edge      *stack.Process
	directory string
	paths     []string
	hashes    []skin.Hash
}

func startKeptEdge(tb testing.TB, players int) *keptEdge {
	tb.Helper()
	core, backend := origintest.Start(tb), blobstoretest.Directory(tb)
	files := blobstoretest.Open(tb, backend.Config)
	testenv.Do(tb, files.Init(tb.Context()))
	k, mappings := &keptEdge{directory: tb.TempDir()}, map[edgeproto.Key]edgeproto.Mapping{}
	for i := range players {
		sheet := skin.NewSheet(64, 64)
		for at := range sheet.Pix {
			sheet.Pix[at] = byte(i*at>>8 + i + at)
		}
		file := origintest.File(tb, sheet, skin.Classic)
		hash := skin.HashOf(file)
		testenv.Do(tb, files.Put(tb.Context(), hash, file))
		name := fmt.Sprint("player_", i)
		mapping := edgeproto.Mapping{Player: &edgeproto.Player{PID: int64(i + 1), Name: name, Skin: &edgeproto.Texture{TID: int64(i + 1), Hash: hash, Type: skin.Classic}}}
		mappings[edgeproto.NameKey(name)], mappings[edgeproto.HashKey(hash)] = mapping, edgeproto.Mapping{Texture: mapping.Player.Skin}
		k.hashes = append(k.hashes, hash)
		for _, pattern := range []string{"/head/player/%s.png", "/avatar/player/%s?png", "/body/player/%s.png"} {
			k.paths = append(k.paths, fmt.Sprintf(pattern, name))
		}
	}
	core.Set(mappings)
	k.edge = site.NewEdgeAt(tb, backend.Config, core.URL, origintest.Secret)
	k.edge.Set("EDGE_CACHE_DIR=" + k.directory)
	k.edge.StartReady(tb)
	return k
}

func (k *keptEdge) get(tb testing.TB, path string) string {
	tb.Helper()
	response := httpservertest.Get(tb, k.edge.BaseURL(tb, "public")+path)
	testenv.Equal(tb, response.Status, http.StatusOK, "%s", path)
	return response.Body
}

// load requests paths in Zipf order at a rate for some time, and returns the share of hits and the 99th percentile of the
// times of responses.
func (k *keptEdge) load(tb testing.TB, rate int, duration time.Duration) (hits float64, p99 time.Duration) {
	tb.Helper()
	const clients = 16
	base, before := k.edge.BaseURL(tb, "public"), k.counted(tb)
	ctx, cancel := context.WithTimeout(tb.Context(), duration)
	defer cancel()
	var mu sync.Mutex
	var took []time.Duration
	var all sync.WaitGroup
	for client := range clients {
		all.Go(func() {
			zipf := rand.NewZipf(rand.New(rand.NewPCG(uint64(client), 1)), 1.1, 10, uint64(len(k.paths)-1))
			tick := time.NewTicker(time.Second * clients / time.Duration(rate))
			defer tick.Stop()
			for ctx.Err() == nil {
				began := time.Now()
				response, err := http.Get(base + k.paths[zipf.Uint64()]) //nolint:noctx // it ends soon
				if err != nil {
					tb.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
				mu.Lock()
				took = append(took, time.Since(began))
				mu.Unlock()
				<-tick.C
			}
		})
	}
	all.Wait()
	slices.Sort(took)
	n := k.counted(tb)
	hits = n[0] - before[0]
	return hits / (hits + n[1] - before[1] + n[2] - before[2]), took[len(took)*99/100]
}

// counted returns how many requests were hits, misses and coalesced.
func (k *keptEdge) counted(tb testing.TB) (n [3]float64) {
	tb.Helper()
	metrics := metricsOf(tb, k.edge)
	for at, name := range []string{"hits", "misses", "coalesced"} {
		_, rest, _ := strings.Cut(metrics, "\nveneer_edge_picture_cache_"+name+"_total ")
		_ = testenv.Must(fmt.Sscan(rest, &n[at]))(tb)
	}
	return n
}

// BenchmarkRestart compares the first minute after a restart: of an edge that keeps pictures, of one that does not, and of one
// that does not and was warmed.
func BenchmarkRestart(b *testing.B) {
	k := startKeptEdge(b, 4000)
	const rate, minute = 300, time.Minute
	for b.Loop() {
		hits, p99 := k.load(b, rate, 2*minute)
		b.Logf("before: %.1f %% hits, p99 %s", 100*hits, p99)
		for _, c := range []struct {
			name, setting string
			isWarmed      bool
		}{
			{"kept", "EDGE_CACHE_DIR=" + k.directory, false},
			{"empty", "EDGE_CACHE_DIR=", false},
			{"warmed", "EDGE_CACHE_DIR=", true},
		} {
			testenv.Do(b, k.edge.Stop(b))
			k.edge.Set(c.setting)
			began := time.Now()
			k.edge.StartReady(b)
			started := time.Since(began)
			if c.isWarmed {
				arguments := []string{"warm", "-to", k.edge.BaseURL(b, "public")}
				for _, hash := range k.hashes[:len(k.hashes)/4] {
					arguments = append(arguments, hash.String())
				}
				k.edge.Run(b, arguments...)
			}
			hits, p99 := k.load(b, rate, minute)
			b.Logf("%s: ready after %s, warmed after %s; %.1f %% hits, p99 %s", c.name, started.Round(time.Millisecond), time.Since(began.Add(minute)).Round(time.Millisecond), 100*hits, p99)
			b.ReportMetric(hits, c.name+"-hits")
		}
	}
}
