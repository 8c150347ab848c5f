package httpserver

import (
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fasthttp"
)

// recordingConn is a connection that notes what the system is told, and takes a while to
// read and to write.
type recordingConn struct {
	net.Conn
	opened        time.Time
	reads, writes []time.Duration // deadlines, as times since it opened; -1 for none
	delay         time.Duration
	written       []string
}

func (c *recordingConn) since(t time.Time) time.Duration {
	if t.IsZero() {
		return -1
	}
	return t.Sub(c.opened)
}

func (c *recordingConn) SetReadDeadline(t time.Time) error {
	c.reads = append(c.reads, c.since(t))
	return nil
}

func (c *recordingConn) SetWriteDeadline(t time.Time) error {
	c.writes = append(c.writes, c.since(t))
	return nil
}

func (c *recordingConn) Read(p []byte) (int, error) { <-time.After(c.delay); return len(p), nil }
func (c *recordingConn) Write(p []byte) (int, error) {
	<-time.After(c.delay)
	c.written = append(c.written, string(p))
	return len(p), nil
}

// newRecordingConn returns a connection whose limits are kept, and what the system is told
// of them.
func newRecordingConn(read, write, idle time.Duration) (*conn, *recordingConn) {
	server := &fasthttp.Server{ReadTimeout: read, WriteTimeout: write, IdleTimeout: idle}
	system := &recordingConn{opened: time.Now()}
	return wrapConn(server, nil, system), system
}

// wrapConn returns a connection whose limits are those of a server.
func wrapConn(server *fasthttp.Server, listener net.Listener, system net.Conn) *conn {
	dl := Listener{Server: server}.wrap(listener)
	return connOf(dl.initConn(&conn{Conn: system, listener: dl}))
}

// request returns a request of a connection that is answered with a body of a size.
func request(c net.Conn, body int) *fasthttp.RequestCtx {
	var rc fasthttp.RequestCtx
	rc.Init2(c, nil, false)
	rc.Response.SetBodyRaw(make([]byte, body))
	return &rc
}

// do has a connection read or write, or fails the test.
func do(t *testing.T, f func([]byte) (int, error)) {
	t.Helper()
	if _, err := f(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
}

// expectDeadlines compares what the system has been told since the last time.
func (c *recordingConn) expectDeadlines(t *testing.T, reads, writes []time.Duration) {
	t.Helper()
	if diff := cmp.Diff([2][]time.Duration{reads, writes}, [2][]time.Duration{c.reads, c.writes}); diff != "" {
		t.Errorf("after %v, the deadlines for reading and for writing (-want +got):\n%s", time.Since(c.opened), diff)
	}
	c.reads, c.writes = nil, nil
}

const s, ms = time.Second, time.Millisecond

func TestDeadlinesOfOneRequest(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		c, system := newRecordingConn(10*s, 4*s, 75*s)
		system.delay = 2 * s
		do(t, c.Read)
		system.expectDeadlines(t, []time.Duration{11 * s}, nil) // late by a second, of which there is a tenth
		c.setState(fasthttp.StateActive)
		do(t, c.Read)
		system.expectDeadlines(t, []time.Duration{2*s + 11*s}, nil)
		do(t, c.Read) // whoever sends a crumb at a time has no longer for it
		do(t, c.Read)
		system.expectDeadlines(t, nil, nil)

		<-time.After(s)
		c.beginResponse(request(c, 0), time.Now())
		<-time.After(s) // its time begins when the answer is ready
		do(t, c.Write)
		do(t, c.Write)
		system.expectDeadlines(t, nil, []time.Duration{9*s + 4400*ms})
		c.setState(fasthttp.StateIdle)
		do(t, c.Read)
		system.expectDeadlines(t, []time.Duration{14*s + 76*s}, nil)
	})
}

// A deadline stands for as long as it fits: no request is cut off early, and none
// late by more than a tenth, or a second.
func TestDeadlinesOfManyRequests(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		const read, write, idle = 10 * s, 4 * s, 75 * s
		c, system := newRecordingConn(read, write, idle)
		do(t, c.Read)
		rc := request(c, 0)
		var reads, writes []time.Duration
		standing := func(deadlines []time.Duration, limit, slack time.Duration) {
			t.Helper()
			now := time.Since(system.opened)
			if left := deadlines[len(deadlines)-1] - now; left < limit || left > limit+slack {
				t.Fatalf("after %v there are %v left of %v", now, left, limit)
			}
		}
		for range 10_000 {
			c.setState(fasthttp.StateActive)
			c.beginResponse(rc, time.Now())
			do(t, c.Write)
			writes = append(writes, system.writes...)
			standing(writes, write, 400*ms)
			c.setState(fasthttp.StateIdle)
			do(t, c.Read)
			reads = append(reads, system.reads...)
			standing(reads, idle, s)
			system.reads, system.writes = nil, nil
			<-time.After(ms)
		}
		// Ten seconds need one a second, and one every 400 ms.
		if len(reads) > 12 || len(writes) > 26 {
			t.Errorf("10,000 requests set %d deadlines for reading and %d for writing", len(reads), len(writes))
		}
	})
}

// A deadline that a handler sets is for its answer, and one that somebody sets while
// a request arrives is for that.
func TestOverriddenDeadlines(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		c, system := newRecordingConn(10*s, 4*s, 75*s)
		do(t, c.Read)
		c.setState(fasthttp.StateActive)
		system.expectDeadlines(t, []time.Duration{11 * s}, nil)
		if err := c.SetReadDeadline(time.Now().Add(60 * s)); err != nil {
			t.Fatal(err)
		}
		do(t, c.Read)
		if err := c.SetWriteDeadline(time.Now().Add(20 * s)); err != nil {
			t.Fatal(err)
		}
		c.beginResponse(request(c, 0), time.Now())
		do(t, c.Write)
		system.expectDeadlines(t, []time.Duration{60 * s}, []time.Duration{20 * s})

		c.setState(fasthttp.StateIdle)
		do(t, c.Read)
		c.setState(fasthttp.StateActive)
		do(t, c.Write)
		system.expectDeadlines(t, []time.Duration{76 * s}, []time.Duration{4400 * ms})
		if err := c.SetDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		do(t, c.Read)
		do(t, c.Write)
		system.expectDeadlines(t, []time.Duration{-1}, []time.Duration{-1})
	})
}

// Without a limit there is no deadline, and that of another state does not stay.
func TestDeadlinesWithoutLimits(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		c, system := newRecordingConn(0, 0, 75*s)
		do(t, c.Read)
		c.setState(fasthttp.StateActive)
		do(t, c.Write)
		c.setState(fasthttp.StateIdle)
		do(t, c.Read)
		system.expectDeadlines(t, []time.Duration{76 * s}, nil)
		c.setState(fasthttp.StateActive)
		do(t, c.Read)
		do(t, c.Write)
		system.expectDeadlines(t, []time.Duration{-1}, nil)

		c, system = newRecordingConn(10*s, 0, 0) // who does not say how long is idle may be so as long as a request takes
		c.setState(fasthttp.StateIdle)
		do(t, c.Read)
		system.expectDeadlines(t, []time.Duration{11 * s}, nil)
	})
}

// The beginning of a large answer waits for the rest, but no answer waits for
// another one.
func TestLargeResponseIsOneWrite(t *testing.T) {
	t.Parallel()

	c, system := newRecordingConn(0, 0, 0)
	full, rest := strings.Repeat("f", writeBuffer), strings.Repeat("r", 3*writeBuffer)
	f := func(written string, want ...string) {
		t.Helper()
		if n, err := c.Write([]byte(written)); n != len(written) || err != nil {
			t.Fatalf("of %d bytes, %d are written, %v", len(written), n, err)
		}
		if diff := cmp.Diff(want, system.written); diff != "" {
			t.Errorf("written at once (-want +got):\n%s", diff)
		}
		system.written = nil
	}

	// The system is given both parts in one call; to see them, the test is given two.
	c.beginResponse(request(c, writeBuffer), time.Now())
	f(full)
	f("r", full, "r")
	c.beginResponse(request(c, 4*writeBuffer), time.Now())
	f(full)
	f(rest, full, rest)
	f("more", "more")
	f(full, full)

	// A smaller one might be all there is.
	c.beginResponse(request(c, writeBuffer-1), time.Now())
	f(full, full)

	// A pipeline of large ones, whose last parts the server gathers.
	c.beginResponse(request(c, writeBuffer), time.Now())
	f(full)
	c.beginResponse(request(c, writeBuffer), time.Now())
	f(full, full, full)
	f("last", "last")

	// Those that have no body, though a handler gave them one.
	head := request(c, writeBuffer)
	head.Request.Header.SetMethod(fasthttp.MethodHead)
	c.beginResponse(head, time.Now())
	f(full, full)
	for _, status := range []int{fasthttp.StatusNoContent, fasthttp.StatusNotModified} {
		rc := request(c, writeBuffer)
		rc.SetStatusCode(status)
		c.beginResponse(rc, time.Now())
		f(full, full)
	}

	// What is written under TLS is not what the server writes.
	c.listener.tls = new(tls.Config)
	c.beginResponse(request(c, writeBuffer), time.Now())
	f(full, full)
}
