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

	"github.com/veneer-skins/veneer/shared/mapping"
)

// acknowledgePause is the time between two acknowledgements: under a storm of
// changes one speaks for many.
const acknowledgePause = 20 * time.Millisecond

var (
	acknowledgements       = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_acknowledgements_total", Help: "Acknowledgements of changes sent to core."})
	acknowledgementsFailed = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_acknowledgements_failed_total", Help: "Acknowledgements of changes that failed."})
)

// mostMet is how many keys of an event are met at most. Whoever has just been made is no
// stranger, but the end of a texture that a million wear would have all others forgotten.
const mostMet = 1000

// acknowledger passes the events of one stream to a follower. If core has named
// the stream, it tells core how far the follower has come.
type acknowledger struct {
	core     *Core
	follower Follower
	bell     chan struct{} // rung after every event; nil if core does not want to know
	running  sync.WaitGroup
}

// apply has the follower take in an event.
func (a *acknowledger) apply(ctx context.Context, event mapping.Event, asOf time.Time) error {
	if event.Stream != "" {
		a.core.former = event.Stream
	}
	if len(event.Keys) <= mostMet {
		for _, key := range event.Keys {
			a.core.met.add(key)
		}
	}
	if err := a.follower.Apply(event, asOf); err != nil {
		return err
	}
	if event.Stream != "" && a.bell == nil {
		a.bell = make(chan struct{}, 1)
		a.running.Go(func() { a.run(ctx, event.Stream) })
	}
	select {
	case a.bell <- struct{}{}:
	default: // it rings already, or there is none
	}
	return nil
}

// run tells core how far the follower has come, when the bell rings and it has
// come further, until ctx ends. What fails is tried again at the next ring: a beat
// rings soon.
func (a *acknowledger) run(ctx context.Context, stream string) {
	pause := time.NewTicker(acknowledgePause)
	defer pause.Stop()
	var told mapping.Position
	for failing := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-a.bell:
		}
		applied := a.follower.Position()
		if applied == told {
			continue
		}
		err := a.core.acknowledge(ctx, mapping.Acknowledgement{Position: applied, Stream: stream})
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			acknowledgements.Inc()
			told = applied
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

// acknowledge sends an acknowledgement.
func (c *Core) acknowledge(ctx context.Context, applied mapping.Acknowledgement) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	body, err := json.Marshal(applied)
	if err != nil {
		return fmt.Errorf("write acknowledgement: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+mapping.AcknowledgePath, bytes.NewReader(body))
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
