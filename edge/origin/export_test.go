package origin

import (
	"context"
	"net"
	"net/http"
)

// DialBy has connections to core made by a function.
func (c *Core) DialBy(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	c.client.Transport.(*http.Transport).DialContext = dial //nolint:forcetypeassert,errcheck // NewCore made it
}
