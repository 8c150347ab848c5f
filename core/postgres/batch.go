package postgres

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/veneer-skins/veneer/shared/ratelimit"
	"github.com/veneer-skins/veneer/shared/tracing"
)

// batcher coalesces concurrent single-row queries into pipelined batches, each on one
// connection. Most of what a small query costs is its round trip, which a batch shares. A query
// is sent at once if fewer than maxBatches are in flight, and otherwise with the next batch.
// Results are never older than the query.
type batcher[T any] struct {
	pool    readPool
	clients clientLimits // of queries that are pending or in flight

	mu      sync.Mutex
	pending []*batchQuery[T]
	batches int // in flight
}

// Two batches in flight keep the database busy during a round trip. More would make the batches
// smaller.
const (
	maxBatches   = 2
	maxBatchSize = 64
	batchTimeout = 3 * time.Second
	// maxNetworkQueries is how many queries one client network has pending or in flight: a query of another
	// network is in flight after at most two batches.
	maxNetworkQueries = 3 * maxBatches * maxBatchSize / 4
)

func newBatcher[T any](pool readPool) *batcher[T] {
	return &batcher[T]{pool: pool, clients: clientLimits{networks: ratelimit.NewSemaphore[netip.Prefix](maxNetworkQueries)}}
}

type batchQuery[T any] struct {
	statement
	span trace.Span // of the caller
	done chan struct{}
	rows []T
	err  error
}

// query returns the rows of a statement. It returns an Unavailable fault if other queries of the client take
// longer than clientLimitTimeout.
func (b *batcher[T]) query(ctx context.Context, s statement) (rows []T, err error) {
	err = b.clients.do(ctx, func() error {
		return retryRead(ctx, func() (err error) {
			rows, err = b.enqueue(ctx, s)
			return err
		})
	})
	return rows, err
}

// enqueue adds a query to the pending ones, and waits for its rows.
func (b *batcher[T]) enqueue(ctx context.Context, s statement) ([]T, error) {
	q := &batchQuery[T]{statement: s, span: trace.SpanFromContext(ctx), done: make(chan struct{})}
	b.mu.Lock()
	b.pending = append(b.pending, q)
	if b.batches < maxBatches {
		b.batches++
		go b.run()
	}
	b.mu.Unlock()

	select {
	case <-q.done:
		return q.rows, q.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// run sends batches until no query is pending.
func (b *batcher[T]) run() {
	for {
		b.mu.Lock()
		n := min(len(b.pending), maxBatchSize)
		if n == 0 {
			b.batches--
			b.mu.Unlock()
			return
		}
		queries := b.pending[:n:n]
		b.pending = b.pending[n:]
		b.mu.Unlock()

		err := b.send(queries)
		for _, q := range queries {
			q.err = err
			close(q.done)
		}
	}
}

// send runs a batch of queries: all of them succeed, or none. Its timeout is independent of the
// callers' contexts, since the queries of other callers share the batch.
func (b *batcher[T]) send(queries []*batchQuery[T]) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), batchTimeout)
	defer cancel()
	ctx, span := tracing.StartLinked(ctx, "batch", func(yield func(trace.Span) bool) {
		for _, q := range queries {
			if !yield(q.span) {
				return
			}
		}
	}, trace.WithAttributes(attribute.Int("queries", len(queries))))
	defer tracing.End(span, &err)
	var batch pgx.Batch
	for _, q := range queries {
		q.queue(&batch).Query(collectInto(&q.rows))
	}
	return b.pool.SendBatch(ctx, &batch).Close()
}
