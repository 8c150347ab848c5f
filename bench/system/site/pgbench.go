package site

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Pgbench is PostgreSQL's own load generator: the maximum rate of a query on the machine.
type Pgbench struct {
	program string
	environ []string
	options []string
}

// The parameters of the query, in its order: arrays, here of one element. The first three are of a user,
// the others the same for all.
var queryParameters = []string{"sid", "jti", "uid", "refreshed_after", "created_after", "replaced_after"}

const createParameters = `CREATE TABLE bench_parameters (n bigint PRIMARY KEY, sid uuid[], jti uuid[], uid bigint[])`

// pickScript switches a connection to another user. It is a transaction like a read, with so many
// reads to one of it.
const (
	pickScript   = "\\set n random(0, %d)\nSELECT sid, jti, uid FROM bench_parameters WHERE n = :n \\gset\n"
	readsPerPick = 63
)

// NewSessionPgbench returns a pgbench that runs the query with which core looks up a session, for
// random users. Core must have run no other query last, and its connections must have an
// application_name.
func NewSessionPgbench(tb testing.TB, core *stack.Process, users []SignedInUser, connections int) *Pgbench {
	tb.Helper()
	conn := postgrestest.Conn(tb, core.Setting("CORE_DATABASE_URL"))
	testenv.Must(conn.Exec(tb.Context(), createParameters))(tb)
	rows := pgx.CopyFromSlice(len(users), func(i int) ([]any, error) {
		return []any{i, [][16]byte{users[i].Session}, [][16]byte{users[i].ID}, []int64{int64(users[i].User)}}, nil
	})
	table, columns := pgx.Identifier{"bench_parameters"}, []string{"n", "sid", "jti", "uid"}
	testenv.Must(conn.CopyFrom(tb.Context(), table, columns, rows))(tb)
	testenv.Must(conn.Exec(tb.Context(), "VACUUM ANALYZE bench_parameters"))(tb)

	// Core's query for sessions as the database has received it.
	queries := Rows(tb, conn, pgx.RowTo[string], selectSessionQueries)
	if len(queries) != 1 {
		tb.Fatalf("core's session query is one of %q", queries)
	}
	sql := queries[0]
	placeholder := regexp.MustCompile(`\$\d+`)
	used := placeholder.FindAllString(sql, -1)
	slices.Sort(used)
	if n := len(slices.Compact(used)); n != len(queryParameters) {
		tb.Fatalf("the session query has %d parameters, not %q:\n%s", n, queryParameters, sql)
	}
	read := placeholder.ReplaceAllStringFunc(sql, func(p string) string {
		n, _ := strconv.Atoi(p[1:])
		return ":" + queryParameters[n-1]
	})
	p := newPgbench(tb, conn)
	now, first := time.Now(), users[0]
	for name, value := range map[string]any{
		"sid": first.Session, "jti": first.ID, "uid": first.User,
		"refreshed_after": now.Add(-14 * 24 * time.Hour).Format(time.RFC3339), "created_after": now.Add(-90 * 24 * time.Hour).Format(time.RFC3339),
		"replaced_after": now.Add(-30 * time.Second).Format(time.RFC3339),
	} {
		p.options = append(p.options, "-D", fmt.Sprintf("%s={%v}", name, value))
	}

	// \gset fails unless there is exactly one row: so the parameters are right.
	directory, script := tb.TempDir(), fmt.Sprintf(pickScript, len(users)-1)
	p.run(tb, "-c", "1", "-t", "100", "-f", stack.WriteFile(tb, directory, "try.sql", script+read+" \\gset found_\n"))

	p.options = append(p.options, "-c", strconv.Itoa(connections),
		"-f", stack.WriteFile(tb, directory, "pick.sql", script)+"@1", "-f", stack.WriteFile(tb, directory, "read.sql", read+";\n")+fmt.Sprintf("@%d", readsPerPick))
	return p
}

// NewPgbench returns a pgbench that runs a script over so many connections to a database.
func NewPgbench(tb testing.TB, database, script string, connections int) *Pgbench {
	tb.Helper()
	p := newPgbench(tb, postgrestest.Conn(tb, database))
	p.options = append(p.options, "-c", strconv.Itoa(connections), "-f", stack.WriteFile(tb, tb.TempDir(), "script.sql", script))
	return p
}

// newPgbench returns a pgbench with the parameters of a connection.
func newPgbench(tb testing.TB, like *pgx.Conn) *Pgbench {
	tb.Helper()
	to := like.Config()
	options := make([]string, 0, len(to.RuntimeParams))
	for name, value := range to.RuntimeParams {
		options = append(options, "-c "+name+"="+strings.ReplaceAll(value, " ", `\ `))
	}
	return &Pgbench{
		program: PgbenchPath(),
		environ: append(os.Environ(), "PGHOST="+to.Host, fmt.Sprintf("PGPORT=%d", to.Port), "PGUSER="+to.User, "PGPASSWORD="+to.Password,
			"PGDATABASE="+to.Database, "PGOPTIONS="+strings.Join(options, " ")),
		options: []string{"-n", "-M", "prepared", "-j", "2"},
	}
}

// PgbenchPath returns the path of pgbench, which Debian keeps out of PATH.
func PgbenchPath() string {
	paths, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench") // the pattern is well-formed
	return append([]string{"pgbench"}, paths...)[len(paths)]
}

// Rate runs pgbench for a while, or for ten transactions of each connection if duration is 0: on a busy
// machine, connecting takes seconds. It returns its transactions a second.
func (p *Pgbench) Rate(tb testing.TB, duration time.Duration) float64 {
	tb.Helper()
	until := []string{"-T", strconv.Itoa(int(duration.Seconds()))}
	if duration == 0 {
		until = []string{"-t", "10"}
	}
	output := p.run(tb, until...)
	found := regexp.MustCompile(`(?m)^tps = ([0-9.]+) `).FindStringSubmatch(output)
	if found == nil || !strings.Contains(output, "number of failed transactions: 0 ") {
		tb.Fatalf("pgbench says:\n%s", output)
	}
	return testenv.Must(strconv.ParseFloat(found[1], 64))(tb)
}

func (p *Pgbench) run(tb testing.TB, options ...string) string {
	tb.Helper()
	command := exec.CommandContext(tb.Context(), p.program, append(slices.Clone(p.options), options...)...)
	command.Env = p.environ
	return stack.MustRun(tb, command)
}

const selectSessionQueries = `
	SELECT DISTINCT query FROM pg_stat_activity
	WHERE application_name = current_setting('application_name') AND pid <> pg_backend_pid()
		AND query ~ '^\s*SELECT.*\msession_tokens\M'`
