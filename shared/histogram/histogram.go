// Package histogram counts how long things take, in the form that every Prometheus
// reads. The histograms of the metrics library are for its own database only.
package histogram

import (
	"fmt"
	"io"
	"strconv"
	"sync/atomic"
	"time"
)

// bounds are the upper bounds of what is counted together; the last ones have none.
// They reach from a picture in memory to a store that hangs.
var bounds = [...]time.Duration{
	10 * time.Microsecond, 25 * time.Microsecond, 50 * time.Microsecond,
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second,
}

// Histogram is how often something took how long. The zero Histogram has counted
// nothing and is ready to; it is safe for concurrent use.
type Histogram struct {
	took [len(bounds) + 1]atomic.Int64
	sum  atomic.Int64 // nanoseconds
}

// Observe counts something that took so long.
func (h *Histogram) Observe(took time.Duration) {
	i := 0
	for i < len(bounds) && took > bounds[i] {
		i++
	}
	h.took[i].Add(1)
	h.sum.Add(int64(took))
}

// Total is what histograms had counted when they were added to it. Each count of
// theirs is read but once, so that no bucket is larger than the next one while they
// go on counting.
type Total struct {
	took       [len(bounds) + 1]int64
	count, sum int64
}

// Add adds what a histogram has counted.
func (t *Total) Add(h *Histogram) {
	for i := range t.took {
		n := h.took[i].Load()
		t.took[i] += n
		t.count += n
	}
	t.sum += h.sum.Load()
}

// IsEmpty reports whether nothing has been counted.
func (t *Total) IsEmpty() bool { return t.count == 0 }

// Write writes the metric of a name with labels, as in view="flat",stage="draw".
func (t *Total) Write(w io.Writer, name, labels string) {
	below := int64(0)
	for i, n := range t.took {
		bound := "+Inf"
		if i < len(bounds) {
			bound = strconv.FormatFloat(bounds[i].Seconds(), 'g', -1, 64)
		}
		below += n
		fmt.Fprintf(w, "%s_bucket{%s,le=%q} %d\n", name, labels, bound, below)
	}
	fmt.Fprintf(w, "%s_sum{%s} %g\n", name, labels, time.Duration(t.sum).Seconds())
	fmt.Fprintf(w, "%s_count{%s} %d\n", name, labels, t.count)
}
