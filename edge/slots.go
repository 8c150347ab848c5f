package edge

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/tracing"
)

var (
	rendersRunning = metrics.NewGauge("veneer_edge_renders_running", nil)
	rendersWaiting = metrics.NewGauge("veneer_edge_renders_waiting", nil)
	rendersRefused = metrics.NewCounter("veneer_edge_renders_refused_total")
)

// slots bounds what pictures cost that are not in memory. So many of them are worked on
// at once, so many more are fetched or wait for their turn, and all others are turned
// away at once: a picture that comes late is worth less than quick pictures for
// everybody else.
//
// The work is done on threads of their own, one for each slot, that stand back for all
// other threads of the program. A picture takes up to some ten milliseconds; without
// that, whoever asks for one in memory would wait for the end of it wherever all
// processors draw.
type slots struct {
	n       int
	wait    time.Duration
	room    *room // pictures from when they want a slot until they leave it
	inside  bound // pictures from when they are admitted until they are finished
	fetched bound // those of them that need a file from the store
	jobs    chan job
	closing chan struct{}
	workers sync.WaitGroup
}

// job is work for a slot. Whoever gave it waits for its end.
type job struct {
	work func() error
	done chan<- error
}

func newSlots(n, queue int, wait time.Duration) *slots {
	most := int64(n + queue)
	s := &slots{
		n:      n,
		wait:   wait,
		room:   newRoom(),
		inside: bound{most: most},
		// A store that hangs must not keep those from being drawn whose textures are
		// in memory.
		fetched: bound{most: (most + 1) / 2},
		jobs:    make(chan job),
		closing: make(chan struct{}),
	}
	for range n {
		s.workers.Go(s.serve)
	}
	return s
}

// serve works until the slots are closed.
func (s *slots) serve() {
	// Never unlocked: the thread ends with this goroutine, as no other should run there.
	runtime.LockOSThread()
	standBack()
	for {
		select {
		case j := <-s.jobs:
			rendersRunning.Inc()
			err := survive(j.work)
			rendersRunning.Dec()
			j.done <- err
		case <-s.closing:
			return
		}
	}
}

// close waits for the work that is being done and lets no more begin.
func (s *slots) close() {
	close(s.closing)
	s.workers.Wait()
}

// enter admits a picture, which must leave when it is finished, or turns it away.
func (s *slots) enter() (*turn, error) {
	if !s.inside.enter() {
		return nil, refuse()
	}
	return &turn{slots: s, wait: s.wait}, nil
}

// turn is the stay of a picture that was admitted.
type turn struct {
	slots  *slots
	wait   time.Duration // how long it may wait for slots
	waited time.Duration // how long it has
}

func (t *turn) leave() { t.slots.inside.leave() }

// fetch gets something from elsewhere, which takes no slot. It turns the picture away
// if too many others are doing that.
func (t *turn) fetch(get func() error) error {
	if !t.slots.fetched.enter() {
		return refuse()
	}
	defer t.slots.fetched.leave()
	return get()
}

// use waits for a slot and has work done in it.
func (t *turn) use(ctx context.Context, work func() error) error {
	made := t.slots.room.enter()
	defer t.slots.room.leave()
	done := make(chan error, 1) // buffered, so that the slot is free at once
	if err := t.queue(ctx, made, job{work, done}); err != nil {
		return err
	}
	return <-done
}

// queue waits until room is made and then for a slot that takes a job.
func (t *turn) queue(ctx context.Context, made <-chan struct{}, j job) (err error) {
	_, span := tracing.Start(ctx, stageNames[queueing])
	defer tracing.End(span, &err)
	began := time.Now()
	timer := time.NewTimer(t.wait - t.waited)
	defer timer.Stop()
	rendersWaiting.Inc()
	defer rendersWaiting.Dec()
	var jobs chan<- job // nil, which takes nothing, until then
	for {
		select {
		case <-made:
			made, jobs = nil, t.slots.jobs
		case jobs <- j:
			t.waited += time.Since(began)
			return nil
		case <-timer.C:
			return refuse()
		case <-t.slots.closing:
			return refuse()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// survive makes an error of a panic, which would otherwise end the program.
func survive(work func() error) (err error) {
	defer func() {
		if caught := recover(); caught != nil {
			err = fmt.Errorf("panic: %v\n%s", caught, debug.Stack())
		}
	}()
	return work()
}

// bound is how many may be somewhere at once.
type bound struct {
	most int64
	now  atomic.Int64
}

// enter reports whether there is room for one more, who must leave.
func (b *bound) enter() bool {
	if b.now.Add(1) > b.most {
		b.now.Add(-1)
		return false
	}
	return true
}

func (b *bound) leave() { b.now.Add(-1) }

// ErrShed is the cause of every fault that says no because too much is asked for. It
// says nothing about what is asked for, nor about where that would come from.
var ErrShed = errors.New("shed")

func refuse() error {
	rendersRefused.Inc()
	return &fault.Error{
		Kind:       fault.Unavailable,
		Message:    "Too many pictures are being drawn at the moment. Please try again.",
		RetryAfter: time.Second,
		Cause:      ErrShed,
	}
}
