package stack

import (
	"context"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/bench/loopback"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Postgres is a PostgreSQL cluster of a test's own, which can be killed.
type Postgres struct {
	Address string

	programs, directory string
	owner               *syscall.SysProcAttr // credentials of the server
	server              *exec.Cmd
	ended               chan struct{}
}

// NewPostgres creates a cluster and starts it. It ends with the test. Where PostgreSQL is not
// installed the test is skipped.
func NewPostgres(tb testing.TB) *Postgres {
	tb.Helper()
	return newPostgres(tb, func(p *Postgres) {
		p.run(tb, "initdb", "-D", p.Data(), "--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync")
	})
}

// Standby creates a hot standby of a cluster and starts it. It ends with the test.
func (p *Postgres) Standby(tb testing.TB) *Postgres {
	tb.Helper()
	return newPostgres(tb, func(standby *Postgres) {
		standby.run(tb, "pg_basebackup", "-D", standby.Data(), "-d", p.URL(p.Address), "--checkpoint=fast", "--write-recovery-conf", "--no-sync")
	})
}

// newPostgres starts a cluster. initialize creates its data directory.
func newPostgres(tb testing.TB, initialize func(*Postgres)) *Postgres {
	tb.Helper()
	programs := PostgresPrograms(tb)
	// Not the test's own directory, which other users cannot read.
	directory, err := os.MkdirTemp("", "postgres-of-a-test-") //nolint:usetesting // see above
	if err != nil {
		tb.Fatal(err)
	}
	p := &Postgres{Address: FreeAddress(tb), programs: programs, directory: directory}
	tb.Cleanup(func() { _ = os.RemoveAll(directory) })
	p.owner = ChownToPostgres(tb, directory)
	initialize(p)
	p.Start(tb)
	tb.Cleanup(func() { p.Kill(tb) })
	return p
}

// URL returns the URL of the cluster's database at an address, of itself or of a proxy.
func (p *Postgres) URL(address string) string {
	return "postgres://postgres@" + address + "/postgres?sslmode=disable"
}

// log is the path of the server's log.
func (p *Postgres) log() string { return filepath.Join(p.directory, "log") }

// Log returns the server's log.
func (p *Postgres) Log(tb testing.TB) string {
	tb.Helper()
	content, err := os.ReadFile(p.log())
	if err != nil {
		tb.Fatal(err)
	}
	return string(content)
}

// Programs returns the directory of PostgreSQL's programs.
func (p *Postgres) Programs() string { return p.programs }

// Data returns the data directory.
func (p *Postgres) Data() string { return filepath.Join(p.directory, "data") }

// PostgresPrograms returns the directory of PostgreSQL's own programs. Where they are
// not installed the test is skipped.
func PostgresPrograms(tb testing.TB) string {
	tb.Helper()
	directories, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		tb.Fatal(err)
	}
	if len(directories) == 0 {
		testenv.Skip(tb, "PostgreSQL's server is not installed; make test installs it")
	}
	return directories[len(directories)-1]
}

// ChownToPostgres gives a directory to the user as which PostgreSQL runs, because it refuses to run
// as root, and returns the attributes to start a program as that user. The program ends with this
// one.
func ChownToPostgres(tb testing.TB, directory string) *syscall.SysProcAttr {
	tb.Helper()
	attributes := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		return attributes
	}
	owner, err := user.Lookup("postgres")
	if err != nil {
		tb.Fatal(err)
	}
	uid, err := strconv.Atoi(owner.Uid)
	if err != nil {
		tb.Fatal(err)
	}
	gid, err := strconv.Atoi(owner.Gid)
	if err != nil {
		tb.Fatal(err)
	}
	if err := os.Chown(directory, uid, gid); err != nil {
		tb.Fatal(err)
	}
	attributes.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return attributes
}

func (p *Postgres) command(program string, arguments ...string) *exec.Cmd {
	command := exec.Command(filepath.Join(p.programs, program), arguments...) //nolint:noctx // ends in the clean-up
	command.Dir, command.SysProcAttr = p.directory, p.owner
	command.Env = []string{"LC_ALL=C.UTF-8", "PATH=" + os.Getenv("PATH")}
	return command
}

func (p *Postgres) run(tb testing.TB, program string, arguments ...string) {
	tb.Helper()
	if output, err := p.command(program, arguments...).CombinedOutput(); err != nil {
		tb.Fatalf("%s: %v\n%s", program, err, output)
	}
}

// Start starts the cluster and waits until it answers. It may have been killed before: acknowledged
// writes survive that without fsync, as the kernel keeps running.
func (p *Postgres) Start(tb testing.TB) {
	tb.Helper()
	_, port, err := net.SplitHostPort(p.Address)
	if err != nil {
		tb.Fatal(err)
	}
	output, err := os.OpenFile(p.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = output.Close() }()
	p.server = p.command("postgres", "-D", p.Data(), "-p", port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
		"-c", "fsync=off", "-c", "full_page_writes=off", "-c", "max_connections=200")
	p.server.Stdout, p.server.Stderr = output, output
	if err := p.server.Start(); err != nil {
		tb.Fatal(err)
	}
	server, ended := p.server, make(chan struct{})
	p.ended = ended
	go func() { _ = server.Wait(); close(ended) }()

	ctx, cancel := context.WithTimeout(tb.Context(), programTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := pgx.Connect(ctx, p.URL(p.Address))
		if err == nil {
			_ = conn.Close(ctx)
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			tb.Fatalf("PostgreSQL does not start: %v", err)
		case <-ended:
			tb.Fatalf("PostgreSQL ended:\n%s", p.Log(tb))
		}
	}
}

// EnableTLS makes the cluster accept TLS, with the certificate chain in one file and its key in
// another.
func (p *Postgres) EnableTLS(tb testing.TB, chain, key string) {
	tb.Helper()
	for from, name := range map[string]string{chain: "server.crt", key: "server.key"} {
		content, err := os.ReadFile(from)
		if err != nil {
			tb.Fatal(err)
		}
		to := filepath.Join(p.Data(), name)
		if err := os.WriteFile(to, content, 0o600); err != nil {
			tb.Fatal(err)
		}
		if owner := p.owner.Credential; owner != nil {
			if err := os.Chown(to, int(owner.Uid), int(owner.Gid)); err != nil {
				tb.Fatal(err)
			}
		}
	}
	ctx, cancel := context.WithTimeout(tb.Context(), programTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, p.URL(p.Address))
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, "ALTER SYSTEM SET ssl = on"); err != nil {
		tb.Fatal(err)
	}
	if _, err := conn.Exec(ctx, "SELECT pg_reload_conf()"); err != nil {
		tb.Fatal(err)
	}
	// A new session shows whether the configuration was reloaded.
	for isOn := ""; isOn != "on"; {
		if err := conn.QueryRow(ctx, "SHOW ssl").Scan(&isOn); err != nil {
			tb.Fatal(err)
		}
	}
}

// Kill kills all the cluster's processes, as a crash would.
func (p *Postgres) Kill(tb testing.TB) {
	tb.Helper()
	pids := p.signal(tb, syscall.SIGKILL)
	<-p.ended
	// Remaining processes would hold the shared memory that the next server needs.
	AwaitGone(tb, pids...)
}

// Pause stops the cluster's processes with SIGSTOP.
func (p *Postgres) Pause(tb testing.TB) {
	tb.Helper()
	p.signal(tb, syscall.SIGSTOP)
}

// Resume continues them.
func (p *Postgres) Resume(tb testing.TB) {
	tb.Helper()
	p.signal(tb, syscall.SIGCONT)
}

// signal sends a signal to all of the cluster's processes, and returns them.
func (p *Postgres) signal(tb testing.TB, signal syscall.Signal) (reached []int) {
	tb.Helper()
	select {
	case <-p.ended:
		return nil // its PID may be reused
	default:
		return SignalTree(tb, signal, p.server.Process.Pid)
	}
}

// FreeAddress returns an address of loopback at which nothing listens.
func FreeAddress(tb testing.TB) string {
	tb.Helper()
	address, err := loopback.FreeAddress()
	if err != nil {
		tb.Fatal(err)
	}
	return address
}
