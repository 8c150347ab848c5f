// Package gobench measures Veneer end to end with Go benchmarks, where possible beside the limits
// of the machine.
package gobench_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/blobstore"
)

// The size of the comparison.
const (
	connections = 32
	// userCount is so many that none of them comes near the rate limit, however fast the machine.
	userCount = 2000
	rounds    = 11
	round     = 2 * time.Second
	// openLoopDuration is how long the open loop runs, openLoopShare its rate as a share of
	// that of the closed loop.
	openLoopDuration = 10 * time.Second
	openLoopShare    = 0.6
)

// BenchmarkReads measures GET /api/user beside pgbench, which runs the same query over as many
// connections to the same database, alternately: the ratio is what a request costs besides its
// query. Then it sends at a constant rate and measures latencies. Core runs with the default
// limits.
func BenchmarkReads(b *testing.B) {
	core := newCore(b)
	users := core.SignIn(b, userCount)
	core.Start(b)
	reads := userReads(core.Address(b, "public"), users)
	send(b, reads, round) // warms up, and shows the database the query
	pgbench := stack.NewSessionPgbench(b, core, users, connections)

	b.ResetTimer()
	var ours, theirs []float64
	var answers int64
	var cpu time.Duration
	for range rounds {
		before := core.CPU(b)
		result := send(b, reads, round)
		cpu += core.CPU(b) - before
		answers += result.Total()
		ours = append(ours, result.Rate(fasthttp.StatusOK))
		theirs = append(theirs, pgbench.Rate(b, round))
	}
	reads.Rate = openLoopShare * median(ours)
	waits := send(b, reads, openLoopDuration)
	waited := func(percent float64) time.Duration { return waits.Percentile(fasthttp.StatusOK, percent) }

	ratio, p50, p99 := median(ours)/median(theirs), waited(50), waited(99)
	b.Logf("GET /api/user, rounds: %.0f", ours)
	b.Logf("pgbench, rounds:       %.0f", theirs)
	b.Logf("medians: GET /api/user %.0f/s, pgbench %.0f/s, ratio %.3f; %d users, %d connections, no limit raised", median(ours), median(theirs), ratio, userCount, connections)
	b.Logf("open loop at %.0f/s: p50 %v, p90 %v, p99 %v, longest %v; p99 is %.1f medians", waits.Rate(fasthttp.StatusOK),
		p50, waited(90), p99, waited(100), float64(p99)/float64(p50))
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(ours), "reads/s")
	b.ReportMetric(median(theirs), "pgbench/s")
	b.ReportMetric(ratio, "ratio")
	b.ReportMetric(float64(cpu.Microseconds())/float64(answers), "core-cpu-µs/read")
	b.ReportMetric(float64(p50.Microseconds()), "p50-µs")
	b.ReportMetric(float64(p99.Microseconds()), "p99-µs")
}

// BenchmarkLimits measures the cost of rate limits: GET /api/user of a core with the default
// limits, which reject none of these requests, and of one without, alternately.
func BenchmarkLimits(b *testing.B) {
	type side struct {
		core    *stack.Process
		reads   target
		rates   []float64
		answers int64
		cpu     time.Duration
	}
	start := func(settings ...string) *side {
		core := newCore(b)
		for _, setting := range settings {
			core.Set(setting, "0")
		}
		users := core.SignIn(b, userCount)
		core.Start(b)
		s := &side{core: core, reads: userReads(core.Address(b, "public"), users)}
		send(b, s.reads, round)
		return s
	}
	defaults, none := start(), start("CORE_LIMIT_REQUESTS")

	b.ResetTimer()
	// Many short rounds, each pair in the opposite order of the last: the difference is small,
	// and the machine's speed varies from one second to the next.
	const pairs = 60
	var ratios []float64
	for i := range pairs {
		pair := []*side{defaults, none}
		if i%2 == 1 {
			slices.Reverse(pair)
		}
		for _, s := range pair {
			before := s.core.CPU(b)
			result := send(b, s.reads, round/4)
			s.cpu += s.core.CPU(b) - before
			s.answers += result.Total()
			s.rates = append(s.rates, result.Rate(fasthttp.StatusOK))
		}
		ratios = append(ratios, defaults.rates[i]/none.rates[i])
	}
	perRead := func(s *side) float64 { return float64(s.cpu.Nanoseconds()) / float64(s.answers) / 1000 }
	b.Logf("medians: %.0f/s with the limits' defaults, %.0f/s with CORE_LIMIT_REQUESTS=0; of core's CPU %.2f µs and %.2f µs a read",
		median(defaults.rates), median(none.rates), perRead(defaults), perRead(none))
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(100*(1-median(ratios)), "%-of-rate")
	b.ReportMetric(100*(perRead(defaults)/perRead(none)-1), "%-of-core-cpu")
}

// newCore returns a core that has not started. Its connections to the database have an
// application_name.
func newCore(b *testing.B) *stack.Process {
	b.Helper()
	core := stack.NewCore(b, blobstore.Config{URL: "file://" + b.TempDir()})
	core.NameConnections(b)
	return core
}

// target is an address and the requests to it.
type target struct {
	address string
	*load.Stream
}

// userReads requests each of the users at random, and checks the uid of the answers.
func userReads(address string, users []stack.SignedInUser) target {
	reads := &load.Stream{Connections: connections, Statuses: []int{fasthttp.StatusOK}, Order: load.Random(len(users), 0)}
	var wants [][]byte
	for _, p := range users {
		reads.Requests = append(reads.Requests, fmt.Appendf(nil, "GET /api/user HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", address, p.Bearer))
		wants = append(wants, fmt.Appendf(nil, `{"uid":%d,`, p.User))
	}
	expectPrefix(reads, wants...)
	return target{address, reads}
}

// expectPrefix sets the prefixes of the right answers' bodies, one for each request.
func expectPrefix(s *load.Stream, wants ...[]byte) {
	s.InspectShare, s.Inspect = 1, func(request, _ int, body []byte) error {
		if want := wants[request]; !bytes.HasPrefix(body, want) {
			return fmt.Errorf("the answer begins with %.100q; want %q", body, want)
		}
		return nil
	}
}

// send sends for a duration. All answers must be right.
func send(b *testing.B, t target, duration time.Duration) load.Answers {
	b.Helper()
	answers, err := load.Run(b.Context(), t.address, duration, t.Stream)
	if err == nil {
		err = answers[0].Check()
	}
	if err != nil {
		b.Fatal(err)
	}
	return answers[0]
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[len(sorted)/2] + sorted[(len(sorted)-1)/2]) / 2
}
