package edge

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/veneer-skins/veneer/shared/mapping"
)

func TestStreamLag(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, err := NewMappings(MappingsConfig{Bytes: 1 << 20, NegativeBytes: 1 << 20}, instant{})
		if err != nil {
			t.Fatal(err)
		}
		set := metrics.NewSet()
		m.Expose(set)
		lag := func(want string) {
			t.Helper()
			var text strings.Builder
			set.WritePrometheus(&text)
			if line := "veneer_edge_stream_lag_seconds " + want + "\n"; !strings.Contains(text.String(), line) {
				t.Errorf("the metrics lack %q:\n%s", line, text.String())
			}
		}
		s := script{T: t, m: m}
		s.pass(3 * time.Second)
		lag("3")
		s.apply(mapping.Event{Position: at(10), Start: true})
		s.beat(10)
		lag("0")
		s.pass(250 * time.Millisecond)
		lag("0.25")
	})
}
