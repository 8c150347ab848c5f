// Package fastpath answers requests out of memory where they are read, and so spares them
// the work of an HTTP server. What it leaves alone the server gets as it came.
package fastpath

import (
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// Handler is what answers requests of a connection.
type Handler interface {
	// TryHandle writes the response to a request, or reports false: then that is for the HTTP
	// server. It must wait for nothing, and keep nothing of the Context.
	TryHandle(*Context) bool
	// Send sends responses that were ready at a time, and a body behind them unless that is
	// empty. It returns when it has.
	Send(ready time.Time, responses, body []byte) (sent time.Time, err error)
}

// Conn reads the requests of a connection ahead of its HTTP server. All its methods but
// Close are for the goroutine that serves the connection.
type Conn struct {
	handler    Handler
	raw        syscall.RawConn
	requests   io.Reader
	onReadable func(fd uintptr) (done bool)
	state      atomic.Int32

	// Of one call of Read.
	buf []byte
	n   int
	err error

	reading     bool
	fd          int
	mayHaveMore bool     // whether the system may have more to read
	control     [32]byte // of one message
}

// bufferSize bounds responses that are sent in one piece.
const bufferSize = 4096

// What a connection is doing, as a goroutine that closes it has to know: what has been read
// must be answered.
const (
	waiting int32 = iota
	responding
	closed
)

// tcpINQ is TCP_INQ of Linux: as an option, and then as what comes with what is read, it
// tells how much more there is. The end of the connection counts as one byte.
const tcpINQ = 36

// NewConn returns the reading end of a connection, whose requests come from a reader. That
// reads from Receive while IsReading, and decrypts what it reads under TLS.
func NewConn(tcp *net.TCPConn, handler Handler, requests io.Reader) (*Conn, error) {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil, err
	}
	// Where that is unknown, each connection is read until there is nothing more.
	_ = raw.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpINQ, 1) })
	c := &Conn{handler: handler, raw: raw, requests: requests}
	c.onReadable = c.serve
	return c, nil
}

// Read answers what follows a response, and returns what of it is for the HTTP server.
//
// The system waits in a call that is made anew only when something was left to the server.
// So a request costs it one call to read, where asking first and waiting then would cost two.
func (c *Conn) Read(p []byte) (int, error) {
	c.buf, c.n, c.err = p, 0, nil
	if err := c.raw.Read(c.onReadable); err != nil {
		return 0, err
	}
	return c.n, c.err
}

// Close ends Read, and reports whether the connection must not be closed yet: its goroutine
// closes it once what was read is answered.
func (c *Conn) Close() (answers bool) { return c.state.Swap(closed) == responding }

// serve answers what has arrived, until it reports that it is done: something is left, or
// there was an error.
func (c *Conn) serve(fd uintptr) (done bool) {
	if !c.state.CompareAndSwap(waiting, responding) {
		c.err = net.ErrClosed
		return true
	}
	ctx, _ := contexts.Get().(*Context)
	c.fd, c.mayHaveMore, c.reading = int(fd), true, true
	c.n, c.err = c.respondAll(ctx)
	c.reading = false
	contexts.Put(ctx)
	if !c.state.CompareAndSwap(responding, waiting) {
		c.n, c.err = 0, net.ErrClosed
	}
	return c.err != syscall.EAGAIN //nolint:errorlint // it is none but this one
}

// respondAll answers until nothing more is there, or returns what is left to the server. The
// error is EAGAIN where it has to wait.
func (c *Conn) respondAll(ctx *Context) (left int, err error) {
	for {
		n, err := c.requests.Read(c.buf)
		if n == 0 {
			return 0, err
		}
		answered, err := c.respond(ctx, c.buf[:n])
		if err != nil {
			return 0, err
		}
		if answered < n {
			return copy(c.buf, c.buf[answered:n]), nil
		}
	}
}

// IsReading reports whether Receive may be called.
func (c *Conn) IsReading() bool { return c.reading }

// Receive reads what the system has. EAGAIN is its error if that is nothing, which is a
// temporary one to crypto/tls. The system tells of a connection only when something arrives,
// so it is read until there is nothing more.
func (c *Conn) Receive(p []byte) (n int, err error) {
	if !c.mayHaveMore {
		return 0, syscall.EAGAIN
	}
	size := 0
	for err = syscall.EINTR; err == syscall.EINTR; {
		n, size, _, _, err = syscall.Recvmsg(c.fd, p, c.control[:], 0)
	}
	start := syscall.CmsgLen(0)
	c.mayHaveMore = size < start+4 || binary.NativeEndian.Uint32(c.control[start:]) != 0
	if n == 0 && err == nil {
		err = io.EOF
	}
	return max(n, 0), err
}

// respond answers requests until one is for the server, and returns how many bytes are
// answered.
func (c *Conn) respond(ctx *Context, in []byte) (answered int, err error) {
	ctx.At, ctx.out = time.Now(), ctx.out[:0]
	for answered < len(in) && err == nil {
		size := ctx.parse(in[answered:])
		if size == 0 || !c.handler.TryHandle(ctx) {
			break
		}
		answered += size
		ctx.out = ctx.appendHead(ctx.out)
		if len(ctx.out)+len(ctx.Body) <= bufferSize {
			ctx.out = append(ctx.out, ctx.Body...)
		} else {
			ctx.At, err = c.handler.Send(ctx.At, ctx.out, ctx.Body)
			ctx.out = ctx.out[:0]
		}
	}
	if err == nil && len(ctx.out) > 0 {
		_, err = c.handler.Send(ctx.At, ctx.out, nil)
	}
	ctx.Body = nil
	return answered, err
}
