// Package fastpath answers simple GET requests from memory on the goroutine that reads the
// socket, without the cost of an HTTP server. Requests that it does not answer reach the
// server unchanged.
package fastpath

import (
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// Handler answers requests of a connection.
type Handler interface {
	// TryHandle fills in the response to a request, or returns false to leave it to the HTTP
	// server. It must not block, and must not keep the Context.
	TryHandle(*Context) bool
	// Send sends responses that were ready at a time, followed by a body unless that is
	// empty. It blocks until all is written.
	Send(ready time.Time, responses, body []byte) (sent time.Time, err error)
}

// Conn reads the requests of a connection ahead of its HTTP server. All methods but Close are
// for the goroutine that serves the connection.
type Conn struct {
	handler    Handler
	raw        syscall.RawConn
	requests   io.Reader
	onReadable func(fd uintptr) (done bool)
	state      atomic.Int32

	// Arguments and results of one call of Read.
	buf []byte
	n   int
	err error

	reading     bool
	fd          int
	mayHaveMore bool     // whether the socket may have more to read
	control     [32]byte // control message of one recvmsg
}

// bufferSize is the most bytes that are sent in one piece.
const bufferSize = 4096

// States of a connection, for the goroutine that closes it: a request that has been read must
// be answered.
const (
	waiting int32 = iota
	responding
	closed
)

// tcpINQ is TCP_INQ of Linux, as a socket option and as a control message. The message has
// the number of bytes that are left to read; the end of the stream counts as one.
const tcpINQ = 36

// NewConn returns the reading end of a connection. Its requests are read from a reader, which
// gets its bytes from Receive while IsReading, and decrypts them under TLS.
func NewConn(tcp *net.TCPConn, handler Handler, requests io.Reader) (*Conn, error) {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil, err
	}
	// Without TCP_INQ, each connection is read until EAGAIN.
	_ = raw.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpINQ, 1) })
	c := &Conn{handler: handler, raw: raw, requests: requests}
	c.onReadable = c.serve
	return c, nil
}

// Read answers requests, and returns the bytes of the first one that is left to the HTTP
// server.
//
// The callback of RawConn.Read is called again whenever the socket is readable, so a request
// costs one system call; waiting first and reading then would cost two.
func (c *Conn) Read(p []byte) (int, error) {
	c.buf, c.n, c.err = p, 0, nil
	if err := c.raw.Read(c.onReadable); err != nil {
		return 0, err
	}
	return c.n, c.err
}

// Close ends Read. It reports whether the connection must not be closed yet: its goroutine
// closes it after the response.
func (c *Conn) Close() (answers bool) { return c.state.Swap(closed) == responding }

// serve answers what has arrived. It returns true when Read must return: bytes are left to
// the server, or there was an error.
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
	return c.err != syscall.EAGAIN //nolint:errorlint // it is never wrapped
}

// respondAll answers requests until the socket is empty, or bytes are left to the server. The
// error is EAGAIN if it has to wait.
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

// Receive reads from the socket without blocking. If it is empty, the error is EAGAIN, which
// crypto/tls treats as temporary. The poller is edge-triggered, so the socket must be read
// until it is empty.
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
