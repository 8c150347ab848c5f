package stack

import (
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// Postgres is a PostgreSQL cluster, which can be killed.
type Postgres struct {
	Program

	Address  string
	Programs string // directory of PostgreSQL's programs
	home     string // contains the data directory
}

// NewPostgres creates a cluster and starts it. It ends with the test. Where PostgreSQL is not
// installed the test is skipped.
func NewPostgres(tb testing.TB) *Postgres {
	tb.Helper()
	p := newTestPostgres(tb)
	p.create(tb, "", "--auth=trust", "--no-sync")
	p.Start(tb)
	return p
}

// Standby creates a hot standby of a cluster and starts it. It ends with the test.
func (p *Postgres) Standby(tb testing.TB) *Postgres {
	tb.Helper()
	standby := newTestPostgres(tb)
	standby.run(tb, "pg_basebackup", "-D", standby.Data(), "-d", p.URL(p.Address), "--checkpoint=fast", "--write-recovery-conf", "--no-sync")
	standby.Start(tb)
	return standby
}

// newTestPostgres returns a cluster without data, which is removed with the test. It may be killed:
// acknowledged writes survive that without fsync, as the kernel keeps running.
func newTestPostgres(tb testing.TB) *Postgres {
	tb.Helper()
	// Not the test's own directory, which other users cannot read.
	home := testenv.Must(os.MkdirTemp("", "postgres-of-a-test-"))(tb) //nolint:usetesting // see above
	tb.Cleanup(func() { _ = os.RemoveAll(home) })
	p := newPostgres(tb, home, FreeAddress(tb), "fsync=off", "full_page_writes=off", "max_connections=200")
	p.log, p.stopSignal = filepath.Join(home, "log"), syscall.SIGKILL
	return p
}

// newPostgres returns a cluster in a directory, home, with settings.
func newPostgres(tb testing.TB, home, address string, settings ...string) *Postgres {
	tb.Helper()
	p := &Postgres{Address: address, home: home, Programs: PostgresPrograms(tb)}
	if content, err := os.ReadFile(filepath.Join(p.Data(), "PG_VERSION")); err == nil {
		version := strings.TrimSpace(string(content))
		p.Programs = filepath.Join("/usr/lib/postgresql", version, "bin")
		if _, err := os.Stat(filepath.Join(p.Programs, "postgres")); err != nil {
			tb.Fatalf("%s was made by PostgreSQL %s, which is not installed: install postgresql-%[2]s, or start afresh after make reset", p.Data(), version)
		}
	}
	_, port := HostPort(address)
	p.Program = Program{
		name: "PostgreSQL", directory: "/", environ: []string{"LC_ALL=C.UTF-8", "PATH=" + os.Getenv("PATH")},
		attributes: ChownToPostgres(tb, home),
		stopSignal: syscall.SIGINT, // on SIGTERM it would wait for its clients
		command:    []string{filepath.Join(p.Programs, "postgres"), "-D", p.Data()},
	}
	// No Unix socket: the path of a directory may exceed the maximum length of its name.
	for _, setting := range append([]string{"listen_addresses=127.0.0.1", "port=" + port, "unix_socket_directories="}, settings...) {
		p.command = append(p.command, "-c", setting)
	}
	return p
}

// URL returns the URL of the cluster's database at an address, of itself or of a proxy.
func (p *Postgres) URL(address string) string { return databaseURL(address) }

func databaseURL(addresses string) string {
	return "postgres://postgres@" + addresses + "/postgres?sslmode=disable"
}

// Log returns the server's log.
func (p *Postgres) Log(tb testing.TB) string {
	tb.Helper()
	return read(tb, p.log)
}

// Data returns the data directory.
func (p *Postgres) Data() string { return filepath.Join(p.home, "data") }

// PostgresPrograms returns the directory of PostgreSQL's own programs. Where they are
// not installed the test is skipped.
func PostgresPrograms(tb testing.TB) string {
	tb.Helper()
	directories := testenv.Must(filepath.Glob("/usr/lib/postgresql/*/bin"))(tb)
	if len(directories) == 0 {
		testenv.Skip(tb, "PostgreSQL's server is not installed; make test installs it")
	}
	return directories[len(directories)-1]
}

// The capabilities, in linux/capability.h, by which a user may enter a directory without permission:
// the lesser one first.
const (
	capDacOverride   = 1
	capDacReadSearch = 2
)

// ChownToPostgres gives a directory to the user as which PostgreSQL runs, because it refuses to run
// as root, and returns the attributes to start a program as that user.
func ChownToPostgres(tb testing.TB, directory string) (attributes syscall.SysProcAttr) {
	tb.Helper()
	if os.Geteuid() != 0 {
		return attributes
	}
	owner, err := user.Lookup("postgres")
	if err != nil {
		owner, err = user.Lookup("nobody")
	}
	testenv.Do(tb, err)
	uid, _ := strconv.Atoi(owner.Uid)
	gid, _ := strconv.Atoi(owner.Gid) // numbers on Linux
	testenv.Do(tb, os.Chown(directory, uid, gid))
	testenv.Do(tb, os.Chmod(directory, 0o700))
	attributes.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	// A parent directory may not be accessible to that user, as root's home. The server then gets
	// the least capability that helps, or the next one in a container without that.
	for _, capabilities := range [][]uintptr{nil, {capDacReadSearch}, {capDacOverride}} {
		attributes.AmbientCaps = capabilities
		// A capability is effective only once the program runs, after a change of the directory by Go.
		enter := exec.CommandContext(tb.Context(), "env", "-C", directory, "true")
		enter.Dir, enter.SysProcAttr = "/", &attributes
		if err = enter.Run(); err == nil {
			return attributes
		}
	}
	tb.Fatalf("PostgreSQL must run as the user %s, which cannot access %s: %v: move the checkout to an accessible folder", owner.Username, directory, err)
	return attributes
}

// run runs one of PostgreSQL's programs to its end, as the user of the server.
func (p *Postgres) run(tb testing.TB, program string, arguments ...string) {
	tb.Helper()
	MustRun(tb, p.prepare(tb, program, arguments...))
}

func (p *Postgres) prepare(tb testing.TB, program string, arguments ...string) *exec.Cmd {
	tb.Helper()
	command := exec.CommandContext(tb.Context(), filepath.Join(p.Programs, program), arguments...)
	attributes := p.attributes
	attributes.Setsid, attributes.Pdeathsig = true, syscall.SIGKILL
	command.Dir, command.Env, command.SysProcAttr = p.directory, p.environ, &attributes
	return command
}

// create creates the cluster and runs statements in it, each on a line. The directory is renamed when the cluster is
// complete, so that an interruption leaves no partial one.
func (p *Postgres) create(tb testing.TB, statements string, options ...string) {
	tb.Helper()
	unfinished := filepath.Join(p.home, "new")
	testenv.Do(tb, os.RemoveAll(unfinished))
	p.run(tb, "initdb", append([]string{"-D", unfinished, "--username=postgres", "--encoding=UTF8", "--locale=C.UTF-8"}, options...)...)
	if statements != "" {
		single := p.prepare(tb, "postgres", "--single", "-c", "exit_on_error=on", "-D", unfinished, "postgres")
		single.Stdin = strings.NewReader(statements)
		MustRun(tb, single)
	}
	testenv.Do(tb, os.Rename(unfinished, p.Data()))
}

// Start starts the cluster and waits until it answers.
func (p *Postgres) Start(tb testing.TB) {
	tb.Helper()
	p.Program.Start(tb)
	p.await(tb, "is ready", func() bool {
		conn, err := pgx.Connect(tb.Context(), p.URL(p.Address))
		if err == nil {
			return conn.Close(tb.Context()) == nil
		}
		// One that demands a password is ready, too.
		refused, ok := errors.AsType[*pgconn.PgError](err)
		const startingUp = "57P03"
		return ok && refused.Code != startingUp
	})
}

// write writes a file that the server can read.
func (p *Postgres) write(tb testing.TB, path, content string) {
	tb.Helper()
	err := os.WriteFile(path, []byte(content), 0o600)
	if owner := p.attributes.Credential; err == nil && owner != nil {
		err = os.Chown(path, int(owner.Uid), int(owner.Gid))
	}
	testenv.Do(tb, err)
}

// EnableTLS makes the cluster accept TLS, with the certificate chain in one file and its key in
// another. It restarts the cluster.
func (p *Postgres) EnableTLS(tb testing.TB, chain, key string) {
	tb.Helper()
	p.write(tb, filepath.Join(p.Data(), "server.crt"), read(tb, chain))
	p.write(tb, filepath.Join(p.Data(), "server.key"), read(tb, key))
	p.command = append(p.command, "-c", "ssl=on")
	p.Kill(tb)
	p.Start(tb)
}
