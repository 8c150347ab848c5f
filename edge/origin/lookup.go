package origin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/ratelimit"
	"github.com/veneer-skins/veneer/shared/tracing"
)

// maxResponseBytes bounds a response: many times the size of edgeproto.MaxKeys mappings.
const maxResponseBytes = 4 << 20

var _ edge.Core = (*Core)(nil)

// pendingLookup is a look-up in a queue.
type pendingLookup struct {
	key        edgeproto.Key
	charge     ratelimit.Charge // of the limit of unknown keys
	enqueuedAt time.Time
	done       func(edgeproto.Mapping, edgeproto.Cursor, error)

	requestID string     // of the client's request; may be empty
	span      trace.Span // of the client's request

	more []pendingLookup // that are sent with it
}

// lookupQueue is look-ups that wait to be sent.
type lookupQueue struct {
	lookups chan pendingLookup
	waiting atomic.Int64 // with those that are sent together with another one
}

func newLookupQueue(size int) *lookupQueue {
	return &lookupQueue{lookups: make(chan pendingLookup, size)}
}

// queueTimeout bounds the time in a queue.
const queueTimeout = 5 * time.Second

// fail completes a look-up with an error. As the key may exist, its charge is refunded.
func (c *Core) fail(q pendingLookup, err error) {
	q.charge.Refund()
	q.done(edgeproto.Mapping{}, edgeproto.Cursor{}, err)
}

// WouldReject returns the error with which StartLookups would reject a key now, nil if it
// would not.
func (c *Core) WouldReject(key edgeproto.Key, network netip.Prefix) error {
	if err := c.breaker.Allow(); err != nil {
		return err
	}
	if c.unknownLimit.WouldReject(network, time.Now()) && !c.knownKeys.Has(string(key)) {
		unknownRejected.Inc()
		return tooManyLookups()
	}
	return nil
}

// StartLookups enqueues look-ups of keys, which are sent to core in one request. It calls done for each
// with the mapping, or with an Unavailable fault when core does not answer in time. It returns an
// Unavailable fault, and does not call done, when the circuit breaker is open, and one that wraps
// edge.ErrShed when there are too many look-ups. They wait in the queue of made-up keys only if none of
// them is known to exist, since other requests may join the look-up of one that is, and the unknown ones
// are charged anyway. Run must be running.
func (c *Core) StartLookups(ctx context.Context, keys []edgeproto.Key, done edge.LookupsDone) error {
	if err := c.breaker.Allow(); err != nil {
		return err
	}
	now, requestID, span := time.Now(), tracing.RequestID(ctx), trace.SpanFromContext(ctx)
	lookups := make([]pendingLookup, len(keys))
	refund := func() { // they are not sent
		for _, q := range lookups {
			q.charge.Refund()
		}
	}
	queue := c.unknownQueue
	for i, key := range keys {
		lookups[i] = pendingLookup{
			key: key, enqueuedAt: now, requestID: requestID, span: span,
			done: func(mapping edgeproto.Mapping, cursor edgeproto.Cursor, err error) { done(i, mapping, cursor, err) },
		}
		if c.knownKeys.Has(string(key)) {
			queue = c.knownQueue
			continue
		}
		var allowed bool
		if lookups[i].charge, allowed = c.unknownLimit.Take(edge.NetworkOf(ctx), now); !allowed {
			refund()
			unknownRejected.Inc()
			return tooManyLookups()
		}
	}
	first := lookups[0]
	first.more = lookups[1:]
	if queue.waiting.Add(int64(len(keys))) <= c.maxWaiting {
		select {
		case queue.lookups <- first:
			return nil
		default:
		}
	}
	queue.waiting.Add(-int64(len(keys)))
	refund()
	queueFull.Inc()
	return tooManyLookups()
}

// Probe looks up a user that never exists, bypassing queues and limits. It calls done with an
// Unavailable fault if core does not answer.
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

// Run sends queued look-ups to core in batches until ctx ends. Look-ups that are started
// later never complete.
func (c *Core) Run(ctx context.Context) {
	var workers sync.WaitGroup
	for range maxInFlight - unknownInFlight {
		workers.Go(func() { c.runWorker(ctx, c.knownQueue, 0) })
	}
	for range unknownInFlight {
		workers.Go(func() { c.runWorker(ctx, c.unknownQueue, unknownPause) })
	}
	workers.Wait()
	for _, queue := range []*lookupQueue{c.knownQueue, c.unknownQueue} {
		for _, q := range queue.fillBatch(nil, math.MaxInt) {
			c.fail(q, fault.NewUnavailable(dependency, ctx.Err()))
		}
	}
}

// runWorker sends the look-ups in a queue in batches, with a pause after each.
func (c *Core) runWorker(ctx context.Context, queue *lookupQueue, pause time.Duration) {
	batch := make([]pendingLookup, 0, edgeproto.MaxKeys)
	for {
		select {
		case <-ctx.Done():
			return
		case first := <-queue.lookups:
			batch = queue.fillBatch(append(append(batch[:0], first), first.more...), edgeproto.MaxKeys-edge.MaxBatch+1)
			queue.waiting.Add(-int64(len(batch)))
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

// fillBatch adds queued look-ups to a batch until it has limit or more. It does not wait: under load
// the batches grow while requests are in flight.
func (q *lookupQueue) fillBatch(batch []pendingLookup, limit int) []pendingLookup {
	for len(batch) < limit {
		select {
		case next := <-q.lookups:
			batch = append(append(batch, next), next.more...)
		default:
			return batch
		}
	}
	return batch
}

// dropExpired fails look-ups that have been queued for longer than queueTimeout. It returns
// the others.
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

// sendBatch sends one batch and completes its look-ups.
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
		if q.requestID != "" && (i == 0 || q.requestID != batch[i-1].requestID) {
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
			c.knownKeys.Add(string(q.key))
			q.charge.Refund()
		}
		q.done(result.Mappings[i], result.Cursor, nil)
	}
}

// lookupWithRetry sends a request and, if that fails before the timeout, retries it once:
// the connection may have broken, and the same address may lead to another core.
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
	// Jitter spreads the edges that lost the same core at the same time.
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
		return edgeproto.LookupResponse{}, fmt.Errorf("create look-up request: %w", err)
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

	// The body is read to its end, so that the connection can be reused.
	data, err := io.ReadAll(io.LimitReader(response.Body, maxResponseBytes))
	if err != nil {
		return edgeproto.LookupResponse{}, fault.NewUnavailable(dependency, fmt.Errorf("read mappings: %w", err))
	}
	var result edgeproto.LookupResponse
	if err := json.Unmarshal(data, &result); err != nil {
		return edgeproto.LookupResponse{}, fault.NewUnavailable(dependency, fmt.Errorf("read mappings: %w", err))
	}
	if len(result.Mappings) != len(lookup.Keys) || result.Epoch == "" {
		return edgeproto.LookupResponse{}, fault.NewUnavailable(dependency, fmt.Errorf("core returned %d mappings of epoch %q for %d keys", len(result.Mappings), result.Epoch, len(lookup.Keys)))
	}
	return result, nil
}
