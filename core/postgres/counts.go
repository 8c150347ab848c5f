package postgres

import (
	"context"
	"math"

	"github.com/veneer-skins/veneer/core"
)

// sampleRows is about how many rows of a larger table are counted, of a random part of its pages.
const sampleRows = 50_000

const selectEstimate = `SELECT greatest(reltuples, 1)::float8 AS rows FROM pg_class WHERE oid = $1::text::regclass`

// selectSample counts rows in a part of a table's pages, in percent. The seed makes it the same pages each time.
func selectSample(table, total string) string {
	return `SELECT count(*) AS rows, coalesce(sum(` + total + `), 0)::bigint AS total FROM ` + table + ` TABLESAMPLE SYSTEM ($1) REPEATABLE (1)`
}

const selectUploads = `
	SELECT day, coalesce(uploads, 0) AS uploads
	FROM (SELECT (now() AT TIME ZONE 'UTC')::date - n AS day FROM generate_series(0, 29) n) days
	LEFT JOIN (
		SELECT (upload_at AT TIME ZONE 'UTC')::date AS day, count(*) AS uploads FROM textures
		WHERE upload_at >= ((now() AT TIME ZONE 'UTC')::date - 29) AT TIME ZONE 'UTC' GROUP BY 1
	) uploaded USING (day)
	ORDER BY day`

const selectCounts = `
	SELECT (SELECT count(*) FROM reports WHERE state = 'open'), (SELECT count(*) FROM mails),
		split_part(current_setting('server_version'), ' ', 1), (SELECT version FROM ` + versionTable + `)`

// Counts counts what a site has, large tables by a sample.
func (db *DB) Counts(ctx context.Context) (c core.Counts, err error) {
	for _, t := range []struct {
		name, column string
		rows, total  *int64
	}{{"users", "1", &c.Users, new(int64)}, {"players", "1", &c.Players, new(int64)}, {"textures", "bytes", &c.Textures, &c.TextureBytes}} {
		estimates, err := collect[struct{ Rows float64 }](ctx, db.reads, statement{selectEstimate, []any{t.name}})
		if err != nil {
			return c, failure("estimate the rows of a table", err)
		}
		percent := min(100, 100*sampleRows/estimates[0].Rows)
		samples, err := collect[struct{ Rows, Total int64 }](ctx, db.reads, statement{selectSample(t.name, t.column), []any{percent}})
		if err != nil {
			return c, failure("count the rows of a table", err)
		}
		scaled := func(n int64) int64 { return int64(math.Round(float64(n) * 100 / percent)) }
		*t.rows, *t.total = scaled(samples[0].Rows), scaled(samples[0].Total)
		c.Approximate = c.Approximate || percent < 100
	}
	if c.Uploads, err = collect[core.DailyUploads](ctx, db.reads, statement{selectUploads, nil}); err != nil {
		return c, failure("count uploads", err)
	}
	err = db.reads.QueryRow(ctx, selectCounts).Scan(&c.OpenReports, &c.WaitingMail, &c.Database, &c.Schema)
	return c, failure("count reports and mails", err)
}
