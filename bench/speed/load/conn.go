package load

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// conn is a socket outside Go's network poller. It has one open request at most.
type conn struct {
	fd        int
	transport io.ReadWriter // the socket, or TLS over it
	id        int           // in epoll events
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

// dial connects to a server from an address, or from any. The socket leaves Go's network poller.
func (c *conn) dial(server netip.AddrPort, from netip.Addr) error {
	dialer := net.Dialer{Timeout: drainTimeout}
	if from.IsValid() {
		dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))
	}
	connected, err := dialer.Dial("tcp", server.String()) //nolint:noctx // to loopback, with a timeout
	if err != nil {
		return err
	}
	defer func() { _ = connected.Close() }()
	tcp, _ := connected.(*net.TCPConn) // what "tcp" is
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { c.fd, failed = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	if err = errors.Join(err, failed); err != nil {
		return fmt.Errorf("connect to %s: %w", server, err)
	}
	if err := c.handshake(); err != nil {
		_ = unix.Close(c.fd)
		return fmt.Errorf("connect to %s: %w", server, err)
	}
	return nil
}

// handshake performs the TLS handshake, if the stream uses TLS. It waits for the server.
func (c *conn) handshake() error {
	c.transport = socket{fd: c.fd}
	if !c.stream.TLS {
		return nil
	}
	timeout := unix.NsecToTimeval(int64(drainTimeout))
	if err := errors.Join(unix.SetNonblock(c.fd, false), unix.SetsockoptTimeval(c.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout)); err != nil {
		return err
	}
	encrypted := tls.Client(socket{fd: c.fd}, &tls.Config{InsecureSkipVerify: true})
	c.transport = encrypted
	return errors.Join(encrypted.Handshake(), unix.SetNonblock(c.fd, true))
}

// socket is a net.Conn for crypto/tls. Errors are system errors: EAGAIN, no data, is a temporary
// error to crypto/tls. The functions of package syscall, unlike the same ones of package unix, tell the race detector that a
// test's server was active before.
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
	n, err = c.transport.Read(p)
	if n > 0 || errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// send sends a request. The connection is idle, so the socket's buffer has space for all of it: a short
// write is an error.
func (c *conn) send(request []byte) error {
	c.header, c.buffered, c.bytes, c.keepBody = respHeader{}, 0, 0, false
	if _, err := c.transport.Write(request); err != nil {
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
		more = more && c.stream.TLS
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

// respHeader is the parsed header of a response: as much of HTTP as the measured servers use.
type respHeader struct {
	status int // 0 until the header is complete
	length int // of the body
	closes bool
}

var (
	headerEnd = []byte("\r\n\r\n")
	lineEnd   = []byte("\r\n")
	nameEnd   = []byte(":")
	lengthKey = []byte("Content-Length")
	closeKey  = []byte("Connection")
	closing   = []byte("close")
)

// parseRespHeader returns the header of a response and where its body begins, or a status of 0
// unless the header is complete.
func parseRespHeader(data []byte) (h respHeader, end int, err error) {
	const version, code = "HTTP/1.1 ", "200"
	end = bytes.Index(data, headerEnd)
	if end < 0 {
		return respHeader{}, 0, nil
	}
	first, rest, _ := bytes.Cut(data[:end], lineEnd)
	if len(first) < len(version+code) || string(first[:len(version)]) != version {
		return respHeader{}, 0, fmt.Errorf("not HTTP/1.1: %.20q", first)
	}
	if h.status, err = strconv.Atoi(string(first[len(version):len(version+code)])); err != nil || h.status < 200 {
		return respHeader{}, 0, fmt.Errorf("no final status in %.20q", first)
	}
	h.length = -1
	for len(rest) > 0 {
		var line []byte
		line, rest, _ = bytes.Cut(rest, lineEnd)
		name, value, _ := bytes.Cut(line, nameEnd)
		// Few names are as long as these, so few are compared.
		switch {
		case len(name) == len(lengthKey) && bytes.EqualFold(name, lengthKey):
			if h.length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil || h.length < 0 {
				return respHeader{}, 0, fmt.Errorf("invalid Content-Length %.40q", value)
			}
		case len(name) == len(closeKey) && bytes.EqualFold(name, closeKey):
			h.closes = bytes.EqualFold(bytes.TrimSpace(value), closing)
		}
	}
	switch {
	case h.status == 204 || h.status == 304: // may have a Content-Length without a body
		h.length = 0
	case h.length < 0:
		return respHeader{}, 0, errors.New("the answer has no Content-Length")
	}
	return h, end + len(headerEnd), nil
}
