package origin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/veneer-skins/veneer/shared/edgeproto"
)

// acknowledgeInterval is the time between two acknowledgements: under a storm of
// changes one speaks for many.
const acknowledgeInterval = 20 * time.Millisecond

var (
	acknowledgements       = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_acknowledgements_total", Help: "Acknowledgements of changes sent to core."})
	acknowledgementsFailed = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_acknowledgements_failed_total", Help: "Acknowledgements of changes that failed."})
)

// maxKnownKeysPerEvent is how many keys of an event are met at most. Whoever has just been made is no
// stranger, but the end of a texture that a million wear would have all others forgotten.
const maxKnownKeysPerEvent = 1000

// acknowledger passes the events of one stream to a follower. If core has named
// the stream, it tells core how far the follower has come.
type acknowledger struct {
	core     *Core
	follower Follower
	wake     chan struct{} // rung after every event; nil if core does not want to know
	running  sync.WaitGroup
}

// apply has the follower take in an event.
func (a *acknowledger) apply(ctx context.Context, event edgeproto.Event, asOf time.Time) error {
	if event.Stream != "" {
		a.core.previousStream = event.Stream
	}
	if len(event.Keys) <= maxKnownKeysPerEvent {
		for _, key := range event.Keys {
			a.core.knownKeys.add(key)
		}
	}
	if err := a.follower.Apply(event, asOf); err != nil {
		return err
	}
	if event.Stream != "" && a.wake == nil {
		a.wake = make(chan struct{}, 1)
		a.running.Go(func() { a.run(ctx, event.Stream) })
	}
	select {
	case a.wake <- struct{}{}:
	default: // it rings already, or there is none
	}
	return nil
}

// run tells core how far the follower has come, when the bell rings and it has
// come further, until ctx ends. What fails is tried again at the next ring: a beat
// rings soon.
func (a *acknowledger) run(ctx context.Context, stream string) {
	pause := time.NewTicker(acknowledgeInterval)
	defer pause.Stop()
	var acknowledged edgeproto.Cursor
	for failing := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-a.wake:
		}
		cursor := a.follower.Cursor()
		if cursor == acknowledged {
			continue
		}
		err := a.core.sendAcknowledgement(ctx, edgeproto.Acknowledgement{Cursor: cursor, Stream: stream})
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			acknowledgements.Inc()
			acknowledged = cursor
		default:
			acknowledgementsFailed.Inc()
			if !failing {
				a.core.log.WarnContext(ctx, "changes cannot be acknowledged", "error", err)
			}
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
	}
}

// sendAcknowledgement sends an acknowledgement.
func (c *Core) sendAcknowledgement(ctx context.Context, cursor edgeproto.Acknowledgement) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	body, err := json.Marshal(cursor)
	if err != nil {
		return fmt.Errorf("write acknowledgement: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+edgeproto.AcknowledgePath, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make acknowledgement: %w", err)
	}
	response, err := c.send(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	// Read to its end, so that the connection is used again.
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return fmt.Errorf("read answer to acknowledgement: %w", err)
	}
	return nil
}
