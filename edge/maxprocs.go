package edge

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// procsBoost raises GOMAXPROCS while pictures are rendered.
//
// Go's scheduler lets a goroutine run for 10 ms before it preempts it, so a render would
// delay cache hits by that much. With one P more for each worker there is always one for the
// hits, and the kernel prefers their threads to the workers' at once. While no
// picture is rendered, the default is better: more Ps than processors are threads that the
// kernel switches every few milliseconds.
type procsBoost struct {
	changed chan struct{} // receives when active has changed; of capacity 1

	mu     sync.Mutex
	active int           // jobs that run or wait for a worker
	ready  chan struct{} // closed while GOMAXPROCS is raised
}

// boostLinger is how long GOMAXPROCS stays raised at least after the last job. Changing it
// stops the world for some tens of microseconds, and before that waits for the garbage
// collector.
const boostLinger = 100 * time.Millisecond

// newProcsBoost returns a boost that is always ready until run is called.
func newProcsBoost() *procsBoost {
	b := &procsBoost{changed: make(chan struct{}, 1), ready: make(chan struct{})}
	close(b.ready)
	return b
}

// acquire counts a job, which must call release, and returns a channel that is closed when
// the job may run.
func (b *procsBoost) acquire() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.active++
	b.notify()
	return b.ready
}

func (b *procsBoost) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.active--
	b.notify()
}

// notify wakes run.
func (b *procsBoost) notify() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// RunProcsBoost raises GOMAXPROCS by the number of workers while pictures are rendered, until
// ctx ends. GOMAXPROCS is the process's, so only one call may run at a time. Without it,
// renders delay cache hits by up to 10 ms.
//
// Between renders the runtime follows changes of the container's limit, unless GOMAXPROCS is fixed, as by the environment.
// The number of workers stays.
func (p *Pictures) RunProcsBoost(ctx context.Context, isFixed bool) {
	procs, restore := runtime.GOMAXPROCS(0), runtime.SetDefaultGOMAXPROCS
	if isFixed {
		restore = func() { runtime.GOMAXPROCS(procs) }
	}
	p.workers.boost.run(ctx, func() {
		procs = runtime.GOMAXPROCS(0)
		runtime.GOMAXPROCS(procs + p.workers.n)
	}, restore)
}

// run calls raise before a job runs, and restore when none has run for boostLinger to twice
// that, as it checks only that often. Once ctx has ended, the boost is always ready.
func (b *procsBoost) run(ctx context.Context, raise, restore func()) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		for b.isActive() {
			timer.Reset(boostLinger)
			select {
			case <-timer.C:
			case <-ctx.Done():
				return
			}
		}
		restore()
		select {
		case <-b.changed:
		case <-ctx.Done():
			close(b.ready)
			return
		}
		raise()
		close(b.ready)
	}
}

// isActive reports whether there are jobs, or have been since the last call. If not, the
// next job waits for run to raise GOMAXPROCS.
func (b *procsBoost) isActive() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.changed:
		return true
	default:
	}
	if b.active == 0 {
		b.ready = make(chan struct{})
	}
	return b.active > 0
}
