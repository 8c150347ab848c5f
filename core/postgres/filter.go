package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/veneer-skins/veneer/core"
)

// filter is the WHERE clause of a list. It has only the conditions of the query, so that
// PostgreSQL plans each combination by itself.
type filter struct {
	conditions []string
	args       []any
}

// add adds a condition, in which %d is the number of its argument.
func (f *filter) add(condition string, arg any) {
	f.args = append(f.args, arg)
	f.conditions = append(f.conditions, fmt.Sprintf(condition, len(f.args)))
}

// argument adds an argument and returns its placeholder.
func (f *filter) argument(arg any) string {
	f.args = append(f.args, arg)
	return fmt.Sprintf("$%d", len(f.args))
}

// where returns the clause; empty if there are no conditions.
func (f *filter) where() string {
	if len(f.conditions) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(f.conditions, " AND ")
}

// find returns a page of the ids that match, the highest first. It reads no more rows than it
// takes to know whether more than core.MaxCounted match.
func (db *DB) find(ctx context.Context, id, table string, f filter, page, perPage int) (total int, more bool, ids []int64, err error) {
	sql := `
	WITH matches AS MATERIALIZED (
		SELECT ` + id + ` AS id FROM ` + table + f.where() + ` ORDER BY ` + id + ` DESC LIMIT ` + f.argument(core.MaxCounted+1) + `
	), page AS (
		SELECT id FROM matches ORDER BY id DESC LIMIT ` + f.argument(max(0, min(perPage, core.MaxCounted-(page-1)*perPage))) + ` OFFSET ` + f.argument((page-1)*perPage) + `
	)
	SELECT (SELECT count(*) FROM matches) AS total, ARRAY(SELECT id FROM page) AS ids`
	rows, err := collect[struct {
		Total int
		IDs   []int64
	}](ctx, db.reads, statement{sql, f.args})
	if err != nil {
		return 0, false, nil, err
	}
	return min(rows[0].Total, core.MaxCounted), rows[0].Total > core.MaxCounted, rows[0].IDs, nil
}
