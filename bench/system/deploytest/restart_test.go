//go:build !race

package deploytest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/skin"
)

// program is a core or an edge with fixed listen addresses.
type program struct {
	*stack.Process
	name                     string
	public, operators, edges string // edges is of a core only
}

// behindBalancer returns a program that drains for long enough for a balancer with frequent checks.
func behindBalancer(t *testing.T, name string, process *stack.Process) *program {
	t.Helper()
	p := &program{Process: process, name: name, public: stack.FreeAddress(t), operators: stack.FreeAddress(t), edges: stack.FreeAddress(t)}
	prefix, _, _ := strings.Cut(strings.ToUpper(name), "-")
	for setting, value := range map[string]string{"_LISTEN": p.public, "_OPS_LISTEN": p.operators, "_DRAIN_WAIT": "1500ms"} {
		p.Set(prefix+setting, value)
	}
	if prefix == "EDGE" {
		p.Set("EDGE_RENDER_QUEUE_TIMEOUT", "10s") // other tests may leave little of a processor
	}
	if prefix == "CORE" {
		p.Set("CORE_EDGES_LISTEN", p.edges)
		for _, limit := range []string{"LIMIT_REQUESTS", "LIMIT_UPLOADS", "LIMIT_CHANGES", "QUOTA_TEXTURES"} {
			p.Set("CORE_"+limit, "0")
		}
	}
	return p
}

var successPattern = regexp.MustCompile(`(?m)^veneer_requests_total\{.*listener="public",.*status="2xx"\} (\S+)$`)

// successCount returns the number of successful public requests of the program.
func (p *program) successCount(t *testing.T) (total int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.operators+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	metrics, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range successPattern.FindAllSubmatch(metrics, -1) {
		n, err := strconv.ParseFloat(string(match[1]), 64)
		if err != nil {
			t.Fatal(err)
		}
		total += int(n)
	}
	return total
}

// awaitTraffic waits until the balancer sends requests, some time after the program became ready.
func (p *program) awaitTraffic(t *testing.T) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); p.successCount(t) < 20 && !t.Failed(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("the balancer sends no requests to %s", p.name)
		}
	}
}

// Two cores and two edges are restarted one after the other, as in an upgrade, while clients fetch
// pictures, read, write and upload. No request fails, and nothing is lost.
func TestRollingRestartWithoutErrors(t *testing.T) {
	t.Parallel()
	files := blobstoretest.Directory(t).Config
	core := stack.NewCore(t, files)
	database, secret := core.Setting("CORE_DATABASE_URL"), core.Setting("CORE_EDGE_SECRETS")
	cores := stack.FreeAddress(t) // the listener for edges of either core
	programs := []*program{
		behindBalancer(t, "core", core),
		behindBalancer(t, "core-2", stack.NewCoreAt(t, files, database)),
		behindBalancer(t, "edge-1", stack.NewEdgeAt(t, files, "http://"+cores, secret)),
		behindBalancer(t, "edge-2", stack.NewEdgeAt(t, files, "http://"+cores, secret)),
	}
	balancer := balancer{program: "haproxy", file: "deploy/compose/haproxy.cfg", write: func(t *testing.T, content, address, work string, servers []server) []string {
		t.Helper()
		return haproxy(t, twoCores(t, content, cores, programs[0], programs[1]), address, work, servers)
	}}
	baseURL := balancer.start(t, []server{
		{"core", "8080", "9080", programs[0].public, programs[0].operators},
		{"edge-1", "8081", "9081", programs[2].public, programs[2].operators},
		{"edge-2", "8081", "9081", programs[3].public, programs[3].operators},
	})
	for _, p := range programs {
		p.Start(t)
		p.AwaitReady(t)
	}

	load := startWorkload(t, baseURL, core.SignIn(t, 3))
	for _, p := range programs {
		if err := p.Stop(t); err != nil {
			t.Errorf("%s ends with %v", p.name, err)
		}
		p.Start(t)
		p.AwaitReady(t)
		p.awaitTraffic(t)
	}
	load.end()
	load.verify(t, baseURL, database)
	for _, p := range programs {
		p.Kill(t) // there are no clients left to drain for
	}
}

// twoCores adds a second core to haproxy's configuration, and a listener through which edges use
// either.
func twoCores(t *testing.T, config, forEdges string, one, two *program) string {
	t.Helper()
	check := func(p *program) string {
		_, port := hostPort(t, p.operators)
		return " check port " + port
	}
	const core = "server core core:8080 check port 9080"
	config = replaceOnce(t, config, core, core+"\n  server core-2 "+two.public+check(two))
	return config + "\nlisten cores-for-edges\n  bind " + forEdges +
		"\n  server of-core " + one.edges + check(one) + "\n  server of-core-2 " + two.edges + check(two) + "\n"
}

// workload is clients that use all kinds of requests in a loop.
type workload struct {
	stop    chan struct{}
	once    sync.Once
	clients sync.WaitGroup

	mu       sync.Mutex
	done     map[string]int // count by kind
	uploaded []texture
	skins    map[int]int // skins by pid, as acknowledged last
}

// startWorkload starts clients, each with a player. They send many requests a second, so that some
// are open at any moment.
func startWorkload(t *testing.T, baseURL string, users []stack.SignedInUser) *workload {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // until end, which is later
	c := &workload{stop: make(chan struct{}), done: map[string]int{}, skins: map[int]int{}}
	t.Cleanup(c.end) // before the programs end
	for i, user := range users {
		v := client{baseURL, user.Bearer, &http.Client{Transport: &http.Transport{}, Timeout: requestTimeout}}
		number := i << 16
		upload := func(n int) (uploaded texture, err error) {
			if uploaded, err = v.upload(ctx, number+n); err == nil {
				c.locked(func() { c.uploaded = append(c.uploaded, uploaded) })
			}
			return uploaded, err
		}
		var skins [2]texture
		for n := range skins {
			var err error
			if skins[n], err = upload(n); err != nil {
				t.Fatal(err)
			}
		}
		name := fmt.Sprint("player_", i)
		answer, err := v.do(ctx, http.MethodPost, "/api/players", jsonType, []byte(`{"name":"`+name+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		var player struct{ Data struct{ PID int } }
		if err := json.Unmarshal(answer, &player); err != nil {
			t.Fatal(err)
		}
		pid := player.Data.PID
		setSkin := func(n int) error {
			tid := skins[n%2].TID
			_, err := v.do(ctx, http.MethodPut, fmt.Sprintf("/api/players/%d/textures", pid), jsonType, fmt.Appendf(nil, `{"skin":%d}`, tid))
			if err == nil {
				c.locked(func() { c.skins[pid] = tid })
			}
			return err
		}
		if err := setSkin(0); err != nil {
			t.Fatal(err)
		}

		c.repeat(t, "fetch an avatar", 40*time.Millisecond, func(int) error {
			_, err := v.get(ctx, "/avatar/player/"+name)
			return err
		})
		c.repeat(t, "read", 80*time.Millisecond, func(int) error {
			_, err := v.get(ctx, "/api/closet")
			return err
		})
		c.repeat(t, "write", 80*time.Millisecond, setSkin)
		c.repeat(t, "upload and fetch", 250*time.Millisecond, func(n int) error {
			uploaded, err := upload(len(skins) + n)
			if err == nil {
				_, err = v.get(ctx, "/textures/"+uploaded.Hash) // a miss: the edge looks it up at core
			}
			return err
		})
	}
	return c
}

func (w *workload) locked(update func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	update()
}

// repeat calls do in a loop, until the workload ends or it fails.
func (w *workload) repeat(t *testing.T, kind string, pause time.Duration, do func(n int) error) {
	t.Helper()
	w.clients.Go(func() {
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-w.stop:
				return
			case <-tick.C:
			}
			if err := do(n); err != nil {
				t.Errorf("%s: %v", kind, err)
				return
			}
			w.locked(func() { w.done[kind]++ })
		}
	})
}

// end stops all clients.
func (w *workload) end() {
	w.once.Do(func() { close(w.stop) })
	w.clients.Wait()
}

// verify checks that everything acknowledged is there.
func (w *workload) verify(t *testing.T, baseURL, database string) {
	t.Helper()
	t.Logf("%d players, %d uploads; done: %v", len(w.skins), len(w.uploaded), w.done)
	for kind, n := range w.done {
		if n < 30 {
			t.Errorf("%s: only %d times", kind, n)
		}
	}
	v := client{baseURL: baseURL, http: &http.Client{Timeout: requestTimeout}}
	for _, uploaded := range w.uploaded {
		file, err := v.get(t.Context(), "/textures/"+uploaded.Hash)
		if err != nil {
			t.Error(err)
		} else if skin.HashOf(file).String() != uploaded.Hash {
			t.Errorf("texture %d is another file", uploaded.TID)
		}
	}
	rows, _ := postgrestest.Conn(t, database).Query(t.Context(), "SELECT pid, tid_skin FROM players") // ForEachRow reports the error
	stored := map[int]int{}
	var pid, tid int
	if _, err := pgx.ForEachRow(rows, []any{&pid, &tid}, func() error { stored[pid] = tid; return nil }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w.skins, stored); diff != "" {
		t.Errorf("skins of players (-acknowledged +actual):\n%s", diff)
	}
}
