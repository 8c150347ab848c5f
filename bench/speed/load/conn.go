package load

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// conn is a socket outside Go's network poller. It has one open request at most.
type conn struct {
	fd        int
	tlsConn   *tls.Conn // nil without TLS
	id        int       // in epoll events
	stream    *streamState
	request   int           // index of the open request in its stream; -1 if there is none
	due       time.Duration // when that was to be sent
	idleSince time.Duration // when the last answer came

	buffer    []byte // the response's header, and then its body if keepBody
	buffered  int    // length of the response in buffer; 0 if nothing is kept
	header    respHeader
	bodyStart int  // offset in buffer
	remaining int  // bytes of the response still to come
	keepBody  bool // for Inspect
	bytes     int64
}

// initialBuffer holds any response header, and most pictures.
const initialBuffer = 16 << 10

// dial connects to a server from an address of the same family, or from any.
func (c *conn) dial(server netip.AddrPort, from netip.Addr) (err error) {
	family := unix.AF_INET6
	if server.Addr().Is4() {
		family = unix.AF_INET
	}
	bind := func() error { return nil }
	if from.IsValid() {
		bind = func() error { return unix.Bind(c.fd, socketAddress(netip.AddrPortFrom(from, 0))) }
	}
	if c.fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return fmt.Errorf("make a socket: %w", err)
	}
	timeout := unix.NsecToTimeval(int64(drainTimeout))
	for _, step := range []func() error{
		func() error { return unix.SetsockoptTimeval(c.fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &timeout) },
		func() error { return unix.SetsockoptTimeval(c.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout) },
		bind,
		func() error { return c.connect(socketAddress(server)) },
		func() error { return unix.SetsockoptInt(c.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) },
		c.handshake,
		func() error { return unix.SetNonblock(c.fd, true) },
	} {
		if err := step(); err != nil {
			_ = unix.Close(c.fd)
			return fmt.Errorf("connect to %s: %w", server, err)
		}
	}
	return nil
}

// socketAddress converts an address for system calls.
func socketAddress(address netip.AddrPort) unix.Sockaddr {
	if address.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(address.Port()), Addr: address.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(address.Port()), Addr: address.Addr().As16()}
}

// connect connects. A signal, which Go's scheduler may send at any time, interrupts the call, but
// the connection attempt continues.
func (c *conn) connect(to unix.Sockaddr) error {
	err := unix.Connect(c.fd, to)
	for err == unix.EINTR {
		connected := []unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLOUT}}
		if _, err = unix.Poll(connected, int(drainTimeout.Milliseconds())); err != nil {
			continue
		}
		status, err := unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_ERROR)
		if err != nil {
			return err
		}
		if connected[0].Revents == 0 {
			return unix.ETIMEDOUT
		}
		if status != 0 {
			return syscall.Errno(status)
		}
		return nil
	}
	return err
}

// handshake performs the TLS handshake, if the stream uses TLS.
func (c *conn) handshake() error {
	if !c.stream.TLS {
		return nil
	}
	c.tlsConn = tls.Client(socket{fd: c.fd}, &tls.Config{InsecureSkipVerify: true})
	return c.tlsConn.Handshake()
}

// socket is a net.Conn for crypto/tls. Errors are system errors: EAGAIN, no data, is a temporary
// error to crypto/tls.
type socket struct {
	net.Conn // nil: crypto/tls calls no other method
	fd       int
}

func (s socket) Read(p []byte) (n int, err error) {
	for err = syscall.EINTR; err == syscall.EINTR; {
		n, err = syscall.Read(s.fd, p)
	}
	if n == 0 && err == nil {
		err = io.EOF
	}
	return max(n, 0), err
}

func (s socket) Write(p []byte) (int, error) {
	n, err := syscall.Write(s.fd, p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	return max(n, 0), err
}

// receive reads available data. At the end of the connection n is 0.
func (c *conn) receive(p []byte) (n int, err error) {
	if c.tlsConn == nil {
		// The functions of syscall, unlike those of unix, tell the race detector that a
		// test's server was active before.
		return syscall.Read(c.fd, p)
	}
	n, err = c.tlsConn.Read(p)
	if n > 0 || errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// send sends a request. The connection is idle, so the socket's buffer has space for all of it.
func (c *conn) send(request []byte) error {
	c.header, c.buffered, c.bytes, c.keepBody = respHeader{}, 0, 0, false
	var n int
	var err error
	if c.tlsConn == nil {
		n, err = syscall.Write(c.fd, request)
	} else {
		n, err = c.tlsConn.Write(request)
	}
	if err == nil && n < len(request) {
		err = errors.New("it does not fit into the socket's buffer")
	}
	if err != nil {
		return fmt.Errorf("send a request: %w", err)
	}
	return nil
}

// faultError is an incomplete response.
type faultError struct {
	fault Fault
	err   error
}

func (f *faultError) Error() string { return f.err.Error() }

// Responses that differ from their header.
var (
	errShort         = &faultError{WrongLength, errors.New("the connection ends before the body")}
	errLong          = &faultError{WrongLength, errors.New("data follows the answer")}
	errEnded         = &faultError{Broken, errors.New("the connection is closed before an answer")}
	errHeaderTooLong = &faultError{Broken, errors.New("the answer's header is too long")}
)

// read reads available data and reports whether the response is complete, or how it fails.
func (c *conn) read() (complete bool, err error) {
	for more := true; more && !complete && err == nil; {
		more, complete, err = c.readSome()
		// epoll does not report what TLS has read ahead.
		more = more && c.tlsConn != nil
	}
	return complete, err
}

// readSome reads once, and reports whether there was data.
func (c *conn) readSome() (progress, complete bool, err error) {
	n, err := c.receive(c.buffer[c.buffered:])
	switch {
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
		return false, false, nil
	case (err != nil || n == 0) && c.header.status != 0:
		return false, false, errShort
	case err != nil:
		return false, false, &faultError{Broken, fmt.Errorf("read the answer: %w", err)}
	case n == 0:
		return false, false, errEnded
	}
	c.bytes += int64(n)
	if c.header.status != 0 {
		c.remaining -= n
		if c.keepBody {
			c.buffered += n
		}
	} else {
		c.buffered += n
		if err := c.parseHeader(); err != nil || c.header.status == 0 {
			return true, false, err
		}
	}
	if c.remaining < 0 {
		return true, false, errLong
	}
	return true, c.remaining == 0, nil
}

// parseHeader parses the response header, if that is complete.
func (c *conn) parseHeader() (err error) {
	if c.header, c.bodyStart, err = parseRespHeader(c.buffer[:c.buffered]); err != nil {
		return &faultError{Broken, err}
	}
	if c.header.status == 0 {
		if c.buffered == len(c.buffer) {
			return errHeaderTooLong
		}
		return nil
	}
	c.remaining = c.bodyStart + c.header.length - c.buffered
	switch c.keepBody = c.stream.inspects(c.header.status); {
	case !c.keepBody:
		c.buffered = 0
	case c.remaining > len(c.buffer)-c.buffered:
		c.buffer = slices.Grow(c.buffer[:c.buffered], c.remaining)
		c.buffer = c.buffer[:cap(c.buffer)]
	}
	return nil
}
