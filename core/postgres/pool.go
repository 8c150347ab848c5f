package postgres

import (
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Expose registers metrics of the connection pools. A request waits for a connection until
// another request returns one or a new one is made. It gives up when its context ends.
func (db *DB) Expose(registry prometheus.Registerer) {
	register := promauto.With(registry)
	pools := map[string]*pgxpool.Pool{"writes": db.writes.Pool, "reads": db.reads.Pool, "lookups": db.lookups.Pool, "feed": db.feed}
	if db.HasLibrary() {
		pools["library"] = db.library.Pool
	}
	for name, pool := range pools {
		gauge := func(state string, value func(*pgxpool.Stat) float64) {
			register.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "veneer_pool_connections", Help: "Connections to the database by state.",
				ConstLabels: prometheus.Labels{"pool": name, "state": state},
			}, func() float64 { return value(pool.Stat()) })
		}
		gauge("idle", func(s *pgxpool.Stat) float64 { return float64(s.IdleConns()) })
		gauge("used", func(s *pgxpool.Stat) float64 { return float64(s.AcquiredConns()) })
		counter := func(metric, help string, value func(*pgxpool.Stat) float64) {
			register.NewCounterFunc(prometheus.CounterOpts{
				Name: "veneer_pool_" + metric, Help: help, ConstLabels: prometheus.Labels{"pool": name},
			}, func() float64 { return value(pool.Stat()) })
		}
		counter("waits_total", "Waits for a connection to the database.", func(s *pgxpool.Stat) float64 { return float64(s.EmptyAcquireCount()) })
		counter("wait_seconds_total", "Total time of waits for a connection.", func(s *pgxpool.Stat) float64 { return s.EmptyAcquireWaitTime().Seconds() })
		counter("gave_up_total", "Waits for a connection that ended without one.", func(s *pgxpool.Stat) float64 { return float64(s.CanceledAcquireCount()) })
	}
}
