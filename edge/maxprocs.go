package edge

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// procsBoost is made for the work of slots.
//
// Go lets a goroutine run for 10 ms before it looks after others, which for whoever asks
// for a picture in memory would be an age. So while slots are in use it runs as many
// goroutines more at a time as there are slots, and the kernel gives their threads
// precedence over those of slots at once. While none is these would only be more threads
// than processors, which take turns of some milliseconds.
type procsBoost struct {
	changed chan struct{} // somebody has come, or gone, since it was emptied

	mu     sync.Mutex
	active int           // how many use slots, or wait for them
	ready  chan struct{} // closed when there is room
}

// boostLinger is how long no slot must have been in use until there is no more room than
// usual. To change that stops all goroutines for some hundredths of a millisecond, but
// has to wait for the collector of garbage before.
const boostLinger = 100 * time.Millisecond

// newProcsBoost returns room for which nobody has to wait until it is watched.
func newProcsBoost() *procsBoost {
	r := &procsBoost{changed: make(chan struct{}, 1), ready: make(chan struct{})}
	close(r.ready)
	return r
}

// acquire returns what is closed when there is room for one more, who must leave.
func (r *procsBoost) acquire() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active++
	r.notify()
	return r.ready
}

func (r *procsBoost) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active--
	r.notify()
}

// notify has watch look again.
func (r *procsBoost) notify() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// RunProcsBoost raises GOMAXPROCS by the slots while they are in use, until ctx ends. It is
// for the whole process, so only one at a time may be called there. Without it, whoever
// asks for a picture in memory may have to wait for one that is drawn.
func (p *Pictures) RunProcsBoost(ctx context.Context) {
	usual := runtime.GOMAXPROCS(0)
	p.workers.boost.run(ctx, func() { runtime.GOMAXPROCS(usual + p.workers.n) }, func() { runtime.GOMAXPROCS(usual) })
}

// run calls widen before a slot is used, and narrow when none has been for boostLinger,
// or up to twice as long, as it looks no more often. Once ctx has ended nobody waits for
// room.
func (r *procsBoost) run(ctx context.Context, widen, narrow func()) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		for r.isActive() {
			timer.Reset(boostLinger)
			select {
			case <-timer.C:
			case <-ctx.Done():
				return
			}
		}
		narrow()
		select {
		case <-r.changed:
		case <-ctx.Done():
			close(r.ready)
			return
		}
		widen()
		close(r.ready)
	}
}

// isActive reports whether slots are in use, or have been since it was called last. If
// not, whoever comes next waits for room.
func (r *procsBoost) isActive() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.changed:
		return true
	default:
	}
	if r.active == 0 {
		r.ready = make(chan struct{})
	}
	return r.active > 0
}
