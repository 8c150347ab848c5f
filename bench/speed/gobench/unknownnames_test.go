package gobench_test

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sys/unix"

	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
)

// The size of the flood, and of the load beside it.
const (
	hitRate       = 1000
	apiRate       = 300
	unknownRounds = 5
	unknownRound  = 10 * time.Second
)

// unknownRates are the rates of unknown names, in requests a second; 0 is idle.
var unknownRates = [...]float64{0, 5_000, 25_000, 50_000}

// BenchmarkUnknownNames requests cached pictures from an edge, and user data from core, at modest
// rates: alone, and while the edge gets up to 50,000 requests a second for names that do not exist,
// alternately. With two processors or more, the load runs on the first, and everything else on the
// second.
func BenchmarkUnknownNames(b *testing.B) {
	if runtime.NumCPU() > 1 {
		pinProcess(b, os.Getpid(), 1) // processes started from here on inherit the affinity
	}
	core := newCore(b)
	users := core.SignIn(b, userCount)
	s := stack.StartWith(b, core)
	images, api := strings.TrimPrefix(s.EdgeURL, "http://"), strings.TrimPrefix(s.CoreURL, "http://")
	hits, reads := &load.Stream{Connections: 16, Rate: hitRate}, &load.Stream{Connections: 16, Rate: apiRate}
	for _, p := range users[:100] {
		hits.Requests = append(hits.Requests, fmt.Appendf(nil, "GET /avatar/user/%d HTTP/1.1\r\nHost: bench\r\n\r\n", p.User))
	}
	signedIn := userReads(api, users)
	reads.Requests = signedIn.Requests
	send(b, signedIn, round)
	_ = runPrioritized(b, images, hits)
	m := &meter{tb: b, system: s, backends: backendsOf(b, core)}
	m.splitProcessors()

	type side struct{ hits50, hits99, api50, api99, edge, core, postgres, keys, queries, answers []float64 }
	var results [len(unknownRates)]side
	var namesUsed int // no two names are the same
	measure := func(to *side, rate float64) {
		before := m.read()
		var work sync.WaitGroup
		var seen []load.Answers
		var read load.Answers
		work.Go(func() {
			if rate == 0 {
				seen = runPrioritized(b, images, hits)
				return
			}
			unknown := &load.Stream{Connections: 512, Rate: rate, Requests: unknownNames(namesUsed, int(rate*unknownRound.Seconds()))}
			namesUsed += len(unknown.Requests)
			seen = runPrioritized(b, images, hits, unknown)
		})
		work.Go(func() { read = runPrioritized(b, api, reads)[0] })
		work.Wait()
		hits50, hits99, api50, api99 := percentile(b, seen[0], 50), percentile(b, seen[0], 99), percentile(b, read, 50), percentile(b, read, 99)
		usage := m.read().since(before)
		for list, value := range map[*[]float64]float64{
			&to.hits50: microseconds(hits50), &to.hits99: microseconds(hits99), &to.api50: microseconds(api50), &to.api99: microseconds(api99),
			&to.edge: usage.edge, &to.core: usage.core, &to.postgres: usage.postgres, &to.keys: usage.keys, &to.queries: usage.queries,
		} {
			*list = append(*list, value)
		}
		answers := 0.0
		if rate > 0 { // delayed requests are sent, and answered, later
			answers = float64(seen[1].Total()) / seen[1].Elapsed.Seconds()
		}
		to.answers = append(to.answers, answers)
	}

	b.ResetTimer()
	for range unknownRounds {
		for i, rate := range unknownRates {
			measure(&results[i], rate)
		}
	}
	idle := &results[0]
	for i, rate := range unknownRates {
		of := &results[i]
		b.Logf("%5.0f/s: hits p50 %.0f µs, p99 %.0f µs (%.1f times idle), API p50 %.0f µs, p99 %.0f µs (%.1f times idle); edge %.0f%%, core %.0f%%, PostgreSQL %.0f%%; %.0f keys/s in %.0f queries/s; %.0f names/s were answered", rate,
			median(of.hits50), median(of.hits99), median(of.hits99)/median(idle.hits99), median(of.api50), median(of.api99), median(of.api99)/median(idle.api99),
			median(of.edge), median(of.core), median(of.postgres), median(of.keys), median(of.queries), median(of.answers))
	}
	most := &results[len(results)-1]
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(most.hits99)/median(idle.hits99), "hits-p99-ratio")
	b.ReportMetric(median(most.api99)/median(idle.api99), "api-p99-ratio")
	b.ReportMetric(median(most.keys), "keys/s")
	b.ReportMetric(median(most.queries), "queries/s")
}

// runPrioritized sends streams for a round from a thread of higher priority, if that is allowed.
func runPrioritized(b *testing.B, address string, streams ...*load.Stream) []load.Answers {
	b.Helper()
	type outcome struct {
		answers []load.Answers
		err     error
	}
	done := make(chan outcome, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), -15); err != nil {
			b.Logf("the time is taken by an ordinary thread: %v", err)
		}
		defer func() { _ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), 0) }()
		answers, err := load.Run(b.Context(), address, unknownRound, streams...)
		for i := 0; err == nil && i < len(answers); i++ {
			err = answers[i].Check()
		}
		done <- outcome{answers, err}
	}()
	o := <-done
	if o.err != nil {
		b.Error(o.err)
		return make([]load.Answers, len(streams))
	}
	return o.answers
}

// percentile returns a percentile of the latencies. All answers must be 200.
func percentile(b *testing.B, answers load.Answers, percent float64) time.Duration {
	b.Helper()
	ok := answers.Latencies[fasthttp.StatusOK]
	if ok == nil || ok.TotalCount() != answers.Total() {
		b.Fatalf("of %d answers not all are 200", answers.Total())
	}
	return answers.Percentile(fasthttp.StatusOK, percent)
}

// unknownNames returns requests for so many players that do not exist, from a number on.
func unknownNames(from, n int) (requests [][]byte) {
	for i := range n {
		requests = append(requests, fmt.Appendf(nil, "GET /avatar/player/n%d HTTP/1.1\r\nHost: bench\r\n\r\n", from+i))
	}
	return requests
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// meter measures the CPU use and the lookups of a system.
type meter struct {
	tb       testing.TB
	system   *stack.System
	backends []int // PIDs of core's PostgreSQL backends
}

// reading is a meter's counters, or the difference of two: CPU use then in per cent of one
// processor, the rest a second.
type reading struct {
	at                                  time.Time
	edge, core, postgres, keys, queries float64
}

func (m *meter) read() reading {
	metrics := scrape(m.tb, m.system.Edge.Address(m.tb, "operators"))
	r := reading{
		at: time.Now(), edge: m.system.Edge.CPU(m.tb).Seconds(), core: m.system.Core.CPU(m.tb).Seconds(),
		keys: metrics["veneer_edge_core_keys_total"], queries: metrics["veneer_edge_core_requests_total"],
	}
	for _, pid := range m.backends {
		r.postgres += stack.CPU(m.tb, pid).Seconds()
	}
	return r
}

func (r reading) since(before reading) reading {
	seconds := r.at.Sub(before.at).Seconds()
	return reading{
		edge: 100 * (r.edge - before.edge) / seconds, core: 100 * (r.core - before.core) / seconds, postgres: 100 * (r.postgres - before.postgres) / seconds,
		keys: (r.keys - before.keys) / seconds, queries: (r.queries - before.queries) / seconds,
	}
}

func (r reading) String() string {
	return fmt.Sprintf("edge %.0f%%, core %.0f%%, PostgreSQL %.0f%%; %.0f keys/s in %.0f queries/s", r.edge, r.core, r.postgres, r.keys, r.queries)
}

// splitProcessors puts the load on one processor and the system on another.
func (m *meter) splitProcessors() {
	if runtime.NumCPU() < 2 {
		return
	}
	pinProcess(m.tb, os.Getpid(), 0)
	for _, pid := range append([]int{m.system.Edge.PID(), m.system.Core.PID()}, m.backends...) {
		pinProcess(m.tb, pid, 1)
	}
}

// pinProcess sets the affinity of all threads of a process, and so of those that they start, to one
// processor. A process of another user is left as it is.
func pinProcess(tb testing.TB, pid, processor int) {
	tb.Helper()
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		tb.Fatal(err)
	}
	var set unix.CPUSet
	set.Set(processor)
	for _, thread := range threads {
		tid, err := strconv.Atoi(thread.Name())
		if err == nil {
			err = unix.SchedSetaffinity(tid, &set)
		}
		if err != nil {
			tb.Logf("process %d stays on any processor: %v", pid, err)
			return
		}
	}
}

// backendsOf returns the PIDs of core's PostgreSQL backends.
func backendsOf(b *testing.B, core *stack.Process) []int {
	b.Helper()
	return slices.Collect(maps.Keys(stack.BackendCPU(b, postgrestest.Conn(b, core.Setting("CORE_DATABASE_URL")))))
}

// scrape returns a program's metrics without labels.
func scrape(tb testing.TB, operators string) map[string]float64 {
	tb.Helper()
	status, body, err := fasthttp.Get(nil, "http://"+operators+"/metrics")
	if err != nil || status != fasthttp.StatusOK {
		tb.Fatalf("metrics of %s: %d, %v", operators, status, err)
	}
	values := map[string]float64{}
	for line := range strings.Lines(string(body)) {
		if name, text, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			if value, err := strconv.ParseFloat(text, 64); err == nil {
				values[name] = value
			}
		}
	}
	return values
}
