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

// wire is a connection that Go knows nothing of. It has one request under way at most.
type wire struct {
	fd      int
	secure  *tls.Conn // nil: in clear
	number  int       // that the kernel reports it under
	lane    *lane
	request int           // that is under way, of the lane's; -1 if none is
	due     time.Duration // when that was to be sent
	freed   time.Duration // when the last answer came

	buffer []byte // begins with the answer's head, and then has its body if that is kept
	have   int    // how much of the buffer is the answer's; 0 if nothing is kept
	head   head
	body   int  // where it begins
	left   int  // how much of it is still to come
	keep   bool // all of it
	bytes  int64
}

// firstBuffer holds the head of any answer, and most pictures.
const firstBuffer = 16 << 10

// dial connects to a server from an address, of its kind, or from any.
func (w *wire) dial(server netip.AddrPort, from netip.Addr) (err error) {
	family := unix.AF_INET6
	if server.Addr().Is4() {
		family = unix.AF_INET
	}
	bind := func() error { return nil }
	if from.IsValid() {
		bind = func() error { return unix.Bind(w.fd, socketAddress(netip.AddrPortFrom(from, 0))) }
	}
	if w.fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return fmt.Errorf("make a socket: %w", err)
	}
	patience := unix.NsecToTimeval(int64(late))
	for _, step := range []func() error{
		func() error { return unix.SetsockoptTimeval(w.fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &patience) },
		func() error { return unix.SetsockoptTimeval(w.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience) },
		bind,
		func() error { return w.connect(socketAddress(server)) },
		func() error { return unix.SetsockoptInt(w.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) },
		w.encrypt,
		func() error { return unix.SetNonblock(w.fd, true) },
	} {
		if err := step(); err != nil {
			_ = unix.Close(w.fd)
			return fmt.Errorf("connect to %s: %w", server, err)
		}
	}
	return nil
}

// socketAddress returns an address as the kernel has it.
func socketAddress(of netip.AddrPort) unix.Sockaddr {
	if of.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(of.Port()), Addr: of.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(of.Port()), Addr: of.Addr().As16()}
}

// connect connects. A signal, which Go's scheduler may send at any time, interrupts the
// call but not what it has begun.
func (w *wire) connect(to unix.Sockaddr) error {
	err := unix.Connect(w.fd, to)
	for err == unix.EINTR {
		connected := []unix.PollFd{{Fd: int32(w.fd), Events: unix.POLLOUT}}
		if _, err = unix.Poll(connected, int(late.Milliseconds())); err != nil {
			continue
		}
		status, err := unix.GetsockoptInt(w.fd, unix.SOL_SOCKET, unix.SO_ERROR)
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

// encrypt begins to speak TLS, if that is to be spoken.
func (w *wire) encrypt() error {
	if !w.lane.TLS {
		return nil
	}
	w.secure = tls.Client(socket{fd: w.fd}, &tls.Config{InsecureSkipVerify: true})
	return w.secure.Handshake()
}

// socket is a connection as crypto/tls takes it. Errors are those of the system: EAGAIN,
// that nothing has come, is a temporary one to crypto/tls.
type socket struct {
	net.Conn // nil: nothing else is asked of it
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

// receive reads what has come. At the end of the connection that is nothing.
func (w *wire) receive(p []byte) (n int, err error) {
	if w.secure == nil {
		// The calls of syscall, unlike those of unix, tell the race detector what a test's
		// server has done before.
		return syscall.Read(w.fd, p)
	}
	n, err = w.secure.Read(p)
	if n > 0 || errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// ask sends a request. Nothing else is under way, so there is room for all of it.
func (w *wire) ask(request []byte) error {
	w.head, w.have, w.bytes, w.keep = head{}, 0, 0, false
	var n int
	var err error
	if w.secure == nil {
		n, err = syscall.Write(w.fd, request)
	} else {
		n, err = w.secure.Write(request)
	}
	if err == nil && n < len(request) {
		err = errors.New("it does not fit into the socket's buffer")
	}
	if err != nil {
		return fmt.Errorf("send a request: %w", err)
	}
	return nil
}

// faultError is an answer that does not come whole.
type faultError struct {
	fault Fault
	err   error
}

func (f *faultError) Error() string { return f.err.Error() }

// Faults of answers that came or ended otherwise than they said.
var (
	errShort = &faultError{WrongLength, errors.New("the connection ends before the body that is the answer does")}
	errLong  = &faultError{WrongLength, errors.New("more than an answer comes")}
	errEnded = &faultError{Broken, errors.New("the connection is closed before there is an answer")}
	errHead  = &faultError{Broken, errors.New("there is no end to the header of the answer")}
)

// read takes in what has come and reports whether that completes the answer, or how it
// fails.
func (w *wire) read() (whole bool, err error) {
	for more := true; more && !whole && err == nil; {
		more, whole, err = w.readSome()
		// The system does not tell of what TLS has read ahead.
		more = more && w.secure != nil
	}
	return whole, err
}

// readSome reads once, and reports whether anything had come.
func (w *wire) readSome() (some, whole bool, err error) {
	n, err := w.receive(w.buffer[w.have:])
	switch {
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
		return false, false, nil
	case (err != nil || n == 0) && w.head.status != 0:
		return false, false, errShort
	case err != nil:
		return false, false, &faultError{Broken, fmt.Errorf("read the answer: %w", err)}
	case n == 0:
		return false, false, errEnded
	}
	w.bytes += int64(n)
	if w.head.status != 0 {
		w.left -= n
		if w.keep {
			w.have += n
		}
	} else {
		w.have += n
		if err := w.begin(); err != nil || w.head.status == 0 {
			return true, false, err
		}
	}
	if w.left < 0 {
		return true, false, errLong
	}
	return true, w.left == 0, nil
}

// begin reads the head of the answer, if all of it has come.
func (w *wire) begin() (err error) {
	if w.head, w.body, err = parseHead(w.buffer[:w.have]); err != nil {
		return &faultError{Broken, err}
	}
	if w.head.status == 0 {
		if w.have == len(w.buffer) {
			return errHead
		}
		return nil
	}
	w.left = w.body + w.head.length - w.have
	switch w.keep = w.lane.looks(w.head.status); {
	case !w.keep:
		w.have = 0
	case w.left > len(w.buffer)-w.have:
		w.buffer = slices.Grow(w.buffer[:w.have], w.left)
		w.buffer = w.buffer[:cap(w.buffer)]
	}
	return nil
}
