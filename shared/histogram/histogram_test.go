package histogram_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/shared/histogram"
)

func TestWrite(t *testing.T) {
	t.Parallel()
	var first, second histogram.Histogram
	for _, took := range []time.Duration{0, 10 * time.Microsecond, 11 * time.Microsecond, 10 * time.Second} {
		first.Observe(took)
	}
	for _, took := range []time.Duration{30 * time.Millisecond, time.Hour} {
		second.Observe(took)
	}

	var total histogram.Total
	if !total.IsEmpty() {
		t.Error("a total of nothing is not empty")
	}
	total.Add(&first)
	total.Add(&second)
	if total.IsEmpty() {
		t.Error("a total of something is empty")
	}
	var got strings.Builder
	total.Write(&got, "took_seconds", `view="flat"`)
	want := `took_seconds_bucket{view="flat",le="1e-05"} 2
took_seconds_bucket{view="flat",le="2.5e-05"} 3
took_seconds_bucket{view="flat",le="5e-05"} 3
took_seconds_bucket{view="flat",le="0.0001"} 3
took_seconds_bucket{view="flat",le="0.00025"} 3
took_seconds_bucket{view="flat",le="0.0005"} 3
took_seconds_bucket{view="flat",le="0.001"} 3
took_seconds_bucket{view="flat",le="0.0025"} 3
took_seconds_bucket{view="flat",le="0.005"} 3
took_seconds_bucket{view="flat",le="0.01"} 3
took_seconds_bucket{view="flat",le="0.025"} 3
took_seconds_bucket{view="flat",le="0.05"} 4
took_seconds_bucket{view="flat",le="0.1"} 4
took_seconds_bucket{view="flat",le="0.25"} 4
took_seconds_bucket{view="flat",le="0.5"} 4
took_seconds_bucket{view="flat",le="1"} 4
took_seconds_bucket{view="flat",le="2.5"} 4
took_seconds_bucket{view="flat",le="5"} 4
took_seconds_bucket{view="flat",le="10"} 5
took_seconds_bucket{view="flat",le="+Inf"} 6
took_seconds_sum{view="flat"} 3610.030021
took_seconds_count{view="flat"} 6
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("it is written differently (-want +got):\n%s", diff)
	}
}

// Nothing is lost when many count at once.
func TestManyCountAtOnce(t *testing.T) {
	t.Parallel()
	const workers, each = 4, 10_000
	var h histogram.Histogram
	var counting sync.WaitGroup
	for range workers {
		counting.Go(func() {
			for i := range each {
				h.Observe(time.Duration(i) * time.Microsecond)
			}
		})
	}
	counting.Wait()
	var total histogram.Total
	total.Add(&h)
	var got strings.Builder
	total.Write(&got, "took_seconds", `a="b"`)
	for _, want := range []string{
		`took_seconds_bucket{a="b",le="0.001"} 4004`, `took_seconds_bucket{a="b",le="+Inf"} 40000`, `took_seconds_count{a="b"} 40000`,
	} {
		if !strings.Contains(got.String(), want+"\n") {
			t.Errorf("it lacks %q:\n%s", want, got.String())
		}
	}
}
