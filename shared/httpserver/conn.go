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

	"github.com/veneer-skins/veneer/shared/httpserver/fastpath"
)

// deadlineListener keeps a server's limits of time in its place. The server would tell the
// system of a deadline three times a request, and read the clock each time: a
// twentieth of what a small answer costs. A keeper lets a deadline stand for as
// long as it fits, and looks at the clock once.
type deadlineListener struct {
	net.Listener
	tls                                    *tls.Config   // nil: plain HTTP
	fastPath                               *FastPath     // nil: none
	readTimeout, writeTimeout, idleTimeout time.Duration // 0: any time
	draining                               atomic.Bool
	*connLimiter
}

// wrap takes the limits over from a server, and returns a listener for it to
// serve.
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

// Accept waits for a connection. One that is too many of its address is closed at once:
// no other should wait until an answer is sent.
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

// initConn begins to keep the limits of a connection, and returns what the server sees of it.
func (dl *deadlineListener) initConn(c *conn) (served net.Conn) {
	c.opened = time.Now()
	c.readDeadline.set, c.writeDeadline.set = c.setReadDeadline, c.Conn.SetWriteDeadline
	c.plaintext, served = c, c
	if dl.tls != nil {
		secure := tls.Server(c, dl.tls)
		c.plaintext, served = secure, secureConn{secure, c}
	}
	if tcp, ok := c.Conn.(*net.TCPConn); ok && dl.fastPath != nil {
		c.fast, _ = fastpath.NewConn(tcp, c, c.plaintext) // without, if that fails
	}
	c.limitSendBuffer()
	c.setState(fasthttp.StateActive) // its first request has as long to begin as to arrive
	c.startHead()
	return served
}

// secureConn is a connection as the server sees it under TLS.
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
	if s.conn.fast != nil && s.conn.fast.Close() {
		return nil // it closes once the answer is sent
	}
	return s.Conn.Close()
}

// conn is a connection with a keeper. All its methods are for the goroutine that
// serves it, but those that set deadlines, and Close.
type conn struct {
	net.Conn
	listener                    *deadlineListener
	opened                      time.Time // what all its times are counted from
	readDeadline, writeDeadline deadline
	readTimeout                 time.Duration // the limit of what is read
	readyAt                     time.Duration // when the answer was ready that is written next; 0: nobody said
	isLarge                     bool          // whether that takes more than the next call of Write
	pending                     *pendingWrite // what waits to be written with the next call; nil: nothing
	parts                       net.Buffers   // of one write

	// lingerOnClose is whether more of a request may arrive that nobody reads.
	lingerOnClose atomic.Bool

	plaintext io.ReadWriter  // the connection itself, or TLS over it
	fast      *fastpath.Conn // nil: there is no fast path
	sampling  sampling       // of the request that is left to the server
	idle      bool           // whether what arrives next begins a request
	inRequest bool           // whether a request has begun to arrive that is not answered
	head      headScan       // of a request whose beginning has not arrived with another one

	readsEnded atomic.Bool // by an eviction

	// Guarded by connLimiter.mu.
	list         *connList // nil: it is not counted
	older, newer *conn     // in the list
}

// pendingWrite is the beginning of a large answer, which the server writes by itself once its
// buffer is full. Sent together with the rest it saves the system half its work, and
// no connection needs a buffer for large answers.
type pendingWrite struct {
	bytes [writeBuffer]byte
	size  int
	parts [2][]byte
}

// writeBuffer is how many bytes of answers a server gathers before it writes them.
const writeBuffer = 4096

// pendingPool are kept to be used again: each is held but for a moment.
var pendingPool = sync.Pool{New: func() any { return new(pendingWrite) }}

// connOf returns what a keeper accepted under a server's connection, nil if no
// keeper did.
func connOf(nc net.Conn) *conn {
	if secure, ok := nc.(secureConn); ok {
		return secure.conn
	}
	c, _ := nc.(*conn)
	return c
}

// setState says that a request has begun to arrive, or that its answer was written.
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
	default:
	}
}

// startHead says that what is read next begins a request's head, unless enter says first
// that a part of it is there already. Under TLS what is read here is no text.
func (c *conn) startHead() {
	c.inRequest = false
	if c.listener.tls == nil {
		c.head.start()
	}
}

// beginResponse says which answer is written next and when it was ready, since its time
// begins there. It tells whether the connection is to be closed behind it.
func (c *conn) beginResponse(rc *fasthttp.RequestCtx, ready time.Time) (last bool) {
	c.readyAt, c.writeDeadline.due = ready.Sub(c.opened), true
	// Under TLS, what is written here is not what the server writes.
	c.isLarge = bodySize(rc) >= writeBuffer && c.listener.tls == nil
	return c.listener.draining.Load()
}

// Read reads. A limit of time begins with the first call after each change of the
// state: all that follow share it.
func (c *conn) Read(p []byte) (int, error) {
	if c.fast != nil && c.fast.IsReading() {
		return c.fast.Receive(p)
	}
	n, err := c.read(p)
	if err == io.EOF && c.inRequest { //nolint:errorlint // it comes from the connection
		// At an EOF the server would drop what it has not sent yet, the answers to the
		// requests before.
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
		return c.fast.Read(p)
	}
	return c.Conn.Read(p)
}

// Write writes. All that belongs to one answer shares one limit of time.
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
	case isLarge && len(p) <= writeBuffer: // there is more of the body than fits in here
		c.pending, _ = pendingPool.Get().(*pendingWrite)
		c.pending.size = copy(c.pending.bytes[:], p)
		return len(p), nil
	default:
		return c.Conn.Write(p)
	}
}

// writePending writes what is held, and p, at once.
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
	if c.fast != nil && c.fast.Close() {
		return nil // it closes once the answer is sent
	}
	if c.lingerOnClose.Load() {
		c.linger()
	}
	c.listener.release(c)
	return c.Conn.Close()
}

// endReads ends the read that the connection waits in, and those that follow, so that it
// ends behind the answer to a request that has been read. Any goroutine may call it.
func (c *conn) endReads() {
	c.readsEnded.Store(true)
	_ = c.Conn.SetReadDeadline(pastDeadline) // if that fails, the connection is closed
}

// endWrites ends what is written in the same way. What was written before is still sent.
func (c *conn) endWrites() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
	}
}

// setReadDeadline tells the system of a deadline, unless endReads has set the last one.
// Without the error then, a client whose requests arrive faster than the fast path answers
// them would go on: its connection never waits.
func (c *conn) setReadDeadline(t time.Time) error {
	if err := c.Conn.SetReadDeadline(t); err != nil || !c.readsEnded.Load() {
		return err
	}
	_ = c.Conn.SetReadDeadline(pastDeadline)
	return os.ErrDeadlineExceeded
}

// Bounds of what is read of a request that has been answered.
const (
	maxLingerBytes    = 16 << 20
	lingerIdleTimeout = time.Second // longer than nearly all round trips: more may come after one
)

// linger reads what the client still sends, after the answer, until it stops or closes the
// connection (RFC 9112, 9.6). A connection that is closed with something unread is
// reset, and most clients would not see the answer.
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

// SetReadDeadline sets another deadline for the request that is arriving.
func (c *conn) SetReadDeadline(t time.Time) error { return c.readDeadline.override(t) }

// SetWriteDeadline sets another deadline for the answer that is written.
func (c *conn) SetWriteDeadline(t time.Time) error { return c.writeDeadline.override(t) }

// SetDeadline sets both deadlines.
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.readDeadline.override(t), c.writeDeadline.override(t))
}

// deadline is one of the two that a connection has.
type deadline struct {
	set        func(time.Time) error // tells the system
	setTo      time.Duration         // what the system has been told; 0: none
	due        bool                  // whether a limit begins with the next call
	overridden atomic.Bool           // whether somebody has set one that is not the keeper's
}

// markDue says that a limit begins with the next call. A deadline that somebody
// else has set was for what ends here.
func (d *deadline) markDue() {
	d.due = true
	if d.overridden.Load() {
		d.overridden.Store(false)
		d.setTo = 0
	}
}

// isDue reports whether a limit begins with this call. Whoever closes a connection
// that another goroutine serves sets a deadline first, and learns no more than that.
func (d *deadline) isDue() bool { return !d.overridden.Load() && d.due }

// arm begins a limit, and sets a deadline if the one that stands does not fit. A
// deadline may be late by a tenth of the limit, at most a second, so that it fits for
// many requests; it is never early.
func (d *deadline) arm(ln time.Time, start, limit time.Duration) error {
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
	return d.set(ln.Add(latest))
}

// override sets a deadline that stands until what it is for ends.
func (d *deadline) override(t time.Time) error {
	d.overridden.Store(true)
	if err := d.set(t); !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return nil // what is read or written next returns it
}
