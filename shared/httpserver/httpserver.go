// Package httpserver builds and runs fasthttp servers: routing, error responses, access log,
// metrics, traces, limits, health and graceful shutdown. Package fastpath below it answers
// cache hits without an HTTP server.
package httpserver

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"

	"github.com/veneer-skins/veneer/shared/version"
)

// Drain bounds the shutdown of a program.
type Drain struct {
	Wait    time.Duration `env:"WAIT" envDefault:"0s" min:"0s" help:"time between failing /readyz and closing the listeners, so that balancers see it"`
	Timeout time.Duration `env:"TIMEOUT" envDefault:"20s" min:"0s" help:"longest time to wait for requests in flight"`
}

// Listener is an address and the server that listens there.
type Listener struct {
	Name       string // in the log: public, edges, operators
	Setting    string // name of the address's setting for errors, such as CORE_LISTEN
	Address    Address
	Server     *fasthttp.Server // Run takes over its timeouts
	TLS        *tls.Config      // nil for plain HTTP
	PeerLimits PeerLimits
	FastPath   *FastPath // answers requests before the server does; nil if there is none
}

// Wrap returns a listener that enforces the server's timeouts, speaks TLS, and has the fast
// path. It is for sockets that are open already; Run opens its own.
func (l Listener) Wrap(ln net.Listener) net.Listener { return l.wrap(ln) }

// Listeners are the open sockets of a program with their servers.
type Listeners struct {
	listeners []Listener
	sockets   []net.Listener
	watchdog  time.Duration // the interval of its requests
}

// Open opens the sockets of all listeners, or none, and calls CheckDependencies. Connections
// wait in the backlog until Run. The first log line has the build's version.
func Open(ctx context.Context, log *slog.Logger, needs []Check, listeners ...Listener) (*Listeners, error) {
	ls, err := open(listeners)
	if err != nil {
		return nil, err
	}
	build := version.Current()
	log.InfoContext(ctx, "starting", "version", build.Version, "revision", build.Revision, "go", build.Go)
	if err := CheckDependencies(ctx, log, needs...); err != nil {
		ls.Close()
		return nil, err
	}
	return ls, nil
}

func open(listeners []Listener) (*Listeners, error) {
	ls := &Listeners{listeners: listeners, watchdog: watchdogInterval}
	for _, l := range listeners {
		// Not ListenConfig with a context: its end must not stop the accept loop.
		ln, err := net.Listen("tcp", string(l.Address))
		if err != nil {
			ls.Close()
			return nil, l.describeListenError(err, listeners[:len(ls.sockets)])
		}
		ls.sockets = append(ls.sockets, ln)
	}
	return ls, nil
}

// Close closes the sockets that are still open.
func (ls *Listeners) Close() {
	for _, ln := range ls.sockets {
		_ = ln.Close()
	}
}

// Run serves until ctx ends. Then /readyz fails, and each response is the last one on its
// connection: it has Connection: close, so that clients do not send the next request on a
// connection that is about to close. After drain.Wait the listeners close, and requests in
// flight get drain.Timeout to finish. stopping, unless nil, is called when the listeners
// close, and must end streaming responses. Run ends with an error when a server fails, and when the
// operators' listener answers no more.
func (ls *Listeners) Run(ctx context.Context, log *slog.Logger, health *Health, drain Drain, stopping func()) error {
	listeners := ls.listeners
	var servers errgroup.Group
	failed := make(chan error, 2*len(listeners))
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	wrapped := make([]*deadlineListener, len(listeners))
	for i, l := range listeners {
		wrapped[i] = l.wrap(ls.sockets[i])
		log.InfoContext(ctx, "listening", "listener", l.Name, "address", wrapped[i].Addr().String(), "tls", l.TLS != nil)
		servers.Go(func() error {
			err := l.Server.Serve(wrapped[i])
			if err != nil {
				err = fmt.Errorf("serve the %s listener: %w", l.Name, err)
				failed <- err
			}
			return err
		})
		if l.Name != operatorsListener {
			continue
		}
		servers.Go(func() error {
			err := watch(watching, ls.sockets[i].Addr().String(), ls.watchdog)
			if err != nil {
				failed <- err
			}
			return err
		})
	}

	var failure error
	select {
	case <-ctx.Done():
	case failure = <-failed:
		log.ErrorContext(ctx, "a listener failed", "error", failure)
	}
	stopWatching()
	start := time.Now()
	log.InfoContext(ctx, "draining", "wait", drain.Wait.String())
	health.drain()
	for _, dl := range wrapped {
		dl.draining.Store(true)
	}
	select {
	case <-failed:
	case <-time.After(drain.Wait):
	}
	if stopping != nil {
		stopping()
	}

	deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain.Timeout)
	defer cancel()
	var shutdowns errgroup.Group
	for _, l := range listeners {
		shutdowns.Go(func() error {
			if err := l.Server.ShutdownWithContext(deadline); err != nil {
				return fmt.Errorf("requests were still in flight on the %s listener after %s: %w", l.Name, drain.Timeout, err)
			}
			return nil
		})
	}
	err := shutdowns.Wait()
	ls.Close() // Shutdown does not stop a server that has not begun to serve
	if err == nil {
		err = servers.Wait()
	}
	log.InfoContext(ctx, "stopped", "after", time.Since(start).Round(time.Millisecond).String())
	return cmp.Or(failure, err)
}
