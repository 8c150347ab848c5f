package ratelimit

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Semaphore bounds the concurrent calls of each client. More calls wait, in order of arrival,
// and only for calls of the same client. It takes memory only for clients with calls.
type Semaphore[C comparable] struct {
	limit int64

	mu      sync.Mutex
	clients map[C]*calls
}

// calls are the calls of one client.
type calls struct {
	*semaphore.Weighted
	n int // running or waiting
}

// NewSemaphore returns a semaphore of at most limit concurrent calls of each client.
func NewSemaphore[C comparable](limit int) *Semaphore[C] {
	return &Semaphore[C]{limit: int64(limit), clients: map[C]*calls{}}
}

// Acquire waits until a call of a client may begin, and returns the function that ends it. It
// returns the error of ctx if that ends first.
func (s *Semaphore[C]) Acquire(ctx context.Context, client C) (release func(), err error) {
	c := s.ref(client)
	if err := c.Acquire(ctx, 1); err != nil {
		s.unref(client, c)
		return nil, err
	}
	return func() {
		c.Release(1)
		s.unref(client, c)
	}, nil
}

func (s *Semaphore[C]) ref(client C) *calls {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clients[client]
	if c == nil {
		c = &calls{Weighted: semaphore.NewWeighted(s.limit)}
		s.clients[client] = c
	}
	c.n++
	return c
}

func (s *Semaphore[C]) unref(client C, c *calls) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.n--; c.n == 0 {
		delete(s.clients, client)
	}
}
