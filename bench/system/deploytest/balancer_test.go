package deploytest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/edge/origin/origintest"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/httpserver/httpservertest"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
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

// composeHaproxy returns the haproxy of docker-compose.yml, with an environment.
func composeHaproxy(environ ...string) balancer {
	return balancer{program: "haproxy", file: "deploy/compose/haproxy.cfg", environ: environ, write: haproxy}
}

var varnishBalancer = balancer{
	program: "varnishd", file: "deploy/balancers/varnish.vcl", foldsCase: true, healthChecks: true, caches: true, write: varnish, environ: []string{"PURGE_SECRET=" + banSecret},
}

// banSecret lets clients purge Varnish.
const banSecret = "a secret of Varnish and the receiver"

// unboundedHaproxy leaves the load of an edge unbounded: a request that has not quite ended counts
// as load, and would now and then send the next one to the other edge.
func unboundedHaproxy(t *testing.T, _, address, work string, servers []server) []string {
	t.Helper()
	return haproxyCommand(t, work, replaceOnce(t, haproxyConfig(t, address, servers), "hash-balance-factor 150", ""))
}

func haproxy(t *testing.T, _, address, work string, servers []server) []string {
	t.Helper()
	return haproxyCommand(t, work, haproxyConfig(t, address, servers))
}

func haproxyCommand(t *testing.T, work, config string) []string {
	t.Helper()
	return []string{"haproxy", "-db", "-f", stack.WriteFile(t, work, "config", config)}
}

// haproxyConfig returns the file of docker-compose.yml with an address and servers of a test.
func haproxyConfig(t *testing.T, address string, servers []server) string {
	t.Helper()
	lines := map[string]string{}
	for _, s := range servers {
		program, _, _ := strings.Cut(s.host, "-")
		_, port := stack.HostPort(s.operators)
		lines[program] += fmt.Sprintf("  server %s %s check port %s\n", s.host, s.public, port)
	}
	config := replaceOnce(t, stack.ComposeHaproxy(t, top, address, lines["core"], lines["edge"]), "inter 1s", "inter 50ms")
	// On a busy machine a response may take longer than the time between two checks.
	return replaceOnce(t, config, "timeout connect 1s", "timeout connect 1s\n  timeout check 2s")
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
	return []string{"nginx", "-e", "stderr", "-c", stack.WriteFile(t, work, "config", around.String()+content+"}")}
}

func varnish(t *testing.T, content, address, work string, servers []server) []string {
	t.Helper()
	for _, s := range servers {
		at := func(host, port string) string { return fmt.Sprintf(`.host = "%s"; .port = "%s";`, host, port) }
		content = replaceOnce(t, content, at(s.host, s.port), at(stack.HostPort(s.public)))
		if s.host != "core" { // there is but one
			content = replaceOnce(t, content, at(s.host, s.checkPort), at(stack.HostPort(s.operators)))
		}
	}
	content = replaceOnce(t, content, ".interval = 1s; .timeout = 1s;", ".interval = 0.05s; .timeout = 5s;")
	return []string{"varnishd", "-F", "-j", "none", "-n", filepath.Join(work, "instance"), "-T", "none", "-a", address, "-f", stack.WriteFile(t, work, "config", content)}
}

func replaceOnce(t *testing.T, content, what, by string) string {
	t.Helper()
	if strings.Count(content, what) != 1 {
		t.Fatalf("there is not one %q", what)
	}
	return strings.Replace(content, what, by, 1)
}

// start starts the balancer with its file, except for the addresses, and returns its URL.
func (b balancer) start(t *testing.T, servers []server) string {
	t.Helper()
	requireProgram(t, b.program)
	address := stack.FreeAddress(t)
	work := t.TempDir()
	stack.RunServer(t, address, b.environ, b.write(t, read(t, b.file), address, work, servers)...)
	return "http://" + address
}

// startSite starts the balancer for a core and two edges, each at a public address and one for
// operators. A single address is both.
func (b balancer) startSite(t *testing.T, core, first, second []string) string {
	t.Helper()
	return b.start(t, []server{
		{"core", "8080", "9080", core[0], core[len(core)-1]},
		{"edge-1", "8081", "9081", first[0], first[len(first)-1]},
		{"edge-2", "8081", "9081", second[0], second[len(second)-1]},
	})
}

// addressesOf returns the addresses of a program for startSite.
func addressesOf(t *testing.T, p *stack.Process) []string {
	t.Helper()
	return []string{p.Address(t, "public"), p.Address(t, "operators")}
}

// serve runs a server until the test ends, and returns its address for startSite.
func serve(t *testing.T, handler http.HandlerFunc) []string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return []string{server.Listener.Addr().String()}
}

func requireProgram(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	testenv.Skip(t, program+" is not installed, or not in PATH: deploy/dev/install "+program+" installs it")
}

// All pictures of a player come from one edge. When that edge crashes, they come from the other
// one, without an error.
func TestBalancers(t *testing.T) {
	t.Parallel()
	for _, b := range balancers {
		t.Run(b.program, b.test)
	}
}

func (b balancer) test(t *testing.T) {
	t.Parallel()
	backend := blobstoretest.Directory(t)
	store := blobstoretest.Open(t, backend.Config)
	testenv.Do(t, store.Init(t.Context()))
	const players = 100
	mappings, file := map[edgeproto.Key]edgeproto.Mapping{}, origintest.File(t, artwork.Robot(), skin.Classic)
	testenv.Do(t, store.Put(t.Context(), skin.HashOf(file), file))
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
	api := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			mu.Lock()
			defer mu.Unlock()
			forwarded = append(forwarded, fmt.Sprintf("%s http://%s%s for %s with %q", r.Method, r.Host, r.RequestURI, strings.Join(r.Header.Values("X-Forwarded-For"), ","), r.Header.Get("Cookie")))
		}
	})
	first, second := startEdge(t, backend.Config, cores[0]), startEdge(t, backend.Config, cores[1])
	readiness := startFakeReadiness(t)
	url := b.startSite(t, api, addressesOf(t, first), []string{second.Address(t, "public"), readiness.address})

	send(t, http.MethodPut, url+"/api/user?a=%2F", nil)
	send(t, http.MethodGet, url+"/api", nil)
	send(t, http.MethodGet, url+"/apis", nil)
	send(t, http.MethodPost, url+"/console/session", http.Header{"X-Forwarded-For": {"192.0.2.1"}, "Cookie": {"__Host-veneer=a"}})
	send(t, http.MethodGet, url+"/console", nil)
	send(t, http.MethodGet, url+"/console/players?pid=1", nil)
	send(t, http.MethodGet, url+"/consoles", nil)
	cape := send(t, http.MethodGet, url+"/api/yggdrasil/skins/MinecraftCloaks/unknown.png", nil)
	testenv.Equal(t, cape, http.StatusNotFound, "a cape for authlib-injector, from an edge")
	mu.Lock()
	cmptest.Same(t, forwarded, []string{
		"PUT " + url + `/api/user?a=%2F for 127.0.0.1 with ""`,
		"GET " + url + `/api for 127.0.0.1 with ""`,
		"POST " + url + `/console/session for 127.0.0.1 with "__Host-veneer=a"`,
		"GET " + url + `/console for 127.0.0.1 with ""`,
		"GET " + url + `/console/players?pid=1 for 127.0.0.1 with ""`,
	}, "requests to core")
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
				testenv.Equal(t, send(t, http.MethodGet, url+target, nil), http.StatusOK, "%s", target)
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
	testenv.Equal(t, request(targets...), players, "players that the edges looked up, each by one edge")
	// The answer has the names as the request has them.
	heads := httpservertest.Get(t, url+"/heads.json?players=Nobody_Here").Body
	testenv.Equal(t, heads, `{"Nobody_Here":null}`, "/heads.json")
	isAboutHalf := func(n int) bool { return players/4 <= n && n <= players*3/4 }
	moved := 0
	if b.healthChecks {
		readiness.set(t, http.StatusServiceUnavailable)
		if moved = request("/avatar/player/pNAME?size=48"); !isAboutHalf(moved) {
			t.Errorf("%d of %d players moved from the edge that is not ready; want about half", moved, players)
		}
		testenv.Equal(t, request("/avatar/player/pNAME?size=56"), 0, "players moved though nothing has happened")
		readiness.set(t, http.StatusOK)
		testenv.Equal(t, request("/avatar/player/pNAME?size=72"), 0, "players moved, but not to where they were before")
	}
	first.Kill(t)
	switch n := request("/avatar/player/pNAME?size=64", "/avatar/player/pNAME.webp"); {
	case !isAboutHalf(n):
		t.Errorf("%d of %d players moved to the other edge; want about half", n, players)
	case b.healthChecks && n+moved != players:
		t.Errorf("%d players were one edge's, and %d the other's, of %d", n, moved, players)
	}
}

// smallSiteNginx is the nginx of a small site.
var smallSiteNginx = balancer{program: "nginx", file: "deploy/machines/nginx.conf", write: func(t *testing.T, content, address, work string, servers []server) []string {
	t.Helper()
	content = replaceOnce(t, content, "listen 80;", "listen 8080;")
	content = replaceOnce(t, content, "listen [::]:80;", "")
	return nginx(t, content, address, work, servers)
}}

// The nginx of a small site forwards the client's address.
func TestSmallSiteNginx(t *testing.T) {
	t.Parallel()
	url := smallSiteNginx.startStubs(t)
	for path, want := range map[string]string{"/api/user?a=%2F": "core", "/": "core", "/avatar/player/steve": "edge"} {
		got := httpservertest.Call(t, nil, http.MethodGet, url+path, http.Header{"X-Forwarded-For": {"192.0.2.1"}}, "")
		testenv.Equal(t, got.Body, want+" for 127.0.0.1 as "+strings.TrimPrefix(url, "http://"), "%s", path)
		testenv.Equal(t, got.Header.Get("Strict-Transport-Security"), "max-age=31536000", "%s: Strict-Transport-Security", path)
	}
}

// When only one edge is ready, Varnish retries a failed request there instead of returning an
// error.
func TestVarnishRetriesTheOnlyEdge(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	edge := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" && requests.Add(1) == 1 {
			panic(http.ErrAbortHandler) // closes the connection
		}
	})
	readiness := startFakeReadiness(t)
	url := varnishBalancer.startSite(t, edge, edge, []string{readiness.address})
	readiness.set(t, http.StatusServiceUnavailable)
	testenv.Equal(t, send(t, http.MethodGet, url+"/avatar/player/steve", nil), http.StatusOK, "a picture")
	testenv.Equal(t, requests.Load(), 2, "requests to the ready edge")
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
		for _, edge := range edges {
			testenv.Eventually(t, fmt.Sprintf("an edge answers %d", status), func() bool {
				return send(t, http.MethodGet, "http://"+edge.Address(t, "public")+target, nil) == status
			})
		}
	}
	f := func(tag string, banStatus, status int) {
		t.Helper()
		testenv.Equal(t, send(t, "BAN", url, http.Header{"Tag": {tag}, "Authorization": {"Bearer " + banSecret}}), banStatus, "BAN of %q", tag)
		testenv.Equal(t, send(t, http.MethodGet, url+target, nil), status, "after BAN of %q", tag)
	}

	setSkin(initial.Player.Skin, http.StatusOK)
	f("all", http.StatusOK, http.StatusOK)
	setSkin(nil, http.StatusNotFound)
	f("player-100", http.StatusOK, http.StatusOK)
	f("player-10000", http.StatusOK, http.StatusOK)
	f("", http.StatusBadRequest, http.StatusOK)
	f("obj.status == 200", http.StatusBadRequest, http.StatusOK)
	for what, header := range map[string]http.Header{
		"by way of a proxy":     {"Authorization": {"Bearer " + banSecret}, "X-Forwarded-For": {"127.0.0.1"}},
		"with another secret":   {"Authorization": {"Bearer x"}},
		"with an empty secret":  {"Authorization": {"Bearer "}},
		"without authorization": {},
	} {
		header.Set("Tag", "all")
		testenv.Equal(t, send(t, "BAN", url, header), http.StatusForbidden, "BAN %s", what)
	}
	f("player-1000", http.StatusOK, http.StatusNotFound)
	setSkin(initial.Player.Skin, http.StatusOK)
	f("texture-1", http.StatusOK, http.StatusNotFound) // it had none
	f("all", http.StatusOK, http.StatusOK)
	f("texture-1", http.StatusOK, http.StatusOK)
}

// fakeReadiness is an edge's operators' listener, whose readiness the test sets.
type fakeReadiness struct {
	address string
	status  atomic.Int32
	polled  chan struct{}
}

func startFakeReadiness(t *testing.T) *fakeReadiness {
	t.Helper()
	g := &fakeReadiness{polled: make(chan struct{})}
	g.status.Store(http.StatusOK)
	g.address = serve(t, func(w http.ResponseWriter, r *http.Request) {
		testenv.Equal(t, r.URL.Path, "/readyz", "a request to an edge")
		w.WriteHeader(int(g.status.Load()))
		select {
		case g.polled <- struct{}{}:
		default:
		}
	})[0]
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
		case <-time.After(2 * time.Minute):
			t.Fatal("the balancer does not check readiness")
		}
	}
}

func startEdge(t *testing.T, files blobstore.Config, core *origintest.Core) *stack.Process {
	t.Helper()
	edge := site.NewEdgeAt(t, files, core.URL, origintest.Secret)
	edge.StartReady(t)
	return edge
}

// send sends a request and returns the status. Without other headers it has a forged
// X-Forwarded-For.
func send(t *testing.T, method, url string, header http.Header) int {
	t.Helper()
	if header == nil {
		header = http.Header{"X-Forwarded-For": {"192.0.2.1"}}
	}
	return httpservertest.Call(t, nil, method, url, header, "").Status
}
