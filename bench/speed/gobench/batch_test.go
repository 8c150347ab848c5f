package gobench_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/speed/baseline"
	"github.com/veneer-skins/veneer/bench/speed/fixture"
	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/bench/system/stack"
)

const (
	batchHeads = 100 // the most that a batch may have
	// batchRepeats is how often a round requests what does not change then: a single sprite takes
	// less than a tick of the kernel.
	batchRepeats = 20
)

// batchSite is an edge alone on its processor.
type batchSite struct {
	*fixture.Site
	loadCPU int
}

// batchCost is what heads cost once, in each round.
type batchCost struct {
	name                                    string
	milliseconds, cpu, sentBytes, readBytes []float64
}

// BenchmarkBatch measures a hundred flat heads of 32 pixels as WebP on one connection: as a sprite, as a
// hundred pictures, and as a look-up in one request with a hundred pictures by hash. Each round has
// other players. Only the first two requests for a sprite draw it. All rounds of a way are compared
// with the hundred pictures in the same round.
func BenchmarkBatch(b *testing.B) {
	processors, err := baseline.Processors()
	if err != nil {
		b.Fatal(err)
	}
	site := batchSite{loadCPU: processors[0]}
	env := baseline.Env{CPUs: processors[len(processors)-1:], WorkDir: b.TempDir()}
	if site.Site, err = fixture.Open(b.Context(), env, stack.Binary(b, "edge"), rounds*batchHeads); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(site.Close)
	first, second := &batchCost{name: "sprite, first request"}, &batchCost{name: "sprite, second request"}
	cached, unchanged := &batchCost{name: "sprite, cached"}, &batchCost{name: "sprite, 304"}
	pictures, byHash := &batchCost{name: "100 pictures, cached"}, &batchCost{name: "heads.json and 100 pictures by hash, cached"}

	b.ResetTimer()
	for round := range rounds {
		from, to := round*batchHeads, (round+1)*batchHeads
		list := strings.Join(site.Names()[from:to], ",")
		sprite := []string{"/sprite/face.webp?size=32&players=" + list}
		single, hashed := make([]string, batchHeads), []string{"/heads.json?players=" + list}
		for i, name := range site.Names()[from:to] {
			single[i] = "/face/player/" + name + ".webp?size=32"
			hashed = append(hashed, fmt.Sprintf("/face/hash/%s.webp?size=32", site.Skins()[from+i]))
		}
		site.measure(b, first, requests(sprite), 1, fasthttp.StatusOK)
		site.measure(b, second, requests(sprite), 1, fasthttp.StatusOK)
		tag := site.record(b, sprite).Tags()[0]
		site.record(b, slices.Concat(single, hashed))
		conditional := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: bench\r\nIf-None-Match: %s\r\n\r\n", sprite[0], tag)
		steps := []func(){
			func() { site.measure(b, cached, requests(sprite), batchRepeats, fasthttp.StatusOK) },
			func() { site.measure(b, unchanged, [][]byte{conditional}, batchRepeats, fasthttp.StatusNotModified) },
			func() { site.measure(b, pictures, requests(single), batchRepeats, fasthttp.StatusOK) },
			func() { site.measure(b, byHash, requests(hashed), batchRepeats, fasthttp.StatusOK) },
		}
		if round%2 == 1 {
			slices.Reverse(steps)
		}
		for _, step := range steps {
			step()
		}
	}

	var table strings.Builder
	fmt.Fprint(&table, "| | ms | of 100 pictures | processor time, ms | of 100 pictures | bytes received | bytes sent |\n|---|--:|--:|--:|--:|--:|--:|\n")
	for _, c := range []*batchCost{first, second, cached, unchanged, pictures, byHash} {
		fmt.Fprintf(&table, "| %s | %.2f | %.3f | %.2f | %.3f | %.0f | %.0f |\n", c.name,
			median(c.milliseconds), ratioOf(c.milliseconds, pictures.milliseconds), median(c.cpu), ratioOf(c.cpu, pictures.cpu), median(c.readBytes), median(c.sentBytes))
	}
	b.Logf("medians of %d rounds:\n%s", rounds, table.String())
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ratioOf(first.milliseconds, pictures.milliseconds), "first/pictures")
	b.ReportMetric(ratioOf(cached.milliseconds, pictures.milliseconds), "cached/pictures")
	b.ReportMetric(ratioOf(byHash.milliseconds, pictures.milliseconds), "by-hash/pictures")
}

// record requests addresses until all are hits, and returns the answers.
func (s *batchSite) record(b *testing.B, addresses []string) *baseline.Record {
	b.Helper()
	answers, err := baseline.RecordHits(b.Context(), s.Edge, addresses)
	if err != nil {
		b.Fatal(err)
	}
	return answers
}

// measure sends all requests in their order, each after the answer to the last one, and all of them so
// many times. It adds the cost of one time as that of a round.
func (s *batchSite) measure(b *testing.B, to *batchCost, all [][]byte, times, status int) {
	b.Helper()
	unpin, err := load.Pin(s.loadCPU)
	if err != nil {
		b.Fatal(err)
	}
	defer unpin()
	processorTime := func() time.Duration {
		taken, err := s.Edge.ProcessorTime()
		if err != nil {
			b.Fatal(err)
		}
		return taken
	}
	var before time.Duration
	next := -1
	answers, err := load.Run(b.Context(), s.Edge.Address, time.Minute, &load.Stream{
		Connections: 1, Requests: all, Statuses: []int{status}, Connected: func() { before = processorTime() },
		Order: func() int {
			if next++; next == times*len(all) {
				return -1
			}
			return next % len(all)
		},
	})
	if err == nil {
		err = answers[0].Check()
	}
	if err != nil {
		b.Fatal(err)
	}
	each := func(total float64) float64 { return total / float64(times) }
	sent := 0
	for _, request := range all {
		sent += len(request)
	}
	to.cpu = append(to.cpu, each((processorTime()-before).Seconds()*1000))
	to.milliseconds = append(to.milliseconds, each(answers[0].Elapsed.Seconds()*1000))
	to.readBytes, to.sentBytes = append(to.readBytes, each(float64(answers[0].Bytes))), append(to.sentBytes, float64(sent))
}
