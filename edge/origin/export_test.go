package origin

import (
	"context"
	"net"
	"net/http"

	"github.com/veneer-skins/veneer/shared/edgeproto"
)

// Lookup asks what a key leads to and waits for the answer.
func (c *Core) Lookup(ctx context.Context, key edgeproto.Key) (result edgeproto.Mapping, position edgeproto.Cursor, err error) {
	done := make(chan struct{})
	rejected := c.StartLookup(ctx, key, func(m edgeproto.Mapping, p edgeproto.Cursor, e error) {
		result, position, err = m, p, e
		close(done)
	})
	if rejected != nil {
		return edgeproto.Mapping{}, edgeproto.Cursor{}, rejected
	}
	select {
	case <-done:
		return result, position, err
	case <-ctx.Done():
		return edgeproto.Mapping{}, edgeproto.Cursor{}, ctx.Err()
	}
}

// DialBy has connections to core made by a function.
func (c *Core) DialBy(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	c.client.Transport.(*http.Transport).DialContext = dial //nolint:forcetypeassert,errcheck // NewCore made it
}
