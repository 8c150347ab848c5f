package system

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Postgres is a PostgreSQL cluster of a test's own, so that it can be killed.
type Postgres struct {
	Address string

	programs, directory string
	owner               *syscall.SysProcAttr // as whom PostgreSQL runs
	server              *exec.Cmd
	ended               chan struct{}
}

// NewPostgres makes a cluster and starts it. It goes when the test ends. Where
// PostgreSQL is not installed the test is skipped, but not where CI is set.
func NewPostgres(tb testing.TB) *Postgres {
	tb.Helper()
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		tb.Fatal(err)
	}
	if len(found) == 0 {
		if os.Getenv("CI") != "" {
			tb.Fatal("PostgreSQL's server is not installed")
		}
		tb.Skip("PostgreSQL's server is not installed; make test installs it")
	}
	// Not the test's own directory: that is closed to others.
	directory, err := os.MkdirTemp("", "postgres-of-a-test-") //nolint:usetesting // see above
	if err != nil {
		tb.Fatal(err)
	}
	p := &Postgres{Address: FreeAddress(tb), programs: found[len(found)-1], directory: directory}
	tb.Cleanup(func() { _ = os.RemoveAll(directory) })
	p.owner = p.ownership(tb)
	p.run(tb, "initdb", "-D", p.Data(), "--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync")
	p.Start(tb)
	tb.Cleanup(func() { p.Kill(tb) })
	return p
}

// URL returns the URL of the cluster's database, as it is reached at an address.
func (p *Postgres) URL(address string) string {
	return "postgres://postgres@" + address + "/postgres?sslmode=disable"
}

// Programs returns the folder of PostgreSQL's programs.
func (p *Postgres) Programs() string { return p.programs }

// Data returns the folder of all that the cluster keeps.
func (p *Postgres) Data() string { return filepath.Join(p.directory, "data") }

// ownership gives the directory to whom PostgreSQL can run as, which root cannot.
func (p *Postgres) ownership(tb testing.TB) *syscall.SysProcAttr {
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
	if err := os.Chown(p.directory, uid, gid); err != nil {
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

// Start starts the cluster and waits until it answers. It may have been killed
// before: what it has acknowledged survives that without fsync, as the kernel
// lives on.
func (p *Postgres) Start(tb testing.TB) {
	tb.Helper()
	_, port, err := net.SplitHostPort(p.Address)
	if err != nil {
		tb.Fatal(err)
	}
	output := &bytes.Buffer{}
	p.server = p.command("postgres", "-D", p.Data(), "-p", port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
		"-c", "fsync=off", "-c", "full_page_writes=off", "-c", "max_connections=200")
	p.server.Stdout, p.server.Stderr = output, output
	if err := p.server.Start(); err != nil {
		tb.Fatal(err)
	}
	server, ended := p.server, make(chan struct{})
	p.ended = ended
	go func() { _ = server.Wait(); close(ended) }()

	ctx, cancel := context.WithTimeout(tb.Context(), patience)
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
			tb.Fatalf("PostgreSQL ended:\n%s", output)
		}
	}
}

// Secure has the cluster speak TLS to those who ask for it, with the certificate chain in
// one file and its key in another.
func (p *Postgres) Secure(tb testing.TB, chain, key string) {
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
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
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
	// It has read them once a session has.
	for isOn := ""; isOn != "on"; {
		if err := conn.QueryRow(ctx, "SHOW ssl").Scan(&isOn); err != nil {
			tb.Fatal(err)
		}
	}
}

// Kill ends all the cluster's processes at once, as a crash would.
func (p *Postgres) Kill(tb testing.TB) {
	tb.Helper()
	doomed := p.signal(tb, syscall.SIGKILL)
	<-p.ended
	// Those that are left hold on to memory that the next server must have.
	for _, pid := range doomed {
		for {
			if _, state, err := status(pid); err != nil || state == "Z" {
				break
			}
			<-time.After(time.Millisecond)
		}
	}
}

// Pause stops the cluster's processes in the middle of what they do.
func (p *Postgres) Pause(tb testing.TB) {
	tb.Helper()
	p.signal(tb, syscall.SIGSTOP)
}

// Resume has them go on.
func (p *Postgres) Resume(tb testing.TB) {
	tb.Helper()
	p.signal(tb, syscall.SIGCONT)
}

// signal sends a signal to all of the cluster's processes, and returns its children.
// The parent is stopped until all have it, so that it starts no others.
func (p *Postgres) signal(tb testing.TB, signal syscall.Signal) (doomed []int) {
	tb.Helper()
	select {
	case <-p.ended:
		return nil // its number may be another's by now
	default:
	}
	parent := p.server.Process.Pid
	send := func(pid int, signal syscall.Signal) {
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			tb.Fatal(err)
		}
	}
	send(parent, syscall.SIGSTOP)
	for { // it takes a moment
		if _, state, err := status(parent); err != nil || state == "T" || state == "Z" {
			break
		}
		<-time.After(time.Millisecond)
	}
	doomed = children(tb, parent)
	for _, pid := range doomed {
		send(pid, signal)
	}
	send(parent, signal)
	return doomed
}

// status returns the parent and the state of a process.
func status(pid int) (parent int, state string, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, "", err
	}
	// Its number, its name in brackets, its state, its parent.
	_, err = fmt.Sscan(string(stat[bytes.LastIndexByte(stat, ')')+1:]), &state, &parent)
	return parent, state, err
}

// children returns the processes that a process has started.
func children(tb testing.TB, parent int) []int {
	tb.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		tb.Fatal(err)
	}
	var found []int
	for _, path := range processes {
		pid, err := strconv.Atoi(filepath.Base(path))
		if err != nil {
			tb.Fatal(err)
		}
		started, _, err := status(pid)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has ended since
		}
		if err != nil {
			tb.Fatal(err)
		}
		if started == parent {
			found = append(found, pid)
		}
	}
	return found
}

var givenAddresses sync.Map

// FreeAddress returns an address of loopback at which nothing listens, for who
// must listen at the same one again later. Its port is below those that the kernel
// gives to clients, which could take it in between. It returns none twice.
func FreeAddress(tb testing.TB) string {
	tb.Helper()
	for {
		address := "127.0.0.1:" + strconv.Itoa(20000+rand.IntN(12000))
		if _, given := givenAddresses.LoadOrStore(address, true); given {
			continue
		}
		listener, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", address)
		if err == nil {
			_ = listener.Close()
			return address
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			tb.Fatal(err)
		}
	}
}
