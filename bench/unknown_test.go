package bench_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/veneer-skins/veneer/bench/load"
	"github.com/veneer-skins/veneer/bench/system"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
)

// The size of the flood, and of what goes on beside it.
const (
	unknownRate   = 50_000
	hitRate       = 1000
	apiRate       = 300
	unknownRounds = 7
	unknownRound  = 5 * time.Second
)

// BenchmarkUnknownNames asks an edge for pictures that it has, and core for who is
// signed in, at modest rates: alone, and while the edge is asked for 50,000 names a
// second that nobody has, in turns. Where there are two processors or more, the
// requests come from the first, and everything else runs on the second.
func BenchmarkUnknownNames(b *testing.B) {
	core := newCore(b)
	people := core.SignIn(b, users)
	s := system.StartWith(b, core)
	hits := load.Load{Address: strings.TrimPrefix(s.Images, "http://"), Connections: 16}
	for _, p := range people[:100] {
		hits.Requests = append(hits.Requests, load.Request{Bytes: fmt.Appendf(nil, "GET /avatar/user/%d HTTP/1.1\r\nHost: bench\r\n\r\n", p.User)})
	}
	reads := userReads(strings.TrimPrefix(s.API, "http://"), people)
	flood := load.Flood{Address: hits.Address, Connections: 512, Append: func(buffer []byte, n int64) []byte {
		return fmt.Appendf(buffer, "GET /avatar/player/n%d HTTP/1.1\r\nHost: bench\r\n\r\n", n)
	}}
	closed(b, hits, round)
	closed(b, reads, round)
	m := &meter{tb: b, system: s, backends: backendsOf(b, core)}
	m.apart()

	type side struct{ hits50, hits99, api50, api99, edge, core, postgres, keys, queries, answers []float64 }
	var idle, flooded side
	var made int64 // names: no two are the same
	measure := func(to *side, rate float64) {
		before := m.read()
		ctx, stop := context.WithCancel(b.Context())
		var work, floods errgroup.Group
		statuses := map[int]int64{}
		if rate > 0 {
			floods.Go(func() (err error) { statuses, err = flood.Run(ctx, rate, made); return err })
			made += 2 * int64(rate*unknownRound.Seconds())
		}
		var seen, read load.Result
		work.Go(func() (err error) { seen, err = hits.Open(ctx, hitRate, unknownRound); return err })
		work.Go(func() (err error) { read, err = reads.Open(ctx, apiRate, unknownRound); return err })
		err := work.Wait()
		stop()
		check(b, seen, err)
		check(b, read, floods.Wait())
		spent := m.read().since(before)
		for list, value := range map[*[]float64]float64{
			&to.hits50: us(seen.Percentile(50)), &to.hits99: us(seen.Percentile(99)), &to.api50: us(read.Percentile(50)), &to.api99: us(read.Percentile(99)),
			&to.edge: spent.edge, &to.core: spent.core, &to.postgres: spent.postgres, &to.keys: spent.keys, &to.queries: spent.queries,
		} {
			*list = append(*list, value)
		}
		total := 0.0
		for _, n := range statuses {
			total += float64(n)
		}
		to.answers = append(to.answers, total/unknownRound.Seconds())
		b.Logf("%5.0f/s: hits p50 %v p99 %v, API p50 %v p99 %v; %s; answers %v", rate,
			seen.Percentile(50), seen.Percentile(99), read.Percentile(50), read.Percentile(99), spent, statuses)
	}

	b.ResetTimer()
	for range unknownRounds {
		measure(&idle, 0)
		measure(&flooded, unknownRate)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(flooded.answers), "unknown/s")
	b.ReportMetric(median(flooded.keys), "keys/s")
	b.ReportMetric(median(flooded.queries), "queries/s")
	for name, lists := range map[string][2][]float64{"hits": {idle.hits99, flooded.hits99}, "api": {idle.api99, flooded.api99}} {
		b.ReportMetric(median(lists[0]), name+"-idle-p99-µs")
		b.ReportMetric(median(lists[1]), name+"-p99-µs")
		b.ReportMetric(median(lists[1])/median(lists[0]), name+"-p99-ratio")
	}
	b.Logf("medians, idle and flooded, in µs: hits p50 %.0f and %.0f, p99 %.0f and %.0f; API p50 %.0f and %.0f, p99 %.0f and %.0f",
		median(idle.hits50), median(flooded.hits50), median(idle.hits99), median(flooded.hits99),
		median(idle.api50), median(flooded.api50), median(idle.api99), median(flooded.api99))
	b.Logf("processor time, idle and flooded: edge %.1f%% and %.1f%%, core %.1f%% and %.1f%%, PostgreSQL %.1f%% and %.1f%%",
		median(idle.edge), median(flooded.edge), median(idle.core), median(flooded.core), median(idle.postgres), median(flooded.postgres))
}

func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// meter tells what a system has taken and done.
type meter struct {
	tb       testing.TB
	system   *system.System
	backends []int // of PostgreSQL, which work for core
}

// reading is what a meter shows, or what has been added since another reading: of
// processors' time then in per cent of one processor, the rest a second.
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
		r.postgres += system.CPU(m.tb, pid).Seconds()
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

// apart puts the requests on one processor and the system on another.
func (m *meter) apart() {
	if runtime.NumCPU() < 2 {
		return
	}
	pin(m.tb, os.Getpid(), 0)
	for _, pid := range append([]int{m.system.Edge.PID(), m.system.Core.PID()}, m.backends...) {
		pin(m.tb, pid, 1)
	}
}

// pin has all threads of a process, and those that they start, run on one
// processor. That of another user it leaves where it is.
func pin(tb testing.TB, pid, processor int) {
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

const selectBackends = `
	SELECT pid FROM pg_stat_activity
	WHERE application_name = current_setting('application_name') AND pid <> pg_backend_pid()`

// backendsOf returns the processes of PostgreSQL that work for a core.
func backendsOf(b *testing.B, core *system.Process) []int {
	b.Helper()
	conn := postgrestest.Conn(b, core.Setting("CORE_DATABASE_URL"))
	rows, _ := conn.Query(b.Context(), selectBackends) // CollectRows reports the error
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		b.Fatal(err)
	}
	return pids
}

// scrape returns the metrics without labels of a program.
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
