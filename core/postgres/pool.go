package postgres

import (
	"fmt"

	"github.com/VictoriaMetrics/metrics"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Expose adds what is known about the connections to a set of metrics. Who waits
// for one waits for others to return theirs, or for a new one to be made; who
// gives up has waited as long as a request may take.
func (db *DB) Expose(set *metrics.Set) {
	for name, pool := range map[string]*pgxpool.Pool{"writes": db.writes.Pool, "reads": db.reads.Pool, "lookups": db.lookups.Pool, "feed": db.feed} {
		for metric, value := range map[string]func(*pgxpool.Stat) float64{
			`connections{pool=%q,state="idle"}`: func(s *pgxpool.Stat) float64 { return float64(s.IdleConns()) },
			`connections{pool=%q,state="used"}`: func(s *pgxpool.Stat) float64 { return float64(s.AcquiredConns()) },
			`waits_total{pool=%q}`:              func(s *pgxpool.Stat) float64 { return float64(s.EmptyAcquireCount()) },
			`wait_seconds_total{pool=%q}`:       func(s *pgxpool.Stat) float64 { return s.EmptyAcquireWaitTime().Seconds() },
			`gave_up_total{pool=%q}`:            func(s *pgxpool.Stat) float64 { return float64(s.CanceledAcquireCount()) },
		} {
			set.NewGauge("veneer_pool_"+fmt.Sprintf(metric, name), func() float64 { return value(pool.Stat()) })
		}
	}
}
