package core

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// backupPoll is the time between two readings of the last backup.
const backupPoll = time.Minute

// BackupStore stores when the site was backed up.
type BackupStore interface {
	// LastBackup returns when the last whole backup began, the zero time if there was none.
	LastBackup(ctx context.Context) (time.Time, error)
}

// ExposeLastBackup registers a metric of the last backup, and returns the task that keeps it.
func ExposeLastBackup(registry prometheus.Registerer, store BackupStore, log *slog.Logger) func(context.Context) {
	var seconds atomic.Int64
	promauto.With(registry).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "veneer_core_last_backup_timestamp_seconds", Help: "When the last whole backup began, as seconds since 1970; 0 without one.",
	}, func() float64 { return float64(seconds.Load()) })
	return func(ctx context.Context) {
		ticker := time.NewTicker(backupPoll)
		defer ticker.Stop()
		for {
			switch began, err := store.LastBackup(ctx); {
			case ctx.Err() != nil:
				return
			case err != nil:
				log.WarnContext(ctx, "the time of the last backup cannot be read", "error", err)
			case !began.IsZero():
				seconds.Store(began.Unix())
			}
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	}
}
