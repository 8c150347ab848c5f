package stack

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// Secret is the shared secret of the edges and the core.
const Secret = "only-for-tests-on-loopback"

// ObjectStore is where core and its edges keep textures: the settings CORE_OBJECTS_… and
// EDGE_OBJECTS_….
type ObjectStore struct{ URL, Endpoint, AccessKey, SecretKey, CA string }

// NewCore returns a core that has not started, with the database at a URL, which is migrated. It
// may be one of several.
func NewCore(tb testing.TB, files ObjectStore, database string) *Process {
	tb.Helper()
	core := newProcess("core", Binary(tb, "core"))
	core.chooseAddresses(tb)
	core.Set(
		"CORE_TOKEN_KEYS=test:MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=", "CORE_EDGE_SECRETS="+Secret,
		"CORE_DATABASE_URL="+database,
	)
	core.setObjectStore("CORE_OBJECTS_", files)
	core.Run(tb, "migrate")
	return core
}

// NameConnections sets an application_name for connections of a core that has not started, and of
// users of the same setting.
func (p *Process) NameConnections() {
	const database = "CORE_DATABASE_URL"
	p.Set(database + "=" + p.Setting(database) + "&application_name=core+" + rand.Text())
}

// NewEdge returns an edge that has not started, for any server at a URL that implements core's
// listener for edges.
func NewEdge(tb testing.TB, files ObjectStore, url, secret string) *Process {
	tb.Helper()
	edge := newProcess("edge", Binary(tb, "edge"))
	edge.chooseAddresses(tb)
	edge.Set("EDGE_CORE_URL="+url, "EDGE_CORE_SECRETS="+secret)
	edge.setObjectStore("EDGE_OBJECTS_", files)
	return edge
}

func (p *Process) setObjectStore(prefix string, files ObjectStore) {
	p.Set(prefix + "URL=" + files.URL)
	if files.Endpoint != "" {
		p.Set(prefix+"ENDPOINT="+files.Endpoint, prefix+"CA="+files.CA,
			prefix+"ACCESS_KEY="+files.AccessKey, prefix+"SECRET_KEY="+files.SecretKey)
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
	workspace := testenv.Must(exec.CommandContext(tb.Context(), "go", "env", "GOWORK").Output())(tb)
	path := filepath.Join(filepath.Dir(strings.TrimSpace(string(workspace))), ".dev", "bin", program+".test")
	source := "github.com/veneer-skins/veneer/" + program + "/cmd/" + program
	MustRun(tb, exec.CommandContext(tb.Context(), "go", "build", "-o", path, source))
	binaries[program] = path
	return path
}

// Help returns the help text of a program, core or edge: its commands and all its settings.
func Help(tb testing.TB, program string) string {
	tb.Helper()
	return newProcess(program, Binary(tb, program)).Run(tb, "help")
}

// Process is a core or an edge. It can be started again after it has ended.
type Process struct{ Program }

// newProcess returns a core or an edge that has not started, without settings. Nothing of the test's own
// environment can change what it does.
func newProcess(name, binary string) *Process {
	return &Process{Program{
		name: name, command: []string{binary, "serve"}, stopSignal: syscall.SIGTERM,
		environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "GORACE=" + os.Getenv("GORACE")},
	}}
}

// Set sets settings, as NAME=VALUE, for later starts. A program ignores settings of the other.
func (p *Process) Set(settings ...string) {
	for _, setting := range settings {
		if !strings.Contains(setting, "=") {
			panic("BUG: this is not NAME=VALUE: " + setting)
		}
	}
	p.environ = append(p.environ, settings...)
}

// Clone returns a program with the same settings, but for its addresses, that has not started.
func (p *Process) Clone(tb testing.TB) *Process {
	tb.Helper()
	clone := newProcess(p.name, p.command[0])
	clone.environ = slices.Clone(p.environ)
	clone.chooseAddresses(tb)
	return clone
}

// chooseAddresses sets a free address for each listener.
func (p *Process) chooseAddresses(tb testing.TB) {
	tb.Helper()
	for _, prefix := range listenerSettings[p.name] {
		p.Set(prefix + "LISTEN=" + FreeAddress(tb))
	}
}

// listenerSettings are the prefixes of the settings of each listener.
var listenerSettings = map[string]map[string]string{
	"core": {"public": "CORE_", "edges": "CORE_EDGES_", "operators": "CORE_OPS_"},
	"edge": {"public": "EDGE_", "operators": "EDGE_OPS_"},
}

// UseBinary sets the binary for later starts, and returns the former one.
func (p *Process) UseBinary(binary string) (former string) {
	former, p.command[0] = p.command[0], binary
	return former
}

// Setting returns the last value of a setting; empty if it was never set.
func (p *Process) Setting(name string) string {
	for _, setting := range slices.Backward(p.environ) {
		if value, ok := strings.CutPrefix(setting, name+"="); ok {
			return value
		}
	}
	return ""
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
	command := exec.CommandContext(tb.Context(), p.command[0], arguments...)
	command.Env = p.environ
	printed, err := command.CombinedOutput()
	return string(printed), err
}

// Start starts serving. The process ends with the test, and its log is shown if that has failed.
func (p *Process) Start(tb testing.TB) {
	tb.Helper()
	if !p.keepsLog {
		p.log = filepath.Join(tb.TempDir(), p.name+".log")
	}
	p.Program.Start(tb)
}

// StartReady starts serving, and waits until the program is ready.
func (p *Process) StartReady(tb testing.TB) {
	tb.Helper()
	p.Start(tb)
	p.AwaitReady(tb)
}

// Address returns the address of one of the program's listeners, once it listens.
func (p *Process) Address(tb testing.TB, listener string) string {
	tb.Helper()
	address := p.Setting(listenerSettings[p.name][listener] + "LISTEN")
	p.AwaitListens(tb, address)
	return address
}

// BaseURL returns the base URL of one of the program's listeners, once it listens.
func (p *Process) BaseURL(tb testing.TB, listener string) string {
	tb.Helper()
	scheme := "http://"
	if p.Setting(listenerSettings[p.name][listener]+"TLS_CERT") != "" {
		scheme = "https://"
	}
	return scheme + p.Address(tb, listener)
}

// AwaitLog waits until the program has logged a line since the start that contains all parts, in which a
// field is written as name:value.
func (p *Process) AwaitLog(tb testing.TB, parts ...string) {
	tb.Helper()
	p.await(tb, fmt.Sprintf("logs %q", parts), func() bool {
		for text := range strings.Lines(read(tb, p.log)) {
			var line map[string]any
			_ = json.Unmarshal([]byte(text), &line) // the last line may be incomplete
			fields := fmt.Sprint(line)
			if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(fields, part) }) {
				return true
			}
		}
		return false
	})
}

// AwaitReady waits until the program is ready.
func (p *Process) AwaitReady(tb testing.TB) {
	tb.Helper()
	url := "http://" + p.Setting(listenerSettings[p.name]["operators"]+"LISTEN") + "/readyz"
	p.await(tb, "becomes ready", func() bool {
		status, _ := ask(tb, http.DefaultClient, http.MethodGet, url)
		return status == http.StatusOK
	})
}

// ask returns the response to a request without a body. Its status is 0 if there is none.
func ask(tb testing.TB, client *http.Client, method, url string) (status int, body []byte) {
	tb.Helper()
	request := testenv.Must(http.NewRequestWithContext(tb.Context(), method, url, http.NoBody))(tb)
	response, err := client.Do(request)
	if err != nil {
		return 0, nil
	}
	defer func() { _ = response.Body.Close() }()
	if body, err = io.ReadAll(response.Body); err != nil {
		return 0, nil
	}
	return response.StatusCode, body
}
