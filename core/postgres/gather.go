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

// gatherer runs small queries for many askers. What is asked while earlier
// questions are under way goes together in the next batch, over one connection:
// the busier it is, the more share the cost of a round trip, which is most of what
// a small query costs. Whoever asks when nothing is under way waits for nobody, and
// every answer is read after its question was asked.
type gatherer[T any] struct {
	pool readers

	mu      sync.Mutex
	waiting []*question[T]
	batches int // under way
}

// Bounds of what is under way. Two batches keep the database busy while an
// answer travels; with more of them fewer questions share each.
const (
	gatherBatches   = 2
	gatherQuestions = 64
	gatherTimeout   = 3 * time.Second
)

type question[T any] struct {
	statement
	span     trace.Span // of what it is a part
	answered chan struct{}
	rows     []T
	err      error
}

// ask returns the rows of a query.
func (g *gatherer[T]) ask(ctx context.Context, s statement) (rows []T, err error) {
	err = read(ctx, func() (err error) {
		rows, err = g.once(ctx, s)
		return err
	})
	return rows, err
}

// once asks a question with others, and returns its rows.
func (g *gatherer[T]) once(ctx context.Context, s statement) ([]T, error) {
	q := &question[T]{statement: s, span: trace.SpanFromContext(ctx), answered: make(chan struct{})}
	g.mu.Lock()
	g.waiting = append(g.waiting, q)
	if g.batches < gatherBatches {
		g.batches++
		go g.answer()
	}
	g.mu.Unlock()

	select {
	case <-q.answered:
		return q.rows, q.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// answer sends batches until no question waits.
func (g *gatherer[T]) answer() {
	for {
		g.mu.Lock()
		n := min(len(g.waiting), gatherQuestions)
		if n == 0 {
			g.batches--
			g.mu.Unlock()
			return
		}
		questions := g.waiting[:n:n]
		g.waiting = g.waiting[n:]
		g.mu.Unlock()

		err := g.send(questions)
		for _, q := range questions {
			q.err = err
			close(q.answered)
		}
	}
}

// send has a batch of questions answered: all, or with an error none. It ends by a
// time of its own: none of those who ask can end it for the others.
func (g *gatherer[T]) send(questions []*question[T]) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), gatherTimeout)
	defer cancel()
	ctx, span := tracing.StartTogether(ctx, "gather", func(yield func(trace.Span) bool) {
		for _, q := range questions {
			if !yield(q.span) {
				return
			}
		}
	}, trace.WithAttributes(attribute.Int("questions", len(questions))))
	defer tracing.End(span, &err)
	var batch pgx.Batch
	for _, q := range questions {
		q.queue(&batch).Query(into(&q.rows))
	}
	return g.pool.SendBatch(ctx, &batch).Close()
}
