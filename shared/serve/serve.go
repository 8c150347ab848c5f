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
	Address  string
	Server   *fasthttp.Server // its timeouts are taken over by Run
	TLS      *tls.Config      // nil: plain HTTP
	Peers    *Peers           // nil: any number of connections of one peer
	Shortcut *Shortcut        // answers plain requests before the server does; nil, or with TLS: none does
}

// Keep returns a listener that keeps the server's limits of time in its place, and takes
// the shortcut. It is for one that is open already; Run opens its own.
func (l Listener) Keep(opened net.Listener) net.Listener { return l.keep(opened) }

func (l Listener) keep(opened net.Listener) *keeper {
	shortcut := l.Shortcut
	if l.TLS != nil { // nothing is answered in clear
		shortcut = nil
	}
	k := keep(l.Server, opened, l.Peers, shortcut)
	k.tell = l.TLS == nil
	return k
}

// open opens the addresses of listeners: all, or none.
func open(listeners []Listener) (opened []net.Listener, err error) {
	defer func() {
		if err != nil {
			for _, l := range opened {
				_ = l.Close()
			}
		}
	}()
	for _, l := range listeners {
		if l.Address == "" { // net.Listen would take it for every interface
			return opened, fmt.Errorf("the %s listener has no address", l.Name)
		}
		// Not ListenConfig with a context: its end must not cut the accept loop short.
		listener, err := net.Listen("tcp", l.Address)
		if err != nil {
			return opened, fmt.Errorf("open the %s listener: %w", l.Name, err)
		}
		opened = append(opened, listener)
	}
	return opened, nil
}

// Run listens on all addresses, or on none, and serves until ctx ends. Then
// health fails, and every answer is the last one on its connection: whoever keeps
// one open is told to leave before it is closed, when a request might be on its way
// already. After drain.Wait the listeners close, and requests in flight get
// drain.Timeout to finish. stopping, unless nil, is called when the
// listeners close: it ends answers that are endless.
func Run(ctx context.Context, log *slog.Logger, health *Health, drain Drain, stopping func(), listeners ...Listener) error {
	opened, err := open(listeners)
	if err != nil {
		return err
	}

	var servers errgroup.Group
	failed := make(chan struct{}, len(listeners))
	keepers := make([]*keeper, len(listeners))
	for i, l := range listeners {
		keepers[i] = l.keep(opened[i])
		listener := net.Listener(keepers[i])
		log.InfoContext(ctx, "listening", "listener", l.Name, "address", listener.Addr().String(), "tls", l.TLS != nil)
		if l.TLS != nil {
			listener = tls.NewListener(listener, l.TLS)
		}
		servers.Go(func() error {
			if err := l.Server.Serve(listener); err != nil {
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
	err = shutdowns.Wait()
	if err == nil {
		err = servers.Wait()
	}
	log.InfoContext(ctx, "stopped", "after", time.Since(start).Round(time.Millisecond).String())
	return err
}
