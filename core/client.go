package core

import (
	"context"
	"net/netip"
)

// Client is where a request comes from. What is scarce is shared between clients.
type Client struct {
	// Network is that of the client's address, the zero Prefix for work that no client
	// has asked for. It may be wider than the one that log-ins are counted by.
	Network netip.Prefix
	// User is the user whose token the client has shown; 0 for none.
	User UserID
}

// clientKey is the key under which a context has the client of a request.
type clientKey struct{}

// WithClient returns a context of work for a client.
func WithClient(ctx context.Context, client Client) context.Context {
	return context.WithValue(ctx, clientKey{}, client)
}

// ClientOf returns the client that work is for, and the zero Client for work that no
// client has asked for.
func ClientOf(ctx context.Context) Client {
	client, _ := ctx.Value(clientKey{}).(Client)
	return client
}
