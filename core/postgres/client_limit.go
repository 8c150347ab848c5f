package postgres

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/ratelimit"
)

// clientLimits bounds how many connections of a pool one client holds. A statement may wait for
// a lock for as long as a request may take, or longer. Without a bound, requests of one client
// that wait for the same row could hold all connections.
type clientLimits struct {
	users    *ratelimit.Semaphore[core.UserID] // nil: unlimited
	networks *ratelimit.Semaphore[netip.Prefix]
}

const (
	// userWrites is how many writes of one user run at once. Nearly all of them lock the user,
	// or one of the user's players, so more would only wait.
	userWrites = 2
	// clientLimitTimeout bounds how long a request waits for others of its client. Some
	// requests run for minutes, and thousands that wait behind them would keep their client
	// connections open.
	clientLimitTimeout = 5 * time.Second
)

// newClientLimits returns the limits of a pool. A network may use three quarters of the
// connections, which leaves some for all others.
func newClientLimits(pool *pgxpool.Pool, users int) clientLimits {
	l := clientLimits{networks: ratelimit.NewSemaphore[netip.Prefix](max(1, 3*int(pool.Config().MaxConns)/4))}
	if users > 0 {
		l.users = ratelimit.NewSemaphore[core.UserID](users)
	}
	return l
}

// listLimits bounds how many lists are read at once. Each may hold a connection for tenths of a
// second, and without a pool of their own they share the pool of all other reads.
type listLimits struct {
	clientLimits
	all *ratelimit.Semaphore[struct{}]
}

// newListLimits returns limits that allow lists to use this number of connections, and one network two
// thirds of them.
func newListLimits(connections int) listLimits {
	return listLimits{
		clientLimits{networks: ratelimit.NewSemaphore[netip.Prefix](max(1, 2*connections/3))},
		ratelimit.NewSemaphore[struct{}](max(1, connections)),
	}
}

// do runs work within the limits of all lists and of the client in ctx.
func (l listLimits) do(ctx context.Context, work func() error) error {
	return l.clientLimits.do(ctx, func() error {
		release, err := l.all.Acquire(ctx, struct{}{})
		if err != nil {
			return err
		}
		defer release()
		return work()
	})
}

// do runs work within the limits of the client in ctx. It returns an Unavailable fault if the
// client's other requests take longer than clientLimitTimeout.
func (l clientLimits) do(ctx context.Context, work func() error) error {
	client := core.ClientOf(ctx)
	if client == (core.Client{}) {
		return work()
	}
	release, err := l.acquire(ctx, client)
	if err != nil {
		return err
	}
	defer release()
	return work()
}

// acquire waits until the client is below its limits. The caller must call release when the
// work is done.
func (l clientLimits) acquire(ctx context.Context, client core.Client) (release func(), err error) {
	bounded, cancel := context.WithTimeout(ctx, clientLimitTimeout)
	defer cancel()
	releaseUser := func() {}
	if l.users != nil && client.User != 0 {
		releaseUser, err = l.users.Acquire(bounded, client.User)
	}
	if err == nil {
		var releaseNetwork func()
		if releaseNetwork, err = l.networks.Acquire(bounded, client.Network); err == nil {
			return func() { releaseNetwork(); releaseUser() }, nil
		}
		releaseUser()
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = &fault.Error{
			Kind: fault.Unavailable, Message: "Too many of your requests are under way. Please try again.", RetryAfter: time.Second, Cause: err,
		}
	}
	return nil, err
}
