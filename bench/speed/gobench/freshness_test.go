package gobench_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
)

// Parameters of BenchmarkFreshness.
const (
	freshCores    = 2
	freshEdges    = 3
	freshPlayers  = 1000
	freshSkins    = 4
	freshRate     = 200 // changes a second
	freshDuration = 30 * time.Second
	// freshPoll is the time between two requests for an awaited picture.
	freshPoll = 4 * time.Millisecond
)

// BenchmarkFreshness measures how long after a change of skin is committed each edge serves it. Two
// cores alternate in taking changes at a constant rate, and for every change each of three edges is
// polled for the player's picture until it is the new one.
//
// The commit is somewhere between the request of the change and core's response. So a delay is
// measured twice: since the response, which is a lower bound, and since the request, which is an
// upper bound.
func BenchmarkFreshness(b *testing.B) {
	env := newFreshEnv(b)
	b.ResetTimer()

	var all sync.WaitGroup
	delays := [freshEdges]delays{}
	clock := time.NewTicker(time.Second / freshRate)
	defer clock.Stop()
	began := time.Now()
	const changes = int(freshRate * freshDuration / time.Second)
	for n := range changes {
		<-clock.C
		all.Go(func() { env.change(b, n, &delays) })
	}
	rate := float64(changes) / time.Since(began).Seconds()
	all.Wait()

	var answered, requested time.Duration // of the worst edge
	for i := range delays {
		d := &delays[i]
		slices.Sort(d.sinceAnswer)
		slices.Sort(d.sinceRequest)
		b.Logf("edge %d: %d changes at %.0f/s; since core's answer p50 %v, p99 %v, longest %v; since the request p50 %v, p99 %v, longest %v", i+1, len(d.sinceAnswer), rate,
			quantile(d.sinceAnswer, 0.5), quantile(d.sinceAnswer, 0.99), quantile(d.sinceAnswer, 1),
			quantile(d.sinceRequest, 0.5), quantile(d.sinceRequest, 0.99), quantile(d.sinceRequest, 1))
		answered = max(answered, quantile(d.sinceAnswer, 0.99))
		requested = max(requested, quantile(d.sinceRequest, 0.99))
	}
	for name, cpu := range env.cpu(b) {
		b.Logf("%s: %.1f %% of a processor", name, 100*cpu.Seconds()/time.Since(began).Seconds())
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(rate, "changes/s")
	b.ReportMetric(float64(answered.Microseconds()), "p99-µs-since-answer")
	b.ReportMetric(float64(requested.Microseconds()), "p99-µs-since-request")
}

// delays is how long an edge took to serve changes.
type delays struct {
	mu                        sync.Mutex
	sinceAnswer, sinceRequest []time.Duration
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))].Round(10 * time.Microsecond)
}

// freshEnv is the programs, with their users and textures.
type freshEnv struct {
	programs map[string]*stack.Process
	apis     []*fasthttp.HostClient
	edges    []*fasthttp.HostClient
	users    []stack.SignedInUser
	pids     []int64
	tids     [freshSkins]int
	tags     [freshSkins]string // entity tags of their avatars
}

const insertFreshPlayers = `
	INSERT INTO players (uid, name, name_key, tid_skin)
	SELECT uid, 'p' || n, 'p' || n, $2 FROM unnest($1::bigint[]) WITH ORDINALITY AS u (uid, n)
	RETURNING pid`

func newFreshEnv(b *testing.B) *freshEnv {
	b.Helper()
	s := &freshEnv{programs: map[string]*stack.Process{}}
	files := blobstore.Config{URL: "file://" + b.TempDir()}
	first := stack.NewCore(b, files)
	database := first.Setting("CORE_DATABASE_URL")
	cores := []*stack.Process{first, stack.NewCoreAt(b, files, database)}
	for i, core := range cores {
		core.Set("CORE_LIMIT_REQUESTS", "0")
		core.Set("CORE_LIMIT_CHANGES", "0")
		core.Start(b)
		s.programs[fmt.Sprint("core ", i+1)] = core
		s.apis = append(s.apis, &fasthttp.HostClient{Addr: core.Address(b, "public"), MaxConns: 256})
	}
	for i := range freshEdges {
		edge := stack.NewEdge(b, files, cores[i%freshCores])
		edge.Start(b)
		s.programs[fmt.Sprint("edge ", i+1)] = edge
		s.edges = append(s.edges, &fasthttp.HostClient{Addr: edge.Address(b, "public"), MaxConns: 1024})
	}
	for _, program := range s.programs {
		program.AwaitReady(b)
	}

	s.users = first.SignIn(b, freshPlayers)
	uploader := &apiClient{api: "http://" + s.apis[0].Addr, token: s.users[0].Bearer}
	for i := range s.tids {
		s.tids[i] = uploader.call(b, "POST", "/api/textures", stack.UploadType, stack.SheetForm("bench", skin.Classic, skintest.Noise(uint64(i), 64, 64))).TID
	}
	uids := make([]int64, len(s.users))
	for i, p := range s.users {
		uids[i] = int64(p.User)
	}
	rows, _ := postgrestest.Conn(b, database).Query(b.Context(), insertFreshPlayers, uids, s.tids[0]) // CollectRows reports the error
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		b.Fatal(err)
	}
	s.pids = pids

	// Every picture and mapping is cached before: only the change stream is timed.
	for _, edge := range s.edges {
		for i, tid := range s.tids {
			if s.tags[i] = fetchTag(b, edge, fmt.Sprint("/avatar/", tid)); s.tags[i] == "" {
				b.Fatalf("there is no picture of texture %d", tid)
			}
		}
		for n := range s.users {
			if tag := fetchTag(b, edge, fmt.Sprint("/avatar/player/p", n+1)); tag != s.tags[0] {
				b.Fatalf("player %d is shown as %q; want %q", n+1, tag, s.tags[0])
			}
		}
	}
	return s
}

// change makes the n-th change and records how long each edge takes to serve it.
func (e *freshEnv) change(b *testing.B, n int, delays *[freshEdges]delays) {
	b.Helper()
	player, skin := n%freshPlayers, (n/freshPlayers+1)%freshSkins
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	api := e.apis[n%freshCores]
	request.SetRequestURI(fmt.Sprintf("http://%s/api/players/%d/textures", api.Addr, e.pids[player]))
	request.Header.SetMethod(fasthttp.MethodPut)
	request.Header.SetContentType("application/x-www-form-urlencoded")
	request.Header.Set(fasthttp.HeaderAuthorization, "Bearer "+e.users[player].Bearer)
	request.SetBodyString(fmt.Sprintf("skin=%d", e.tids[skin]))
	requested := time.Now()
	if err := api.Do(request, response); err != nil || response.StatusCode() != fasthttp.StatusOK {
		b.Errorf("change %d: %d %s, %v", n, response.StatusCode(), response.Body(), err)
		return
	}
	answered := time.Now()

	var all sync.WaitGroup
	for i, edge := range e.edges {
		all.Go(func() {
			path := fmt.Sprint("/avatar/player/p", player+1)
			for fetchTag(b, edge, path) != e.tags[skin] {
				if time.Since(answered) > 10*time.Second {
					b.Errorf("edge %d does not show change %d", i+1, n)
					return
				}
				<-time.After(freshPoll)
			}
			shown := time.Now()
			d := &delays[i]
			d.mu.Lock()
			defer d.mu.Unlock()
			d.sinceAnswer = append(d.sinceAnswer, shown.Sub(answered))
			d.sinceRequest = append(d.sinceRequest, shown.Sub(requested))
		})
	}
	all.Wait()
}

// fetchTag returns the entity tag of a picture; empty if there is no picture.
func fetchTag(b *testing.B, edge *fasthttp.HostClient, path string) string {
	b.Helper()
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	request.SetRequestURI("http://" + edge.Addr + path)
	if err := edge.Do(request, response); err != nil {
		b.Errorf("%s: %v", path, err)
		return ""
	}
	return string(response.Header.Peek(fasthttp.HeaderETag))
}

// cpu returns the CPU time of each program.
func (e *freshEnv) cpu(b *testing.B) map[string]time.Duration {
	b.Helper()
	taken := map[string]time.Duration{}
	for name, program := range e.programs {
		taken[name] = program.CPU(b)
	}
	return taken
}

// apiClient is a client of the API.
type apiClient struct{ api, token string }

// call sends a request, which must succeed, and returns the data of the response.
func (a *apiClient) call(b *testing.B, method, path, contentType string, body []byte) (data struct {
	Token string `json:"token"`
	TID   int    `json:"tid"`
},
) {
	b.Helper()
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	request.SetRequestURI(a.api + path)
	request.Header.SetMethod(method)
	request.Header.SetContentType(contentType)
	request.Header.Set(fasthttp.HeaderAuthorization, "Bearer "+a.token)
	request.SetBody(body)
	if err := fasthttp.Do(request, response); err != nil {
		b.Fatal(err)
	}
	answer := struct{ Data any }{&data}
	if err := json.Unmarshal(response.Body(), &answer); err != nil || response.StatusCode() != fasthttp.StatusOK {
		b.Fatalf("%s %s: %d %s, %v", method, path, response.StatusCode(), response.Body(), err)
	}
	return data
}
