//go:build !race

package chaos

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

// runConfig is the configuration of a run, from the environment.
type runConfig struct {
	seed    uint64
	changes int64
	outage  time.Duration
}

// readRunConfig reads TEST_CHAOS_SEED, TEST_CHAOS_CHANGES and TEST_CHAOS_OUTAGE.
func readRunConfig(t *testing.T) runConfig {
	t.Helper()
	r := runConfig{seed: rand.Uint64(), changes: 2_000, outage: 3 * time.Second}
	var err error
	for name, set := range map[string]func(string){
		"TEST_CHAOS_SEED":    func(value string) { r.seed, err = strconv.ParseUint(value, 10, 64) },
		"TEST_CHAOS_CHANGES": func(value string) { r.changes, err = strconv.ParseInt(value, 10, 64) },
		"TEST_CHAOS_OUTAGE":  func(value string) { r.outage, err = time.ParseDuration(value) },
	} {
		if value := os.Getenv(name); value != "" {
			if set(value); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	return r
}

// While all programs crash, pause and lose their connections, an answer that is not marked as stale
// was true at most a second before the request, and so is every answer of an edge that has been
// connected for a second. At the end every edge serves what the database holds, and none had to
// flush its cache to get there.
func TestNoStaleAnswersUnderChaos(t *testing.T) {
	t.Parallel()
	run := readRunConfig(t)
	t.Logf("TEST_CHAOS_SEED=%d TEST_CHAOS_CHANGES=%d TEST_CHAOS_OUTAGE=%s", run.seed, run.changes, run.outage)
	began := time.Now()
	s := startHarness(t)
	opened := time.Now()
	w := s.populate(t)
	t.Logf("the programs run after %s, and users and skins exist %s later", opened.Sub(began).Round(logPrecision), time.Since(opened).Round(logPrecision))

	var pollers, clients sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer pollers.Wait()
	defer clients.Wait()
	defer stop()
	clientCtx, stopClients := context.WithCancel(ctx)
	defer stopClients()
	for i, client := range s.clients {
		pollers.Go(func() { client.pollMetrics(ctx) })
		for j := range clientsPerEdge {
			random := rand.New(rand.NewPCG(run.seed, uint64(100+10*i+j)))
			clients.Go(func() { client.verify(clientCtx, t, random, w[0].recent) })
		}
	}
	writerCtx, stopWriters := context.WithCancel(ctx)
	var workers sync.WaitGroup
	tick := make(chan time.Time)
	workers.Go(func() { pace(writerCtx, tick) })
	for i, writer := range w {
		writer.Rand = rand.New(rand.NewPCG(run.seed, uint64(i)))
		workers.Go(func() { writer.run(writerCtx, tick) })
	}

	began = time.Now()
	d := director{harness: s, outage: run.outage, isDone: func() bool { return t.Failed() || w[0].committed.Load() >= run.changes }}
	var network sync.WaitGroup
	network.Go(func() { d.network(rand.New(rand.NewPCG(run.seed, 1000))) })
	d.processes(t, rand.New(rand.NewPCG(run.seed, 1001)))
	network.Wait()
	stopWriters()
	workers.Wait()
	ended := time.Now()
	s.awaitConnected(t)
	stopClients()
	clients.Wait()
	unknown := 0
	for _, writer := range w {
		unknown += writer.unknown
	}
	t.Logf("%d changes committed and %d uncertain in %s; all edges connected %s later",
		w[0].committed.Load(), unknown, ended.Sub(began).Round(logPrecision), time.Since(ended).Round(logPrecision))
	for _, client := range s.clients {
		t.Logf("%s: %d requests, %d answers marked as stale, %d errors", client.name, client.requests.Load(), client.stale.Load(), client.errors.Load())
	}
	if t.Failed() {
		return
	}
	s.compare(t, w[0])
}

// pace sends ticks at changeRate until ctx ends.
func pace(ctx context.Context, tick chan<- time.Time) {
	for clock := time.NewTicker(time.Second / changeRate); ; {
		select {
		case now := <-clock.C:
			select {
			case tick <- now:
			case <-ctx.Done():
				return
			}
		case <-ctx.Done():
			return
		}
	}
}
