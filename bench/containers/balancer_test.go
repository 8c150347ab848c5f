package containers

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/bench/system"
	"github.com/veneer-skins/veneer/edge/origin/origintest"
	"github.com/veneer-skins/veneer/shared/mapping"
	"github.com/veneer-skins/veneer/shared/objects"
	"github.com/veneer-skins/veneer/shared/objects/objectstest"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/paint"
)

// balance starts haproxy as docker-compose.yml does, but with the addresses that
// things have here instead of a container's: public and operators' ones by name. It
// returns haproxy's URL.
func balance(t *testing.T, addresses map[string][2]string) string {
	t.Helper()
	program, err := exec.LookPath("haproxy")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("haproxy is not installed")
		}
		t.Skip("haproxy is not installed")
	}
	content, err := os.ReadFile(filepath.Join(top, "deploy/compose/haproxy.cfg"))
	if err != nil {
		t.Fatal(err)
	}
	config := strings.Replace(string(content), "bind :8080", "bind fd@3", 1)
	// A request that has not quite ended counts as load, and would now and then send the
	// next one to the other edge.
	bounded := regexp.MustCompile(`(?m)^ *hash-balance-factor .*$`)
	if !bounded.MatchString(config) {
		t.Fatal("the load of an edge has no bound")
	}
	config = bounded.ReplaceAllLiteralString(config, "")
	for name, address := range addresses {
		_, port, err := net.SplitHostPort(address[1])
		if err != nil {
			t.Fatal(err)
		}
		server := regexp.MustCompile(`server ` + name + ` \S+ check port \d+`)
		if !server.MatchString(config) {
			t.Fatalf("there is no server %s", name)
		}
		config = server.ReplaceAllLiteralString(config, "server "+name+" "+address[0]+" check port "+port)
	}
	path := filepath.Join(t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}

	// It is handed a socket that listens already, so nobody has to wait until it does.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	socket, err := listener.(*net.TCPListener).File() //nolint:errcheck // net.Listen says what it returns
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.Close() }()
	var log strings.Builder
	haproxy := exec.CommandContext(t.Context(), program, "-db", "-f", path)
	haproxy.ExtraFiles = []*os.File{socket}
	haproxy.Stdout, haproxy.Stderr = &log, &log
	haproxy.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := haproxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = haproxy.Wait() // the test's context has ended it
		if t.Failed() {
			t.Logf("log of haproxy:\n%s", log.String())
		}
	})
	return "http://" + listener.Addr().String()
}

// All pictures of a player come from one edge. When that ends without a word, they come
// from the other one, and nobody gets an error.
func TestBalancer(t *testing.T) {
	t.Parallel()
	core, place := origintest.Start(t), objectstest.Directory(t)
	store := objectstest.Open(t, place.Config)
	if err := store.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	const players = 100
	known, file := map[mapping.Key]mapping.Mapping{}, origintest.File(t, paint.Robot(), skin.Steve)
	if err := store.Put(t.Context(), skin.HashOf(file), file); err != nil {
		t.Fatal(err)
	}
	for i := range players {
		worn := &mapping.Texture{TID: 1, Hash: skin.HashOf(file), Type: skin.Steve}
		name := fmt.Sprintf("player_%d", i)
		known[mapping.Name(name)] = mapping.Mapping{Player: &mapping.Player{PID: int64(i + 1), Name: name, Skin: worn}}
	}
	core.Set(known)
	var forwarded []string
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			forwarded = append(forwarded, r.URL.Path+" for "+strings.Join(r.Header.Values("X-Forwarded-For"), ","))
		}
	}))
	defer api.Close()
	first, second := startEdge(t, place.Config, core), startEdge(t, place.Config, core)
	upstream := api.Listener.Addr().String()
	url := balance(t, map[string][2]string{
		"core":   {upstream, upstream},
		"edge-1": {first.Address(t, "public"), first.Address(t, "operators")},
		"edge-2": {second.Address(t, "public"), second.Address(t, "operators")},
	})

	get(t, url+"/api/user")
	get(t, url+"/apis")
	if diff := cmp.Diff([]string{"/api/user for 127.0.0.1"}, forwarded); diff != "" {
		t.Errorf("requests to core (-want +got):\n%s", diff)
	}

	before := core.Keys.Load()
	ask := func() {
		t.Helper()
		for i := range players {
			for _, size := range []int{16, 32, 64} {
				address := fmt.Sprintf("%s/avatar/player/player_%d?size=%d", url, i, size)
				if status := get(t, address); status != http.StatusOK {
					t.Errorf("%s: %d", address, status)
				}
			}
		}
	}
	ask()
	asked := core.Keys.Load() - before
	if asked != players {
		t.Errorf("the edges asked core for %d players; want %d, each by one of them", asked, players)
	}
	first.Kill(t)
	ask()
	if moved := core.Keys.Load() - before - asked; moved < players/4 || moved > players*3/4 {
		t.Errorf("%d of %d players moved to the other edge; want about half", moved, players)
	}
}

func startEdge(t *testing.T, files objects.Config, core *origintest.Core) *system.Process {
	t.Helper()
	edge := system.NewEdgeOf(t, files, core.URL, origintest.Secret)
	edge.Start(t)
	edge.AwaitReady(t)
	return edge
}

// get gets a URL, with a forged address of the client, and returns the status.
func get(t *testing.T, url string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Forwarded-For", "192.0.2.1")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Error(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}
