package postgres_test

import (
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// PostgreSQL's client gets an address without a password, and without what only pgx reads.
func TestClientAddress(t *testing.T) {
	t.Parallel()
	for database, want := range map[string]string{
		"postgres://ann:hunter2@127.0.0.1:5432/veneer?sslmode=disable&pool_max_conns=4&default_query_exec_mode=exec": "postgres://ann@127.0.0.1:5432/veneer?sslmode=disable PGPASSWORD=hunter2",
		"postgres://ann@/veneer?host=/run/postgresql&password=hunter2":                                               "postgres://ann@/veneer?host=%2Frun%2Fpostgresql PGPASSWORD=hunter2",
		"postgres://ann@127.0.0.1/veneer?search_path=a%20b":                                                          `postgres://ann@127.0.0.1/veneer PGOPTIONS=-c search_path=a\ b`,
		"postgres://ann@127.0.0.1/veneer?options=-c%20work_mem%3D8MB":                                                "postgres://ann@127.0.0.1/veneer?options=-c%20work_mem%3D8MB",
	} {
		address, environ, err := postgres.ClientAddress(database)
		testenv.Is(t, err, nil, "%s", database)
		testenv.Equal(t, strings.Join(append([]string{address}, environ...), " "), want, "the address of %s", database)
	}
	for _, database := range []string{"host=127.0.0.1 password=hunter2", "postgres://ann@127.0.0.1/veneer?sslpassword=hunter2", "postgres://ann:hunter2@127.0.0.1:port/veneer"} {
		_, _, err := postgres.ClientAddress(database)
		testenv.Check(t, err != nil && !strings.Contains(err.Error(), "hunter2"), "%s: %v", database, err)
	}
}
