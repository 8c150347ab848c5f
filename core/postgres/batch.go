package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/veneer-skins/veneer/shared/tracing"
)

// batcher runs small queries for many askers. What is asked while earlier
// questions are under way goes together in the next batch, over one connection:
// the busier it is, the more share the cost of a round trip, which is most of what
// a small query costs. Whoever asks when nothing is under way waits for nobody, and
// every answer is read after its question was asked.
type batcher[T any] struct {
	pool readPool

	mu      sync.Mutex
	pending []*batchQuery[T]
	batches int // under way
}

// Bounds of what is under way. Two batches keep the database busy while an
// answer travels; with more of them fewer questions share each.
const (
	maxBatches   = 2
	maxBatchSize = 64
	batchTimeout = 3 * time.Second
)

type batchQuery[T any] struct {
	statement
	span trace.Span // of what it is a part
	done chan struct{}
	rows []T
	err  error
}

// query returns the rows of a query.
func (b *batcher[T]) query(ctx context.Context, s statement) (rows []T, err error) {
	err = retryRead(ctx, func() (err error) {
		rows, err = b.enqueue(ctx, s)
		return err
	})
	return rows, err
}

// enqueue asks a question with others, and returns its rows.
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

// run sends batches until no question waits.
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

// send has a batch of questions answered: all, or with an error none. It ends by a
// time of its own: none of those who ask can end it for the others.
func (b *batcher[T]) send(queries []*batchQuery[T]) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), batchTimeout)
	defer cancel()
	ctx, span := tracing.StartLinked(ctx, "gather", func(yield func(trace.Span) bool) {
		for _, q := range queries {
			if !yield(q.span) {
				return
			}
		}
	}, trace.WithAttributes(attribute.Int("questions", len(queries))))
	defer tracing.End(span, &err)
	var batch pgx.Batch
	for _, q := range queries {
		q.queue(&batch).Query(collectInto(&q.rows))
	}
	return b.pool.SendBatch(ctx, &batch).Close()
}
