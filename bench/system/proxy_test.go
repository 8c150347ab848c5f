package system_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/system"
)

// echo starts a server that sends every line back behind its name.
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

// caller is a client of an echo.
type caller struct {
	*testing.T
	conn  net.Conn
	lines *bufio.Reader
}

func call(t *testing.T, p *system.Proxy) caller {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return caller{T: t, conn: conn, lines: bufio.NewReader(conn)}
}

func (c caller) say(text string) {
	c.Helper()
	if _, err := io.WriteString(c.conn, text+"\n"); err != nil {
		c.Error(err)
	}
}

func (c caller) hear(want string) {
	c.Helper()
	_ = c.conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if got, err := c.lines.ReadString('\n'); err != nil || got != want+"\n" {
		c.Errorf("heard %q, %v; want %q", got, err, want)
	}
}

// silent demands that the connection is open and says nothing.
func (c caller) silent() {
	c.Helper()
	_ = c.conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if got, err := c.lines.ReadString('\n'); got != "" || !errors.Is(err, os.ErrDeadlineExceeded) {
		c.Errorf("heard %q, %v; want silence", got, err)
	}
}

// over demands that the connection is at its end.
func (c caller) over() {
	c.Helper()
	_ = c.conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if got, err := c.lines.ReadString('\n'); got != "" || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		c.Errorf("heard %q, %v; want the end", got, err)
	}
}

func TestProxyPassesInTurns(t *testing.T) {
	t.Parallel()
	p := system.NewProxy(t, echo(t, "a "), echo(t, "b "))
	first, second := call(t, p), call(t, p)
	first.say("one")
	first.hear("a one")
	second.say("one")
	second.hear("b one")
	first.say("two")
	first.hear("a two")
}

func TestProxyPassesByWhoIsAway(t *testing.T) {
	t.Parallel()
	p := system.NewProxy(t, "127.0.0.1:1", echo(t, "b "))
	for range 3 {
		c := call(t, p)
		c.say("one")
		c.hear("b one")
	}
	call(t, system.NewProxy(t, "127.0.0.1:1")).over()
}

func TestProxyCuts(t *testing.T) {
	t.Parallel()
	p := system.NewProxy(t, echo(t, ""))
	c := call(t, p)
	c.say("one")
	c.hear("one")
	p.Set(system.Cut)
	c.over()
	call(t, p).over()
	p.Set(system.Pass)
	c = call(t, p)
	c.say("two")
	c.hear("two")
}

func TestProxyHolds(t *testing.T) {
	t.Parallel()
	p := system.NewProxy(t, echo(t, ""))
	before := call(t, p)
	before.say("one")
	before.hear("one")
	p.Set(system.Hold)
	during := call(t, p)
	before.say("two")
	during.say("two")
	before.silent()
	during.silent()
	p.Set(system.Pass)
	before.hear("two")
	during.hear("two")
}

func TestProxySwallows(t *testing.T) {
	t.Parallel()
	p := system.NewProxy(t, echo(t, ""))
	before := call(t, p)
	before.say("one")
	before.hear("one")
	p.Set(system.Swallow)
	during := call(t, p)
	before.say("two")
	during.say("two")
	before.silent()
	p.Set(system.Pass)
	before.say("three")
	before.silent()
	during.silent()
	after := call(t, p)
	after.say("four")
	after.hear("four")
}
