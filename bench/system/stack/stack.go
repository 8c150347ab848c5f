// Package stack starts the real programs as a user would: core and edge as processes on free ports
// of loopback, with a schema of their own on a real PostgreSQL, and an object store.
package stack

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/blobstore"
)

// programTimeout is how long a program may take to start or to stop.
const programTimeout = 30 * time.Second

// secret is the shared secret of the edges and the core.
const secret = "only-for-tests-on-loopback"

// System is a core with an edge.
type System struct {
	Core, Edge *Process
	// CoreURL is the base URL of core's public listener, EdgeURL that of the edge's, which
	// serves the API, too.
	CoreURL, EdgeURL string
}

// Start starts a system with textures in a store that needs no preparation. It ends with the test.
func Start(tb testing.TB, files blobstore.Config) *System {
	tb.Helper()
	return StartWith(tb, NewCore(tb, files))
}

// StartWith starts a system with a core that has not started.
func StartWith(tb testing.TB, core *Process) *System {
	tb.Helper()
	core.Start(tb)
	edge := NewEdge(tb, blobstore.Config{
		URL: core.Setting("CORE_OBJECTS_URL"), Endpoint: core.Setting("CORE_OBJECTS_ENDPOINT"),
		AccessKey: core.Setting("CORE_OBJECTS_ACCESS_KEY"), SecretKey: core.Setting("CORE_OBJECTS_SECRET_KEY"),
	}, core)
	edge.Start(tb)
	s := &System{Core: core, Edge: edge, CoreURL: "http://" + core.Address(tb, "public"), EdgeURL: "http://" + edge.Address(tb, "public")}
	edge.AwaitReady(tb)
	return s
}

// NewCore returns a core that has not started, with a new migrated schema.
func NewCore(tb testing.TB, files blobstore.Config) *Process {
	tb.Helper()
	return NewCoreAt(tb, files, postgrestest.URL(tb))
}

// NewCoreAt returns a core that has not started, with the database at a URL, which is migrated. It
// may be one of several.
func NewCoreAt(tb testing.TB, files blobstore.Config, database string) *Process {
	tb.Helper()
	core := &Process{name: "core", binary: Binary(tb, "core")}
	core.Set("CORE_LISTEN", "127.0.0.1:0")
	core.Set("CORE_EDGES_LISTEN", "127.0.0.1:0")
	core.Set("CORE_OPS_LISTEN", "127.0.0.1:0")
	core.Set("CORE_DATABASE_URL", database)
	core.Set("CORE_TOKEN_KEYS", "test:MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=")
	core.Set("CORE_EDGE_SECRETS", secret)
	setObjectStore(core, "CORE_OBJECTS_", files)
	core.ConnectPatiently(tb)
	core.Run(tb, "migrate")
	core.Set("CORE_DATABASE_URL", database)
	return core
}

// NameConnections sets an application_name for connections of a core that has not started, and of
// users of the same setting.
func (p *Process) NameConnections(tb testing.TB) {
	tb.Helper()
	p.setConnections(tb, func(query url.Values) { query.Set("application_name", "core of "+query.Get("search_path")) })
}

// ConnectPatiently gives a core that has not started a minute for each connection to PostgreSQL,
// which may be busy with other tests.
func (p *Process) ConnectPatiently(tb testing.TB) {
	tb.Helper()
	p.setConnections(tb, func(query url.Values) { query.Set("connect_timeout", "60") })
}

// setConnections changes the parameters of the database's URL.
func (p *Process) setConnections(tb testing.TB, change func(url.Values)) {
	tb.Helper()
	database, err := url.Parse(p.Setting("CORE_DATABASE_URL"))
	if err != nil {
		tb.Fatal(err)
	}
	query := database.Query()
	change(query)
	database.RawQuery = query.Encode()
	p.Set("CORE_DATABASE_URL", database.String())
}

// NewEdge returns an edge of a running core that has not started.
func NewEdge(tb testing.TB, files blobstore.Config, core *Process) *Process {
	tb.Helper()
	edge := NewEdgeAt(tb, files, core.BaseURL(tb, "edges"), secret)
	edge.Set("EDGE_API_UPSTREAM", core.BaseURL(tb, "public"))
	return edge
}

// NewEdgeAt returns an edge that has not started, for any server at a URL that implements core's
// listener for edges.
func NewEdgeAt(tb testing.TB, files blobstore.Config, url, secret string) *Process {
	tb.Helper()
	edge := &Process{name: "edge", binary: Binary(tb, "edge")}
	edge.Set("EDGE_LISTEN", "127.0.0.1:0")
	edge.Set("EDGE_OPS_LISTEN", "127.0.0.1:0")
	edge.Set("EDGE_CORE_URL", url)
	edge.Set("EDGE_CORE_SECRETS", secret)
	setObjectStore(edge, "EDGE_OBJECTS_", files)
	return edge
}

func setObjectStore(p *Process, prefix string, files blobstore.Config) {
	p.Set(prefix+"URL", files.URL)
	if files.Endpoint != "" {
		p.Set(prefix+"ENDPOINT", files.Endpoint)
		p.Set(prefix+"ACCESS_KEY", files.AccessKey)
		p.Set(prefix+"SECRET_KEY", files.SecretKey)
		p.Set(prefix+"CA", files.CA)
	}
}

var (
	builds   sync.Mutex
	binaries = map[string]string{}
)

// Binary returns the path of a program: the one that TEST_CORE_BIN or TEST_EDGE_BIN names, else one
// built once for this run.
func Binary(tb testing.TB, program string) string {
	tb.Helper()
	if path := os.Getenv("TEST_" + strings.ToUpper(program) + "_BIN"); path != "" {
		return path
	}
	builds.Lock()
	defer builds.Unlock()
	if path := binaries[program]; path != "" {
		return path
	}
	workspace, err := exec.CommandContext(tb.Context(), "go", "env", "GOWORK").Output()
	if err != nil {
		tb.Fatal(err)
	}
	path := filepath.Join(filepath.Dir(strings.TrimSpace(string(workspace))), ".dev", "bin", program+".test")
	if output, err := exec.CommandContext(tb.Context(), "go", "build", "-o", path, "github.com/veneer-skins/veneer/"+program+"/cmd/"+program).CombinedOutput(); err != nil {
		tb.Fatalf("build %s: %v\n%s", program, err, output)
	}
	binaries[program] = path
	return path
}

// Help returns the help text of a program, core or edge: its commands and all its settings.
func Help(tb testing.TB, program string) string {
	tb.Helper()
	return (&Process{name: program, binary: Binary(tb, program)}).Run(tb, "help")
}

// Process is a core or an edge. It can be started again after it has exited.
type Process struct {
	name, binary string
	settings     []string

	command   *exec.Cmd
	ended     chan struct{} // closed when the process has exited
	exit      error         // result, once ended is closed
	log       *log
	addresses map[string]string
}

// Set sets a setting for later starts.
func (p *Process) Set(name, value string) { p.settings = append(p.settings, name+"="+value) }

// Clone returns a program with the same settings that has not started.
func (p *Process) Clone() *Process {
	return &Process{name: p.name, binary: p.binary, settings: slices.Clone(p.settings)}
}

// UseBinary sets the binary for later starts, and returns the former one.
func (p *Process) UseBinary(binary string) (former string) {
	former, p.binary = p.binary, binary
	return former
}

// Setting returns the last value of a setting; empty if it was never set.
func (p *Process) Setting(name string) string {
	for _, setting := range slices.Backward(p.settings) {
		if value, ok := strings.CutPrefix(setting, name+"="); ok {
			return value
		}
	}
	return ""
}

// Environ is the complete environment of the program: nothing of the test's own environment can
// change what it does.
func (p *Process) Environ() []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, p.settings...)
}

// Run runs a subcommand to its end and returns what it printed.
func (p *Process) Run(tb testing.TB, arguments ...string) string {
	tb.Helper()
	output, err := p.Try(tb, arguments...)
	if err != nil {
		tb.Fatalf("%s %s: %v\n%s", p.name, strings.Join(arguments, " "), err, output)
	}
	return output
}

// Try runs a subcommand that may fail.
func (p *Process) Try(tb testing.TB, arguments ...string) (output string, err error) {
	tb.Helper()
	command := exec.CommandContext(tb.Context(), p.binary, arguments...)
	command.Env = p.Environ()
	printed, err := command.CombinedOutput()
	return string(printed), err
}

// Start starts serving. The process ends with the test, and its log is shown if that has failed.
func (p *Process) Start(tb testing.TB) {
	tb.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	p.command = exec.Command(p.binary, "serve") //nolint:noctx // ends in the clean-up, which waits for it
	p.command.Env = p.Environ()
	p.command.Stdout, p.command.Stderr = writer, writer
	// Should the test be killed, the program must not outlive it.
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.command.Start(); err != nil {
		tb.Fatal(err)
	}
	_ = writer.Close()
	p.addresses = map[string]string{}
	p.log = newLog()
	p.ended = make(chan struct{})
	read := make(chan struct{})
	go func(l *log) { l.read(reader); close(read) }(p.log)
	go func(c *exec.Cmd, ended chan struct{}) {
		<-read
		p.exit = c.Wait()
		close(ended)
	}(p.command, p.ended)

	ended, process, lines := p.ended, p.command.Process, p.log
	tb.Cleanup(func() {
		_ = process.Signal(syscall.SIGCONT) // should it be paused
		_ = process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(programTimeout):
			tb.Errorf("%s does not stop", p.name)
			_ = process.Kill()
			<-ended
		}
		if tb.Failed() {
			tb.Logf("log of %s:\n%s", p.name, lines.all())
		}
	})
}

// Address returns the address of one of the program's listeners, once it listens.
func (p *Process) Address(tb testing.TB, listener string) string {
	tb.Helper()
	if address := p.addresses[listener]; address != "" {
		return address
	}
	address := p.log.await(tb, p, func(line map[string]any) (string, bool) {
		found, _ := line["address"].(string)
		return found, line["msg"] == "listening" && line["listener"] == listener
	})
	p.addresses[listener] = address
	return address
}

// AwaitLine waits until the program has logged a line.
func (p *Process) AwaitLine(tb testing.TB, wanted func(line map[string]any) bool) {
	tb.Helper()
	p.log.await(tb, p, func(line map[string]any) (string, bool) { return "", wanted(line) })
}

// BaseURL returns the base URL of one of the program's listeners.
func (p *Process) BaseURL(tb testing.TB, listener string) string {
	tb.Helper()
	address := p.Address(tb, listener)
	return p.log.await(tb, p, func(line map[string]any) (string, bool) {
		scheme := "http://"
		if line["tls"] == true {
			scheme = "https://"
		}
		return scheme + address, line["address"] == address && line["msg"] == "listening"
	})
}

// AwaitLog waits until the program has logged a line that contains all parts.
func (p *Process) AwaitLog(tb testing.TB, parts ...string) {
	tb.Helper()
	p.AwaitLine(tb, func(line map[string]any) bool {
		text := fmt.Sprint(line)
		return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
	})
}

// FixAddresses makes later starts listen at the current addresses.
func (p *Process) FixAddresses(tb testing.TB) {
	tb.Helper()
	prefix := strings.ToUpper(p.name)
	for listener, setting := range map[string]string{"public": "_LISTEN", "edges": "_EDGES_LISTEN", "operators": "_OPS_LISTEN"} {
		if listener != "edges" || p.name == "core" {
			p.Set(prefix+setting, p.Address(tb, listener))
		}
	}
}

// AwaitReady waits until the program is ready.
func (p *Process) AwaitReady(tb testing.TB) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), programTimeout)
	defer cancel()
	address := "http://" + p.Address(tb, "operators") + "/readyz"
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			tb.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			tb.Fatalf("%s does not become ready: %v\n%s", p.name, err, p.log.all())
		case <-p.ended:
			tb.Fatalf("%s ended: %v\n%s", p.name, p.exit, p.log.all())
		}
	}
}

// Resident returns the program's resident memory in bytes.
func (p *Process) Resident(tb testing.TB) int64 {
	tb.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				tb.Fatal(err)
			}
			return kib << 10
		}
	}
	tb.Fatalf("%s has no resident memory", p.name)
	return 0
}

// Kill kills the program, as a crash would, and waits until it is gone.
func (p *Process) Kill(tb testing.TB) {
	tb.Helper()
	if err := p.command.Process.Kill(); err != nil {
		tb.Fatal(err)
	}
	<-p.ended
}

// Pause stops the program with SIGSTOP; clocks continue.
func (p *Process) Pause(tb testing.TB) {
	tb.Helper()
	if err := p.command.Process.Signal(syscall.SIGSTOP); err != nil {
		tb.Fatal(err)
	}
}

// Resume continues a paused program.
func (p *Process) Resume(tb testing.TB) {
	tb.Helper()
	if err := p.command.Process.Signal(syscall.SIGCONT); err != nil {
		tb.Fatal(err)
	}
}

// Stop sends SIGTERM and returns how the program exited.
func (p *Process) Stop(tb testing.TB) error {
	tb.Helper()
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		tb.Fatal(err)
	}
	select {
	case <-p.ended:
		return p.exit
	case <-time.After(programTimeout):
		tb.Fatalf("%s does not stop", p.name)
		return errors.New("unreachable")
	}
}

// tick is the unit of CPU times in /proc.
const tick = time.Second / 100

// CPU returns the program's CPU time since it was started. Unlike its speed, that hardly depends on
// other load.
func (p *Process) CPU(tb testing.TB) time.Duration {
	tb.Helper()
	return CPU(tb, p.PID())
}

// PID returns the process ID.
func (p *Process) PID() int { return p.command.Process.Pid }

// CPU returns the CPU time of any process.
func CPU(tb testing.TB, pid int) time.Duration {
	tb.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		tb.Fatal(err)
	}
	// The 14th and 15th fields; the second is the program's name in brackets.
	var user, system int
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')'):]))
	if _, err := fmt.Sscan(fields[12]+" "+fields[13], &user, &system); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(user+system) * tick
}

const selectBackends = `
	SELECT pid FROM pg_stat_activity
	WHERE application_name = current_setting('application_name') AND pid <> pg_backend_pid()`

// BackendCPU returns the CPU time, by PID, of the PostgreSQL backends with the application_name of
// this connection (see NameConnections).
func BackendCPU(tb testing.TB, conn *pgx.Conn) map[int]time.Duration {
	tb.Helper()
	rows, _ := conn.Query(tb.Context(), selectBackends) // CollectRows reports the error
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		tb.Fatal(err)
	}
	took := map[int]time.Duration{}
	for _, pid := range pids {
		took[pid] = CPU(tb, pid)
	}
	return took
}

// ResetPeak resets the peak that Memory returns.
func (p *Process) ResetPeak(tb testing.TB) {
	tb.Helper()
	const resetPeak = "5" // clear_refs in proc(5)
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.PID()), []byte(resetPeak), 0); err != nil {
		tb.Fatal(err)
	}
}

// Memory returns the program's resident memory in bytes, and its peak since the start or ResetPeak.
func (p *Process) Memory(tb testing.TB) (resident, peak int64) {
	tb.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
	if err != nil {
		tb.Fatal(err)
	}
	figure := func(name string) (n int64) {
		_, rest, _ := strings.Cut(string(status), "\n"+name+":")
		if _, err := fmt.Sscan(rest, &n); err != nil {
			tb.Fatalf("read %s: %v", name, err)
		}
		return n << 10
	}
	return figure("VmRSS"), figure("VmHWM")
}

// log is the lines that a program has logged.
type log struct {
	mu      sync.Mutex
	lines   []string
	updated chan struct{} // closed and replaced with every line
}

func newLog() *log { return &log{updated: make(chan struct{})} }

func (l *log) read(r io.Reader) {
	for lines := bufio.NewReader(r); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		l.mu.Lock()
		l.lines = append(l.lines, strings.TrimSuffix(line, "\n"))
		close(l.updated)
		l.updated = make(chan struct{})
		l.mu.Unlock()
	}
}

func (l *log) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

// await returns the result of wanted for the first line that it accepts.
func (l *log) await(tb testing.TB, p *Process, wanted func(line map[string]any) (string, bool)) string {
	tb.Helper()
	deadline := time.After(programTimeout)
	for seen := 0; ; {
		l.mu.Lock()
		lines, updated := l.lines[seen:], l.updated
		seen = len(l.lines)
		l.mu.Unlock()
		for _, text := range lines {
			var line map[string]any
			if json.Unmarshal([]byte(text), &line) != nil {
				continue
			}
			if found, ok := wanted(line); ok {
				return found
			}
		}
		select {
		case <-updated:
		case <-p.ended:
			tb.Fatalf("%s ended: %v\n%s", p.name, p.exit, l.all())
		case <-deadline:
			tb.Fatalf("%s does not log what is awaited\n%s", p.name, l.all())
		}
	}
}
