package origin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/mapping"
	"github.com/veneer-skins/veneer/shared/tracing"
)

// maxAnswer is the most bytes of an answer that are read: many times what
// mapping.MaxKeys mappings take.
const maxAnswer = 4 << 20

var _ edge.Core = (*Core)(nil)

// question is a look-up that waits for its turn.
type question struct {
	key    mapping.Key
	charge charge // as a stranger's
	asked  time.Time
	answer func(mapping.Mapping, mapping.Position, error)

	request string     // the id of the one it is asked for; empty if nobody gave it
	span    trace.Span // of what it is a part
}

// patience bounds how long a question waits for its turn.
const patience = 5 * time.Second

// fail tells whoever asked that there is no answer. That their key leads nowhere is not
// said by that.
func (c *Core) fail(q question, err error) {
	q.charge.giveBack()
	q.answer(mapping.Mapping{}, mapping.Position{}, err)
}

// WouldReject returns what Ask would refuse a key with at this moment, and nil if it may ask.
func (c *Core) WouldReject(key mapping.Key, network netip.Prefix) error {
	if err := c.breaker.Refusal(); err != nil {
		return err
	}
	if c.unknown.refuses(network, time.Now()) && !c.met.has(key) {
		strangersRefused.Inc()
		return busy()
	}
	return nil
}

// StartLookup has core asked what a key leads to, and answer called with it, or with an
// Unavailable fault when core does not answer in time. It returns such a fault, and
// never calls answer, when core is known to be away, and, with edge.ErrShed in its
// chain, when too many others ask. Answer must be running.
func (c *Core) StartLookup(ctx context.Context, key mapping.Key, answer func(mapping.Mapping, mapping.Position, error)) error {
	if err := c.breaker.Refusal(); err != nil {
		return err
	}
	q := question{key: key, asked: time.Now(), answer: answer, request: tracing.Request(ctx), span: trace.SpanFromContext(ctx)}
	queue := c.acquaintances
	if !c.met.has(key) {
		var allowed bool
		if q.charge, allowed = c.unknown.take(edge.NetworkOf(ctx), q.asked); !allowed {
			strangersRefused.Inc()
			return busy()
		}
		queue = c.strangers
	}
	select {
	case queue <- q:
		return nil
	default:
		q.charge.giveBack() // core is not asked after all
		queueFull.Inc()
		return busy()
	}
}

// Probe asks core about nobody, past all queues and limits, and calls done with an
// Unavailable fault if it does not answer.
func (c *Core) Probe(done func(error)) {
	go func() {
		_, err := c.insist(context.Background(), mapping.Question{Keys: []mapping.Key{mapping.UID(0)}})
		done(err)
	}()
}

func busy() error {
	return &fault.Error{
		Kind:       fault.Unavailable,
		Message:    "Too many names are being looked up at the moment. Please try again.",
		RetryAfter: time.Second,
		Cause:      edge.ErrShed,
	}
}

// Answer sends the look-ups to core, many at a time, until ctx ends. What is asked
// for later is never answered.
func (c *Core) Answer(ctx context.Context) {
	var workers sync.WaitGroup
	for range inFlight - strangersInFlight {
		workers.Go(func() { c.work(ctx, c.acquaintances, 0) })
	}
	for range strangersInFlight {
		workers.Go(func() { c.work(ctx, c.strangers, strangersRest) })
	}
	workers.Wait()
	for _, queue := range []chan question{c.acquaintances, c.strangers} {
		for _, q := range join(nil, queue, cap(queue)) {
			c.fail(q, fault.Down(dependency, ctx.Err()))
		}
	}
}

// work sends what waits in a queue, and rests after each batch.
func (c *Core) work(ctx context.Context, queue <-chan question, rest time.Duration) {
	batch := make([]question, 0, mapping.MaxKeys)
	for {
		select {
		case <-ctx.Done():
			return
		case first := <-queue:
			batch = join(append(batch[:0], first), queue, mapping.MaxKeys)
			c.ask(ctx, c.inTime(batch))
		}
		if rest > 0 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(rest):
			}
		}
	}
}

// join adds to a batch what waits already, up to so many in all. It waits for nothing:
// under load the requests in flight give the batches time to grow.
func join(batch []question, queue <-chan question, most int) []question {
	for len(batch) < most {
		select {
		case next := <-queue:
			batch = append(batch, next)
		default:
			return batch
		}
	}
	return batch
}

// inTime returns those of a batch that have not waited for too long, and tells the
// others.
func (c *Core) inTime(batch []question) []question {
	oldest := time.Now().Add(-patience)
	return slices.DeleteFunc(batch, func(q question) bool {
		isLate := q.asked.Before(oldest)
		if isLate {
			c.fail(q, fault.Down(dependency, context.DeadlineExceeded))
		}
		return isLate
	})
}

// ask sends one batch and hands everybody their answer.
func (c *Core) ask(ctx context.Context, batch []question) {
	if len(batch) == 0 {
		return
	}
	ctx, span := tracing.StartTogether(ctx, "POST "+mapping.LookupPath, func(yield func(trace.Span) bool) {
		for _, q := range batch {
			if !yield(q.span) {
				return
			}
		}
	}, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attribute.Int("keys", len(batch))))
	asked := mapping.Question{Keys: make([]mapping.Key, len(batch))}
	for i, q := range batch {
		asked.Keys[i] = q.key
		if q.request != "" {
			asked.Requests = append(asked.Requests, q.request)
		}
	}
	keysAsked.Add(float64(len(batch)))
	all, err := c.insist(ctx, asked)
	tracing.End(span, &err)
	for i, q := range batch {
		if err != nil {
			c.fail(q, err)
			continue
		}
		if all.Mappings[i] != (mapping.Mapping{}) {
			c.met.add(q.key)
			q.charge.giveBack()
		}
		q.answer(all.Mappings[i], all.Position, nil)
	}
}

// insist asks core, and if it fails before its time is over, once more: any
// connection can break, and another core may stand behind the same address.
func (c *Core) insist(ctx context.Context, asked mapping.Question) (all mapping.Answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	try := func() error {
		return c.breaker.Call(func() (err error) {
			coreAsked.Inc()
			if all, err = c.lookup(ctx, asked); err != nil {
				coreFailed.Inc()
			}
			return err
		})
	}
	if err = try(); err == nil || c.breaker.Refusal() != nil {
		return all, err
	}
	select {
	case <-ctx.Done():
		return all, err
	// Jitter keeps edges apart that lost the same core at the same moment.
	case <-time.After(retryPause/2 + rand.N(retryPause)): //nolint:gosec // not a secret
		err = try()
		return all, err
	}
}

func (c *Core) lookup(ctx context.Context, asked mapping.Question) (mapping.Answer, error) {
	body, err := json.Marshal(asked)
	if err != nil {
		return mapping.Answer{}, fmt.Errorf("encode look-up: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+mapping.LookupPath, bytes.NewReader(body))
	if err != nil {
		return mapping.Answer{}, fmt.Errorf("make look-up: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	if len(asked.Requests) > 0 {
		request.Header.Set("X-Request-ID", asked.Requests[0])
	}
	tracing.Send(ctx, propagation.HeaderCarrier(request.Header))
	response, err := c.send(request)
	if err != nil {
		return mapping.Answer{}, err
	}
	defer func() { _ = response.Body.Close() }()

	// Read to its end, or the connection could not be used again.
	answered, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return mapping.Answer{}, fault.Down(dependency, fmt.Errorf("read mappings: %w", err))
	}
	var all mapping.Answer
	if err := json.Unmarshal(answered, &all); err != nil {
		return mapping.Answer{}, fault.Down(dependency, fmt.Errorf("read mappings: %w", err))
	}
	if len(all.Mappings) != len(asked.Keys) || all.Epoch == "" {
		return mapping.Answer{}, fault.Down(dependency, fmt.Errorf("core answered %d keys with %d mappings of epoch %q", len(asked.Keys), len(all.Mappings), all.Epoch))
	}
	return all, nil
}
