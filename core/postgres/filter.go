package postgres

import (
	"fmt"
	"strings"
)

// filter is what rows must satisfy: only the conditions that were asked for, so
// that each statement has the plan that suits it.
type filter struct {
	conditions []string
	args       []any
}

// add adds a condition in which %d is the number of its argument.
func (f *filter) add(condition string, arg any) {
	f.args = append(f.args, arg)
	f.conditions = append(f.conditions, fmt.Sprintf(condition, len(f.args)))
}

// argument adds an argument to the statement and returns what stands for it there.
func (f *filter) argument(arg any) string {
	f.args = append(f.args, arg)
	return fmt.Sprintf("$%d", len(f.args))
}

// where returns the clause with all conditions; nothing if there are none.
func (f *filter) where() string {
	if len(f.conditions) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(f.conditions, " AND ")
}
