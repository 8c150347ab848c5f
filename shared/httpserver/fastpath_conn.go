package httpserver

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// fastReader reads the requests of a connection ahead of fasthttp, and answers simple GET
// requests from memory on the goroutine that reads the socket. Requests that it does not answer
// reach the server unchanged. All methods but close are for the goroutine that serves the
// connection.
type fastReader struct {
	conn       *conn
	raw        syscall.RawConn
	onReadable func(fd uintptr) (done bool)
	state      atomic.Int32

	// Arguments and results of one call of read.
	buf []byte
	n   int
	err error

	reading     bool // whether receive may be called
	fd          int
	mayHaveMore bool // whether the socket may have more to read

	// Arguments of recvmsg.
	message syscall.Msghdr
	vector  syscall.Iovec
	control [32]byte
}

// States of a connection, for the goroutine that closes it: a request that has been read must
// be answered.
const (
	readerWaits int32 = iota
	readerResponds
	readerClosed
)

// tcpINQ is TCP_INQ of Linux, as a socket option and as a control message. The message has
// the number of bytes that are left to read; the end of the stream counts as one.
const tcpINQ = 36

// newFastReader returns the reading end of a connection, nil if there is none.
func newFastReader(c *conn, tcp *net.TCPConn) *fastReader {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	// Without TCP_INQ, each connection is read until EAGAIN.
	_ = raw.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpINQ, 1) })
	r := &fastReader{conn: c, raw: raw}
	r.onReadable = r.serve
	r.message.Iov, r.message.Iovlen, r.message.Control = &r.vector, 1, &r.control[0]
	return r
}

// read answers requests, and returns the bytes of the first one that is left to the HTTP
// server.
//
// The callback of RawConn.Read is called again whenever the socket is readable, so a request
// costs one system call; waiting first and reading then would cost two.
func (r *fastReader) read(p []byte) (int, error) {
	r.buf, r.n, r.err = p, 0, nil
	if err := r.raw.Read(r.onReadable); err != nil {
		return 0, err
	}
	return r.n, r.err
}

// close ends read. It reports whether the connection must not be closed yet: its goroutine
// closes it after the response.
func (r *fastReader) close() (answers bool) { return r.state.Swap(readerClosed) == readerResponds }

// serve answers what has arrived. It returns true when read must return: bytes are left to
// the server, or there was an error.
func (r *fastReader) serve(fd uintptr) (done bool) {
	if !r.state.CompareAndSwap(readerWaits, readerResponds) {
		r.err = net.ErrClosed
		return true
	}
	ctx, _ := fastContexts.Get().(*FastContext)
	r.fd, r.mayHaveMore, r.reading = int(fd), true, true
	r.n, r.err = r.respondAll(ctx)
	r.reading = false
	fastContexts.Put(ctx)
	if !r.state.CompareAndSwap(readerResponds, readerWaits) {
		r.n, r.err = 0, net.ErrClosed
	}
	return r.err != syscall.EAGAIN //nolint:errorlint // it is never wrapped
}

// respondAll answers requests until the socket is empty, or bytes are left to the server. The
// error is EAGAIN if it has to wait.
func (r *fastReader) respondAll(ctx *FastContext) (left int, err error) {
	for {
		n, err := r.conn.plaintext.Read(r.buf)
		if n == 0 {
			return 0, err
		}
		answered, err := r.respond(ctx, r.buf[:n])
		if err != nil {
			return 0, err
		}
		if answered < n {
			return copy(r.buf, r.buf[answered:n]), nil
		}
	}
}

// receive reads from the socket without blocking. If it is empty, the error is EAGAIN, which
// crypto/tls treats as temporary. The poller is edge-triggered, so the socket must be read
// until it is empty. The scheduler is not told of the call, since it never waits.
func (r *fastReader) receive(p []byte) (n int, err error) {
	if !r.mayHaveMore {
		return 0, syscall.EAGAIN
	}
	r.vector.Base = &p[0]
	r.vector.SetLen(len(p))
	var size uintptr
	errno := syscall.EINTR
	for errno == syscall.EINTR {
		r.message.SetControllen(len(r.control))
		size, _, errno = syscall.RawSyscall(syscall.SYS_RECVMSG, uintptr(r.fd), uintptr(unsafe.Pointer(&r.message)), 0)
	}
	r.vector.Base = nil
	if errno != 0 {
		return 0, errno
	}
	start := syscall.CmsgLen(0)
	r.mayHaveMore = int(r.message.Controllen) < start+4 || binary.NativeEndian.Uint32(r.control[start:]) != 0
	if size == 0 {
		return 0, io.EOF
	}
	return int(size), nil
}

// trySend writes to the socket as much as its buffer has room for. After an error, another write returns it as well.
func (r *fastReader) trySend(p []byte) (n int) {
	n, _ = write(r.fd, p)
	return max(n, 0)
}

// maxCopied is the most bytes of responses that are copied for one write. Files of 3,950 bytes with headers take 11.7 µs of user
// time; with 4 KiB, beyond which head and body are written in two parts, they took 14.3 µs (docs/benchmarks.md).
const maxCopied = 16 << 10

// respond answers requests until one is for the server, and returns how many bytes are
// answered.
func (r *fastReader) respond(ctx *FastContext, in []byte) (answered int, err error) {
	ctx.At, ctx.out = time.Now(), ctx.out[:0]
	for answered < len(in) && err == nil {
		size := ctx.parse(in[answered:])
		if size == 0 || !r.tryHandle(ctx) {
			break
		}
		answered += size
		ctx.out = ctx.appendHead(ctx.out)
		if len(ctx.out)+len(ctx.body) <= maxCopied {
			ctx.out = append(ctx.out, ctx.body...)
		} else {
			ctx.At, err = r.conn.send(ctx.At, ctx.out, ctx.body)
			ctx.out = ctx.out[:0]
		}
	}
	if err == nil && len(ctx.out) > 0 {
		sent := 0
		if r.conn.listener.tls == nil {
			sent = r.trySend(ctx.out)
		}
		if sent < len(ctx.out) {
			_, err = r.conn.send(ctx.At, ctx.out[sent:], nil)
		} else {
			err = r.conn.awaitNext(ctx.At)
		}
	}
	ctx.body = nil
	return answered, err
}

// tryHandle answers a request on the fast path. It is not counted as in flight, since no scrape
// could see it. Requests that are logged or traced, and those at which the handler panics, are left
// to the server.
func (r *fastReader) tryHandle(ctx *FastContext) bool {
	c, f := r.conn, r.conn.listener.fastPath
	if c.listener.draining.Load() || ctx.isTraced && f.Tracer != nil {
		return false
	}
	if c.sampling = sample(f.LogSampleRate); c.sampling == sampled {
		return false
	}
	ctx.conn = c
	if !f.addressLimiter.allow(ctx) {
		return false
	}
	defer func() {
		if caught := recover(); caught != nil {
			f.addressLimiter.refund(ctx)
			if f.panicLog.Take(struct{}{}, ctx.At).Wait == 0 {
				f.Log.Error("panic on the fast path", "panic", fmt.Sprint(caught), "stack", string(debug.Stack()))
			}
		}
	}()
	ctx.id = appendRequestID(ctx.id[:0], ctx.sentID)
	ctx.SetCanonical(keyRequestID, ctx.id)
	if !f.handler(ctx) {
		f.addressLimiter.refund(ctx)
		return false
	}
	c.sampling = undecided
	took := time.Since(ctx.At)
	ctx.At = ctx.At.Add(took)
	ctx.route.counts.count(ctx.shard, ctx.status, took)
	return true
}

// send sends responses that were ready at a time, followed by a body unless that is empty, and
// starts the timeout in which the next request must begin to arrive.
func (c *conn) send(ready time.Time, responses, body []byte) (sent time.Time, err error) {
	c.readyAt, c.isLarge = ready.Sub(c.opened), len(body) > 0 && c.listener.tls == nil
	c.writeDeadline.markDue()
	_, err = c.plaintext.Write(responses)
	if err == nil && len(body) > 0 {
		_, err = c.plaintext.Write(body)
	}
	sent = time.Now()
	if err == nil {
		err = c.awaitNext(sent)
	}
	return sent, err
}

// awaitNext starts the timeout in which the next request must begin to arrive.
func (c *conn) awaitNext(sent time.Time) error {
	c.readDeadline.markDue()
	c.writeDeadline.markDue()
	return c.readDeadline.arm(c.opened, sent.Sub(c.opened), c.listener.idleTimeout)
}
