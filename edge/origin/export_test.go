package origin

import (
	"context"
	"net"
	"net/http"

	"github.com/veneer-skins/veneer/shared/mapping"
)

// Lookup asks what a key leads to and waits for the answer.
func (c *Core) Lookup(ctx context.Context, key mapping.Key) (result mapping.Mapping, position mapping.Cursor, err error) {
	done := make(chan struct{})
	rejected := c.StartLookup(ctx, key, func(m mapping.Mapping, p mapping.Cursor, e error) {
		result, position, err = m, p, e
		close(done)
	})
	if rejected != nil {
		return mapping.Mapping{}, mapping.Cursor{}, rejected
	}
	select {
	case <-done:
		return result, position, err
	case <-ctx.Done():
		return mapping.Mapping{}, mapping.Cursor{}, ctx.Err()
	}
}

// DialBy has connections to core made by a function.
func (c *Core) DialBy(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	c.client.Transport.(*http.Transport).DialContext = dial //nolint:forcetypeassert,errcheck // NewCore made it
}
