package chaos

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/system/stack"
)

// director injects faults in a random order, until each has occurred once and there were enough
// changes.
type director struct {
	*harness
	outage time.Duration
	isDone func() bool
}

// fault is a failure and its repair.
type fault struct {
	begin, end func()
	duration   time.Duration
}

// inject runs faults one after another, with pauses.
func (d director) inject(random *rand.Rand, faults func() []fault) {
	for first := true; first || !d.isDone(); first = false {
		all := faults()
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, f := range all {
			if !first && d.isDone() {
				return
			}
			f.begin()
			<-time.After(f.duration)
			f.end()
			<-time.After(time.Duration(random.Int64N(int64(1500 * time.Millisecond))))
		}
	}
}

// network breaks connections: those of an edge to the cores, and those of a core to the database,
// in each mode for the length of an outage and for a moment.
func (d director) network(random *rand.Rand) {
	d.inject(random, func() (all []fault) {
		for _, mode := range []stack.Mode{stack.Cut, stack.Hold, stack.Blackhole} {
			for _, proxy := range []*stack.Proxy{d.coreProxies[random.IntN(edges)], d.databaseProxies[random.IntN(cores)]} {
				begin, end := func() { proxy.Set(mode) }, func() { proxy.Set(stack.Pass) }
				moment := time.Duration(random.Int64N(int64(1500 * time.Millisecond)))
				all = append(all, fault{begin, end, d.outage}, fault{begin, end, moment})
			}
		}
		return all
	})
}

// processes kills and pauses programs.
func (d director) processes(t *testing.T, random *rand.Rand) {
	t.Helper()
	d.inject(random, func() []fault {
		moment := func() time.Duration { return time.Duration(random.Int64N(int64(1500 * time.Millisecond))) }
		crash := func(programs ...*stack.Process) fault {
			return fault{duration: moment(), begin: func() {
				for _, p := range programs {
					p.Kill(t)
				}
			}, end: func() {
				for _, p := range programs {
					p.Start(t)
				}
			}}
		}
		pause := func(p *stack.Process, duration time.Duration) fault {
			return fault{begin: func() { p.Pause(t) }, end: func() { p.Resume(t) }, duration: duration}
		}
		return []fault{
			crash(d.cores[random.IntN(cores)]),
			crash(d.cores[:]...),
			crash(d.edges[random.IntN(edges)]),
			pause(d.cores[random.IntN(cores)], d.outage),
			pause(d.cores[random.IntN(cores)], moment()),
			pause(d.edges[random.IntN(edges)], d.outage),
			pause(d.edges[random.IntN(edges)], moment()),
			{begin: func() { d.database.Kill(t) }, end: func() { d.database.Start(t) }, duration: moment()},
			{begin: func() { d.database.Pause(t) }, end: func() { d.database.Resume(t) }, duration: d.outage},
			{begin: func() { d.database.Pause(t) }, end: func() { d.database.Resume(t) }, duration: moment()},
		}
	})
}
