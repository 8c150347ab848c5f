package httpserver

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

// The classes of response statuses: 2xx to 5xx.
const firstClass, lastClass = 2, 5

// shards is the number of copies of each counter. Cores that share a counter wait for each
// other, longer than some requests take.
const shards = 8

// counts holds the responses by class and their latencies, of requests with the same labels.
// The latency is from when a request is read until its response can be sent.
type counts struct {
	exposeZero bool // exposed even before it has counted anything
	requests   [lastClass - firstClass + 1]*prometheus.Desc
	latency    *prometheus.Desc
	shards     [shards]struct {
		classes [lastClass - firstClass + 1]atomic.Int64
		buckets [len(bucketBounds) + 1]atomic.Int64
		sum     atomic.Int64 // nanoseconds
		_       [56]byte     // pads to a cache line
	}
}

func newCounts(labels prometheus.Labels, exposeZero bool) *counts {
	c := &counts{
		exposeZero: exposeZero,
		latency:    prometheus.NewDesc("veneer_request_seconds", "Time from when a request is read until its response can be sent.", nil, labels),
	}
	for class := range c.requests {
		classLabels := maps.Clone(labels)
		classLabels["status"] = fmt.Sprintf("%dxx", firstClass+class)
		c.requests[class] = prometheus.NewDesc("veneer_requests_total", "Requests by the class of the response's status.", nil, classLabels)
	}
	return c
}

// bucketBounds are the upper bounds of the histogram's buckets.
var bucketBounds = func() (all [len(metrics.LatencyBuckets)]time.Duration) {
	for i, seconds := range metrics.LatencyBuckets {
		all[i] = time.Duration(math.Round(seconds * float64(time.Second)))
	}
	return all
}()

// count counts a response in a shard.
func (c *counts) count(shard, status int, took time.Duration) {
	s := &c.shards[shard]
	s.classes[min(max(firstClass, status/100), lastClass)-firstClass].Add(1)
	i := 0
	for i < len(bucketBounds) && took > bucketBounds[i] {
		i++
	}
	s.buckets[i].Add(1)
	s.sum.Add(int64(took))
}

// collect sends the sums of all shards.
func (c *counts) collect(out chan<- prometheus.Metric) {
	for class, desc := range c.requests {
		total := int64(0)
		for i := range c.shards {
			total += c.shards[i].classes[class].Load()
		}
		if total > 0 || c.exposeZero {
			out <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(total))
		}
	}
	count, sum, buckets := int64(0), time.Duration(0), map[float64]uint64{}
	for b := range len(bucketBounds) + 1 {
		for i := range c.shards {
			count += c.shards[i].buckets[b].Load()
		}
		if b < len(bucketBounds) {
			buckets[metrics.LatencyBuckets[b]] = uint64(count)
		}
	}
	for i := range c.shards {
		sum += time.Duration(c.shards[i].sum.Load())
	}
	if count > 0 || c.exposeZero {
		out <- prometheus.MustNewConstHistogram(c.latency, uint64(count), sum.Seconds(), buckets)
	}
}

// shardedGauge is a gauge in shards.
type shardedGauge struct {
	shards [shards]struct {
		n atomic.Int64
		_ [56]byte // pads to a cache line
	}
}

func (g *shardedGauge) add(shard int, n int64) { g.shards[shard].n.Add(n) }

func (g *shardedGauge) total() int64 {
	total := int64(0)
	for i := range g.shards {
		total += g.shards[i].n.Load()
	}
	return total
}

// registry holds the counters by their labels. The Prometheus library's counter and histogram
// would take 30 ns more of processor time a request, and all cores would share their cache
// lines.
type registry struct {
	mu       sync.Mutex
	counts   map[string]*counts
	inFlight map[string]*shardedGauge
}

// requestRegistry has the counters of the process, and is registered with Prometheus.
var requestRegistry = func() *registry {
	r := &registry{counts: map[string]*counts{}, inFlight: map[string]*shardedGauge{}}
	prometheus.MustRegister(r)
	return r
}()

// countsFor returns the counts of requests with labels, always the same.
func (r *registry) countsFor(labels prometheus.Labels, exposeZero bool) *counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := fmt.Sprint(labels) // sorted
	c := r.counts[key]
	if c == nil {
		c = newCounts(labels, exposeZero)
		r.counts[key] = c
	}
	return c
}

// inFlightFor returns the gauge of a listener's requests in flight, always the same.
func (r *registry) inFlightFor(listener string) *shardedGauge {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.inFlight[listener]
	if g == nil {
		g = &shardedGauge{}
		r.inFlight[listener] = g
	}
	return g
}

// Describe sends nothing, which makes the collector unchecked: routes may have labels that
// others lack.
func (r *registry) Describe(chan<- *prometheus.Desc) {}

// Collect sends all metrics.
func (r *registry) Collect(out chan<- prometheus.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for listener, inFlight := range r.inFlight {
		out <- prometheus.MustNewConstMetric(requestsInFlight, prometheus.GaugeValue, float64(inFlight.total()), listener)
	}
	for _, c := range r.counts {
		c.collect(out)
	}
}

var requestsInFlight = prometheus.NewDesc("veneer_requests_in_flight", "Requests that are being answered.", []string{"listener"}, nil)
