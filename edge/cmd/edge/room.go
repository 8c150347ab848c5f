package main

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
)

// room is a renderer for whose work Go makes room.
//
// Go lets a goroutine run for 10 ms before it looks after others, which for whoever asks
// for a picture in memory would be an age. So while pictures are drawn it runs as many
// goroutines more at a time as there are slots, and the kernel gives their threads
// precedence over those of slots at once. While nothing is drawn these would only be more
// threads than processors, which take turns of some milliseconds.
type room struct {
	edge.Renderer
	news chan struct{} // a drawing wants to begin, or has ended, since it was emptied

	mu      sync.Mutex
	drawing int           // how many want to begin, and have not ended
	made    chan struct{} // closed when there is room
}

// roomKept is how long nothing must have been drawn until there is no more room than
// usual. To change that stops all goroutines for some hundredths of a millisecond, but
// has to wait for the collector of garbage before.
const roomKept = 100 * time.Millisecond

func newRoom(renderer edge.Renderer) *room {
	return &room{Renderer: renderer, news: make(chan struct{}, 1), made: make(chan struct{})}
}

// Render draws as soon as there is room.
func (r *room) Render(sheet skin.Sheet, view render.View) ([]byte, render.Took, error) {
	<-r.count(1)
	defer r.count(-1)
	return r.Renderer.Render(sheet, view)
}

// count counts drawings, and returns what is closed when there is room for them.
func (r *room) count(more int) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drawing += more
	select {
	case r.news <- struct{}{}:
	default:
	}
	return r.made
}

// keep makes room for so many slots while pictures are drawn, until ctx ends.
func (r *room) keep(ctx context.Context, slots int) {
	usual := runtime.GOMAXPROCS(0)
	r.watch(ctx, func() { runtime.GOMAXPROCS(usual + slots) }, func() { runtime.GOMAXPROCS(usual) })
}

// watch calls widen before something is drawn, and narrow when nothing has been for
// roomKept, or up to twice as long, as it looks no more often. Once ctx has ended nobody
// waits for room.
func (r *room) watch(ctx context.Context, widen, narrow func()) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-r.news:
		case <-ctx.Done():
			close(r.made)
			return
		}
		widen()
		close(r.made)
		for r.isUsed() {
			timer.Reset(roomKept)
			select {
			case <-timer.C:
			case <-ctx.Done():
				return
			}
		}
		narrow()
	}
}

// isUsed reports whether something is drawn, or has been since it was called last. If
// not, who draws next waits for room.
func (r *room) isUsed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.news:
		return true
	default:
	}
	if r.drawing == 0 {
		r.made = make(chan struct{})
	}
	return r.drawing > 0
}
