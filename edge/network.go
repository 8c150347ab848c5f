package edge

import (
	"context"
	"net/netip"
)

// networkKey is the key under which a context has the network of a request's client.
type networkKey struct{}

// WithNetwork returns a context with the network of a request's client. Workers and core
// are shared fairly between networks.
func WithNetwork(ctx context.Context, network netip.Prefix) context.Context {
	return context.WithValue(ctx, networkKey{}, network)
}

// NetworkOf returns the network of a request's client, and the zero Prefix for work without
// a client.
func NetworkOf(ctx context.Context) netip.Prefix {
	network, _ := ctx.Value(networkKey{}).(netip.Prefix)
	return network
}
