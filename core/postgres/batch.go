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
// connection. Most of what a small query costs is its round trip and the start of its statement, which a
// batch shares. A query is sent at once if no batch is in flight, and otherwise with the next one. Beside
// batches that are slow there is another one, up to maxBatches. Results are never older than the query.
type batcher[Q, T any] struct {
	pool    readPool
	queue   func(*pgx.Batch, []*batchQuery[Q, T]) // adds statements, which set the rows of the queries
	clients clientLimits                          // of queries that are pending or in flight

	mu      sync.Mutex
	pending []*batchQuery[Q, T]
	batches int // in flight
	slow    int // of them
}

// With one batch in flight instead of two, the batches are larger, and core takes a seventh less of its
// processor for GET /api/user.
const (
	maxBatches   = 2
	maxBatchSize = 64
	batchTimeout = 3 * time.Second
	slowAfter    = 50 * time.Millisecond
	// maxNetworkQueries is how many queries one client network has pending or in flight: a query of another
	// network is in flight after at most two batches.
	maxNetworkQueries = 3 * maxBatches * maxBatchSize / 4
)

func newBatcher[Q, T any](pool readPool, queue func(*pgx.Batch, []*batchQuery[Q, T])) *batcher[Q, T] {
	return &batcher[Q, T]{pool: pool, queue: queue, clients: clientLimits{networks: ratelimit.NewSemaphore[netip.Prefix](maxNetworkQueries)}}
}

type batchQuery[Q, T any] struct {
	query Q
	span  trace.Span // of the caller
	done  chan struct{}
	rows  []T
	err   error
}

// queueEach adds a statement for each query.
func queueEach[T any](batch *pgx.Batch, queries []*batchQuery[statement, T]) {
	for _, q := range queries {
		q.query.queue(batch).Query(collectInto(&q.rows))
	}
}

// query returns the rows of a query. It returns an Unavailable fault if other queries of the client take
// longer than clientLimitTimeout.
func (b *batcher[Q, T]) query(ctx context.Context, query Q) (rows []T, err error) {
	err = b.clients.do(ctx, func() error {
		return retryRead(ctx, func() (err error) {
			rows, err = b.enqueue(ctx, query)
			return err
		})
	})
	return rows, err
}

// enqueue adds a query to the pending ones, and waits for its rows.
func (b *batcher[Q, T]) enqueue(ctx context.Context, query Q) ([]T, error) {
	q := &batchQuery[Q, T]{query: query, span: trace.SpanFromContext(ctx), done: make(chan struct{})}
	b.mu.Lock()
	b.pending = append(b.pending, q)
	b.start()
	b.mu.Unlock()

	select {
	case <-q.done:
		return q.rows, q.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// start sends the pending queries if all batches in flight are slow. The caller holds mu.
func (b *batcher[Q, T]) start() {
	if len(b.pending) > 0 && b.batches == b.slow && b.batches < maxBatches {
		b.batches++
		go b.run()
	}
}

// run sends batches until no query is pending, or another run does.
func (b *batcher[Q, T]) run() {
	for {
		b.mu.Lock()
		n := min(len(b.pending), maxBatchSize)
		if n == 0 || b.batches > b.slow+1 {
			b.batches--
			b.mu.Unlock()
			return
		}
		queries := b.pending[:n:n]
		b.pending = b.pending[n:]
		b.mu.Unlock()

		var isSlow, hasEnded bool
		timer := time.AfterFunc(slowAfter, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			if !hasEnded {
				isSlow = true
				b.slow++
				b.start()
			}
		})
		err := b.send(queries)
		timer.Stop()
		b.mu.Lock()
		if hasEnded = true; isSlow {
			b.slow--
		}
		b.mu.Unlock()
		for _, q := range queries {
			q.err = err
			close(q.done)
		}
	}
}

// send runs a batch of queries: all of them succeed, or none. Its timeout is independent of the
// callers' contexts, since the queries of other callers share the batch.
func (b *batcher[Q, T]) send(queries []*batchQuery[Q, T]) (err error) {
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
	b.queue(&batch, queries)
	return b.pool.SendBatch(ctx, &batch).Close()
}
