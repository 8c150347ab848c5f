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
	// silenceTimeout is how long a stream may say nothing that is true of the present. Core
	// says something four times in that time.
	silenceTimeout = time.Second
	// maxStreamAge is how long one stream is followed. How old its beats are is
	// reckoned from its beginning, by the clocks of two machines, which run apart by
	// a few hundredths of a second in that time.
	maxStreamAge = 10 * time.Minute
	// maxClockSkew is how far from the future a beat may come, as clocks run apart. If it
	// is further, our clock stood still, as it does while a machine is suspended:
	// there is no telling how old the beats are.
	maxClockSkew = 100 * time.Millisecond
	// maxLineBytes bounds one line of the stream: a change that names some hundred
	// thousand keys.
	maxLineBytes = 16 << 20

	minBackoff = 50 * time.Millisecond
	maxBackoff = time.Second
)

// Follower takes in the stream of changes.
type Follower interface {
	// Cursor returns where the stream has to go on.
	Cursor() edgeproto.Cursor
	// Apply takes in one event. A beat was true at a moment. An error ends the
	// stream.
	Apply(event edgeproto.Event, asOf time.Time) error
}

var (
	errSilent          = errors.New("core is silent")
	errStreamExpired   = errors.New("the stream is due to be opened again")
	errFutureHeartbeat = errors.New("a beat comes from the future")
)

// Follow keeps a follower up to date until ctx ends. There is never more than
// one stream: a broken one is closed before the next is opened.
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
		// Whatever broke the stream may have broken them too, without a word: each
		// would cost the next question its time to wait.
		c.client.CloseIdleConnections()
		// Every failure is a warning after a stream that was alive, but not every
		// attempt to open one again.
		if live || !warned {
			c.log.WarnContext(ctx, "stream of changes lost", "error", err)
			backoff, warned = minBackoff, true
		}
		if live && errors.Is(err, errFutureHeartbeat) {
			continue // core is well
		}
		// Jitter keeps edges apart that lost the same core at the same moment.
		wait := time.NewTimer(backoff/2 + rand.N(backoff/2)) //nolint:gosec // not a secret
		select {
		case <-ctx.Done():
			wait.Stop()
		case <-wait.C:
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// followStream opens one stream and follows it to its end, and reports whether it ever
// was complete.
func (c *Core) followStream(ctx context.Context, follower Follower) (live bool, err error) {
	acks := acknowledger{core: c, follower: follower}
	defer acks.running.Wait()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// The watch cuts the connection, as a read has no deadline of its own. Opening
	// one takes longer than a line of it.
	watchdog := time.AfterFunc(c.timeout, func() { cancel(errSilent) })
	defer watchdog.Stop()

	response, sentAt, err := c.openStream(ctx, follower.Cursor())
	if err != nil {
		return false, err
	}
	defer func() { _ = response.Body.Close() }()
	// Core is there again, if it was away. Its first line may have all mappings forgotten,
	// and so must not find look-ups refused.
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
			// What was missed may take long, and has no beats in it.
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

// decodeEvent returns the event of a line, and if it is a beat, the moment of it.
func decodeEvent(line []byte, first bool, sentAt, now time.Time) (event edgeproto.Event, asOf time.Time, err error) {
	if err := json.Unmarshal(line, &event); err != nil {
		return event, asOf, fmt.Errorf("read change: %w", err)
	}
	if first && !event.Start {
		return event, asOf, errors.New("read change: the stream does not begin with its start")
	}
	asOf, err = heartbeatTime(event, sentAt, now)
	return event, asOf, err
}

// openStream asks core for the changes from a position on, and returns when it did.
func (c *Core) openStream(ctx context.Context, from edgeproto.Cursor) (response *http.Response, sentAt time.Time, err error) {
	query := url.Values{}
	if from.Epoch != "" {
		query.Set("epoch", from.Epoch)
		query.Set("revision", strconv.FormatInt(from.Revision, 10))
	}
	if c.previousStream != "" {
		query.Set("former", c.previousStream) // core waits for it no longer
	}
	// The request is sent after this, and the less after it the better.
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sentAt = time.Now() }})
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+edgeproto.ChangesPath+"?"+query.Encode(), http.NoBody)
	if err != nil {
		return nil, sentAt, fmt.Errorf("make request for changes: %w", err)
	}
	response, err = c.send(request)
	return response, sentAt, err
}

// heartbeatTime returns the moment as of which a beat is true, or one before it: core
// counts from when it got the request, which was no sooner than it was sent.
func heartbeatTime(heartbeat edgeproto.Event, sentAt, now time.Time) (time.Time, error) {
	moment := sentAt.Add(heartbeat.AsOf)
	switch ahead := moment.Sub(now); {
	case ahead > maxClockSkew:
		return time.Time{}, fmt.Errorf("%w: by %s", errFutureHeartbeat, ahead)
	case ahead > 0:
		return now, nil // core's clock runs faster than ours
	default:
		return moment, nil
	}
}
