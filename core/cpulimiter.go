package core

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/ratelimit"
)

// cpuLimiter bounds work that takes a processor for a while, and shares it between client networks.
type cpuLimiter struct {
	sem   chan struct{} // a token for each piece of work in progress
	queue workQueue
	// perNetwork bounds how many callers of one network work or wait for sem, which all networks
	// share: the other callers of a busy network wait here instead.
	perNetwork *ratelimit.Semaphore[netip.Prefix]
	busy       string // message of the fault when the queue is full
}

// newCPULimiter returns a limiter of number pieces of work at a time, with a queue of number × waiters
// callers.
func newCPULimiter(number, waiters int, busy string) *cpuLimiter {
	return &cpuLimiter{
		sem:        make(chan struct{}, number),
		perNetwork: ratelimit.NewSemaphore[netip.Prefix](number),
		queue:      workQueue{capacity: number * (1 + waiters), byNetwork: map[netip.Prefix]int{}},
		busy:       busy,
	}
}

// workQueue counts the callers that work or wait for that. One network gets at most half of it:
// otherwise a network that guesses passwords would keep all others from signing in.
type workQueue struct {
	capacity int

	mu        sync.Mutex
	size      int
	byNetwork map[netip.Prefix]int
}

// admit counts a caller of a network, and reports false if the queue is full for it.
func (q *workQueue) admit(network netip.Prefix) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.size >= q.capacity || q.byNetwork[network] >= q.capacity/2 {
		return false
	}
	q.size++
	q.byNetwork[network]++
	return true
}

func (q *workQueue) release(network netip.Prefix) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.size--
	if q.byNetwork[network]--; q.byNetwork[network] == 0 {
		delete(q.byNetwork, network)
	}
}

// admit counts a caller of the context's network until leave is called. It returns an Unavailable
// fault when the queue is full for the network.
func (l *cpuLimiter) admit(ctx context.Context) (leave func(), err error) {
	network := ClientOf(ctx).Network
	if !l.queue.admit(network) {
		return nil, &fault.Error{Kind: fault.Unavailable, Message: l.busy, RetryAfter: time.Second}
	}
	return func() { l.queue.release(network) }, nil
}

// acquire waits until the work may begin, and returns a function that ends it. The caller must have
// been admitted.
func (l *cpuLimiter) acquire(ctx context.Context) (release func(), err error) {
	leave, err := l.perNetwork.Acquire(ctx, ClientOf(ctx).Network)
	if err != nil {
		return nil, fmt.Errorf("wait for a processor: %w", err)
	}
	select {
	case l.sem <- struct{}{}:
		return func() { <-l.sem; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, fmt.Errorf("wait for a processor: %w", ctx.Err())
	}
}

// do runs work when a processor is free. It returns an Unavailable fault at once when the queue is
// full for the context's network.
func (l *cpuLimiter) do(ctx context.Context, work func()) error {
	leave, err := l.admit(ctx)
	if err != nil {
		return err
	}
	defer leave()
	release, err := l.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	work()
	return nil
}
