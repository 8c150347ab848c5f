package origin

import (
	"context"
	"net"
	"net/http"

	"github.com/veneer-skins/veneer/shared/edgeproto"
)

// Lookup looks a key up and waits for the result.
func (c *Core) Lookup(ctx context.Context, key edgeproto.Key) (result edgeproto.Mapping, cursor edgeproto.Cursor, err error) {
	done := make(chan struct{})
	rejected := c.StartLookups(ctx, []edgeproto.Key{key}, func(_ int, m edgeproto.Mapping, at edgeproto.Cursor, e error) {
		result, cursor, err = m, at, e
		close(done)
	})
	if rejected != nil {
		return edgeproto.Mapping{}, edgeproto.Cursor{}, rejected
	}
	select {
	case <-done:
		return result, cursor, err
	case <-ctx.Done():
		return edgeproto.Mapping{}, edgeproto.Cursor{}, ctx.Err()
	}
}

// SetDial replaces the function that connects to core.
func (c *Core) SetDial(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	c.client.Transport.(*http.Transport).DialContext = dial //nolint:forcetypeassert,errcheck // NewCore made it
}
