package load

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"
)

// line is a connection of a Replay. It asks one question after another.
type line struct {
	fd    int
	asked *Question

	buffer [16 << 10]byte
	have   int   // how much of the header has come, while left is unknown
	left   int   // how much of the answer is still to come; unknown while negative
	bytes  int64 // how much has come
}

func (l *line) dial(address netip.AddrPort) (err error) {
	if l.fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return fmt.Errorf("make a socket: %w", err)
	}
	err = unix.Connect(l.fd, &unix.SockaddrInet4{Addr: address.Addr().As4(), Port: int(address.Port())})
	if err == nil {
		err = unix.SetNonblock(l.fd, true)
	}
	if err == nil {
		err = unix.SetsockoptInt(l.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	}
	if err != nil {
		l.hangUp()
		return fmt.Errorf("connect to %s: %w", address, err)
	}
	return nil
}

func (l *line) hangUp() { _ = unix.Close(l.fd) }

func (l *line) ask() error {
	l.have, l.left, l.bytes = 0, -1, 0
	// Nothing else is under way, so there is room for all of it.
	switch n, err := unix.Write(l.fd, l.asked.Bytes); {
	case err != nil:
		return fmt.Errorf("send a request: %w", err)
	case n < len(l.asked.Bytes):
		return errors.New("send a request: it does not fit into the socket's buffer")
	}
	return nil
}

// read reads what has come and reports whether that completes the answer.
func (l *line) read() (whole bool, err error) {
	n, err := unix.Read(l.fd, l.buffer[l.have:])
	switch {
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read the answer: %w", err)
	case n == 0:
		return false, errors.New("the connection is closed before the end of the answer")
	}
	l.bytes += int64(n)
	if l.left < 0 {
		l.have += n
		if err := l.begin(l.buffer[:l.have]); err != nil || l.left < 0 {
			return false, err
		}
		l.have = 0
	} else {
		l.left -= n
	}
	if l.left < 0 {
		return false, errors.New("more than an answer comes")
	}
	return l.left == 0, nil
}

var (
	headerEnd     = []byte("\r\n\r\n")
	contentLength = []byte("\r\nContent-Length: ")
)

// begin reads the header of an answer, unless the end of it has yet to come.
func (l *line) begin(come []byte) error {
	end := bytes.Index(come, headerEnd)
	if end < 0 {
		if len(come) == len(l.buffer) {
			return errors.New("there is no end to the header of the answer")
		}
		return nil
	}
	header := come[:end]
	if len(header) < len("HTTP/1.1 200") {
		return fmt.Errorf("%q is the answer", header)
	}
	status, err := strconv.Atoi(string(header[len("HTTP/1.1 "):len("HTTP/1.1 200")]))
	if err != nil || status != l.asked.Status {
		return fmt.Errorf("%.100q… is the answer, and not status %d,", header, l.asked.Status)
	}
	length := 0
	if _, rest, ok := bytes.Cut(header, contentLength); ok {
		digits, _, _ := bytes.Cut(rest, []byte("\r"))
		if length, err = strconv.Atoi(string(digits)); err != nil {
			return fmt.Errorf("read the answer's length: %w", err)
		}
	}
	if length != l.asked.Length {
		return fmt.Errorf("%d bytes, and not %d, are the answer", length, l.asked.Length)
	}
	l.left = length - (len(come) - end - len(headerEnd))
	if l.left < 0 {
		return errors.New("more than an answer comes")
	}
	return nil
}
