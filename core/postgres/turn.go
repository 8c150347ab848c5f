package postgres

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/limit"
)

// turns bounds how many connections of a pool one client holds. What a client asks for may
// wait for a lock for as long as a request may take, or longer: without a bound, requests
// of one client that wait for the same row would hold all connections, and everybody else
// would wait with them.
type turns struct {
	users    *limit.Semaphore[core.UserID] // nil: no bound
	networks *limit.Semaphore[netip.Prefix]
}

const (
	// userWrites is how many writes of one user are under way at once. Nearly all lock the
	// user, or one of the user's players, so that more would only wait.
	userWrites = 2
	// turnTimeout bounds the wait for a turn. Some requests may take minutes once they are
	// under way, and thousands that wait for them would hold as many connections of clients.
	turnTimeout = 5 * time.Second
)

// turnsOf returns the turns at a pool: a network has three quarters of the connections, so
// that some are left to all others.
func turnsOf(pool *pgxpool.Pool, users int) turns {
	t := turns{networks: limit.NewSemaphore[netip.Prefix](max(1, 3*int(pool.Config().MaxConns)/4))}
	if users > 0 {
		t.users = limit.NewSemaphore[core.UserID](users)
	}
	return t
}

// take does work in a turn of the client that ctx has. It returns an Unavailable fault when
// the client's other work takes too long.
func (t turns) take(ctx context.Context, work func() error) error {
	client := core.ClientOf(ctx)
	if client == (core.Client{}) {
		return work()
	}
	leave, err := t.enter(ctx, client)
	if err != nil {
		return err
	}
	defer leave()
	return work()
}

// enter waits for a turn, and returns the function that ends it.
func (t turns) enter(ctx context.Context, client core.Client) (leave func(), err error) {
	bounded, cancel := context.WithTimeout(ctx, turnTimeout)
	defer cancel()
	leaveUser := func() {}
	if t.users != nil && client.User != 0 {
		leaveUser, err = t.users.Acquire(bounded, client.User)
	}
	if err == nil {
		var leaveNetwork func()
		if leaveNetwork, err = t.networks.Acquire(bounded, client.Network); err == nil {
			return func() { leaveNetwork(); leaveUser() }, nil
		}
		leaveUser()
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = &fault.Error{
			Kind: fault.Unavailable, Message: "Too many of your requests are under way. Please try again.", RetryAfter: time.Second, Cause: err,
		}
	}
	return nil, err
}
