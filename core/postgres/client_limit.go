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

// clientLimits bounds how many connections of a pool one client holds. A statement may wait
// for a lock for as long as a request may take, or longer: without a bound, requests of one
// client that wait for the same row would hold all connections, and those of all other
// clients would wait for one.
type clientLimits struct {
	users    *ratelimit.Semaphore[core.UserID] // nil: no bound
	networks *ratelimit.Semaphore[netip.Prefix]
}

const (
	// userWrites is how many writes of one user are under way at once. Nearly all lock the
	// user, or one of the user's players, so that more would only wait.
	userWrites = 2
	// clientLimitTimeout bounds the wait of a request for others of its client. Some requests
	// may take minutes once they are under way, and thousands that wait for them would hold as
	// many connections of clients.
	clientLimitTimeout = 5 * time.Second
)

// newClientLimits returns the limits at a pool: a network has three quarters of the
// connections, so that some are left to all others.
func newClientLimits(pool *pgxpool.Pool, users int) clientLimits {
	l := clientLimits{networks: ratelimit.NewSemaphore[netip.Prefix](max(1, 3*int(pool.Config().MaxConns)/4))}
	if users > 0 {
		l.users = ratelimit.NewSemaphore[core.UserID](users)
	}
	return l
}

// listLimits bounds how many lists are read at once: each may hold a connection for tenths of a
// second, and those for reads, if lists have none of their own, are needed for all else, too.
type listLimits struct {
	clientLimits
	all *ratelimit.Semaphore[struct{}]
}

// newListLimits returns the limits of lists that may hold so many connections: all of them, and
// two thirds for one network.
func newListLimits(connections int) listLimits {
	return listLimits{
		clientLimits{networks: ratelimit.NewSemaphore[netip.Prefix](max(1, 2*connections/3))},
		ratelimit.NewSemaphore[struct{}](max(1, connections)),
	}
}

// do does work within the limits of all lists and of the client that ctx has.
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

// do does work within the limits of the client that ctx has. It returns an Unavailable fault
// when the client's other work takes too long.
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

// acquire waits until the client is below its limits and counts its work, until the function
// is called that it returns.
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
