package edge

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/veneer-skins/veneer/edge/cache"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/tracing"
)

var (
	rendersRunning = promauto.NewGauge(prometheus.GaugeOpts{Name: "veneer_edge_renders_running", Help: "Pictures that are being rendered."})
	rendersWaiting = promauto.NewGauge(prometheus.GaugeOpts{Name: "veneer_edge_renders_waiting", Help: "Pictures that wait to be rendered."})
)

// rejection is why a picture that is not cached was rejected.
type rejection uint8

const (
	queueFull rejection = iota // the queue is full, and its own network has the most work waiting
	displaced                  // it waited, and its place went to another network
	timedOut                   // it waited for RENDER_QUEUE_TIMEOUT
	closed
	rejectionCount
)

var rendersRejected = func() (all [rejectionCount]prometheus.Counter) {
	rejected := promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "veneer_edge_renders_rejected_total", Help: "Pictures that were rejected because too many are rendered, by reason.",
	}, []string{"reason"})
	for reason, name := range [...]string{queueFull: "queue_full", displaced: "displaced", timedOut: "timeout", closed: "closed"} {
		all[reason] = rejected.WithLabelValues(name)
	}
	return all
}()

// workerPool bounds rendering: n pictures are rendered at once, up to queue more are fetched
// or wait, and the rest is rejected at once (load shedding). Waiting jobs are served and shed
// fairly between client networks, see fairQueue.
//
// Each worker is a thread with a lower priority than all other threads of the program. A
// render takes up to some hundred milliseconds. At the same priority, cache hits would wait
// that long when all cores render.
type workerPool struct {
	n            int
	queueTimeout time.Duration
	boost        *procsBoost
	jobs         chan *job // of capacity n, the most jobs that are started
	closing      chan struct{}
	threads      sync.WaitGroup

	mu       sync.Mutex // guards the fields below, and all requesters and jobs
	isClosed bool
	admitted int // pictures that are being loaded
	capacity int // the most that may be
	fetches  limiter
	draws    limiter
	// Of sprites of cached textures, and of those that need files.
	sprites, fetchingSprites limiter
}

// limiter bounds how many jobs of a kind run, and how many run or wait.
type limiter struct {
	running, limit int
	capacity       int // the most that run or wait
	waiting        fairQueue
	start          func(*job)
}

func newWorkerPool(n, queue int, queueTimeout time.Duration) *workerPool {
	p := &workerPool{
		n:            n,
		queueTimeout: queueTimeout,
		boost:        newProcsBoost(),
		jobs:         make(chan *job, n),
		closing:      make(chan struct{}),
		capacity:     n + queue,
	}
	// Only half of all pictures may need a file, so that an object store that hangs does not
	// stop pictures of cached textures. A quarter of these waits in the fair queue, so
	// that a slow store is shared fairly.
	maxFetches := (p.capacity + 1) / 2
	p.fetches = limiter{limit: maxFetches - maxFetches/4, capacity: maxFetches, start: func(*job) {}}
	p.draws = limiter{limit: n, capacity: p.capacity, start: func(j *job) { p.jobs <- j }}
	// A sprite holds its pixels while its textures are fetched and its tiles wait for a worker. So only one of
	// cached textures for each worker is made at once, and one more of those that need files, since a worker is
	// idle while a sprite fetches. The former wait for no file. Those that wait hold nothing. A quarter of all
	// pictures may be of either kind, so that others can be loaded.
	maxSprites := p.capacity / 4
	p.sprites = limiter{limit: n, capacity: max(n, maxSprites), start: func(*job) {}}
	p.fetchingSprites = limiter{limit: n + 1, capacity: max(n+1, maxSprites), start: func(*job) {}}
	for range n {
		p.threads.Go(p.runWorker)
	}
	return p
}

// runWorker runs jobs until the pool is closed.
func (p *workerPool) runWorker() {
	// Never unlocked: the thread ends with this goroutine, since no other goroutine should
	// run at its priority.
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

// close waits for the running jobs and rejects all others.
func (p *workerPool) close() {
	p.mu.Lock()
	p.isClosed = true
	close(p.jobs)
	p.mu.Unlock()
	close(p.closing)
	p.threads.Wait()
}

// dispatch starts as many waiting jobs as a limiter allows. The caller holds mu.
func (p *workerPool) dispatch(l *limiter) {
	for l.running < l.limit && l.waiting.count > 0 && !p.isClosed {
		j := l.waiting.pop()
		l.running++
		l.start(j)
		j.start <- nil
	}
}

// release ends a job of a limiter and starts the next one.
func (p *workerPool) release(l *limiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.running--
	p.dispatch(l)
}

// displace rejects a waiting job. The caller holds mu.
func (p *workerPool) displace(j *job) {
	j.queue.drop(j)
	j.start <- reject(displaced)
}

// cancel removes a job from its queue and reports whether it still waited there.
func (p *workerPool) cancel(j *job) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if j.queue == nil {
		return false
	}
	j.queue.drop(j)
	return true
}

// requesters are the client networks that wait for a value which is being loaded.
type requesters struct {
	pool       *workerPool
	networks   []netip.Prefix
	job        *job        // the waiting job that loads the value; nil if there is none
	dependency *requesters // of the value that this one is made from
	joinedLate bool        // a network of these joined a load that another network had started
}

// maxRequesterNetworks bounds the networks of one value. With more, which one is charged hardly matters.
const maxRequesterNetworks = 32

// requesters returns the requesters of a value, at first one client network.
func (p *workerPool) requesters(network netip.Prefix) *requesters {
	return &requesters{pool: p, networks: []netip.Prefix{network}}
}

// newDependency returns requesters of the same networks for a value that this one is made from.
func (r *requesters) newDependency() *requesters {
	r.pool.mu.Lock()
	defer r.pool.mu.Unlock()
	r.dependency = &requesters{pool: r.pool, networks: slices.Clone(r.networks)}
	return r.dependency
}

// Join adds the networks of later requesters of the same value, and of those that join them. A job that waits for
// the value then counts for the network with the least cost waiting.
func (r *requesters) Join(later cache.Waiter) {
	other, ok := later.(*requesters)
	if !ok {
		return // there are no others in this package
	}
	r.pool.mu.Lock()
	defer r.pool.mu.Unlock()
	for _, network := range other.networks {
		other.joinedLate = r.add(network) || other.joinedLate
	}
	other.dependency = r
}

// JoinedLate reports whether the requesters have joined a load that was started for other networks only. Such a
// load is shed as work of these networks.
func (r *requesters) JoinedLate() bool { return r.joinedLate }

// add adds a network and reports whether it was new.
func (r *requesters) add(network netip.Prefix) bool {
	if slices.Contains(r.networks, network) {
		return false
	}
	if len(r.networks) == maxRequesterNetworks {
		return true
	}
	r.networks = append(r.networks, network)
	if r.job != nil && r.job.queue != nil {
		r.job.queue.reassign(r.job, network)
	}
	if r.dependency != nil {
		r.dependency.add(network)
	}
	return true
}

// permit is the right of one picture to be loaded.
type permit struct {
	pool    *workerPool
	maxWait time.Duration // in all queues together
	waited  time.Duration // so far
}

// admit returns a permit, which must be released, or rejects the picture.
func (p *workerPool) admit(r *requesters) (*permit, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.admitted >= p.capacity && !p.shedFor(&p.draws, r) {
		return nil, reject(queueFull)
	}
	p.admitted++
	return &permit{pool: p, maxWait: p.queueTimeout}, nil
}

// child returns a permit for a part of a sprite, which may wait as long as a picture. It is not released.
func (p *permit) child() *permit { return &permit{pool: p.pool, maxWait: p.maxWait} }

// shedFor sheds a waiting job in favour of a new one, and reports whether it did: otherwise
// the new one is to be rejected. The caller holds mu.
func (p *workerPool) shedFor(l *limiter, r *requesters) bool {
	victim := l.waiting.victim(r.networks)
	if victim == nil {
		return false
	}
	p.displace(victim)
	return true
}

func (p *permit) release() {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	p.pool.admitted--
}

// runSprite calls load to load a sprite of an estimated cost. The parts of the sprite take workers.
func (p *permit) runSprite(ctx context.Context, r *requesters, cost time.Duration, needsFiles bool, load func() error) error {
	limiter := &p.pool.sprites
	if needsFiles {
		limiter = &p.pool.fetchingSprites
	}
	if err := p.acquire(ctx, limiter, r, cost); err != nil {
		return err
	}
	defer p.pool.release(limiter)
	return load()
}

// acquire waits until a job of a limiter may run, which takes no worker. The caller must release the limiter.
func (p *permit) acquire(ctx context.Context, l *limiter, r *requesters, cost time.Duration) error {
	return p.waitInQueue(ctx, l, &job{requesters: r, cost: cost}, closedChan)
}

// draw waits until a worker has run a job of an estimated cost.
func (p *permit) draw(ctx context.Context, r *requesters, cost time.Duration, work func() error) error {
	ready := p.pool.boost.acquire()
	defer p.pool.boost.release()
	j := &job{requesters: r, cost: cost, work: work, done: make(chan error, 1)}
	if err := p.waitInQueue(ctx, &p.pool.draws, j, ready); err != nil {
		return err
	}
	return <-j.done
}

// waitInQueue waits until ready is closed, and then until the job is started or rejected.
func (p *permit) waitInQueue(ctx context.Context, l *limiter, j *job, ready <-chan struct{}) (err error) {
	_, span := tracing.Start(ctx, stageNames[queueing])
	defer tracing.End(span, &err)
	start := time.Now()
	timer := time.NewTimer(p.maxWait - p.waited)
	defer timer.Stop()
	rendersWaiting.Inc()
	defer rendersWaiting.Dec()
	defer func() { p.waited += time.Since(start) }()
	j.start = make(chan error, 1)
	for {
		var giveUp func() error
		select {
		case <-ready:
			ready = nil
			p.pool.push(l, j)
			continue
		case err := <-j.start:
			return err
		case <-timer.C:
			giveUp = func() error { return reject(timedOut) }
		case <-p.pool.closing:
			giveUp = func() error { return reject(closed) }
		case <-ctx.Done():
			giveUp = ctx.Err
		}
		if ready == nil && !p.pool.cancel(j) {
			return <-j.start // started or shed in the meantime
		}
		return giveUp()
	}
}

// push adds a job to a limiter, or rejects it.
func (p *workerPool) push(l *limiter, j *job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.isClosed:
		j.start <- reject(closed)
	case l.running+l.waiting.count >= l.capacity && !p.shedFor(l, j.requesters):
		j.start <- reject(queueFull)
	default:
		j.requesters.job = j
		l.waiting.push(j)
		p.dispatch(l)
	}
}

// recoverPanic returns a panic of work as an error: it would end the program.
func recoverPanic(work func() error) (err error) {
	defer func() {
		if caught := recover(); caught != nil {
			err = fmt.Errorf("panic: %v\n%s", caught, debug.Stack())
		}
	}()
	return work()
}

// ErrShed is the cause of every fault that rejects a request because of too much load. It
// says nothing about the requested value, nor about the state of core or the object store.
var ErrShed = cache.ErrShed

func reject(reason rejection) error {
	rendersRejected[reason].Inc()
	return &fault.Error{
		Kind:       fault.Unavailable,
		Message:    "Too many pictures are being drawn at the moment. Please try again.",
		RetryAfter: time.Second,
		Cause:      ErrShed,
	}
}

// expose registers metrics of the queue. They count networks and do not name them.
func (p *workerPool) expose(register promauto.Factory) {
	gauge := func(name, help string, value func() float64) {
		register.NewGaugeFunc(prometheus.GaugeOpts{Name: "veneer_edge_renders_waiting_" + name, Help: help}, func() float64 {
			p.mu.Lock()
			defer p.mu.Unlock()
			return value()
		})
	}
	gauge("networks", "Client networks with waiting pictures.", func() float64 { return float64(len(p.waitingCosts())) })
	gauge("cost_seconds", "Estimated processor time of the waiting pictures.", func() (sum float64) {
		for _, cost := range p.waitingCosts() {
			sum += cost
		}
		return sum
	})
	gauge("cost_seconds_busiest_network", "Estimated processor time of the waiting pictures of the network with most of it.", func() (most float64) {
		for _, cost := range p.waitingCosts() {
			most = max(most, cost)
		}
		return most
	})
}

// waitingCosts returns the estimated seconds of the pictures and sprites that wait to be drawn, by network. The
// caller holds mu.
func (p *workerPool) waitingCosts() map[netip.Prefix]float64 {
	costs := map[netip.Prefix]float64{}
	for _, l := range []*limiter{&p.draws, &p.sprites, &p.fetchingSprites} {
		for prefix, n := range l.waiting.networks {
			costs[prefix] += n.cost.Seconds()
		}
	}
	return costs
}
