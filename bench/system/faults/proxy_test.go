package faults

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// mode is what a proxy does with connections.
type mode uint8

// The modes of a proxy.
const (
	// pass forwards everything.
	pass mode = iota
	// cut closes all connections, and new ones immediately.
	cut
	// hold buffers data, and forwards it when the mode changes: like lost packets that are
	// retransmitted.
	hold
	// blackhole discards all data, on existing and on new connections. They stay open, but are
	// dead even after the mode changes.
	blackhole
)

// proxy forwards connections to one of its targets, as a balancer does, until the mode changes.
type proxy struct {
	Address string
	targets []string

	mu          sync.Mutex
	mode        mode
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

// newProxy returns a proxy that uses its targets round-robin, until the test ends.
func newProxy(tb testing.TB, targets ...string) *proxy {
	tb.Helper()
	listener := testenv.Must(new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0"))(tb)
	p := &proxy{Address: listener.Addr().String(), targets: targets, modeChanged: make(chan struct{}), links: map[*link]struct{}{}}
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
		p.Set(cut)
		p.all.Wait()
	})
	return p
}

func (p *proxy) Set(mode mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode = mode
	for l := range p.links {
		if mode == cut {
			p.closeLocked(l)
		}
		l.blackholed = l.blackholed || mode == blackhole
	}
	close(p.modeChanged)
	p.modeChanged = make(chan struct{})
}

// serve forwards a connection until its end.
func (p *proxy) serve(client net.Conn) {
	l := &link{client: client, closed: make(chan struct{})}
	p.mu.Lock()
	p.links[l] = struct{}{}
	l.blackholed = p.mode == blackhole
	if p.mode == cut || p.closed {
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
func (p *proxy) dial(l *link) bool {
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
func (p *proxy) pump(l *link, to io.Writer, from io.Reader) {
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

// awaitPass waits while the mode is hold, and reports whether data may pass.
func (p *proxy) awaitPass(l *link) bool {
	for {
		p.mu.Lock()
		mode, blackholed, modeChanged := p.mode, l.blackholed, p.modeChanged
		p.mu.Unlock()
		if blackholed || mode != hold {
			return !blackholed
		}
		select {
		case <-modeChanged:
		case <-l.closed:
			return false
		}
	}
}

func (p *proxy) close(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeLocked(l)
}

// closeLocked closes both ends of a link. The caller holds mu.
func (p *proxy) closeLocked(l *link) {
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

// echo starts a server that sends every line back after its name.
func echo(t *testing.T, name string) string {
	t.Helper()
	listener := testenv.Must(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					_, _ = io.WriteString(conn, name+lines.Text()+"\n")
				}
			}()
		}
	}()
	return listener.Addr().String()
}

// echoClient is a client of an echo.
type echoClient struct {
	*testing.T
	conn  net.Conn
	lines *bufio.Reader
}

func dial(t *testing.T, p *proxy) echoClient {
	t.Helper()
	conn := testenv.Must(new(net.Dialer).DialContext(t.Context(), "tcp", p.Address))(t)
	t.Cleanup(func() { _ = conn.Close() })
	return echoClient{T: t, conn: conn, lines: bufio.NewReader(conn)}
}

func (c echoClient) send(text string) {
	c.Helper()
	testenv.Must(io.WriteString(c.conn, text+"\n"))(c)
}

func (c echoClient) expect(want string) {
	c.Helper()
	_ = c.conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if got, err := c.lines.ReadString('\n'); err != nil || got != want+"\n" {
		c.Errorf("received %q, %v; want %q", got, err, want)
	}
}

func (c echoClient) exchange(text, want string) {
	c.Helper()
	c.send(text)
	c.expect(want)
}

// expectSilence fails the test unless the connection is open and silent.
func (c echoClient) expectSilence() {
	c.Helper()
	_ = c.conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if got, err := c.lines.ReadString('\n'); got != "" || !errors.Is(err, os.ErrDeadlineExceeded) {
		c.Errorf("received %q, %v; want nothing", got, err)
	}
}

// expectClosed fails the test unless the connection is closed.
func (c echoClient) expectClosed() {
	c.Helper()
	_ = c.conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if got, err := c.lines.ReadString('\n'); got != "" || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		c.Errorf("received %q, %v; want the end", got, err)
	}
}

func TestProxyRoundRobin(t *testing.T) {
	t.Parallel()
	p := newProxy(t, echo(t, "a "), echo(t, "b "))
	first := dial(t, p)
	first.exchange("one", "a one")
	second := dial(t, p) // now, as links that begin at once have targets in any order
	second.exchange("one", "b one")
	first.exchange("two", "a two")
}

func TestProxySkipsUnreachableTargets(t *testing.T) {
	t.Parallel()
	p := newProxy(t, "127.0.0.1:1", echo(t, "b "))
	for range 3 {
		c := dial(t, p)
		c.exchange("one", "b one")
	}
	dial(t, newProxy(t, "127.0.0.1:1")).expectClosed()
}

func TestProxyCuts(t *testing.T) {
	t.Parallel()
	p := newProxy(t, echo(t, ""))
	c := dial(t, p)
	c.exchange("one", "one")
	p.Set(cut)
	c.expectClosed()
	dial(t, p).expectClosed()
	p.Set(pass)
	c = dial(t, p)
	c.exchange("two", "two")
}

func TestProxyHolds(t *testing.T) {
	t.Parallel()
	p := newProxy(t, echo(t, ""))
	before := dial(t, p)
	before.exchange("one", "one")
	p.Set(hold)
	during := dial(t, p)
	before.send("two")
	during.send("two")
	before.expectSilence()
	during.expectSilence()
	p.Set(pass)
	before.expect("two")
	during.expect("two")
}

func TestProxyBlackholes(t *testing.T) {
	t.Parallel()
	p := newProxy(t, echo(t, ""))
	before := dial(t, p)
	before.exchange("one", "one")
	p.Set(blackhole)
	during := dial(t, p)
	before.send("two")
	during.send("two")
	before.expectSilence()
	p.Set(pass)
	before.send("three")
	before.expectSilence()
	during.expectSilence()
	dial(t, p).exchange("four", "four")
}
