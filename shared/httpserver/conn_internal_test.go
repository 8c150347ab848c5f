package httpserver

import (
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// recordingConn records the deadlines that are set, and takes a while to read and to write.
type recordingConn struct {
	net.Conn
	opened        time.Time
	reads, writes []time.Duration // deadlines since opened; -1 for none
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

// newRecordingConn returns a conn with these timeouts over a recordingConn.
func newRecordingConn(read, write, idle time.Duration) (*conn, *recordingConn) {
	server := &fasthttp.Server{ReadTimeout: read, WriteTimeout: write, IdleTimeout: idle}
	system := &recordingConn{opened: time.Now()}
	return wrapConn(server, nil, system), system
}

// wrapConn returns a conn with the timeouts of a server.
func wrapConn(server *fasthttp.Server, listener net.Listener, system net.Conn) *conn {
	dl := Listener{Server: server}.wrap(listener)
	return connOf(dl.initConn(&conn{Conn: system, listener: dl}))
}

// request returns a request of a connection with a response body of a size.
func request(c net.Conn, body int) *fasthttp.RequestCtx {
	var rc fasthttp.RequestCtx
	rc.Init2(c, nil, false)
	rc.Response.SetBodyRaw(make([]byte, body))
	return &rc
}

// do calls a connection's Read or Write, and fails the test on an error.
func do(t *testing.T, f func([]byte) (int, error)) {
	t.Helper()
	testenv.Must(f(make([]byte, 1)))(t)
}

// expectDeadlines compares the deadlines that were set since the last call.
func (c *recordingConn) expectDeadlines(t *testing.T, reads, writes []time.Duration) {
	t.Helper()
	cmptest.Same(t, [2][]time.Duration{c.reads, c.writes}, [2][]time.Duration{reads, writes},
		"after %v, the deadlines for reading and for writing", time.Since(c.opened))
	c.reads, c.writes = nil, nil
}

const s, ms = time.Second, time.Millisecond

func TestDeadlinesOfOneRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, system := newRecordingConn(10*s, 4*s, 75*s)
		system.delay = 2 * s
		do(t, c.Read)
		system.expectDeadlines(t, []time.Duration{11 * s}, nil) // a tenth of the timeout late, at most a second
		c.setState(fasthttp.StateActive)
		do(t, c.Read)
		system.expectDeadlines(t, []time.Duration{2*s + 11*s}, nil)
		do(t, c.Read) // later reads do not extend the timeout
		do(t, c.Read)
		system.expectDeadlines(t, nil, nil)

		<-time.After(s)
		c.beginResponse(request(c, 0), time.Now())
		<-time.After(s) // the write timeout starts when the response is ready
		do(t, c.Write)
		do(t, c.Write)
		system.expectDeadlines(t, nil, []time.Duration{9*s + 4400*ms})
		c.setState(fasthttp.StateIdle)
		do(t, c.Read)
		system.expectDeadlines(t, []time.Duration{14*s + 76*s}, nil)
	})
}

// A deadline is kept while it fits: no request is cut off early, and none late by more than a
// tenth of the timeout, or a second.
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
		// In ten seconds that is one a second, and one every 400 ms.
		testenv.Check(t, len(reads) <= 12 && len(writes) <= 26,
			"10,000 requests set %d deadlines for reading and %d for writing", len(reads), len(writes))
	})
}

// A write deadline that a handler sets is for its response, and a read deadline that is set
// while a request arrives is for that request.
func TestOverriddenDeadlines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, system := newRecordingConn(10*s, 4*s, 75*s)
		do(t, c.Read)
		c.setState(fasthttp.StateActive)
		system.expectDeadlines(t, []time.Duration{11 * s}, nil)
		testenv.Do(t, c.SetReadDeadline(time.Now().Add(60*s)))
		do(t, c.Read)
		testenv.Do(t, c.SetWriteDeadline(time.Now().Add(20*s)))
		c.beginResponse(request(c, 0), time.Now())
		do(t, c.Write)
		system.expectDeadlines(t, []time.Duration{60 * s}, []time.Duration{20 * s})

		c.setState(fasthttp.StateIdle)
		do(t, c.Read)
		c.setState(fasthttp.StateActive)
		do(t, c.Write)
		system.expectDeadlines(t, []time.Duration{76 * s}, []time.Duration{4400 * ms})
		testenv.Do(t, c.SetDeadline(time.Time{}))
		do(t, c.Read)
		do(t, c.Write)
		system.expectDeadlines(t, []time.Duration{-1}, []time.Duration{-1})
	})
}

// Without a timeout there is no deadline, and that of another state is cleared.
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

		c, system = newRecordingConn(10*s, 0, 0) // the idle timeout defaults to the read timeout
		c.setState(fasthttp.StateIdle)
		do(t, c.Read)
		system.expectDeadlines(t, []time.Duration{11 * s}, nil)
	})
}

// The beginning of a large response is written together with the rest, but never delayed
// beyond its own response.
func TestLargeResponseIsOneWrite(t *testing.T) {
	t.Parallel()
	c, system := newRecordingConn(0, 0, 0)
	full, rest := strings.Repeat("f", writeBuffer), strings.Repeat("r", 3*writeBuffer)
	f := func(written string, want ...string) {
		t.Helper()
		if n, err := c.Write([]byte(written)); n != len(written) || err != nil {
			t.Fatalf("of %d bytes, %d are written, %v", len(written), n, err)
		}
		cmptest.Same(t, system.written, want, "calls of Write")
		system.written = nil
	}

	// Both parts are given to the system in one call; the recordingConn gets two.
	c.beginResponse(request(c, writeBuffer), time.Now())
	f(full)
	f("r", full, "r")
	c.beginResponse(request(c, 4*writeBuffer), time.Now())
	f(full)
	f(rest, full, rest)
	f("more", "more")
	f(full, full)

	// One that is large with its head only.
	c.beginResponse(request(c, writeBuffer-20), time.Now())
	f(full)
	f("r", full, "r")

	// A smaller one may be complete.
	c.beginResponse(request(c, writeBuffer-200), time.Now())
	f(full, full)

	// A pipeline of large ones; the server buffers their last parts.
	c.beginResponse(request(c, writeBuffer), time.Now())
	f(full)
	c.beginResponse(request(c, writeBuffer), time.Now())
	f(full, full, full)
	f("last", "last")

	// Responses without a body, though a handler set one.
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

	// Under TLS, Write gets records and not what the server writes.
	c.listener.tls = new(tls.Config)
	c.beginResponse(request(c, writeBuffer), time.Now())
	f(full, full)
}
