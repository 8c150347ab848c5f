package stack

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// roundTripFunc responds in this process, so that the test controls the time between requests.
type roundTripFunc func() (status int)

func (f roundTripFunc) RoundTrip(request *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: f(), Body: http.NoBody, Request: request}, nil
}

// A node that reports a lack of redundancy in between is waited for from the beginning.
func TestAwaitRedundantNeedsConsecutiveSuccesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		requests := 0
		c := &Cluster{TB: t, stores: []string{"minio-1", "minio-2"}, client: &http.Client{Transport: roundTripFunc(func() int {
			if requests++; time.Since(began) == 7*time.Second {
				return http.StatusServiceUnavailable
			}
			return http.StatusOK
		})}}
		c.AwaitRedundant(10 * time.Second)
		testenv.Equal(t, time.Since(began), 17*time.Second, "elapsed: 10 s after the last 503, which was after 7 s")
		testenv.Check(t, requests >= 2*10*10, "%d requests; want ten a second to each node", requests)
	})
}

// hold returns a command that runs under veneer-hold, for a PostgreSQL.
func hold(t *testing.T, p *Postgres, arguments ...string) *exec.Cmd {
	t.Helper()
	command := holdCommand(t, "../../../deploy/machines/veneer-hold", p.Address, arguments...)
	command.WaitDelay = time.Second // its children may outlive it
	return command
}

func run(t *testing.T, conn *pgx.Conn, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

func awaitCount(t *testing.T, conn *pgx.Conn, want int, sql string) {
	t.Helper()
	await(t, fmt.Sprintf("%d: %s", want, sql), func() bool {
		var got int
		testenv.Do(t, conn.QueryRow(t.Context(), sql).Scan(&got))
		return got >= want
	})
}

// A write that is held when PostgreSQL stops fails with an error and changes nothing.
func TestHeldWritesFailWhenPostgreSQLStops(t *testing.T) {
	t.Parallel()
	p := NewPostgres(t)
	operator := postgrestest.Conn(t, p.URL(p.Address))
	run(t, operator, "CREATE TABLE numbers (n int)")
	pid := testenv.Must(os.ReadFile(filepath.Join(p.Data(), "postmaster.pid")))(t)
	postmaster, _, _ := strings.Cut(string(pid), "\n")
	fifo, stopCommand := filepath.Join(t.TempDir(), "waits"), fmt.Sprintf("kill -INT %s; while kill -0 %[1]s 2>&-; do sleep .05; done", postmaster)
	MustRun(t, exec.CommandContext(t.Context(), "mkfifo", fifo))
	const writers = 30
	var conns []*pgx.Conn
	const insert = "INSERT INTO numbers VALUES ($1)"
	for range writers {
		conn := postgrestest.Conn(t, p.URL(p.Address))
		testenv.Must(conn.Prepare(t.Context(), insert, insert))(t)
		conns = append(conns, conn)
	}
	var writing, stopping sync.WaitGroup
	t.Cleanup(stopping.Wait)
	holder := hold(t, p, "sh", "-c", "read -r _ <"+fifo+"; "+stopCommand)
	stopping.Go(func() { MustRun(t, holder) })
	awaitCount(t, operator, 1, `SELECT count(*) FROM pg_locks WHERE mode = 'ShareLock' AND granted AND relation = 'numbers'::regclass`)
	for i, conn := range conns {
		writing.Go(func() {
			_, err := conn.Exec(t.Context(), insert, i)
			if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.Code != "57P01" {
				t.Errorf("a write that waits while PostgreSQL stops: %v; want 57P01", err)
			}
		})
	}
	awaitCount(t, operator, writers, `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'INSERT%'`)
	// Opening it write-only would block until there is a reader.
	fifoWriter := testenv.Must(os.OpenFile(fifo, os.O_RDWR, 0))(t)
	defer func() { _ = fifoWriter.Close() }()
	testenv.Must(fifoWriter.WriteString("\n"))(t)
	writing.Wait()
	stopping.Wait()
}

// An autovacuum yields to the lock that veneer-hold takes.
func TestHoldIgnoresAutovacuum(t *testing.T) {
	t.Parallel()
	p := NewPostgres(t)
	operator := postgrestest.Conn(t, p.URL(p.Address))
	run(t, operator,
		`CREATE TABLE numbers (n int) WITH (autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1,
			autovacuum_vacuum_threshold = 0, autovacuum_vacuum_scale_factor = 0)`,
		"INSERT INTO numbers SELECT generate_series(1, 200000)", "DELETE FROM numbers",
		"ALTER SYSTEM SET autovacuum_naptime = '1s'", "SELECT pg_reload_conf()")
	awaitCount(t, operator, 1, `SELECT count(*) FROM pg_stat_progress_vacuum WHERE relid = 'numbers'::regclass`)
	output := MustRun(t, hold(t, p, "echo", "it's run"))
	testenv.Equal(t, output, "it's run\n", "output beside a vacuum, only of the command")
}

// Writes that are held for more than five seconds continue, and veneer-hold reports that.
func TestHoldReportsExpiry(t *testing.T) {
	t.Parallel()
	p := NewPostgres(t)
	operator := postgrestest.Conn(t, p.URL(p.Address))
	run(t, operator, "CREATE TABLE numbers (n int)")
	written := filepath.Join(t.TempDir(), "written")
	// The command ends only when a write has, which waits for as long as it is held.
	command := fmt.Sprintf("psql -qc 'INSERT INTO numbers VALUES (1)' && touch %s; exit 3", written)
	output, err := hold(t, p, "sh", "-c", command).CombinedOutput()
	if ended, ok := errors.AsType[*exec.ExitError](err); !ok || ended.ExitCode() != 3 {
		t.Errorf("it ended with %v; want the command's status 3", err)
	}
	testenv.Contains(t, string(output), "writes continued after five seconds", "output")
	testenv.Must(os.Stat(written))(t)
}
