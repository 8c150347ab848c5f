package origin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"time"

	"github.com/veneer-skins/veneer/shared/edgeproto"
)

const (
	// silenceTimeout is the longest time without a current heartbeat. Core sends five a
	// second.
	silenceTimeout = time.Second
	// maxStreamAge is the age at which a stream is reopened. The age of heartbeats is
	// measured from the start of the stream by the clocks of two machines, which drift
	// apart by a few hundredths of a second in that time.
	maxStreamAge = 10 * time.Minute
	// maxClockSkew is how far in the future a heartbeat may be, due to clock drift. If it is
	// further, the edge's clock stood still, as it does while a machine is suspended, and
	// the age of heartbeats is unknown.
	maxClockSkew = 100 * time.Millisecond
	// maxLineBytes bounds one line of the stream, a change with some hundred thousand keys.
	maxLineBytes = 16 << 20

	minBackoff = 50 * time.Millisecond
	maxBackoff = time.Second
)

// Follower consumes the stream of changes. edge.Resolver is one.
type Follower interface {
	// Cursor returns the position after which the stream continues.
	Cursor() edgeproto.Cursor
	// Apply applies one event. After a heartbeat all changes up to asOf have been applied.
	// An error ends the stream.
	Apply(event edgeproto.Event, asOf time.Time) error
}

var (
	errSilent          = errors.New("no heartbeat from core")
	errStreamExpired   = errors.New("the stream has reached its maximum age")
	errFutureHeartbeat = errors.New("a heartbeat is in the future")
)

// Follow keeps a follower up to date until ctx ends. There is at most one stream at a time: a
// broken one is closed before the next is opened.
func (c *Core) Follow(ctx context.Context, follower Follower) {
	backoff, warned := minBackoff, false
	for ctx.Err() == nil {
		streamsOpened.Inc()
		live, err := c.followStream(ctx, follower)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errStreamExpired) {
			continue
		}
		// The failure may have silently broken idle connections as well, and each of them
		// would cost a look-up its timeout.
		c.client.CloseIdleConnections()
		// The loss of a live stream is always logged, but of the attempts to reopen it only
		// the first.
		if live || !warned {
			c.log.WarnContext(ctx, "stream of changes lost", "error", err)
			backoff, warned = minBackoff, true
		}
		if live && errors.Is(err, errFutureHeartbeat) {
			continue // core itself works
		}
		// Jitter spreads the edges that lost the same core at the same time.
		wait := time.NewTimer(backoff/2 + rand.N(backoff/2)) //nolint:gosec // not a secret
		select {
		case <-ctx.Done():
			wait.Stop()
		case <-wait.C:
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// followStream opens one stream and follows it to its end. It reports whether the stream
// ever was live, that is, had a current heartbeat.
func (c *Core) followStream(ctx context.Context, follower Follower) (live bool, err error) {
	acks := acknowledger{core: c, follower: follower}
	defer acks.running.Wait()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// The watchdog cancels reads, which have no deadline of their own. Opening the stream
	// may take longer than a line of it.
	watchdog := time.AfterFunc(c.timeout, func() { cancel(errSilent) })
	defer watchdog.Stop()

	response, sentAt, err := c.openStream(ctx, follower.Cursor())
	if err != nil {
		return false, err
	}
	defer func() { _ = response.Body.Close() }()
	// Core works again. The first line may flush all cached mappings, so look-ups must be
	// allowed by then.
	c.breaker.Reset()

	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, maxLineBytes)
	for first := true; lines.Scan(); first = false {
		now := time.Now()
		event, asOf, err := decodeEvent(lines.Bytes(), first, sentAt, now)
		if err != nil {
			return live, err
		}
		if err := acks.apply(ctx, event, asOf); err != nil {
			return live, err
		}
		switch {
		case !event.IsHeartbeat():
			// Missed changes may take long, and have no heartbeats between them.
			if !live {
				watchdog.Reset(silenceTimeout)
			}
		case now.Sub(asOf) < silenceTimeout:
			watchdog.Reset(silenceTimeout)
			if !live {
				live = true
				c.log.InfoContext(ctx, "stream of changes is live", "epoch", event.Epoch, "revision", event.Revision)
			}
			if now.Sub(sentAt) > maxStreamAge {
				return live, errStreamExpired
			}
		}
	}
	if ctx.Err() != nil {
		return live, context.Cause(ctx)
	}
	if err := lines.Err(); err != nil {
		return live, fmt.Errorf("read change: %w", err)
	}
	return live, io.ErrUnexpectedEOF
}

// decodeEvent returns the event of a line and, if it is a heartbeat, its time by the edge's
// clock.
func decodeEvent(line []byte, first bool, sentAt, now time.Time) (event edgeproto.Event, asOf time.Time, err error) {
	if err := json.Unmarshal(line, &event); err != nil {
		return event, asOf, fmt.Errorf("read change: %w", err)
	}
	if first && !event.Start {
		return event, asOf, errors.New("read change: the first event is no start")
	}
	asOf, err = heartbeatTime(event, sentAt, now)
	return event, asOf, err
}

// openStream requests the changes after a cursor. It returns when the request was sent.
func (c *Core) openStream(ctx context.Context, from edgeproto.Cursor) (response *http.Response, sentAt time.Time, err error) {
	query := url.Values{}
	if from.Epoch != "" {
		query.Set("epoch", from.Epoch)
		query.Set("revision", strconv.FormatInt(from.Revision, 10))
	}
	if c.previousStream != "" {
		query.Set("former", c.previousStream) // so that core does not wait for its acknowledgements any longer
	}
	// The last event before the request is sent.
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sentAt = time.Now() }})
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+edgeproto.ChangesPath+"?"+query.Encode(), http.NoBody)
	if err != nil {
		return nil, sentAt, fmt.Errorf("create request for changes: %w", err)
	}
	response, err = c.send(request)
	return response, sentAt, err
}

// heartbeatTime returns the time of a heartbeat by the edge's clock, or an earlier time:
// core counts AsOf from the receipt of the request, which was not before sentAt.
func heartbeatTime(heartbeat edgeproto.Event, sentAt, now time.Time) (time.Time, error) {
	asOf := sentAt.Add(heartbeat.AsOf)
	switch ahead := asOf.Sub(now); {
	case ahead > maxClockSkew:
		return time.Time{}, fmt.Errorf("%w: by %s", errFutureHeartbeat, ahead)
	case ahead > 0:
		return now, nil // core's clock runs faster
	default:
		return asOf, nil
	}
}
