package edge

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/tracing"
)

var (
	rendersRunning = promauto.NewGauge(prometheus.GaugeOpts{Name: "veneer_edge_renders_running", Help: "Pictures that are being drawn."})
	rendersWaiting = promauto.NewGauge(prometheus.GaugeOpts{Name: "veneer_edge_renders_waiting", Help: "Pictures that wait to be drawn."})
)

// rejection is why a picture that is not in memory was refused.
type rejection uint8

const (
	queueFull rejection = iota // its own network has the most waiting
	shed                       // it waited, and another network needed the place
	timedOut                   // it waited for RENDER_QUEUE_TIMEOUT
	closed
	rejectionCount
)

var rendersRejected = func() (all [rejectionCount]prometheus.Counter) {
	refused := promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "veneer_edge_renders_rejected_total", Help: "Pictures that were refused, since too many are drawn, by reason.",
	}, []string{"reason"})
	for why, name := range [...]string{queueFull: "queue_full", shed: "shed", timedOut: "timeout", closed: "closed"} {
		all[why] = refused.WithLabelValues(name)
	}
	return all
}()

// workerPool bounds what pictures cost that are not in memory. n are drawn at once, up to
// queue more are fetched or wait, and the rest is refused at once (load shedding). What
// waits is served and shed fairly between client networks, as fairQueue says.
//
// Each worker is a thread with a lower priority than all other threads of the program. A
// picture takes up to some hundred milliseconds. At the same priority, requests for
// pictures in memory would wait that long when all cores draw.
type workerPool struct {
	n            int
	queueTimeout time.Duration
	boost        *procsBoost
	jobs         chan *job // with space for n, which is as many as are started
	closing      chan struct{}
	threads      sync.WaitGroup

	mu       sync.Mutex // of what follows, and of every demand and job
	isClosed bool
	admitted int // pictures that are being made
	capacity int // of them
	fetches  limiter
	draws    limiter
}

// limiter bounds a step of the making of pictures.
type limiter struct {
	running, limit int
	capacity       int // run or wait
	waiting        fairQueue
	start          func(*job)
}

func newWorkerPool(n, queue int, wait time.Duration) *workerPool {
	p := &workerPool{
		n:            n,
		queueTimeout: wait,
		boost:        newProcsBoost(),
		jobs:         make(chan *job, n),
		closing:      make(chan struct{}),
		capacity:     n + queue,
	}
	// A store that hangs must not keep pictures from being drawn whose textures are in
	// memory, so only half of all may need a file. Of these a quarter waits, so that files
	// are shared out fairly when the store is slow.
	files := (p.capacity + 1) / 2
	p.fetches = limiter{limit: files - files/4, capacity: files, start: func(*job) {}}
	p.draws = limiter{limit: n, capacity: p.capacity, start: func(j *job) { p.jobs <- j }}
	for range n {
		p.threads.Go(p.runWorker)
	}
	return p
}

// runWorker draws until the pool is closed.
func (p *workerPool) runWorker() {
	// Never unlocked: the thread ends with this goroutine, as no other should run there.
	runtime.LockOSThread()
	lowerThreadPriority()
	for j := range p.jobs {
		rendersRunning.Inc()
		err := recoverPanic(j.work)
		rendersRunning.Dec()
		p.release(&p.draws)
		j.done <- err
	}
}

// close waits for the pictures being drawn and lets no more begin.
func (p *workerPool) close() {
	p.mu.Lock()
	p.isClosed = true
	close(p.jobs)
	p.mu.Unlock()
	close(p.closing)
	p.threads.Wait()
}

// dispatch starts what a limiter lets start. The caller holds mu.
func (p *workerPool) dispatch(l *limiter) {
	for l.running < l.limit && l.waiting.count > 0 && !p.isClosed {
		j := l.waiting.pop()
		l.running++
		l.start(j)
		j.start <- nil
	}
}

// release makes room for the next job of a limiter.
func (p *workerPool) release(l *limiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.running--
	p.dispatch(l)
}

// shed ends the wait of a job. The caller holds mu.
func (p *workerPool) shed(j *job) {
	j.queue.drop(j)
	j.start <- reject(shed)
}

// cancel takes a job out of its queue, if it still waits.
func (p *workerPool) cancel(j *job) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if j.queue == nil {
		return false
	}
	j.queue.drop(j)
	return true
}

// demand is the client networks that wait for a value which is being made.
type demand struct {
	pool       *workerPool
	networks   []netip.Prefix
	job        *job    // what waits in a queue for it; nil if nothing does
	dependency *demand // of the value that this one waits for
	joinedLate bool    // a network of it joined work that others had begun
}

// maxDemandNetworks is how many networks of a demand are known. Of so many, one is quiet.
const maxDemandNetworks = 32

// demand returns the demand of a client network for a value.
func (p *workerPool) demand(by netip.Prefix) *demand {
	return &demand{pool: p, networks: []netip.Prefix{by}}
}

// newDependency returns the demand for a value that the demanded one is made from.
func (d *demand) newDependency() *demand {
	d.pool.mu.Lock()
	defer d.pool.mu.Unlock()
	d.dependency = &demand{pool: d.pool, networks: slices.Clone(d.networks)}
	return d.dependency
}

// join adds the networks of another demand for the same value, and those that join that
// one later. Work that waits for the value then counts for the network with the least cost
// waiting.
func (d *demand) join(other *demand) {
	d.pool.mu.Lock()
	defer d.pool.mu.Unlock()
	for _, network := range other.networks {
		other.joinedLate = d.add(network) || other.joinedLate
	}
	other.dependency = d
}

// add adds a network and reports whether it is another one.
func (d *demand) add(network netip.Prefix) bool {
	if slices.Contains(d.networks, network) {
		return false
	}
	if len(d.networks) == maxDemandNetworks {
		return true
	}
	d.networks = append(d.networks, network)
	if d.job != nil && d.job.queue != nil {
		d.job.queue.reassign(d.job, network)
	}
	if d.dependency != nil {
		d.dependency.add(network)
	}
	return true
}

// permit is a picture's place in the pool.
type permit struct {
	pool    *workerPool
	maxWait time.Duration // how long it may wait
	waited  time.Duration // how long it has
}

// admit gives a picture a place, which must be released, or refuses it.
func (p *workerPool) admit(d *demand) (*permit, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.admitted >= p.capacity && !p.shedFor(&p.draws, d) {
		return nil, reject(queueFull)
	}
	p.admitted++
	return &permit{pool: p, maxWait: p.queueTimeout}, nil
}

// shedFor sheds a job of a limiter that is full, unless it is the new one's turn to be
// shed. The caller holds mu.
func (p *workerPool) shedFor(l *limiter, d *demand) bool {
	victim := l.waiting.victim(d.networks)
	if victim == nil {
		return false
	}
	p.shed(victim)
	return true
}

func (t *permit) release() {
	t.pool.mu.Lock()
	defer t.pool.mu.Unlock()
	t.pool.admitted--
}

// fetch gets a file, which takes no worker. One file costs as much as another.
func (t *permit) fetch(ctx context.Context, d *demand, get func() error) error {
	if err := t.waitInQueue(ctx, &t.pool.fetches, &job{demand: d, cost: quantum}, closedReady); err != nil {
		return err
	}
	defer t.pool.release(&t.pool.fetches)
	return get()
}

// draw waits for a worker and has it do work of a cost.
func (t *permit) draw(ctx context.Context, d *demand, cost time.Duration, work func() error) error {
	ready := t.pool.boost.acquire()
	defer t.pool.boost.release()
	j := &job{demand: d, cost: cost, work: work, done: make(chan error, 1)}
	if err := t.waitInQueue(ctx, &t.pool.draws, j, ready); err != nil {
		return err
	}
	return <-j.done
}

// closedReady is closed: a job may be queued at once.
var closedReady = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// waitInQueue waits until ready is closed, and then for the job's turn.
func (t *permit) waitInQueue(ctx context.Context, l *limiter, j *job, ready <-chan struct{}) (err error) {
	_, span := tracing.Start(ctx, stageNames[queueing])
	defer tracing.End(span, &err)
	began := time.Now()
	timer := time.NewTimer(t.maxWait - t.waited)
	defer timer.Stop()
	rendersWaiting.Inc()
	defer rendersWaiting.Dec()
	defer func() { t.waited += time.Since(began) }()
	j.start = make(chan error, 1)
	for {
		var late func() error
		select {
		case <-ready:
			ready = nil
			t.pool.push(l, j)
			continue
		case err := <-j.start:
			return err
		case <-timer.C:
			late = func() error { return reject(timedOut) }
		case <-t.pool.closing:
			late = func() error { return reject(closed) }
		case <-ctx.Done():
			late = ctx.Err
		}
		if ready == nil && !t.pool.cancel(j) {
			return <-j.start // it was started or shed meanwhile
		}
		return late()
	}
}

// push adds a job to a limiter, or refuses it.
func (p *workerPool) push(l *limiter, j *job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.isClosed:
		j.start <- reject(closed)
	case l.running+l.waiting.count >= l.capacity && !p.shedFor(l, j.demand):
		j.start <- reject(queueFull)
	default:
		j.demand.job = j
		l.waiting.push(j)
		p.dispatch(l)
	}
}

// recoverPanic makes an error of a panic, which would otherwise end the program.
func recoverPanic(work func() error) (err error) {
	defer func() {
		if caught := recover(); caught != nil {
			err = fmt.Errorf("panic: %v\n%s", caught, debug.Stack())
		}
	}()
	return work()
}

// ErrShed is the cause of every fault that says no because too much is asked for. It
// says nothing about what is asked for, nor about where that would come from.
var ErrShed = errors.New("shed")

func reject(why rejection) error {
	rendersRejected[why].Inc()
	return &fault.Error{
		Kind:       fault.Unavailable,
		Message:    "Too many pictures are being drawn at the moment. Please try again.",
		RetryAfter: time.Second,
		Cause:      ErrShed,
	}
}

// expose registers metrics of what waits. Networks are counted and never named.
func (p *workerPool) expose(register promauto.Factory) {
	gauge := func(name, help string, value func() float64) {
		register.NewGaugeFunc(prometheus.GaugeOpts{Name: "veneer_edge_renders_waiting_" + name, Help: help}, func() float64 {
			p.mu.Lock()
			defer p.mu.Unlock()
			return value()
		})
	}
	gauge("networks", "Client networks with pictures that wait.", func() float64 { return float64(len(p.draws.waiting.networks)) })
	gauge("cost_seconds", "Estimated processor time of the pictures that wait.", func() (sum float64) {
		for _, n := range p.draws.waiting.networks {
			sum += n.cost.Seconds()
		}
		return sum
	})
	gauge("cost_seconds_busiest_network", "Estimated processor time of the pictures that wait for the network with most of it.", func() float64 {
		if n := p.draws.waiting.mostLoaded(); n != nil {
			return n.cost.Seconds()
		}
		return 0
	})
}
