package httpserver

import (
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// BenchmarkCount measures the counters of a request on the fast path, with one core and with
// all.
func BenchmarkCount(b *testing.B) {
	route := Options{Listener: "bench"}.Route("GET /", Label{"outcome", "count"})
	var at atomic.Int64
	run := func(more func() bool) {
		shard, began := int(at.Add(1)%shards), time.Now()
		for more() {
			route.counts.count(shard, fasthttp.StatusOK, time.Since(began)%time.Millisecond)
		}
	}
	b.Run("cores=1", func(b *testing.B) { run(b.Loop) })
	b.Run("cores=all", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) { run(pb.Next) })
	})
}

// BenchmarkInstrument measures what a request costs besides its handler, with one core and
// with all, which must not wait for each other.
func BenchmarkInstrument(b *testing.B) {
	for _, sample := range []float64{0, 0.01} {
		opts := Options{Listener: "bench", Log: slog.New(slog.DiscardHandler), LogSampleRate: sample}
		o, route := &instrumentation{Options: opts, inFlight: requestRegistry.inFlightFor(opts.Listener)}, opts.Route("GET /", Label{"outcome", "hit"})
		answer := recoverPanic(opts.HandleNoContext(func(rc *fasthttp.RequestCtx) error {
			route.AssignTo(rc)
			return nil
		}))
		run := func(more func() bool) {
			var rc fasthttp.RequestCtx
			rc.Init(&fasthttp.Request{}, &net.TCPAddr{IP: net.IPv4(203, 0, 113, 9)}, nil)
			arrived := time.Now().Add(time.Hour) // however long it runs, the latency falls into the first bucket
			for more() {
				o.serve(&rc, arrived, route, answer)
			}
		}
		b.Run(fmt.Sprintf("sample=%v/cores=1", sample), func(b *testing.B) { run(b.Loop) })
		b.Run(fmt.Sprintf("sample=%v/cores=all", sample), func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) { run(pb.Next) })
		})
	}
}
