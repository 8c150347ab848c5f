package edge

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// room is made for the work of slots.
//
// Go lets a goroutine run for 10 ms before it looks after others, which for whoever asks
// for a picture in memory would be an age. So while slots are in use it runs as many
// goroutines more at a time as there are slots, and the kernel gives their threads
// precedence over those of slots at once. While none is these would only be more threads
// than processors, which take turns of some milliseconds.
type room struct {
	news chan struct{} // somebody has come, or gone, since it was emptied

	mu    sync.Mutex
	users int           // how many use slots, or wait for them
	made  chan struct{} // closed when there is room
}

// roomKept is how long no slot must have been in use until there is no more room than
// usual. To change that stops all goroutines for some hundredths of a millisecond, but
// has to wait for the collector of garbage before.
const roomKept = 100 * time.Millisecond

// newRoom returns room for which nobody has to wait until it is watched.
func newRoom() *room {
	r := &room{news: make(chan struct{}, 1), made: make(chan struct{})}
	close(r.made)
	return r
}

// enter returns what is closed when there is room for one more, who must leave.
func (r *room) enter() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.users++
	r.tell()
	return r.made
}

func (r *room) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.users--
	r.tell()
}

// tell has watch look again.
func (r *room) tell() {
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// MakeRoom raises GOMAXPROCS by the slots while they are in use, until ctx ends. It is
// for the whole process, so only one at a time may be called there. Without it, whoever
// asks for a picture in memory may have to wait for one that is drawn.
func (p *Pictures) MakeRoom(ctx context.Context) {
	usual := runtime.GOMAXPROCS(0)
	p.workers.room.watch(ctx, func() { runtime.GOMAXPROCS(usual + p.workers.n) }, func() { runtime.GOMAXPROCS(usual) })
}

// watch calls widen before a slot is used, and narrow when none has been for roomKept,
// or up to twice as long, as it looks no more often. Once ctx has ended nobody waits for
// room.
func (r *room) watch(ctx context.Context, widen, narrow func()) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		for r.isUsed() {
			timer.Reset(roomKept)
			select {
			case <-timer.C:
			case <-ctx.Done():
				return
			}
		}
		narrow()
		select {
		case <-r.news:
		case <-ctx.Done():
			close(r.made)
			return
		}
		widen()
		close(r.made)
	}
}

// isUsed reports whether slots are in use, or have been since it was called last. If
// not, whoever comes next waits for room.
func (r *room) isUsed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.news:
		return true
	default:
	}
	if r.users == 0 {
		r.made = make(chan struct{})
	}
	return r.users > 0
}
