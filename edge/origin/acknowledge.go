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

// acknowledgeInterval is the minimum time between two acknowledgements, so that one covers
// many changes.
const acknowledgeInterval = 20 * time.Millisecond

var (
	acknowledgements       = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_acknowledgements_total", Help: "Acknowledgements of changes sent to core."})
	acknowledgementsFailed = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_acknowledgements_failed_total", Help: "Acknowledgements of changes that failed."})
)

// maxKnownKeysPerEvent is the most keys of an event that are added to the known keys. Keys
// in events exist mostly, but deleting a texture that a million players wear would fill the
// filter.
const maxKnownKeysPerEvent = 1000

// acknowledger passes the events of one stream to a follower. If core has named the stream,
// it acknowledges them up to the follower's cursor.
type acknowledger struct {
	core     *Core
	follower Follower
	wake     chan struct{} // signalled after every event; nil if core wants no acknowledgements
	running  sync.WaitGroup
}

// apply applies an event to the follower and wakes run.
func (a *acknowledger) apply(ctx context.Context, event edgeproto.Event, asOf time.Time) error {
	if event.Stream != "" {
		a.core.previousStream = event.Stream
	}
	if len(event.Keys) <= maxKnownKeysPerEvent {
		for _, key := range event.Keys {
			a.core.knownKeys.Add(string(key))
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
	default: // signalled already, or nil
	}
	return nil
}

// run acknowledges the follower's cursor after every signal that has advanced it, until ctx
// ends. A failed acknowledgement is retried at the next signal, at the latest after the next
// heartbeat.
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

func (c *Core) sendAcknowledgement(ctx context.Context, ack edgeproto.Acknowledgement) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	body, err := json.Marshal(ack)
	if err != nil {
		return fmt.Errorf("encode acknowledgement: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+edgeproto.AcknowledgePath, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("create acknowledgement request: %w", err)
	}
	response, err := c.send(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	// The body is read to its end, so that the connection can be reused.
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return fmt.Errorf("read response to acknowledgement: %w", err)
	}
	return nil
}
