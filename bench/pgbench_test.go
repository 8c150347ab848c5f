package bench_test

import (
	"crypto/tls"
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

	"github.com/veneer-skins/veneer/bench/system"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
)

// pgbench is PostgreSQL's own load generator, set to run the query with which
// core looks a session up: what the machine can do of it when nothing stands
// between.
type pgbench struct {
	program string
	environ []string
	options []string
}

// The parameters of the query, in its order. The first three are somebody's, the
// others the same for all.
var queryParameters = []string{"sid", "jti", "uid", "refreshed_after", "created_after", "replaced_after"}

const createParameters = `CREATE TABLE bench_parameters (n bigint PRIMARY KEY, sid uuid, jti uuid, uid bigint)`

// pick has a connection go on with another user. It is a transaction like a read,
// of which there are so many to one pick.
const (
	pick         = "\\set n random(0, %d)\nSELECT sid, jti, uid FROM bench_parameters WHERE n = :n \\gset\n"
	readsPerPick = 63
)

// newPgbench returns a pgbench that asks for random people of those of a core,
// whose session query stands in sql.
func newPgbench(b *testing.B, database, sql string, people []system.Person) *pgbench {
	b.Helper()
	conn := postgrestest.Conn(b, database)
	if _, err := conn.Exec(b.Context(), createParameters); err != nil {
		b.Fatal(err)
	}
	rows := pgx.CopyFromSlice(len(people), func(i int) ([]any, error) {
		return []any{i, people[i].Session, people[i].ID, people[i].User}, nil
	})
	if _, err := conn.CopyFrom(b.Context(), pgx.Identifier{"bench_parameters"}, []string{"n", "sid", "jti", "uid"}, rows); err != nil {
		b.Fatal(err)
	}
	if _, err := conn.Exec(b.Context(), "VACUUM ANALYZE bench_parameters"); err != nil {
		b.Fatal(err)
	}

	placeholder := regexp.MustCompile(`\$\d+`)
	used := placeholder.FindAllString(sql, -1)
	slices.Sort(used)
	if n := len(slices.Compact(used)); n != len(queryParameters) {
		b.Fatalf("the session query has %d parameters, not %q:\n%s", n, queryParameters, sql)
	}
	read := placeholder.ReplaceAllStringFunc(sql, func(p string) string {
		n, _ := strconv.Atoi(p[1:])
		return ":" + queryParameters[n-1]
	})
	directory := b.TempDir()
	write := func(name, script string) string {
		path := filepath.Join(directory, name)
		if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
			b.Fatal(err)
		}
		return path
	}

	to := conn.Config()
	options := make([]string, 0, len(to.RuntimeParams))
	for name, value := range to.RuntimeParams {
		options = append(options, "-c "+name+"="+value)
	}
	encryption := "disable"
	if _, encrypted := conn.PgConn().Conn().(*tls.Conn); encrypted {
		encryption = "require"
	}
	now := time.Now()
	p := &pgbench{
		program: pgbenchProgram(b),
		environ: append(os.Environ(), "PGHOST="+to.Host, fmt.Sprintf("PGPORT=%d", to.Port), "PGUSER="+to.User, "PGPASSWORD="+to.Password,
			"PGDATABASE="+to.Database, "PGSSLMODE="+encryption, "PGOPTIONS="+strings.Join(options, " ")),
		options: []string{"-n", "-M", "prepared", "-j", "2"},
	}
	first := people[0]
	for name, value := range map[string]any{
		"sid": first.Session, "jti": first.ID, "uid": first.User,
		"refreshed_after": now.Add(-14 * 24 * time.Hour).Format(time.RFC3339), "created_after": now.Add(-90 * 24 * time.Hour).Format(time.RFC3339),
		"replaced_after": now.Add(-30 * time.Second).Format(time.RFC3339),
	} {
		p.options = append(p.options, "-D", fmt.Sprintf("%s=%v", name, value))
	}

	// \gset fails where there is not one row: so these are the parameters.
	script := fmt.Sprintf(pick, len(people)-1)
	p.run(b, "-c", "1", "-t", "100", "-f", write("try.sql", script+read+" \\gset found_\n"))

	p.options = append(p.options, "-c", strconv.Itoa(connections),
		"-f", write("pick.sql", script)+"@1", "-f", write("read.sql", read+";\n")+fmt.Sprintf("@%d", readsPerPick))
	return p
}

// pgbenchProgram returns the path of pgbench: of the newest of Debian's, or else
// the one in PATH.
func pgbenchProgram(b *testing.B) string {
	b.Helper()
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench")
	if err != nil {
		b.Fatal(err)
	}
	if len(found) > 0 {
		return found[len(found)-1]
	}
	path, err := exec.LookPath("pgbench")
	if err != nil {
		b.Fatal("pgbench is missing: install PostgreSQL's server package (on Debian: postgresql), or have PATH lead to pgbench")
	}
	return path
}

var tps = regexp.MustCompile(`(?m)^tps = ([0-9.]+) `)

// rate runs pgbench for a while and returns its transactions a second.
func (p *pgbench) rate(b *testing.B, duration time.Duration) float64 {
	b.Helper()
	output := p.run(b, "-T", strconv.Itoa(int(duration.Seconds())))
	found := tps.FindStringSubmatch(output)
	if found == nil || !strings.Contains(output, "number of failed transactions: 0 ") {
		b.Fatalf("pgbench says:\n%s", output)
	}
	rate, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		b.Fatal(err)
	}
	return rate
}

func (p *pgbench) run(b *testing.B, options ...string) string {
	b.Helper()
	command := exec.CommandContext(b.Context(), p.program, append(slices.Clone(p.options), options...)...)
	command.Env = p.environ
	output, err := command.CombinedOutput()
	if err != nil {
		b.Fatalf("pgbench: %v\n%s", err, output)
	}
	return string(output)
}
