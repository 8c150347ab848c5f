package serve

import (
	"fmt"
	"maps"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/veneer-skins/veneer/shared/metrics"
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
	always   bool // to be seen before anything is counted
	requests [lastClass - firstClass + 1]*prometheus.Desc
	latency  *prometheus.Desc
	shards   [shards]struct {
		classes [lastClass - firstClass + 1]atomic.Int64
		buckets [len(bounds) + 1]atomic.Int64
		sum     atomic.Int64 // nanoseconds
		_       [56]byte     // to the end of a cache line
	}
}

func newCounts(labels prometheus.Labels, always bool) *counts {
	c := &counts{
		always:  always,
		latency: prometheus.NewDesc("veneer_request_seconds", "Time from when a request is read until its answer can be sent.", nil, labels),
	}
	for class := range c.requests {
		of := maps.Clone(labels)
		of["status"] = fmt.Sprintf("%dxx", firstClass+class)
		c.requests[class] = prometheus.NewDesc("veneer_requests_total", "Requests by the class of their answer's status.", nil, of)
	}
	return c
}

// bounds are the upper bounds of the buckets.
var bounds = func() (all [len(metrics.LatencyBuckets)]time.Duration) {
	for i, seconds := range metrics.LatencyBuckets {
		all[i] = time.Duration(math.Round(seconds * float64(time.Second)))
	}
	return all
}()

// count counts an answer in a shard.
func (c *counts) count(shard, status int, took time.Duration) {
	s := &c.shards[shard]
	s.classes[min(max(firstClass, status/100), lastClass)-firstClass].Add(1)
	i := 0
	for i < len(bounds) && took > bounds[i] {
		i++
	}
	s.buckets[i].Add(1)
	s.sum.Add(int64(took))
}

// collect sends the sums of all shards.
func (c *counts) collect(into chan<- prometheus.Metric) {
	for class, desc := range c.requests {
		total := int64(0)
		for i := range c.shards {
			total += c.shards[i].classes[class].Load()
		}
		if total > 0 || c.always {
			into <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(total))
		}
	}
	count, sum, buckets := int64(0), time.Duration(0), map[float64]uint64{}
	for b := range len(bounds) + 1 {
		for i := range c.shards {
			count += c.shards[i].buckets[b].Load()
		}
		if b < len(bounds) {
			buckets[metrics.LatencyBuckets[b]] = uint64(count)
		}
	}
	for i := range c.shards {
		sum += time.Duration(c.shards[i].sum.Load())
	}
	if count > 0 || c.always {
		into <- prometheus.MustNewConstHistogram(c.latency, uint64(count), sum.Seconds(), buckets)
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

// registry holds what is counted by its labels. The library's counter and histogram would
// take a request 30 ns more of processor time, and all cores would share their cache lines.
type registry struct {
	mu       sync.Mutex
	counts   map[string]*counts
	inFlight map[string]*gauge
}

// counted is what the process counts. It stands in /metrics with all the rest.
var counted = func() *registry {
	r := &registry{counts: map[string]*counts{}, inFlight: map[string]*gauge{}}
	prometheus.MustRegister(r)
	return r
}()

// of returns what is counted of requests with labels, always the same.
func (r *registry) of(labels prometheus.Labels, always bool) *counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := fmt.Sprint(labels) // sorted
	c := r.counts[key]
	if c == nil {
		c = newCounts(labels, always)
		r.counts[key] = c
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

// Describe tells nothing, so that routes may have labels that others lack.
func (r *registry) Describe(chan<- *prometheus.Desc) {}

// Collect sends all that is counted.
func (r *registry) Collect(into chan<- prometheus.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for listener, inFlight := range r.inFlight {
		into <- prometheus.MustNewConstMetric(requestsInFlight, prometheus.GaugeValue, float64(inFlight.total()), listener)
	}
	for _, c := range r.counts {
		c.collect(into)
	}
}

var requestsInFlight = prometheus.NewDesc("veneer_requests_in_flight", "Requests that are being answered.", []string{"listener"}, nil)
