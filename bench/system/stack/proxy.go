package stack

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Mode is what a Proxy does with connections.
type Mode uint8

// The modes of a Proxy.
const (
	// Pass forwards everything.
	Pass Mode = iota
	// Cut closes all connections, and new ones immediately.
	Cut
	// Hold buffers data, and forwards it when the mode changes: like lost packets that are
	// retransmitted.
	Hold
	// Blackhole discards all data, on existing and on new connections. They stay open, but are
	// dead even after the mode changes.
	Blackhole
)

// Proxy forwards connections to one of its targets, as a balancer does, until the mode changes.
type Proxy struct {
	Address string
	targets []string

	mu          sync.Mutex
	mode        Mode
	modeChanged chan struct{} // closed and replaced when the mode changes
	links       map[*link]struct{}
	next        int // index in targets
	closed      bool
	all         sync.WaitGroup
}

// link is a connection with both its ends.
type link struct {
	client, server net.Conn // server is nil until connected
	blackholed     bool     // for the rest of its life
	closed         chan struct{}
}

// NewProxy returns a proxy that uses its targets round-robin, until the test ends.
func NewProxy(tb testing.TB, targets ...string) *Proxy {
	tb.Helper()
	listener, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{Address: listener.Addr().String(), targets: targets, modeChanged: make(chan struct{}), links: map[*link]struct{}{}}
	p.all.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			p.all.Go(func() { p.serve(client) })
		}
	})
	tb.Cleanup(func() {
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		_ = listener.Close()
		p.Set(Cut)
		p.all.Wait()
	})
	return p
}

// Set changes the mode.
func (p *Proxy) Set(mode Mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode = mode
	for l := range p.links {
		if mode == Cut {
			p.closeLocked(l)
		}
		l.blackholed = l.blackholed || mode == Blackhole
	}
	close(p.modeChanged)
	p.modeChanged = make(chan struct{})
}

// serve forwards a connection until its end.
func (p *Proxy) serve(client net.Conn) {
	l := &link{client: client, closed: make(chan struct{})}
	p.mu.Lock()
	p.links[l] = struct{}{}
	l.blackholed = p.mode == Blackhole
	if p.mode == Cut || p.closed {
		p.closeLocked(l)
	}
	p.mu.Unlock()
	if !p.awaitPass(l) {
		_, _ = io.Copy(io.Discard, client)
		p.close(l)
		return
	}
	if !p.dial(l) {
		p.close(l)
		return
	}
	var back sync.WaitGroup
	back.Go(func() { p.pump(l, l.client, l.server) })
	p.pump(l, l.server, l.client)
	back.Wait()
}

// dial connects a link with the first target, from the next one on, that listens.
func (p *Proxy) dial(l *link) bool {
	for range p.targets {
		p.mu.Lock()
		target := p.targets[p.next%len(p.targets)]
		p.next++
		p.mu.Unlock()
		server, err := net.Dial("tcp", target) //nolint:noctx // on loopback it is answered at once
		if err != nil {
			continue
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		l.server = server
		if _, open := p.links[l]; !open { // cut meanwhile
			_ = server.Close()
		}
		return true
	}
	return false
}

// pump forwards data in one direction, and ends the link at its end.
func (p *Proxy) pump(l *link, to io.Writer, from io.Reader) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if p.awaitPass(l) && n > 0 {
			_, _ = to.Write(buffer[:n]) // if it fails, so does the other direction's read
		}
		if err != nil {
			p.close(l)
			return
		}
	}
}

// awaitPass waits while the mode is Hold, and reports whether data may pass.
func (p *Proxy) awaitPass(l *link) bool {
	for {
		p.mu.Lock()
		mode, blackholed, modeChanged := p.mode, l.blackholed, p.modeChanged
		p.mu.Unlock()
		if blackholed || mode != Hold {
			return !blackholed
		}
		select {
		case <-modeChanged:
		case <-l.closed:
			return false
		}
	}
}

func (p *Proxy) close(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeLocked(l)
}

// closeLocked closes both ends of a link. The caller holds mu.
func (p *Proxy) closeLocked(l *link) {
	if _, open := p.links[l]; !open {
		return
	}
	delete(p.links, l)
	close(l.closed)
	_ = l.client.Close()
	if l.server != nil {
		_ = l.server.Close()
	}
}
