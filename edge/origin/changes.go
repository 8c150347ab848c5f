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
	"net/url"
	"strconv"
	"time"

	"github.com/veneer-skins/veneer/shared/mapping"
)

const (
	// silence is how long a stream may say nothing. Core says something four times
	// in that time.
	silence = time.Second
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
	// Apply takes in one event. An error ends the stream.
	Apply(event mapping.Event) error
}

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
		// Every failure is a warning after a stream that was alive, but not every
		// attempt to open one again.
		if live || !lost {
			c.log.WarnContext(ctx, "stream of changes lost", "error", err)
			pause, lost = shortestPause, true
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
	watch := time.AfterFunc(c.timeout, func() { hangUp(errors.New("core is silent")) })
	defer watch.Stop()

	query := url.Values{}
	if from := follower.Position(); from.Epoch != "" {
		query.Set("epoch", from.Epoch)
		query.Set("revision", strconv.FormatInt(from.Revision, 10))
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+mapping.ChangesPath+"?"+query.Encode(), http.NoBody)
	if err != nil {
		return false, fmt.Errorf("make request for changes: %w", err)
	}
	response, err := c.send(request)
	if err != nil {
		return false, err
	}
	defer func() { _ = response.Body.Close() }()

	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, maxLine)
	for first := true; lines.Scan(); first = false {
		watch.Reset(silence)
		var event mapping.Event
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return live, fmt.Errorf("read change: %w", err)
		}
		if first && !event.Start {
			return live, errors.New("read change: the stream does not begin with its start")
		}
		if err := acknowledged.apply(ctx, event); err != nil {
			return live, err
		}
		if event.IsBeat() && !live {
			live = true
			c.log.InfoContext(ctx, "stream of changes is live", "epoch", event.Epoch, "revision", event.Revision)
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
