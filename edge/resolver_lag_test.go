package edge

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/metrics/metricstest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

func TestStreamLag(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := NewResolver(ResolverConfig{Bytes: 1 << 20, NegativeBytes: 1 << 20}, stubCore{})
		registry := prometheus.NewRegistry()
		m.Expose(registry)
		lag := func(want float64) {
			t.Helper()
			testenv.Equal(t, metricstest.Value(t, metricstest.Text(t, registry), "veneer_edge_stream_lag_seconds"), want,
				"the lag in seconds")
		}
		s := script{T: t, resolver: m}
		s.advance(3 * time.Second)
		lag(3)
		s.apply(edgeproto.Event{Cursor: at(10), Start: true})
		s.heartbeat(10)
		lag(0)
		s.advance(250 * time.Millisecond)
		lag(0.25)
	})
}
