package serve

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// shortcutConn returns a connection that waits for a request, and its client's end.
func shortcutConn(t *testing.T, answer func(*Plain) bool) (*conn, net.Conn) {
	t.Helper()
	opened, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	client, err := net.Dial("tcp", opened.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server := &fasthttp.Server{ReadTimeout: time.Minute, WriteTimeout: time.Minute, IdleTimeout: time.Minute}
	listener := Listener{Server: server, Shortcut: Door{Limits: Limits{HeaderBytes: batchBytes}}.Shortcut(answer)}.Keep(opened)
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.Close()
		_ = accepted.Close()
		_ = listener.Close()
	})
	c := connOf(accepted)
	c.enter(fasthttp.StateIdle)
	return c, client
}

const plainGet = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n"

// A server that stops closes connections it believes to be idle. An answer that has
// begun is sent all the same.
func TestAnswerIsSentBeforeItsConnectionCloses(t *testing.T) {
	t.Parallel()

	begun, closed := make(chan struct{}), make(chan struct{})
	route := Door{Listener: "closing"}.Route("short")
	c, client := shortcutConn(t, func(p *Plain) bool {
		close(begun)
		<-closed
		p.Route, p.Status, p.Body = route, fasthttp.StatusOK, []byte("all of it")
		return true
	})
	ended := make(chan error, 1)
	go func() {
		_, err := c.Read(make([]byte, 1))
		ended <- err
		_ = c.Close()
	}()
	if _, err := io.WriteString(client, plainGet); err != nil {
		t.Fatal(err)
	}
	<-begun
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	close(closed)
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("the server reads on: %v", err)
	}
	answer, err := io.ReadAll(client)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 200 OK\r\n") || !strings.HasSuffix(string(answer), "\r\n\r\nall of it") {
		t.Errorf("the answer is %q, %v", answer, err)
	}
}

// Nor is a request lost that the shortcut has read and leaves to the server, as it does
// with all of them when a program drains.
func TestWhatIsLeftIsReadBeforeItsConnectionCloses(t *testing.T) {
	t.Parallel()

	begun, closed := make(chan struct{}), make(chan struct{})
	c, client := shortcutConn(t, func(*Plain) bool {
		close(begun)
		<-closed
		return false
	})
	ended := make(chan error, 1)
	go func() {
		got := make([]byte, len(plainGet))
		_, err := io.ReadFull(c, got)
		if string(got) != plainGet {
			t.Errorf("the server reads %q; want %q", got, plainGet)
		}
		ended <- err
		c.enter(fasthttp.StateActive)
		c.enter(fasthttp.StateIdle)
		_, err = c.Read(got)
		ended <- err
	}()
	if _, err := io.WriteString(client, plainGet); err != nil {
		t.Fatal(err)
	}
	<-begun
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	close(closed)
	if err := <-ended; err != nil {
		t.Errorf("the server fails to read what was left: %v", err)
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("the server reads on: %v", err)
	}
}

// A server believes that a connection is idle for a moment longer: until it has seen
// what was read.
func TestWhatHasBeenReadIsAnsweredBeforeItsConnectionCloses(t *testing.T) {
	t.Parallel()

	c, client := shortcutConn(t, func(*Plain) bool { return false })
	if _, err := io.WriteString(client, plainGet); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(plainGet))
	if _, err := io.ReadFull(c, got[:1]); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil { // as the server does with all that are idle
		t.Fatal(err)
	}
	c.enter(fasthttp.StateActive)
	if _, err := io.ReadFull(c, got[1:]); err != nil || string(got) != plainGet {
		t.Errorf("the server reads %q, %v; want %q", got, err, plainGet)
	}
	const answer = "HTTP/1.1 204 No Content\r\n\r\n"
	if _, err := io.WriteString(c, answer); err != nil {
		t.Errorf("the answer cannot be written: %v", err)
	}
	c.enter(fasthttp.StateIdle)
	if _, err := c.Read(got); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the server reads on: %v", err)
	}
	if err := c.Close(); err != nil { // as whoever serves it does then
		t.Fatal(err)
	}
	if got, err := io.ReadAll(client); err != nil || string(got) != answer {
		t.Errorf("the client is told %q, %v; want %q", got, err, answer)
	}
}

// A connection that is closed while it waits answers nothing more.
func TestAWaitingConnectionCloses(t *testing.T) {
	t.Parallel()

	c, client := shortcutConn(t, func(*Plain) bool {
		t.Error("a request is answered")
		return false
	})
	ended := make(chan error, 1)
	go func() {
		_, err := c.Read(make([]byte, 1))
		ended <- err
	}()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("the server reads on: %v", err)
	}
	if answer, err := io.ReadAll(client); err != nil || len(answer) > 0 {
		t.Errorf("the client is told %q, %v", answer, err)
	}
}

// What a server is left with it can read in parts of any size, and a program that
// drains leaves everything to it.
func TestWhatTheShortcutLeaves(t *testing.T) {
	t.Parallel()

	c, client := shortcutConn(t, func(*Plain) bool { return true })
	c.keeper.draining.Store(true)
	if _, err := io.WriteString(client, plainGet); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for size := 1; got.Len() < len(plainGet); size++ {
		part := make([]byte, size)
		n, err := c.Read(part)
		if err != nil || n == 0 {
			t.Fatalf("Read() = %d, %v after %q", n, err, got.String())
		}
		got.Write(part[:n])
	}
	if got.String() != plainGet {
		t.Errorf("what is left is %q; want %q", got.String(), plainGet)
	}
}

// A request that had to wait until an answer before it was taken is answered as from
// then: what was known before may no longer hold.
func TestTimePassesWhileAnAnswerIsTaken(t *testing.T) {
	t.Parallel()

	route := Door{Listener: "taken"}.Route("short")
	body := make([]byte, 64<<20) // more than the system's buffers hold
	begun, second := make(chan struct{}), make(chan time.Time, 1)
	var answered int
	c, client := shortcutConn(t, func(p *Plain) bool {
		p.Route, p.Status, p.Body = route, fasthttp.StatusOK, nil
		if answered++; answered == 1 {
			close(begun)
			p.Body = body
		} else {
			second <- p.At
		}
		return true
	})
	go func() { _, _ = c.Read(make([]byte, 1)) }()
	if _, err := io.WriteString(client, plainGet+plainGet); err != nil {
		t.Fatal(err)
	}
	<-begun
	begins := time.Now()
	if _, err := io.CopyN(io.Discard, client, int64(len(body))); err != nil {
		t.Fatal(err)
	}
	if at := <-second; at.Before(begins) {
		t.Errorf("the second request is answered as %v before the first answer was taken", begins.Sub(at))
	}
}
