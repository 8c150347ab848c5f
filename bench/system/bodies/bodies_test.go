//go:build !race

package bodies

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/speed/baseline"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

const (
	// memoryLimit is less than the mem_limit of core and of the edges in docker-compose.yml,
	// which allow for more connections. goLimit is nine tenths of it.
	memoryLimit = 768 << 20
	goLimit     = "690MiB"

	stalledUploads, slowUploads = 1000, 1000
	// A stalled body sends stalledBytes, 122 MiB in total: twice the budget. A slow one sends
	// slowBytes, then a byte a second.
	stalledBytes = 128_000
	slowBytes    = 9000
	// honestTimeout is the longest that an honest request may take on a busy machine.
	honestTimeout = 20 * time.Second
	// hostileAddress is the address of the hostile clients, in another network than the honest
	// ones. haproxy trusts it as a proxy, or it would reject all but 256 of its requests.
	hostileAddress = "127.66.0.1"
	// trustedProxies covers haproxy and the edge.
	trustedProxies = "127.0.0.1/32"
)

// env is a core and an edge, each behind its own haproxy.
type env struct {
	*stack.System
	users        []stack.SignedInUser
	noise        *rand.Rand
	coreProxyURL string // URL of the haproxy with core behind /api
	edgeProxyURL string // URL of the haproxy with an edge behind /api
}

// Hostile bodies exhaust no memory and fail no honest request, over any route.
func TestStalledAndSlowUploads(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)
	s := start(t)
	before := [2]int{metric(t, s.Core, goroutines), metric(t, s.Edge, goroutines)}
	for _, route := range []struct {
		name, base string
		http2      bool
	}{
		{"core", s.CoreURL, false},
		{"edge", s.EdgeURL, false},
		{"core behind haproxy, HTTP/1.1", s.coreProxyURL, false},
		{"core behind haproxy, HTTP/2", s.coreProxyURL, true},
		{"edge behind haproxy, HTTP/1.1", s.edgeProxyURL, false},
		{"edge behind haproxy, HTTP/2", s.edgeProxyURL, true},
	} {
		attack := s.attack(t, route.base, route.http2)
		t.Logf("%s: %s", route.name, s.honestLoad(t, route.base))
		attack.Stop()
		t.Logf("%s: %s", route.name, attack)
		for i, program := range []*stack.Process{s.Core, s.Edge} {
			name := []string{"core", "edge"}[i]
			if _, most := program.Memory(t); most >= memoryLimit {
				t.Errorf("%s: %s uses %d MiB", route.name, name, most>>20)
			}
			awaitMetric(t, program, route.name+": "+name, bodyBytes, 0)
		}
	}
	for i, program := range []*stack.Process{s.Core, s.Edge} {
		name := []string{"core", "edge"}[i]
		// An idle worker of fasthttp exits after 10 s.
		awaitMetric(t, program, name, goroutines, before[i]+50)
		_, most := program.Memory(t)
		t.Logf("%s uses %d MiB at most", name, most>>20)
	}
}

func start(t *testing.T) *env {
	t.Helper()
	core := stack.NewCore(t, blobstore.Config{URL: "file://" + t.TempDir()})
	core.Set("GOMEMLIMIT", goLimit)
	core.Set("CORE_LIMIT_UPLOADS", "0")
	core.Set("CORE_TRUSTED_PROXIES", trustedProxies)
	core.Start(t)
	edge := stack.NewEdge(t, blobstore.Config{URL: core.Setting("CORE_OBJECTS_URL")}, core)
	edge.Set("GOMEMLIMIT", goLimit)
	edge.Set("EDGE_TRUSTED_PROXIES", trustedProxies)
	edge.Start(t)
	edge.AwaitReady(t)
	s := &env{
		System: &stack.System{Core: core, Edge: edge, CoreURL: "http://" + core.Address(t, "public"), EdgeURL: "http://" + edge.Address(t, "public")},
		noise:  rand.New(rand.NewPCG(1, 2)), users: core.SignIn(t, stalledUploads+slowUploads+1),
	}
	body, err := json.Marshal(credentials{Email: "honest@example.com", Password: "correct horse", Nickname: "Honest"})
	if err != nil {
		t.Fatal(err)
	}
	if status, answer := s.do(t, http.MethodPost, s.CoreURL+"/api/auth/register", "application/json", "", body); status != http.StatusOK {
		t.Fatalf("registration: %d %s", status, answer)
	}
	s.coreProxyURL, s.edgeProxyURL = s.haproxy(t, core), s.haproxy(t, edge)
	return s
}

type credentials struct {
	Email    string `json:"email"`
	Password string `json:"password"`
	Nickname string `json:"nickname,omitempty"`
}

var (
	coreServer = regexp.MustCompile(`core:8080 check port 9080`)
	edgeServer = regexp.MustCompile(`(?m)^ *server edge-2 .*\n`)
)

// haproxy starts the balancer of docker-compose.yml with a program behind /api.
func (e *env) haproxy(t *testing.T, api *stack.Process) (base string) {
	t.Helper()
	content, err := os.ReadFile("../../../deploy/compose/haproxy.cfg")
	if err != nil {
		t.Fatal(err)
	}
	address := stack.FreeAddress(t)
	backend := func(p *stack.Process) string {
		_, port, _ := net.SplitHostPort(p.Address(t, "operators"))
		return p.Address(t, "public") + " check port " + port
	}
	config := strings.Replace(string(content), "bind :8080", "bind "+address, 1)
	config = coreServer.ReplaceAllString(config, backend(api))
	config = edgeServer.ReplaceAllString(config, "")
	config = strings.Replace(config, "edge-1:8081 check port 9081", backend(e.Edge), 1)
	work := t.TempDir()
	path := filepath.Join(work, "haproxy.cfg")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	process, err := baseline.Run(baseline.Env{WorkDir: work}, "haproxy", nil, []string{"VENEER_TRUSTED_PROXIES=" + hostileAddress}, "haproxy", "-db", "-f", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Stop)
	if err := process.Await(t.Context(), func() error {
		response, err := http.Get("http://" + address + "/api") //nolint:noctx // short
		if err != nil {
			return err
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("haproxy answers %s", response.Status)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return "http://" + address
}

// attack starts uploads, each by another user, that send twice the memory budget.
func (e *env) attack(t *testing.T, base string, http2 bool) *Attack {
	t.Helper()
	var uploads []Upload
	for i, user := range e.users[:stalledUploads+slowUploads] {
		u := Upload{Path: "/api/textures", Bearer: user.Bearer, ContentLength: MaxUploadLength, InitialBytes: slowBytes, Interval: time.Second}
		if i < stalledUploads {
			u.InitialBytes, u.Interval = stalledBytes, 0
		}
		if i%10 == 0 {
			u.Path = "/avatar/1" // where no body is expected
		}
		uploads = append(uploads, u)
	}
	a := Start(t.Context(), Target{Base: base, HTTP2: http2, From: []netip.Addr{netip.MustParseAddr(hostileAddress)}}, uploads)
	t.Cleanup(a.Stop)
	return a
}

// honestLoad logs in, uploads and fetches pictures, all of which must succeed, and describes the
// longest durations.
func (e *env) honestLoad(t *testing.T, base string) string {
	t.Helper()
	var logIns, uploads, pictures atomic.Int64
	var all sync.WaitGroup
	tid, images := e.upload(t, base), e.EdgeURL // of a sheet that no edge has rendered
	if base == e.edgeProxyURL {
		images = base
	}
	timed := func(longest *atomic.Int64, do func()) {
		began := time.Now()
		do()
		took := int64(time.Since(began))
		for previous := longest.Load(); took > previous && !longest.CompareAndSwap(previous, took); previous = longest.Load() {
		}
	}
	all.Go(func() {
		body, _ := json.Marshal(credentials{Email: "honest@example.com", Password: "correct horse"})
		for range 5 {
			timed(&logIns, func() {
				if status, answer := e.do(t, http.MethodPost, base+"/api/auth/login", "application/json", "", body); status != http.StatusOK {
					t.Errorf("log-in: %d %s", status, answer)
				}
			})
		}
	})
	all.Go(func() {
		for range 3 {
			timed(&uploads, func() { e.upload(t, base) })
		}
	})
	all.Go(func() {
		for size := 8; size <= 256; size += 8 {
			timed(&pictures, func() {
				if status, answer := e.do(t, http.MethodGet, fmt.Sprintf("%s/avatar/%d?size=%d", images, tid, size), "", "", nil); status != http.StatusOK {
					t.Errorf("picture: %d %s", status, answer)
				}
			})
		}
	})
	all.Wait()
	longest := func(n *atomic.Int64) time.Duration { return time.Duration(n.Load()).Round(time.Millisecond) }
	return fmt.Sprintf("slowest log-in %s, upload %s, picture %s", longest(&logIns), longest(&uploads), longest(&pictures))
}

// upload uploads a sheet of 256 × 256 pixels of noise and returns its tid.
func (e *env) upload(t *testing.T, base string) int64 {
	t.Helper()
	sheet := skin.Sheet{Width: 256, Height: 256, Pix: make([]byte, 4*256*256)}
	for i := range sheet.Pix {
		sheet.Pix[i] = byte(e.noise.Uint32())
	}
	form := stack.SheetForm("Noise", skin.Classic, sheet)
	status, answer := e.do(t, http.MethodPost, base+"/api/textures", stack.UploadType, e.users[len(e.users)-1].Bearer, form)
	var response struct {
		Data struct {
			TID int64 `json:"tid"`
		} `json:"data"`
	}
	if err := json.Unmarshal(answer, &response); err != nil || status != http.StatusOK {
		t.Errorf("upload of %d bytes: %d %s", len(form), status, answer)
	}
	return response.Data.TID
}

// do sends a request on a connection of its own.
func (e *env) do(t *testing.T, method, url, kind, bearer string, body []byte) (status int, answer []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), honestTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, nil
	}
	request.Close = true
	if kind != "" {
		request.Header.Set("Content-Type", kind)
	}
	if bearer != "" {
		request.Header.Set("Authorization", "Bearer "+bearer)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Error(err)
		return 0, nil
	}
	defer func() { _ = response.Body.Close() }()
	answer, err = io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	return response.StatusCode, answer
}

// metric returns the value of one of a program's metrics.
func metric(t *testing.T, p *stack.Process, name string) int {
	t.Helper()
	response, err := http.Get("http://" + p.Address(t, "operators") + "/metrics") //nolint:noctx // short
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	all, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(all), "\n"+name+" ")
	value, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.ParseFloat(value, 64)
	if err != nil {
		t.Fatalf("%s (found: %t): %v", name, found, err)
	}
	return int(n)
}

const goroutines, bodyBytes = "go_goroutines", `veneer_body_bytes{listener="public"}`

// awaitMetric waits until a metric of a program is at most what it was before the attack.
func awaitMetric(t *testing.T, p *stack.Process, name, figure string, before int) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(2 * honestTimeout); ; <-tick.C {
		now := metric(t, p, figure)
		if now <= before {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("%s: %s is %d; want %d", name, figure, now, before)
			return
		}
	}
}
