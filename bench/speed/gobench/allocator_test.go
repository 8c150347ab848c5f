package gobench_test

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/edge/origin/origintest"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// jemalloc is where Debian's package libjemalloc2 puts it on this architecture.
const jemalloc = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"

// BenchmarkAllocator has an edge render pictures that were never requested before, with each
// encoder and each allocator for C code: glibc, glibc with two arenas, and jemalloc where it is
// installed. It reports the edge's final and peak memory and the CPU time of a picture. With -short
// there are ten times fewer pictures, which says little.
func BenchmarkAllocator(b *testing.B) {
	pictures := int64(15_000)
	if testing.Short() {
		pictures /= 10
	}
	files := blobstore.Config{URL: "file://" + b.TempDir(), Timeout: 5 * time.Second}
	core := origintest.Start(b)
	views := coldViews()
	hashes := putTextures(b, files, core, int(pictures)/len(views)+1)

	allocators := []struct{ name, setting, value string }{
		{"glibc", "MALLOC_ARENA_MAX", ""},
		{"two_arenas", "MALLOC_ARENA_MAX", "2"},
		{"jemalloc", "LD_PRELOAD", jemalloc},
	}
	for _, encoder := range []string{"native", "libvips"} {
		for _, allocator := range allocators {
			b.Run(encoder+"/"+allocator.name, func(b *testing.B) {
				if _, err := os.Stat(allocator.value); allocator.value == jemalloc && err != nil {
					testenv.Skip(b, "libjemalloc2 is not installed")
				}
				edge := stack.NewEdgeAt(b, files, core.URL, origintest.Secret)
				edge.Set("EDGE_ENCODER", encoder)
				edge.Set("EDGE_LOG_SAMPLE_RATE", "0")
				if allocator.value != "" {
					edge.Set(allocator.setting, allocator.value)
				}
				edge.Start(b)
				edge.AwaitReady(b)
				address, idle := "http://"+edge.Address(b, "public"), edge.CPU(b)

				b.ResetTimer()
				var next atomic.Int64
				var clients sync.WaitGroup
				for range 16 {
					clients.Go(func() {
						client := &fasthttp.Client{}
						defer client.CloseIdleConnections()
						for i := next.Add(1) - 1; i < pictures && !b.Failed(); i = next.Add(1) - 1 {
							view := views[i%int64(len(views))]
							get(b, client, fasthttp.StatusOK, address+fmt.Sprintf(view, hashes[i/int64(len(views))]))
						}
					})
				}
				clients.Wait()
				b.StopTimer()

				resident, most := edge.Memory(b)
				b.ReportMetric(float64(resident>>20), "MiB")
				b.ReportMetric(float64(most>>20), "most-MiB")
				b.ReportMetric(float64((edge.CPU(b)-idle).Microseconds())/float64(pictures), "cpu-µs/picture")
				b.ReportMetric(float64(pictures)/b.Elapsed().Seconds(), "pictures/s")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// coldViews returns URL patterns, with %s for a hash, of the views that sites commonly show.
func coldViews() (views []string) {
	for _, format := range []string{".webp", ".png"} {
		for size := 16; size <= 256; size *= 2 {
			views = append(views,
				fmt.Sprintf("/avatar/hash/%%s%s?size=%d", format, size),
				fmt.Sprintf("/avatar/hash/%%s%s?3d&size=%d", format, size),
				fmt.Sprintf("/preview/hash/%%s%s?height=%d", format, 2*size))
		}
	}
	return views
}
