package origin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/mapping"
)

// maxAnswer is the most bytes of an answer that are read: many times what
// mapping.MaxKeys mappings take.
const maxAnswer = 4 << 20

var _ edge.Core = (*Core)(nil)

// question is a look-up that waits for its turn.
type question struct {
	key    mapping.Key
	answer chan<- answer // has room for one: nobody may wait for it any more
}

type answer struct {
	mapping  mapping.Mapping
	position mapping.Position
	err      error
}

// Lookup asks core what a key leads to. It returns an Unavailable fault when core
// does not answer in time, and at once when too many others are waiting.
func (c *Core) Lookup(ctx context.Context, key mapping.Key) (mapping.Mapping, mapping.Position, error) {
	reply := make(chan answer, 1)
	select {
	case c.queue <- question{key: key, answer: reply}:
	default:
		queueFull.Inc()
		return mapping.Mapping{}, mapping.Position{}, fault.Down("core", errors.New("the queue of look-ups is full"))
	}
	select {
	case a := <-reply:
		return a.mapping, a.position, a.err
	case <-ctx.Done():
		return mapping.Mapping{}, mapping.Position{}, fault.Down("core", ctx.Err())
	}
}

// Answer sends the look-ups to core, many at a time, until ctx ends.
func (c *Core) Answer(ctx context.Context) {
	var workers sync.WaitGroup
	for range inFlight {
		workers.Go(func() {
			batch := make([]question, 0, mapping.MaxKeys)
			for {
				select {
				case <-ctx.Done():
					return
				case first := <-c.queue:
					batch = c.join(append(batch[:0], first))
					c.ask(ctx, batch)
				}
			}
		})
	}
	workers.Wait()
}

// join adds to a batch what waits already. It waits for nothing: under load the
// requests in flight give the batches time to grow.
func (c *Core) join(batch []question) []question {
	for len(batch) < mapping.MaxKeys {
		select {
		case next := <-c.queue:
			batch = append(batch, next)
		default:
			return batch
		}
	}
	return batch
}

// ask sends one batch and hands everybody their answer.
func (c *Core) ask(ctx context.Context, batch []question) {
	keys := make([]mapping.Key, len(batch))
	for i, q := range batch {
		keys[i] = q.key
	}
	coreAsked.Inc()
	keysAsked.Add(len(keys))
	all, err := c.lookup(ctx, keys)
	if err != nil {
		coreFailed.Inc()
	}
	for i, q := range batch {
		if err != nil {
			q.answer <- answer{err: err}
			continue
		}
		q.answer <- answer{mapping: all.Mappings[i], position: all.Position}
	}
}

func (c *Core) lookup(ctx context.Context, keys []mapping.Key) (mapping.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	body, err := json.Marshal(mapping.Question{Keys: keys})
	if err != nil {
		return mapping.Answer{}, fmt.Errorf("encode look-up: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+mapping.LookupPath, bytes.NewReader(body))
	if err != nil {
		return mapping.Answer{}, fmt.Errorf("make look-up: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.send(request)
	if err != nil {
		return mapping.Answer{}, err
	}
	defer func() { _ = response.Body.Close() }()

	// Read to its end, or the connection could not be used again.
	answered, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return mapping.Answer{}, fault.Down("core", fmt.Errorf("read mappings: %w", err))
	}
	var all mapping.Answer
	if err := json.Unmarshal(answered, &all); err != nil {
		return mapping.Answer{}, fault.Down("core", fmt.Errorf("read mappings: %w", err))
	}
	if len(all.Mappings) != len(keys) {
		return mapping.Answer{}, fault.Down("core", fmt.Errorf("core answered %d keys with %d mappings", len(keys), len(all.Mappings)))
	}
	return all, nil
}
