package httpserver

import (
	"cmp"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// deadlineListener enforces a server's timeouts in the server's place. fasthttp would set a
// socket deadline three times a request, and read the clock each time: a twentieth of the
// cost of a small response. deadlineListener re-arms a deadline at most once in a tenth of the
// timeout, or in a second, and reads the clock once.
type deadlineListener struct {
	net.Listener
	tls                                    *tls.Config   // nil for plain HTTP
	fastPath                               *FastPath     // nil if there is none
	readTimeout, writeTimeout, idleTimeout time.Duration // 0: none
	draining                               atomic.Bool
	*connLimiter
}

// wrap takes the timeouts over from the server, and returns a listener for it to serve.
func (l Listener) wrap(ln net.Listener) *deadlineListener {
	server := l.Server
	dl := &deadlineListener{
		Listener: ln, tls: l.TLS, fastPath: l.FastPath,
		readTimeout: server.ReadTimeout, writeTimeout: server.WriteTimeout, idleTimeout: cmp.Or(server.IdleTimeout, server.ReadTimeout),
		connLimiter: newConnLimiter(server, l.PeerLimits, l.TLS == nil),
	}
	server.ReadTimeout, server.WriteTimeout, server.IdleTimeout = 0, 0, 0
	connState := server.ConnState
	server.ConnState = func(nc net.Conn, state fasthttp.ConnState) {
		if c := connOf(nc); c != nil {
			c.setState(state)
		}
		if connState != nil {
			connState(nc, state)
		}
	}
	return dl
}

// Accept waits for a connection. One beyond the limit of its address is closed without a
// response, so that Accept does not wait for the write.
func (dl *deadlineListener) Accept() (net.Conn, error) {
	for {
		accepted, err := dl.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: accepted, listener: dl}
		if err = dl.admit(c); err == nil {
			return dl.initConn(c), nil
		}
		connectionsRejected.Inc()
		if errors.Is(err, errTooManyConns) {
			dl.reject(accepted)
		} else {
			_ = accepted.Close()
		}
	}
}

// initConn starts the timeouts of a connection, and returns what the server reads and writes.
func (dl *deadlineListener) initConn(c *conn) (served net.Conn) {
	c.opened = time.Now()
	c.readDeadline.set, c.writeDeadline.set = c.setReadDeadline, c.Conn.SetWriteDeadline
	c.plaintext, served = c, c
	if dl.tls != nil {
		secure := tls.Server(c, dl.tls)
		c.plaintext, served = secure, secureConn{secure, c}
	}
	if tcp, ok := c.Conn.(*net.TCPConn); ok && dl.fastPath != nil {
		c.fast = newFastReader(c, tcp)
	}
	c.limitSendBuffer()
	c.setState(fasthttp.StateActive) // the first request must begin within the read timeout
	c.startHead()
	return served
}

// secureConn is a TLS connection as the server sees it.
type secureConn struct {
	*tls.Conn
	conn *conn
}

func (s secureConn) Read(p []byte) (int, error) {
	if s.conn.fast != nil && s.conn.idle {
		return s.conn.read(p)
	}
	return s.Conn.Read(p)
}

func (s secureConn) Close() error {
	if s.conn.fast != nil && s.conn.fast.close() {
		return nil // it is closed after the response
	}
	return s.Conn.Close()
}

// conn is a connection of a deadlineListener. All methods are for the goroutine that serves
// it, except Close and those that set deadlines.
type conn struct {
	net.Conn
	listener                    *deadlineListener
	opened                      time.Time // origin of the durations below
	readDeadline, writeDeadline deadline
	readTimeout                 time.Duration // of the state: read or idle
	readyAt                     time.Duration // when the response that is written next was ready; 0: unknown
	isLarge                     bool          // whether the next response takes more than one call of Write
	pending                     *pendingWrite // waits to be written with the next call; nil: nothing
	parts                       net.Buffers   // of one vectored write

	// lingerOnClose is whether unread data of a request may still arrive.
	lingerOnClose atomic.Bool

	plaintext io.ReadWriter // the connection itself, or TLS over it
	fast      *fastReader   // nil if there is no fast path
	sampling  sampling      // of a request that the fast path leaves to the server
	idle      bool          // whether the next bytes begin a request
	inRequest bool          // whether a request has begun to arrive and is not answered
	head      headScan      // scanner of the head, unless it arrived together with another request

	readsEnded atomic.Bool // by an eviction

	// Guarded by connLimiter.mu.
	list         *connList // nil: not counted
	older, newer *conn     // neighbours in list
}

// pendingWrite is the beginning of a large response, which the server writes when its buffer
// is full. Writing it together with the rest halves the system's work, and no connection
// needs a buffer for large responses.
type pendingWrite struct {
	bytes [writeBuffer]byte
	size  int
	parts [2][]byte
}

// writeBuffer is the size in bytes of a server's write buffer.
const writeBuffer = 4096

// pendingPool reuses buffers. Each is needed only for a moment.
var pendingPool = sync.Pool{New: func() any { return new(pendingWrite) }}

// connOf returns the conn under a server's connection, nil if no deadlineListener accepted
// it.
func connOf(nc net.Conn) *conn {
	if secure, ok := nc.(secureConn); ok {
		return secure.conn
	}
	c, _ := nc.(*conn)
	return c
}

// setState is called when a request begins to arrive, and after its response is written.
func (c *conn) setState(state fasthttp.ConnState) {
	c.idle = state == fasthttp.StateIdle
	switch state {
	case fasthttp.StateActive:
		c.inRequest = true
		c.readTimeout = c.listener.readTimeout
		c.head.active = c.head.active && c.head.started
		c.readDeadline.markDue()
		c.writeDeadline.markDue()
	case fasthttp.StateIdle:
		c.readTimeout = c.listener.idleTimeout
		c.readDeadline.markDue()
		c.writeDeadline.markDue() // crypto/tls answers a KeyUpdate while it reads
		c.startHead()
		c.lingerOnClose.Store(false)
	case fasthttp.StateNew, fasthttp.StateHijacked, fasthttp.StateClosed:
	}
}

// startHead marks that the next read begins the head of a request; setState undoes that if a
// part of it was read already. Under TLS the bytes here are ciphertext, which is not scanned.
func (c *conn) startHead() {
	c.inRequest = false
	if c.listener.tls == nil {
		c.head.start()
	}
}

// beginResponse notes the response that is written next, and when it was ready: the write
// timeout counts from there. It reports whether the connection must be closed after it.
func (c *conn) beginResponse(rc *fasthttp.RequestCtx, ready time.Time) (last bool) {
	c.readyAt, c.writeDeadline.due = ready.Sub(c.opened), true
	// Under TLS, Write gets records and not what the server writes.
	c.isLarge = c.listener.tls == nil && overflows(rc)
	return c.listener.draining.Load()
}

// overflows reports whether a response takes more than a server's write buffer. The server adds more to
// its head than is counted here: the status line and Date.
func overflows(rc *fasthttp.RequestCtx) bool {
	size := bodySize(rc)
	if size < writeBuffer/2 {
		return false
	}
	for name, value := range rc.Response.Header.All() {
		size += len(name) + len(value) + len(": \r\n")
	}
	return size >= writeBuffer
}

// Read reads. The timeout starts with the first call after each change of state, and all
// later calls share it.
func (c *conn) Read(p []byte) (int, error) {
	if c.fast != nil && c.fast.reading {
		return c.fast.receive(p)
	}
	n, err := c.read(p)
	if err == io.EOF && c.inRequest { //nolint:errorlint // it comes from the connection
		// At io.EOF fasthttp would drop the unsent responses to earlier requests.
		err = io.ErrUnexpectedEOF
	}
	if c.head.active && n > 0 && err == nil {
		return c.head.scan(p[:n])
	}
	return n, err
}

func (c *conn) read(p []byte) (int, error) {
	if c.readDeadline.isDue() {
		if err := c.readDeadline.arm(c.opened, time.Since(c.opened), c.readTimeout); err != nil {
			return 0, err
		}
	}
	if c.fast != nil && c.idle {
		return c.fast.read(p)
	}
	return c.Conn.Read(p)
}

// Write writes. All calls for one response share one timeout.
func (c *conn) Write(p []byte) (int, error) {
	if c.writeDeadline.isDue() {
		start := c.readyAt
		if start == 0 {
			start = time.Since(c.opened)
		}
		c.readyAt = 0
		if err := c.writeDeadline.arm(c.opened, start, c.listener.writeTimeout); err != nil {
			return 0, err
		}
	}
	isLarge := c.isLarge
	c.isLarge = false
	switch {
	case c.pending != nil:
		return c.writePending(p)
	case isLarge && len(p) <= writeBuffer: // the rest of the body follows
		c.pending, _ = pendingPool.Get().(*pendingWrite)
		c.pending.size = copy(c.pending.bytes[:], p)
		return len(p), nil
	default:
		return c.Conn.Write(p)
	}
}

// writePending writes the pending bytes and p in one call.
func (c *conn) writePending(p []byte) (int, error) {
	h := c.pending
	c.pending = nil
	h.parts = [2][]byte{h.bytes[:h.size], p}
	c.parts = h.parts[:]
	n, err := c.parts.WriteTo(c.Conn)
	c.parts = nil // or it would keep h alive
	written := max(0, int(n)-h.size)
	h.parts = [2][]byte{}
	pendingPool.Put(h)
	return written, err
}

// Close closes the connection.
func (c *conn) Close() error {
	if c.fast != nil && c.fast.close() {
		return nil // it is closed after the response
	}
	if c.lingerOnClose.Load() {
		c.linger()
	}
	c.listener.release(c)
	return c.Conn.Close()
}

// endReads ends the current read and all later ones, so that the connection closes after the
// response to a request that has been read. Any goroutine may call it.
func (c *conn) endReads() {
	c.readsEnded.Store(true)
	_ = c.Conn.SetReadDeadline(pastDeadline) // if that fails, the connection is closed
}

// endWrites ends writes in the same way. What was written before is still sent.
func (c *conn) endWrites() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
	}
}

// setReadDeadline sets the socket's deadline, unless endReads has set the last one. Then the
// error stops a client that sends requests faster than the fast path answers them: such a
// connection never waits for a read.
func (c *conn) setReadDeadline(t time.Time) error {
	if err := c.Conn.SetReadDeadline(t); err != nil || !c.readsEnded.Load() {
		return err
	}
	_ = c.Conn.SetReadDeadline(pastDeadline)
	return os.ErrDeadlineExceeded
}

// Bounds of what is drained after a response.
const (
	maxLingerBytes    = 16 << 20
	lingerIdleTimeout = time.Second // longer than nearly all round trips, as more may arrive one round trip later
)

// linger drains what the client still sends after the response, until it pauses or closes the
// connection (RFC 9112, section 9.6). Closing a socket with unread data sends a RST, and most
// clients would not see the response.
func (c *conn) linger() {
	tcp, ok := c.Conn.(*net.TCPConn)
	if !ok || tcp.CloseWrite() != nil {
		return
	}
	end := time.Now().Add(max(c.listener.readTimeout, lingerIdleTimeout))
	buffer, _ := pendingPool.Get().(*pendingWrite)
	defer pendingPool.Put(buffer)
	for left := maxLingerBytes; left > 0; {
		deadline := time.Now().Add(lingerIdleTimeout)
		if end.Before(deadline) {
			deadline = end
		}
		if c.setReadDeadline(deadline) != nil {
			return
		}
		n, err := tcp.Read(buffer.bytes[:])
		if err != nil {
			return
		}
		left -= n
	}
}

// SetReadDeadline overrides the deadline of the request that is arriving.
func (c *conn) SetReadDeadline(t time.Time) error { return c.readDeadline.override(t) }

// SetWriteDeadline overrides the deadline of the response that is written.
func (c *conn) SetWriteDeadline(t time.Time) error { return c.writeDeadline.override(t) }

// SetDeadline overrides both deadlines.
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.readDeadline.override(t), c.writeDeadline.override(t))
}

// deadline is the read or write deadline of a connection.
type deadline struct {
	set        func(time.Time) error // sets the socket's deadline
	setTo      time.Duration         // the socket's deadline, as time since opened; 0: none
	due        bool                  // whether the next call starts a timeout
	overridden atomic.Bool           // whether SetDeadline and the like have set another one
}

// markDue makes the next call start a timeout. An overriding deadline was for the state that
// ends here.
func (d *deadline) markDue() {
	d.due = true
	if d.overridden.Load() {
		d.overridden.Store(false)
		d.setTo = 0
	}
}

// isDue reports whether this call starts a timeout. It must not touch an overriding deadline:
// a goroutine that closes the connection sets one to end the call.
func (d *deadline) isDue() bool { return !d.overridden.Load() && d.due }

// arm starts a timeout, and sets the socket's deadline if the current one does not fit. A
// deadline may be late by a tenth of the timeout, at most a second, so that it fits for many
// requests; it is never early.
func (d *deadline) arm(opened time.Time, start, limit time.Duration) error {
	d.due = false
	if limit == 0 {
		if d.setTo == 0 {
			return nil
		}
		d.setTo = 0
		return d.set(time.Time{})
	}
	earliest := start + limit
	latest := earliest + min(limit/10, time.Second)
	if earliest <= d.setTo && d.setTo <= latest {
		return nil
	}
	d.setTo = latest
	return d.set(opened.Add(latest))
}

// override sets a deadline that holds until the state ends.
func (d *deadline) override(t time.Time) error {
	d.overridden.Store(true)
	if err := d.set(t); !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return nil // the next read or write returns it
}
