package serve

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/veneer-skins/veneer/shared/histogram"
)

// The classes of statuses that answers have: 2xx to 5xx.
const firstClass, lastClass = 2, 5

// shards is how many places there are to count the same thing in. Cores that
// count in one place wait for each other, longer than they answer some requests.
const shards = 8

// counts is what is counted of requests with the same labels: how many answers
// there are of each class, and how long they took, from when a request is read
// until its answer can be sent.
type counts struct {
	always bool // to be seen before anything is counted
	shards [shards]struct {
		classes [lastClass - firstClass + 1]atomic.Int64
		took    histogram.Histogram
		_       [56]byte // to the end of a cache line
	}
}

// count counts an answer in a shard.
func (c *counts) count(shard, status int, took time.Duration) {
	s := &c.shards[shard]
	s.classes[min(max(firstClass, status/100), lastClass)-firstClass].Add(1)
	s.took.Observe(took)
}

// writeClasses writes how many answers there are of each class.
func (c *counts) writeClasses(w io.Writer, labels string) {
	for class := range c.shards[0].classes {
		total := int64(0)
		for i := range c.shards {
			total += c.shards[i].classes[class].Load()
		}
		if total > 0 || c.always {
			fmt.Fprintf(w, "veneer_requests_total{%s,status=\"%dxx\"} %d\n", labels, firstClass+class, total)
		}
	}
}

// writeLatencies writes how long the answers took.
func (c *counts) writeLatencies(w io.Writer, labels string) {
	var total histogram.Total
	for i := range c.shards {
		total.Add(&c.shards[i].took)
	}
	if !total.IsEmpty() || c.always {
		total.Write(w, "veneer_request_seconds", labels)
	}
}

// gauge counts up and down in shards.
type gauge struct {
	shards [shards]struct {
		n atomic.Int64
		_ [56]byte // to the end of a cache line
	}
}

func (g *gauge) add(shard int, n int64) { g.shards[shard].n.Add(n) }

func (g *gauge) total() int64 {
	total := int64(0)
	for i := range g.shards {
		total += g.shards[i].n.Load()
	}
	return total
}

// registry holds what is counted by its labels. The metrics library would have
// each request wait for others that are counted at the same time, and has
// histograms that only its own database reads.
type registry struct {
	mu       sync.Mutex
	counts   map[string]*counts
	inFlight map[string]*gauge
}

// counted is what the process counts. It stands in /metrics with all the rest.
var counted = func() *registry {
	r := &registry{counts: map[string]*counts{}, inFlight: map[string]*gauge{}}
	metrics.RegisterMetricsWriter(r.write)
	return r
}()

// of returns what is counted of requests with labels, always the same.
func (r *registry) of(labels string, always bool) *counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.counts[labels]
	if c == nil {
		c = &counts{always: always}
		r.counts[labels] = c
	}
	return c
}

// at returns the gauge of the requests that a listener has in flight, always the
// same.
func (r *registry) at(listener string) *gauge {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.inFlight[listener]
	if g == nil {
		g = &gauge{}
		r.inFlight[listener] = g
	}
	return g
}

// write writes all that is counted, the lines of one metric together.
func (r *registry) write(w io.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, listener := range slices.Sorted(maps.Keys(r.inFlight)) {
		fmt.Fprintf(w, "veneer_requests_in_flight{listener=%q} %d\n", listener, r.inFlight[listener].total())
	}
	sorted := slices.Sorted(maps.Keys(r.counts))
	for _, labels := range sorted {
		r.counts[labels].writeClasses(w, labels)
	}
	for _, labels := range sorted {
		r.counts[labels].writeLatencies(w, labels)
	}
}
