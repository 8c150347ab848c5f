package serve

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"
)

// Route is what a Door counts and logs requests of one kind under. Its name is
// the program's, never the client's: there are only so many.
type Route struct {
	name    string
	classes [lastClass - firstClass + 1]*metrics.Counter
	latency *latency
}

// The classes of statuses that answers have: 2xx to 5xx.
const firstClass, lastClass = 2, 5

// Route returns a route by its name, as in GET /api/players/{pid}. It is made
// once, at the start: all it counts in exists from then on.
func (d Door) Route(name string) *Route {
	labels := fmt.Sprintf("listener=%q,route=%q", d.Listener, name)
	r := &Route{name: name, latency: latencies.of(labels)}
	for i := range r.classes {
		r.classes[i] = metrics.GetOrCreateCounter(fmt.Sprintf(`veneer_requests_total{%s,status="%dxx"}`, labels, firstClass+i))
	}
	return r
}

// Claim says that a request is one of the route's. Requests that nobody claims
// are those of the route "other".
func (r *Route) Claim(rc *fasthttp.RequestCtx) {
	if seen := recordOf(rc); seen != nil {
		seen.route = r
	}
}

// count counts an answer.
func (r *Route) count(status int, took time.Duration) {
	class := min(max(firstClass, status/100), lastClass)
	r.classes[class-firstClass].Inc()
	r.latency.count(took)
}

// bounds are the upper bounds of the latencies that are counted together; the
// last ones have none.
var bounds = [...]time.Duration{
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second,
}

// latency is a histogram, in the form that every Prometheus reads, of how long it
// takes to answer: from when a request is read until its answer can be sent.
type latency struct {
	counts [len(bounds) + 1]atomic.Int64
	sum    atomic.Int64 // nanoseconds
}

func (l *latency) count(took time.Duration) {
	i := 0
	for i < len(bounds) && took > bounds[i] {
		i++
	}
	l.counts[i].Add(1)
	l.sum.Add(int64(took))
}

// write writes the histogram. Each count is read but once, so that no bucket is
// larger than the next one while requests go on.
func (l *latency) write(w io.Writer, labels string) {
	const name = "veneer_request_seconds"
	total := int64(0)
	for i := range l.counts {
		bound := "+Inf"
		if i < len(bounds) {
			bound = strconv.FormatFloat(bounds[i].Seconds(), 'g', -1, 64)
		}
		total += l.counts[i].Load()
		fmt.Fprintf(w, "%s_bucket{%s,le=%q} %d\n", name, labels, bound, total)
	}
	fmt.Fprintf(w, "%s_sum{%s} %g\n", name, labels, time.Duration(l.sum.Load()).Seconds())
	fmt.Fprintf(w, "%s_count{%s} %d\n", name, labels, total)
}

// histograms holds latencies by their labels. The metrics library has histograms
// of its own, but in buckets that only its own database reads.
type histograms struct {
	mu sync.Mutex
	by map[string]*latency
}

// latencies are those of the process. They stand in /metrics with all the rest.
var latencies = func() *histograms {
	h := &histograms{by: map[string]*latency{}}
	metrics.RegisterMetricsWriter(h.write)
	return h
}()

// of returns the latency with labels, always the same.
func (h *histograms) of(labels string) *latency {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.by[labels]
	if l == nil {
		l = &latency{}
		h.by[labels] = l
	}
	return l
}

func (h *histograms) write(w io.Writer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, labels := range slices.Sorted(maps.Keys(h.by)) {
		h.by[labels].write(w, labels)
	}
}
