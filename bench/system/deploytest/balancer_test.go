package deploytest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/bench/speed/baseline"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/edge/origin/origintest"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/httpserver/httpservertest"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// server is a server behind a balancer: its address in the balancer's file, and its address here.
type server struct {
	host, port, checkPort string // checkPort is the port of its readiness check
	public, operators     string
}

// balancer is a third-party program with a configuration file of this repository.
type balancer struct {
	program, file string
	// foldsCase: it hashes names case-insensitively.
	foldsCase bool
	// healthChecks: it checks servers' readiness. If not, it detects a failed one by
	// requests.
	healthChecks bool
	// caches: it is a cache, too.
	caches bool
	// environ is added to the program's environment.
	environ []string
	// write writes the file, with the addresses of servers and a listen address, into a
	// directory, and returns the command that reads it.
	write func(t *testing.T, content, address, work string, servers []server) []string
}

var balancers = []balancer{
	{program: "haproxy", file: "deploy/compose/haproxy.cfg", foldsCase: true, healthChecks: true, write: unboundedHaproxy},
	{program: "nginx", file: "deploy/balancers/nginx.conf", write: nginx},
	varnishBalancer,
}

var varnishBalancer = balancer{program: "varnishd", file: "deploy/balancers/varnish.vcl", foldsCase: true, healthChecks: true, caches: true, write: varnish}

// unboundedHaproxy leaves the load of an edge unbounded: a request that has not quite ended counts
// as load, and would now and then send the next one to the other edge.
func unboundedHaproxy(t *testing.T, content, address, work string, servers []server) []string {
	t.Helper()
	return haproxy(t, replaceOnce(t, content, "hash-balance-factor 150", ""), address, work, servers)
}

func haproxy(t *testing.T, content, address, work string, servers []server) []string {
	t.Helper()
	content = replaceOnce(t, content, "bind :8080", "bind "+address)
	content = replaceOnce(t, content, "inter 1s", "inter 50ms")
	// On a busy machine a response may take longer than the time between two checks.
	content = replaceOnce(t, content, "timeout connect 1s", "timeout connect 1s\n  timeout check 2s")
	for _, s := range servers {
		_, port := hostPort(t, s.operators)
		content = replaceOnce(t, content, s.host+":"+s.port+" check port "+s.checkPort, s.public+" check port "+port)
	}
	return []string{"haproxy", "-db", "-f", writeConfig(t, work, content)}
}

func nginx(t *testing.T, content, address, work string, servers []server) []string {
	t.Helper()
	content = replaceOnce(t, content, "listen 8080", "listen "+address)
	for _, s := range servers {
		content = replaceOnce(t, content, s.host+":"+s.port, s.public)
	}
	var around strings.Builder
	fmt.Fprintf(&around, "daemon off;\npid %[1]s/pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n", work)
	for _, body := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&around, "%s_temp_path %s/%s;\n", body, work, body)
	}
	return []string{"nginx", "-e", "stderr", "-c", writeConfig(t, work, around.String()+content+"}")}
}

func varnish(t *testing.T, content, address, work string, servers []server) []string {
	t.Helper()
	for _, s := range servers {
		at := func(host, port string) string { return fmt.Sprintf(`.host = "%s"; .port = "%s";`, host, port) }
		content = replaceOnce(t, content, at(s.host, s.port), at(hostPort(t, s.public)))
		if s.host != "core" { // there is but one
			content = replaceOnce(t, content, at(s.host, s.checkPort), at(hostPort(t, s.operators)))
		}
	}
	content = replaceOnce(t, content, ".interval = 1s; .timeout = 1s;", ".interval = 0.05s; .timeout = 5s;")
	return []string{"varnishd", "-F", "-j", "none", "-n", filepath.Join(work, "instance"), "-T", "none", "-a", address, "-f", writeConfig(t, work, content)}
}

// replaceOnce replaces a string that must occur once.
func replaceOnce(t *testing.T, content, what, by string) string {
	t.Helper()
	if strings.Count(content, what) != 1 {
		t.Fatalf("there is not one %q", what)
	}
	return strings.Replace(content, what, by, 1)
}

func writeConfig(t *testing.T, work, content string) (path string) {
	t.Helper()
	path = filepath.Join(work, "config")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func hostPort(t *testing.T, address string) (host, port string) {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return host, port
}

// start starts the balancer with its file, except for the addresses, and returns its URL.
func (b balancer) start(t *testing.T, servers []server) string {
	t.Helper()
	requireProgram(t, b.program)
	content, err := os.ReadFile(filepath.Join(top, b.file))
	if err != nil {
		t.Fatal(err)
	}
	address := stack.FreeAddress(t)
	work := t.TempDir()
	runServer(t, address, work, b.environ, b.write(t, string(content), address, work, servers)...)
	return "http://" + address
}

// requireProgram skips a test if a program is missing.
func requireProgram(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	testenv.Skip(t, program+" is not installed, or not in PATH: deploy/dev/install "+program+" installs it")
}

// runServer runs a server until the test ends, and waits until it listens at an address.
func runServer(t *testing.T, address, work string, environ []string, command ...string) {
	t.Helper()
	process, err := baseline.Run(baseline.Env{WorkDir: work}, command[0], nil, environ, command...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		process.Stop()
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(work, command[0]+".log"))
			t.Logf("log of %s:\n%s", command[0], log)
		}
	})
	if err := process.Await(t.Context(), func() error {
		conn, err := net.Dial("tcp", address) //nolint:noctx // to loopback, where nothing waits
		if err != nil {
			return err
		}
		return conn.Close()
	}); err != nil {
		t.Fatal(err)
	}
}

// All pictures of a player come from one edge. When that edge crashes, they come from the other
// one, without an error.
func TestBalancers(t *testing.T) {
	t.Parallel()
	for _, b := range balancers {
		t.Run(b.program, func(t *testing.T) {
			t.Parallel()
			b.test(t)
		})
	}
}

func (b balancer) test(t *testing.T) {
	t.Helper()
	backend := blobstoretest.Directory(t)
	store := blobstoretest.Open(t, backend.Config)
	if err := store.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	const players = 100
	mappings, file := map[edgeproto.Key]edgeproto.Mapping{}, origintest.File(t, artwork.Robot(), skin.Classic)
	if err := store.Put(t.Context(), skin.HashOf(file), file); err != nil {
		t.Fatal(err)
	}
	for i := range players {
		texture := &edgeproto.Texture{TID: 1, Hash: skin.HashOf(file), Type: skin.Classic}
		name := fmt.Sprintf("player_%d", i)
		mappings[edgeproto.NameKey(name)] = edgeproto.Mapping{Player: &edgeproto.Player{PID: int64(i + 1), Name: name, Skin: texture}}
	}
	var mu sync.Mutex
	var forwarded []string
	lookedUp := map[edgeproto.Key]map[int]bool{} // the edges that looked up a key
	cores := []*origintest.Core{origintest.Start(t), origintest.Start(t)}
	for edge, core := range cores {
		core.Set(mappings)
		core.SetOnLookup(func(keys []edgeproto.Key) {
			mu.Lock()
			defer mu.Unlock()
			for _, key := range keys {
				if lookedUp[key] == nil {
					lookedUp[key] = map[int]bool{}
				}
				lookedUp[key][edge] = true
			}
		})
	}
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			mu.Lock()
			defer mu.Unlock()
			forwarded = append(forwarded, fmt.Sprintf("%s http://%s%s for %s with %q", r.Method, r.Host, r.RequestURI, strings.Join(r.Header.Values("X-Forwarded-For"), ","), r.Header.Get("Cookie")))
		}
	}))
	t.Cleanup(api.Close)
	first, second := startEdge(t, backend.Config, cores[0]), startEdge(t, backend.Config, cores[1])
	readiness := startFakeReadiness(t)
	upstream := api.Listener.Addr().String()
	url := b.start(t, []server{
		{"core", "8080", "9080", upstream, upstream},
		{"edge-1", "8081", "9081", first.Address(t, "public"), first.Address(t, "operators")},
		{"edge-2", "8081", "9081", second.Address(t, "public"), readiness.address},
	})

	send(t, http.MethodPut, url+"/api/user?a=%2F", nil)
	send(t, http.MethodGet, url+"/api", nil)
	send(t, http.MethodGet, url+"/apis", nil)
	send(t, http.MethodPost, url+"/console/session", http.Header{"X-Forwarded-For": {"192.0.2.1"}, "Cookie": {"__Secure-veneer=a"}})
	send(t, http.MethodGet, url+"/console", nil)
	send(t, http.MethodGet, url+"/console/players?pid=1", nil)
	send(t, http.MethodGet, url+"/consoles", nil)
	if status := send(t, http.MethodGet, url+"/api/yggdrasil/skins/MinecraftCloaks/unknown.png", nil); status != http.StatusNotFound {
		t.Errorf("a cape for authlib-injector: %d; want 404, from an edge", status)
	}
	mu.Lock()
	if diff := cmp.Diff([]string{
		"PUT " + url + `/api/user?a=%2F for 127.0.0.1 with ""`,
		"GET " + url + `/api for 127.0.0.1 with ""`,
		"POST " + url + `/console/session for 127.0.0.1 with "__Secure-veneer=a"`,
		"GET " + url + `/console for 127.0.0.1 with ""`,
		"GET " + url + `/console/players?pid=1 for 127.0.0.1 with ""`,
	}, forwarded); diff != "" {
		t.Errorf("requests to core (-want +got):\n%s", diff)
	}
	mu.Unlock()

	if b.caches {
		testBans(t, url, mappings[edgeproto.NameKey("player_0")], cores, first, second)
	}
	// request requests targets of every player and returns how many times an edge looked up a player
	// for the first time. An edge looks a player up again when a heartbeat of core was late.
	request := func(targets ...string) int {
		t.Helper()
		count := func() (sum int) {
			mu.Lock()
			defer mu.Unlock()
			for _, edges := range lookedUp {
				sum += len(edges)
			}
			return sum
		}
		before := count()
		for i := range players {
			for _, target := range targets {
				target = strings.ReplaceAll(target, "NAME", fmt.Sprintf("layer_%d", i))
				if status := send(t, http.MethodGet, url+target, nil); status != http.StatusOK {
					t.Errorf("%s: %d", target, status)
				}
			}
		}
		return count() - before
	}
	targets := []string{
		"/avatar/player/pNAME?size=16", "/avatar/player/pNAME.png?size=32", "/skin/pNAME.png", "/csl/pNAME.json",
		"/pNAME.json", "/usm/pNAME.json", "/usm/pNAME.7d4448409dc011d1b2455ffdce74fad2.json", "/skins/pNAME", "/skins?name=pNAME", "/MinecraftSkins/pNAME.png",
		"/legacy/pNAME.png", "/api/yggdrasil/skins/MinecraftSkins/pNAME.png",
		"/helm/pNAME/64", "/avatar/pNAME/32.png", "/full/64/pNAME", "/head/pNAME/64/left", "/skin/pNAME", "/back/player/pNAME?wear=none",
	}
	if b.foldsCase {
		targets = append(targets, "/helm/PNAME/64", "/avatar/player/PNAME", "/PNAME.json", "/MinecraftSkins/PNAME.PNG", "/skins?x=y&name=PNAME.png")
	}
	if n := request(targets...); n != players {
		t.Errorf("the edges looked up %d players; want %d, each by one edge", n, players)
	}
	// The names of the answer are those of the request.
	if got := httpservertest.Get(t, url+"/heads.json?players=Nobody_Here"); got.Body != `{"Nobody_Here":null}` {
		t.Errorf("/heads.json: %d %s", got.Status, got.Body)
	}
	isAboutHalf := func(n int) bool { return players/4 <= n && n <= players*3/4 }
	moved := 0
	if b.healthChecks {
		readiness.set(t, http.StatusServiceUnavailable)
		if moved = request("/avatar/player/pNAME?size=48"); !isAboutHalf(moved) {
			t.Errorf("%d of %d players moved from the edge that is not ready; want about half", moved, players)
		}
		if n := request("/avatar/player/pNAME?size=56"); n != 0 {
			t.Errorf("%d players moved though nothing has happened", n)
		}
		readiness.set(t, http.StatusOK)
		if n := request("/avatar/player/pNAME?size=72"); n != 0 {
			t.Errorf("%d players moved, but not to where they were before", n)
		}
	}
	first.Kill(t)
	switch n := request("/avatar/player/pNAME?size=64", "/avatar/player/pNAME.webp"); {
	case !isAboutHalf(n):
		t.Errorf("%d of %d players moved to the other edge; want about half", n, players)
	case b.healthChecks && n+moved != players:
		t.Errorf("%d players were one edge's, and %d the other's, of %d", n, moved, players)
	}
}

// The nginx of a small site sends the API and the console to core and all else to the edge, and
// forwards the client's address.
func TestSmallSiteNginx(t *testing.T) {
	t.Parallel()
	stub := func(name string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "%s for %s as %s", name, strings.Join(r.Header.Values("X-Forwarded-For"), ","), r.Host)
		}))
		t.Cleanup(server.Close)
		return server.Listener.Addr().String()
	}
	core, edge := stub("core"), stub("edge")
	b := balancer{program: "nginx", file: "deploy/machines/nginx.conf", write: func(t *testing.T, content, address, work string, servers []server) []string {
		t.Helper()
		content = replaceOnce(t, content, "listen 80;", "listen 8080;")
		content = replaceOnce(t, content, "listen [::]:80;", "")
		return nginx(t, content, address, work, servers)
	}}
	url := b.start(t, []server{{host: "127.0.0.1", port: "8080", public: core}, {host: "127.0.0.1", port: "8081", public: edge}})
	for path, want := range map[string]string{"/api": "core", "/api/user?a=%2F": "core", "/apis": "edge", "/avatar/player/steve": "edge", "/api/yggdrasil/skins/MinecraftSkins/steve.png": "edge", "/api/yggdrasil": "core", "/console": "core", "/console/session": "core", "/consoles": "edge"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Forwarded-For", "192.0.2.1")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if want += " for 127.0.0.1 as " + request.URL.Host; err != nil || string(body) != want {
			t.Errorf("%s: %q, %v; want %q", path, body, err, want)
		}
	}
}

// When only one edge is ready, Varnish retries a failed request there instead of returning an
// error.
func TestVarnishRetriesTheOnlyEdge(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	edge := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" && requests.Add(1) == 1 {
			panic(http.ErrAbortHandler) // closes the connection
		}
	}))
	t.Cleanup(edge.Close)
	readiness, address := startFakeReadiness(t), edge.Listener.Addr().String()
	url := varnishBalancer.start(t, []server{
		{"core", "8080", "9080", address, address},
		{"edge-1", "8081", "9081", address, address},
		{"edge-2", "8081", "9081", readiness.address, readiness.address},
	})
	readiness.set(t, http.StatusServiceUnavailable)
	if status := send(t, http.MethodGet, url+"/avatar/player/steve", nil); status != http.StatusOK {
		t.Errorf("a picture: %d", status)
	}
	if n := requests.Load(); n != 2 {
		t.Errorf("the ready edge got %d requests; want 2", n)
	}
}

// testBans checks that a cache in front of edges keeps a picture after its player's skin was
// removed, until it is banned.
func testBans(t *testing.T, url string, initial edgeproto.Mapping, cores []*origintest.Core, edges ...*stack.Process) {
	t.Helper()
	const target = "/avatar/player/changing"
	setSkin := func(texture *edgeproto.Texture, status int) {
		t.Helper()
		for _, core := range cores {
			core.Set(map[edgeproto.Key]edgeproto.Mapping{edgeproto.NameKey("changing"): {Player: &edgeproto.Player{PID: 1000, Name: "changing", Skin: texture}}})
		}
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for _, edge := range edges {
			for send(t, http.MethodGet, "http://"+edge.Address(t, "public")+target, nil) != status {
				<-tick.C
			}
		}
	}
	f := func(tag string, banStatus, status int) {
		t.Helper()
		if got := send(t, "BAN", url, http.Header{"Tag": {tag}}); got != banStatus {
			t.Errorf("BAN of %q: %d; want %d", tag, got, banStatus)
		}
		if got := send(t, http.MethodGet, url+target, nil); got != status {
			t.Errorf("after BAN of %q: %d; want %d", tag, got, status)
		}
	}

	setSkin(initial.Player.Skin, http.StatusOK)
	f("all", http.StatusOK, http.StatusOK)
	setSkin(nil, http.StatusNotFound)
	f("player-100", http.StatusOK, http.StatusOK)
	f("player-10000", http.StatusOK, http.StatusOK)
	f("", http.StatusBadRequest, http.StatusOK)
	f("obj.status == 200", http.StatusBadRequest, http.StatusOK)
	if got := send(t, "BAN", url, http.Header{"Tag": {"all"}, "X-Forwarded-For": {"127.0.0.1"}}); got != http.StatusForbidden {
		t.Errorf("BAN by way of a proxy: %d", got)
	}
	f("player-1000", http.StatusOK, http.StatusNotFound)
	setSkin(initial.Player.Skin, http.StatusOK)
	f("texture-1", http.StatusOK, http.StatusNotFound) // it had none
	f("all", http.StatusOK, http.StatusOK)
	f("texture-1", http.StatusOK, http.StatusOK)
}

// fakeReadiness is an edge's operators' listener, of which the test sets the readiness.
type fakeReadiness struct {
	address string
	status  atomic.Int32
	polled  chan struct{}
}

func startFakeReadiness(t *testing.T) *fakeReadiness {
	t.Helper()
	g := &fakeReadiness{polled: make(chan struct{})}
	g.status.Store(http.StatusOK)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			t.Errorf("unexpected request to an edge: %s", r.URL.Path)
		}
		w.WriteHeader(int(g.status.Load()))
		select {
		case g.polled <- struct{}{}:
		default:
		}
	}))
	t.Cleanup(server.Close)
	g.address = server.Listener.Addr().String()
	return g
}

// set sets the status and waits until the balancer has seen it often enough. The fourth poll proves
// that two were answered with it.
func (r *fakeReadiness) set(t *testing.T, status int32) {
	t.Helper()
	r.status.Store(status)
	for range 4 {
		select {
		case <-r.polled:
		case <-time.After(30 * time.Second):
			t.Fatal("the balancer does not check readiness")
		}
	}
}

func startEdge(t *testing.T, files blobstore.Config, core *origintest.Core) *stack.Process {
	t.Helper()
	edge := stack.NewEdgeAt(t, files, core.URL, origintest.Secret)
	edge.Start(t)
	edge.AwaitReady(t)
	return edge
}

// send sends a request and returns the status. Without other headers it has a forged
// X-Forwarded-For.
func send(t *testing.T, method, url string, header http.Header) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = header
	if header == nil {
		request.Header = http.Header{"X-Forwarded-For": {"192.0.2.1"}}
	}
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
