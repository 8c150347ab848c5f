package core

import (
	"context"
	"net/netip"
)

// Client is the origin of a request. Scarce resources are shared fairly between clients.
type Client struct {
	// Network is the client's, the zero Prefix for work without a client. It may be wider than the
	// one by which log-ins are counted.
	Network netip.Prefix
	// User is the user of the request's token; 0 for none.
	User UserID
}

// clientKey is the context key of a Client.
type clientKey struct{}

// WithClient returns a context for work on behalf of a client.
func WithClient(ctx context.Context, client Client) context.Context {
	return context.WithValue(ctx, clientKey{}, client)
}

// ClientOf returns the client of a context, the zero Client without one.
func ClientOf(ctx context.Context) Client {
	client, _ := ctx.Value(clientKey{}).(Client)
	return client
}
