package load

import (
	"bytes"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// wire is a connection that Go knows nothing of.
type wire struct {
	fd     int
	lane   *lane
	due    time.Duration // of the request that is under way
	answer answer
}

// dialWire connects to a server.
func dialWire(server netip.AddrPort, l *lane) (*wire, error) {
	family, to := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Port: int(server.Port()), Addr: server.Addr().As16()})
	if server.Addr().Is4() {
		family, to = unix.AF_INET, &unix.SockaddrInet4{Port: int(server.Port()), Addr: server.Addr().As4()}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make a socket: %w", err)
	}
	for _, step := range []func() error{
		func() error { return unix.Connect(fd, to) },
		func() error { return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) },
		func() error { return unix.SetNonblock(fd, true) },
	} {
		if err := step(); err != nil {
			_ = unix.Close(fd)
			return nil, fmt.Errorf("connect to %s: %w", server, err)
		}
	}
	return &wire{fd: fd, lane: l}, nil
}

// answer is an answer in the making: as much of HTTP as servers that are measured
// speak.
type answer struct {
	head   []byte // what has come of it
	status int    // 0 until the head is whole
	left   int    // of the body
}

// add takes in what comes next of an answer, and returns its status once it is whole.
func (a *answer) add(data []byte) (status int, err error) {
	if a.status == 0 {
		a.head = append(a.head, data...)
		head, body, whole := bytes.Cut(a.head, []byte("\r\n\r\n"))
		if !whole {
			return 0, nil
		}
		if a.status, a.left, err = read(head); err != nil {
			return 0, err
		}
		data, a.head = body, a.head[:0]
	}
	if a.left -= len(data); a.left > 0 {
		return 0, nil
	}
	if a.left < 0 {
		return 0, fmt.Errorf("the answer is longer than it says by %d bytes", -a.left)
	}
	status, a.status = a.status, 0
	return status, nil
}

// read returns what the head of an answer says of its status and its length.
func read(head []byte) (status, length int, err error) {
	const version, code = "HTTP/1.1 ", "200"
	if len(head) < len(version+code) || string(head[:len(version)]) != version {
		return 0, 0, fmt.Errorf("%.20q begins no answer", head)
	}
	if status, err = strconv.Atoi(string(head[len(version):len(version+code)])); err != nil {
		return 0, 0, fmt.Errorf("read a status: %w", err)
	}
	_, rest, ok := bytes.Cut(head, []byte("\r\nContent-Length: "))
	if !ok {
		return status, 0, nil
	}
	digits, _, _ := bytes.Cut(rest, []byte("\r\n"))
	if length, err = strconv.Atoi(string(digits)); err != nil {
		return 0, 0, fmt.Errorf("read a length: %w", err)
	}
	if status == 304 { // tells the length of what it does not send
		length = 0
	}
	return status, length, nil
}
