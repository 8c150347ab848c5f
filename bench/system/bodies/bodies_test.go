package bodies

import (
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/httpserver/httpservertest"
	"github.com/veneer-skins/veneer/shared/metrics/metricstest"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
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
	*site.System
	users        []site.SignedInUser
	seed         atomic.Uint64 // of the last sheet
	coreProxyURL string        // URL of the haproxy with core behind /api
	edgeProxyURL string        // URL of the haproxy with an edge behind /api
}

// Hostile bodies exhaust no memory and fail no honest request, over any route.
func TestStalledAndSlowUploads(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)
	const goroutines, bodyBytes = "go_goroutines", `veneer_body_bytes{listener="public"}`
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
	system := site.Start(t, blobstore.Config{URL: "file://" + t.TempDir()}, "GOMEMLIMIT="+goLimit,
		"CORE_LIMIT_UPLOADS=0", "CORE_TRUSTED_PROXIES="+trustedProxies, "EDGE_TRUSTED_PROXIES="+trustedProxies,
		// Other tests may delay a picture or a look-up by seconds.
		"EDGE_RENDER_QUEUE_TIMEOUT=10s", "EDGE_CORE_TIMEOUT=10s")
	users := site.SignIn(t, system.Core, stalledUploads+slowUploads+1)
	s := &env{System: system, users: users}
	s.client(s.CoreURL).Call(t, http.MethodPost, "/api/auth/register", map[string]any{"email": email, "password": password, "nickname": "Honest"})
	s.coreProxyURL, s.edgeProxyURL = s.haproxy(t, s.Core), s.haproxy(t, s.Edge)
	return s
}

const email, password = "honest@example.com", "correct horse"

// haproxy starts the balancer of docker-compose.yml with a program behind /api.
func (e *env) haproxy(t *testing.T, api *stack.Process) (base string) {
	t.Helper()
	address := stack.FreeAddress(t)
	server := func(p *stack.Process) string {
		_, port := stack.HostPort(p.Address(t, "operators"))
		return "  server one " + p.Address(t, "public") + " check port " + port + "\n"
	}
	config := stack.ComposeHaproxy(t, "../../..", address, server(api), server(e.Edge))
	path := stack.WriteFile(t, t.TempDir(), "haproxy.cfg", config)
	stack.RunServer(t, address, []string{"VENEER_TRUSTED_PROXIES=" + hostileAddress}, "haproxy", "-db", "-f", path)
	base = "http://" + address
	testenv.Eventually(t, "haproxy has a core", func() bool { return httpservertest.Get(t, base+"/api").Status == http.StatusOK })
	return base
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
		for range 5 {
			timed(&logIns, func() { e.client(base).LogIn(t, email, password) })
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
				status, answer := e.client(images).Do(t, http.MethodGet, fmt.Sprintf("/avatar/%d?size=%d", tid, size), nil)
				testenv.Equal(t, status, http.StatusOK, "picture: %s", answer)
			})
		}
	})
	all.Wait()
	longest := func(n *atomic.Int64) time.Duration { return time.Duration(n.Load()).Round(time.Millisecond) }
	return fmt.Sprintf("slowest log-in %s, upload %s, picture %s", longest(&logIns), longest(&uploads), longest(&pictures))
}

// upload uploads a sheet of 256 × 256 pixels of noise and returns its tid.
func (e *env) upload(t *testing.T, base string) int {
	t.Helper()
	c := e.client(base)
	c.Token = e.users[len(e.users)-1].Bearer
	return c.Upload(t, "Noise", skin.Classic, skintest.Noise(e.seed.Add(1), 256, 256)).TID
}

// client returns a client that opens a connection for each request.
func (e *env) client(base string) *site.Client {
	return &site.Client{Base: base, HTTP: &http.Client{Timeout: honestTimeout, Transport: &http.Transport{DisableKeepAlives: true}}}
}

func metric(t *testing.T, p *stack.Process, name string) int {
	t.Helper()
	return int(metricstest.Value(t, httpservertest.Get(t, p.BaseURL(t, "operators")+"/metrics").Body, name))
}

// awaitMetric waits until a metric of a program is at most what it was before the attack.
func awaitMetric(t *testing.T, p *stack.Process, name, figure string, before int) {
	t.Helper()
	for deadline := time.Now().Add(2 * honestTimeout); ; <-time.After(50 * time.Millisecond) {
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
