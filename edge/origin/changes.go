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

	"github.com/veneer-skins/veneer/shared/mapping"
)

const (
	// silence is how long a stream may say nothing that is true of the present. Core
	// says something four times in that time.
	silence = time.Second
	// longestStream is how long one stream is followed. How old its beats are is
	// reckoned from its beginning, by the clocks of two machines, which run apart by
	// a few hundredths of a second in that time.
	longestStream = 10 * time.Minute
	// mostAhead is how far from the future a beat may come, as clocks run apart. If it
	// is further, our clock stood still, as it does while a machine is suspended:
	// there is no telling how old the beats are.
	mostAhead = 100 * time.Millisecond
	// maxLine bounds one line of the stream: a change that names some hundred
	// thousand keys.
	maxLine = 16 << 20

	shortestPause = 50 * time.Millisecond
	longestPause  = time.Second
)

// Follower takes in the stream of changes.
type Follower interface {
	// Position returns where the stream has to go on.
	Position() mapping.Position
	// Apply takes in one event. A beat was true at a moment. An error ends the
	// stream.
	Apply(event mapping.Event, asOf time.Time) error
}

var (
	errSilent = errors.New("core is silent")
	errLong   = errors.New("the stream is due to be opened again")
	errAhead  = errors.New("a beat comes from the future")
)

// Follow keeps a follower up to date until ctx ends. There is never more than
// one stream: a broken one is closed before the next is opened.
func (c *Core) Follow(ctx context.Context, follower Follower) {
	pause, lost := shortestPause, false
	for ctx.Err() == nil {
		streams.Inc()
		live, err := c.stream(ctx, follower)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errLong) {
			continue
		}
		// Whatever broke the stream may have broken them too, without a word: each
		// would cost the next question its time to wait.
		c.client.CloseIdleConnections()
		// Every failure is a warning after a stream that was alive, but not every
		// attempt to open one again.
		if live || !lost {
			c.log.WarnContext(ctx, "stream of changes lost", "error", err)
			pause, lost = shortestPause, true
		}
		if live && errors.Is(err, errAhead) {
			continue // core is well
		}
		// Jitter keeps edges apart that lost the same core at the same moment.
		wait := time.NewTimer(pause/2 + rand.N(pause/2)) //nolint:gosec // not a secret
		select {
		case <-ctx.Done():
			wait.Stop()
		case <-wait.C:
		}
		pause = min(2*pause, longestPause)
	}
}

// stream opens one stream and follows it to its end, and reports whether it ever
// was complete.
func (c *Core) stream(ctx context.Context, follower Follower) (live bool, err error) {
	acknowledged := acknowledger{core: c, follower: follower}
	defer acknowledged.running.Wait()
	ctx, hangUp := context.WithCancelCause(ctx)
	defer hangUp(nil)
	// The watch cuts the connection, as a read has no deadline of its own. Opening
	// one takes longer than a line of it.
	watch := time.AfterFunc(c.timeout, func() { hangUp(errSilent) })
	defer watch.Stop()

	response, asked, err := c.open(ctx, follower.Position())
	if err != nil {
		return false, err
	}
	defer func() { _ = response.Body.Close() }()
	// Core is there again, if it was away. Its first line may have all mappings forgotten,
	// and so must not find look-ups refused.
	c.breaker.Close()

	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, maxLine)
	for first := true; lines.Scan(); first = false {
		now := time.Now()
		event, asOf, err := decode(lines.Bytes(), first, asked, now)
		if err != nil {
			return live, err
		}
		if err := acknowledged.apply(ctx, event, asOf); err != nil {
			return live, err
		}
		switch {
		case !event.IsBeat():
			// What was missed may take long, and has no beats in it.
			if !live {
				watch.Reset(silence)
			}
		case now.Sub(asOf) < silence:
			watch.Reset(silence)
			if !live {
				live = true
				c.log.InfoContext(ctx, "stream of changes is live", "epoch", event.Epoch, "revision", event.Revision)
			}
			if now.Sub(asked) > longestStream {
				return live, errLong
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

// decode returns the event of a line, and if it is a beat, the moment of it.
func decode(line []byte, first bool, asked, now time.Time) (event mapping.Event, asOf time.Time, err error) {
	if err := json.Unmarshal(line, &event); err != nil {
		return event, asOf, fmt.Errorf("read change: %w", err)
	}
	if first && !event.Start {
		return event, asOf, errors.New("read change: the stream does not begin with its start")
	}
	asOf, err = momentOf(event, asked, now)
	return event, asOf, err
}

// open asks core for the changes from a position on, and returns when it did.
func (c *Core) open(ctx context.Context, from mapping.Position) (response *http.Response, asked time.Time, err error) {
	query := url.Values{}
	if from.Epoch != "" {
		query.Set("epoch", from.Epoch)
		query.Set("revision", strconv.FormatInt(from.Revision, 10))
	}
	if c.former != "" {
		query.Set("former", c.former) // core waits for it no longer
	}
	// The request is sent after this, and the less after it the better.
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { asked = time.Now() }})
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+mapping.ChangesPath+"?"+query.Encode(), http.NoBody)
	if err != nil {
		return nil, asked, fmt.Errorf("make request for changes: %w", err)
	}
	response, err = c.send(request)
	return response, asked, err
}

// momentOf returns the moment as of which a beat is true, or one before it: core
// counts from when it got the request, which was no sooner than it was sent.
func momentOf(beat mapping.Event, asked, now time.Time) (time.Time, error) {
	moment := asked.Add(beat.AsOf)
	switch ahead := moment.Sub(now); {
	case ahead > mostAhead:
		return time.Time{}, fmt.Errorf("%w: by %s", errAhead, ahead)
	case ahead > 0:
		return now, nil // core's clock runs faster than ours
	default:
		return moment, nil
	}
}
