// Package serve runs fasthttp servers until they are told to stop, answers
// faults, logs and counts requests, and offers operators health, metrics and
// profiles.
package serve

import (
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

// Drain says how a program ends.
type Drain struct {
	Wait    time.Duration `env:"WAIT" envDefault:"0s" help:"time between failing /readyz and closing the listeners, so that balancers see it"`
	Timeout time.Duration `env:"TIMEOUT" envDefault:"20s" help:"longest time that requests in flight are waited for"`
}

// Check returns an error that names a time which makes no sense.
func (d Drain) Check() error {
	for name, value := range map[string]time.Duration{"WAIT": d.Wait, "TIMEOUT": d.Timeout} {
		if value < 0 {
			return fmt.Errorf("%s is %s, but must not be negative", name, value)
		}
	}
	return nil
}

// Listener is an address with the server behind it.
type Listener struct {
	Name     string // in the log: public, edges, operators
	Setting  string // that holds the address, in errors: CORE_LISTEN
	Address  Address
	Server   *fasthttp.Server // its timeouts are taken over by Run
	TLS      *tls.Config      // nil: plain HTTP
	Peers    Peers
	FastPath *FastPath // answers requests before the server does; nil: nothing does
}

// Keep returns a listener that keeps the server's limits of time in its place, speaks TLS,
// and has the fast path. It is for one that is open already; Run opens its own.
func (l Listener) Keep(opened net.Listener) net.Listener { return l.keep(opened) }

// Listeners are the addresses of a program, open, with the servers behind them.
type Listeners struct {
	listeners []Listener
	opened    []net.Listener
}

// Open opens the addresses of all listeners, or none, and waits for what the program needs
// as Await does. Connections wait until Run. The first line of the log says what the
// program was built from.
func Open(ctx context.Context, log *slog.Logger, needs []Check, listeners ...Listener) (*Listeners, error) {
	o, err := open(listeners)
	if err != nil {
		return nil, err
	}
	build := version.Current()
	log.InfoContext(ctx, "starting", "version", build.Version, "revision", build.Revision, "go", build.Go)
	if err := Await(ctx, log, needs...); err != nil {
		o.Close()
		return nil, err
	}
	return o, nil
}

func open(listeners []Listener) (*Listeners, error) {
	o := &Listeners{listeners: listeners}
	for _, l := range listeners {
		// Not ListenConfig with a context: its end must not cut the accept loop short.
		opened, err := net.Listen("tcp", string(l.Address))
		if err != nil {
			o.Close()
			return nil, l.explain(err, listeners[:len(o.opened)])
		}
		o.opened = append(o.opened, opened)
	}
	return o, nil
}

// Close closes the addresses, if they are open still.
func (o *Listeners) Close() {
	for _, opened := range o.opened {
		_ = opened.Close()
	}
}

// Run serves until ctx ends. Then health fails, and every answer is the last one on its
// connection: it says Connection: close, so that clients do not send the next request on
// a connection that is about to close. After drain.Wait the listeners close, and
// requests in flight get drain.Timeout to finish. stopping, unless nil, is called when
// the listeners close: it ends answers that are endless.
func (o *Listeners) Run(ctx context.Context, log *slog.Logger, health *Health, drain Drain, stopping func()) error {
	listeners := o.listeners
	var servers errgroup.Group
	failed := make(chan struct{}, len(listeners))
	keepers := make([]*keeper, len(listeners))
	for i, l := range listeners {
		keepers[i] = l.keep(o.opened[i])
		log.InfoContext(ctx, "listening", "listener", l.Name, "address", keepers[i].Addr().String(), "tls", l.TLS != nil)
		servers.Go(func() error {
			if err := l.Server.Serve(keepers[i]); err != nil {
				failed <- struct{}{}
				return fmt.Errorf("serve the %s listener: %w", l.Name, err)
			}
			return nil
		})
	}

	select {
	case <-ctx.Done():
	case <-failed:
	}
	start := time.Now()
	log.InfoContext(ctx, "draining", "wait", drain.Wait.String())
	health.drain()
	for _, k := range keepers {
		k.draining.Store(true)
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
	o.Close() // a server that had not begun to serve was not shut down, and must not begin
	if err == nil {
		err = servers.Wait()
	}
	log.InfoContext(ctx, "stopped", "after", time.Since(start).Round(time.Millisecond).String())
	return err
}
