package stack_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/system/stack"
)

// echo starts a server that sends every line back after its name.
func echo(t *testing.T, name string) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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

// client is a client of an echo.
type client struct {
	*testing.T
	conn  net.Conn
	lines *bufio.Reader
}

func dial(t *testing.T, p *stack.Proxy) client {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return client{T: t, conn: conn, lines: bufio.NewReader(conn)}
}

func (c client) send(text string) {
	c.Helper()
	if _, err := io.WriteString(c.conn, text+"\n"); err != nil {
		c.Error(err)
	}
}

func (c client) expect(want string) {
	c.Helper()
	_ = c.conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if got, err := c.lines.ReadString('\n'); err != nil || got != want+"\n" {
		c.Errorf("received %q, %v; want %q", got, err, want)
	}
}

// expectSilence fails the test unless the connection is open and silent.
func (c client) expectSilence() {
	c.Helper()
	_ = c.conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if got, err := c.lines.ReadString('\n'); got != "" || !errors.Is(err, os.ErrDeadlineExceeded) {
		c.Errorf("received %q, %v; want nothing", got, err)
	}
}

// expectClosed fails the test unless the connection is closed.
func (c client) expectClosed() {
	c.Helper()
	_ = c.conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if got, err := c.lines.ReadString('\n'); got != "" || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		c.Errorf("received %q, %v; want the end", got, err)
	}
}

func TestProxyRoundRobin(t *testing.T) {
	t.Parallel()
	p := stack.NewProxy(t, echo(t, "a "), echo(t, "b "))
	first := dial(t, p)
	first.send("one")
	first.expect("a one")
	second := dial(t, p) // now, as links that begin at once have targets in any order
	second.send("one")
	second.expect("b one")
	first.send("two")
	first.expect("a two")
}

func TestProxySkipsUnreachableTargets(t *testing.T) {
	t.Parallel()
	p := stack.NewProxy(t, "127.0.0.1:1", echo(t, "b "))
	for range 3 {
		c := dial(t, p)
		c.send("one")
		c.expect("b one")
	}
	dial(t, stack.NewProxy(t, "127.0.0.1:1")).expectClosed()
}

func TestProxyCuts(t *testing.T) {
	t.Parallel()
	p := stack.NewProxy(t, echo(t, ""))
	c := dial(t, p)
	c.send("one")
	c.expect("one")
	p.Set(stack.Cut)
	c.expectClosed()
	dial(t, p).expectClosed()
	p.Set(stack.Pass)
	c = dial(t, p)
	c.send("two")
	c.expect("two")
}

func TestProxyHolds(t *testing.T) {
	t.Parallel()
	p := stack.NewProxy(t, echo(t, ""))
	before := dial(t, p)
	before.send("one")
	before.expect("one")
	p.Set(stack.Hold)
	during := dial(t, p)
	before.send("two")
	during.send("two")
	before.expectSilence()
	during.expectSilence()
	p.Set(stack.Pass)
	before.expect("two")
	during.expect("two")
}

func TestProxyBlackholes(t *testing.T) {
	t.Parallel()
	p := stack.NewProxy(t, echo(t, ""))
	before := dial(t, p)
	before.send("one")
	before.expect("one")
	p.Set(stack.Blackhole)
	during := dial(t, p)
	before.send("two")
	during.send("two")
	before.expectSilence()
	p.Set(stack.Pass)
	before.send("three")
	before.expectSilence()
	during.expectSilence()
	after := dial(t, p)
	after.send("four")
	after.expect("four")
}
