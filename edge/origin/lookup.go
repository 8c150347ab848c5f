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
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/tracing"
)

// maxResponseBytes is the most bytes of an answer that are read: many times what
// mapping.MaxKeys mappings take.
const maxResponseBytes = 4 << 20

var _ edge.Core = (*Core)(nil)

// pendingLookup is a look-up that waits for its turn.
type pendingLookup struct {
	key        edgeproto.Key
	charge     charge // as a stranger's
	enqueuedAt time.Time
	done       func(edgeproto.Mapping, edgeproto.Cursor, error)

	requestID string     // the id of the one it is asked for; empty if nobody gave it
	span      trace.Span // of what it is a part
}

// queueTimeout bounds how long a question waits for its turn.
const queueTimeout = 5 * time.Second

// fail tells whoever asked that there is no answer. That their key leads nowhere is not
// said by that.
func (c *Core) fail(q pendingLookup, err error) {
	q.charge.refund()
	q.done(edgeproto.Mapping{}, edgeproto.Cursor{}, err)
}

// WouldReject returns what Ask would refuse a key with at this moment, and nil if it may ask.
func (c *Core) WouldReject(key edgeproto.Key, network netip.Prefix) error {
	if err := c.breaker.Allow(); err != nil {
		return err
	}
	if c.unknownLimit.wouldReject(network, time.Now()) && !c.knownKeys.has(key) {
		unknownRejected.Inc()
		return tooManyLookups()
	}
	return nil
}

// StartLookup has core asked what a key leads to, and answer called with it, or with an
// Unavailable fault when core does not answer in time. It returns such a fault, and
// never calls answer, when core is known to be away, and, with edge.ErrShed in its
// chain, when too many others ask. Answer must be running.
func (c *Core) StartLookup(ctx context.Context, key edgeproto.Key, done func(edgeproto.Mapping, edgeproto.Cursor, error)) error {
	if err := c.breaker.Allow(); err != nil {
		return err
	}
	q := pendingLookup{key: key, enqueuedAt: time.Now(), done: done, requestID: tracing.RequestID(ctx), span: trace.SpanFromContext(ctx)}
	queue := c.knownQueue
	if !c.knownKeys.has(key) {
		var allowed bool
		if q.charge, allowed = c.unknownLimit.take(edge.NetworkOf(ctx), q.enqueuedAt); !allowed {
			unknownRejected.Inc()
			return tooManyLookups()
		}
		queue = c.unknownQueue
	}
	select {
	case queue <- q:
		return nil
	default:
		q.charge.refund() // core is not asked after all
		queueFull.Inc()
		return tooManyLookups()
	}
}

// Probe asks core about nobody, past all queues and limits, and calls done with an
// Unavailable fault if it does not answer.
func (c *Core) Probe(done func(error)) {
	go func() {
		_, err := c.lookupWithRetry(context.Background(), edgeproto.LookupRequest{Keys: []edgeproto.Key{edgeproto.UIDKey(0)}})
		done(err)
	}()
}

func tooManyLookups() error {
	return &fault.Error{
		Kind:       fault.Unavailable,
		Message:    "Too many names are being looked up at the moment. Please try again.",
		RetryAfter: time.Second,
		Cause:      edge.ErrShed,
	}
}

// Run sends the look-ups to core, many at a time, until ctx ends. What is asked
// for later is never answered.
func (c *Core) Run(ctx context.Context) {
	var workers sync.WaitGroup
	for range maxInFlight - unknownInFlight {
		workers.Go(func() { c.runWorker(ctx, c.knownQueue, 0) })
	}
	for range unknownInFlight {
		workers.Go(func() { c.runWorker(ctx, c.unknownQueue, unknownPause) })
	}
	workers.Wait()
	for _, queue := range []chan pendingLookup{c.knownQueue, c.unknownQueue} {
		for _, q := range fillBatch(nil, queue, cap(queue)) {
			c.fail(q, fault.NewUnavailable(dependency, ctx.Err()))
		}
	}
}

// runWorker sends what waits in a queue, and rests after each batch.
func (c *Core) runWorker(ctx context.Context, queue <-chan pendingLookup, pause time.Duration) {
	batch := make([]pendingLookup, 0, edgeproto.MaxKeys)
	for {
		select {
		case <-ctx.Done():
			return
		case first := <-queue:
			batch = fillBatch(append(batch[:0], first), queue, edgeproto.MaxKeys)
			c.sendBatch(ctx, c.dropExpired(batch))
		}
		if pause > 0 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
		}
	}
}

// fillBatch adds to a batch what waits already, up to so many in all. It waits for nothing:
// under load the requests in flight give the batches time to grow.
func fillBatch(batch []pendingLookup, queue <-chan pendingLookup, limit int) []pendingLookup {
	for len(batch) < limit {
		select {
		case next := <-queue:
			batch = append(batch, next)
		default:
			return batch
		}
	}
	return batch
}

// dropExpired returns those of a batch that have not waited for too long, and tells the
// others.
func (c *Core) dropExpired(batch []pendingLookup) []pendingLookup {
	deadline := time.Now().Add(-queueTimeout)
	return slices.DeleteFunc(batch, func(q pendingLookup) bool {
		expired := q.enqueuedAt.Before(deadline)
		if expired {
			c.fail(q, fault.NewUnavailable(dependency, context.DeadlineExceeded))
		}
		return expired
	})
}

// sendBatch sends one batch and hands everybody their answer.
func (c *Core) sendBatch(ctx context.Context, batch []pendingLookup) {
	if len(batch) == 0 {
		return
	}
	ctx, span := tracing.StartLinked(ctx, "POST "+edgeproto.LookupPath, func(yield func(trace.Span) bool) {
		for _, q := range batch {
			if !yield(q.span) {
				return
			}
		}
	}, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attribute.Int("keys", len(batch))))
	lookup := edgeproto.LookupRequest{Keys: make([]edgeproto.Key, len(batch))}
	for i, q := range batch {
		lookup.Keys[i] = q.key
		if q.requestID != "" {
			lookup.Requests = append(lookup.Requests, q.requestID)
		}
	}
	keysLookedUp.Add(float64(len(batch)))
	result, err := c.lookupWithRetry(ctx, lookup)
	tracing.End(span, &err)
	for i, q := range batch {
		if err != nil {
			c.fail(q, err)
			continue
		}
		if result.Mappings[i] != (edgeproto.Mapping{}) {
			c.knownKeys.add(q.key)
			q.charge.refund()
		}
		q.done(result.Mappings[i], result.Cursor, nil)
	}
}

// lookupWithRetry asks core, and if it fails before its time is over, once more: any
// connection can break, and another core may stand behind the same address.
func (c *Core) lookupWithRetry(ctx context.Context, lookup edgeproto.LookupRequest) (result edgeproto.LookupResponse, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	attempt := func() error {
		return c.breaker.Call(func() (err error) {
			lookupRequests.Inc()
			if result, err = c.lookupOnce(ctx, lookup); err != nil {
				lookupRequestsFailed.Inc()
			}
			return err
		})
	}
	if err = attempt(); err == nil || c.breaker.Allow() != nil {
		return result, err
	}
	select {
	case <-ctx.Done():
		return result, err
	// Jitter keeps edges apart that lost the same core at the same moment.
	case <-time.After(retryPause/2 + rand.N(retryPause)): //nolint:gosec // not a secret
		err = attempt()
		return result, err
	}
}

func (c *Core) lookupOnce(ctx context.Context, lookup edgeproto.LookupRequest) (edgeproto.LookupResponse, error) {
	body, err := json.Marshal(lookup)
	if err != nil {
		return edgeproto.LookupResponse{}, fmt.Errorf("encode look-up: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+edgeproto.LookupPath, bytes.NewReader(body))
	if err != nil {
		return edgeproto.LookupResponse{}, fmt.Errorf("make look-up: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	if len(lookup.Requests) > 0 {
		request.Header.Set("X-Request-ID", lookup.Requests[0])
	}
	tracing.Inject(ctx, propagation.HeaderCarrier(request.Header))
	response, err := c.send(request)
	if err != nil {
		return edgeproto.LookupResponse{}, err
	}
	defer func() { _ = response.Body.Close() }()

	// Read to its end, or the connection could not be used again.
	data, err := io.ReadAll(io.LimitReader(response.Body, maxResponseBytes))
	if err != nil {
		return edgeproto.LookupResponse{}, fault.NewUnavailable(dependency, fmt.Errorf("read mappings: %w", err))
	}
	var result edgeproto.LookupResponse
	if err := json.Unmarshal(data, &result); err != nil {
		return edgeproto.LookupResponse{}, fault.NewUnavailable(dependency, fmt.Errorf("read mappings: %w", err))
	}
	if len(result.Mappings) != len(lookup.Keys) || result.Epoch == "" {
		return edgeproto.LookupResponse{}, fault.NewUnavailable(dependency, fmt.Errorf("core answered %d keys with %d mappings of epoch %q", len(lookup.Keys), len(result.Mappings), result.Epoch))
	}
	return result, nil
}
