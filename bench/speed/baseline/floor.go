package baseline

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"golang.org/x/sys/unix"
)

// floor has whole responses, header and date included, by the target of a request. They are sent as they are, so a
// server of them does nothing that a server of these bytes could omit.
type floor map[string][]byte

func newFloor(r *Record, responses []Response) floor {
	f := make(floor, len(responses))
	for i := range responses {
		a := &responses[i]
		var whole strings.Builder
		fmt.Fprintf(&whole, "HTTP/1.1 %d %s\r\nDate: Sat, 28 Nov 2026 12:00:00 GMT\r\n", a.Status, http.StatusText(a.Status))
		if a.Status != http.StatusNotModified {
			fmt.Fprintf(&whole, "Content-Length: %d\r\n", len(r.Body(a)))
		}
		whole.WriteString("X-Request-Id: 0123456789abcdef\r\n")
		for _, h := range a.Headers {
			fmt.Fprintf(&whole, "%s: %s\r\n", h.Name, h.Value)
		}
		whole.WriteString("\r\n")
		whole.Write(r.Body(a))
		f[a.Target] = []byte(whole.String())
	}
	return f
}

// respond returns the response to a request that begins with a buffer, nil if it has not arrived as a whole. Requests
// are not sent ahead.
func (f floor) respond(received []byte) ([]byte, error) {
	if !bytes.HasSuffix(received, []byte("\r\n\r\n")) {
		return nil, nil
	}
	_, rest, _ := bytes.Cut(received, []byte(" "))
	target, _, _ := bytes.Cut(rest, []byte(" "))
	if response := f[string(target)]; response != nil {
		return response, nil
	}
	return nil, fmt.Errorf("no response is recorded to %.100q", received)
}

// receiveBuffer is the most bytes of a request.
const receiveBuffer = 4096

// serveLoop serves each connection with a goroutine that reads and writes.
func serveLoop(listener net.Listener, r *Record, responses []Response) error {
	f := newFloor(r, responses)
	for {
		c, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer func() { _ = c.Close() }()
			var buffer [receiveBuffer]byte
			for size := 0; ; {
				n, err := c.Read(buffer[size:])
				if err != nil || n == 0 { // none if the request is larger than the buffer
					return
				}
				size += n
				response, err := f.respond(buffer[:size])
				if err != nil {
					return
				}
				if response == nil {
					continue
				}
				if _, err := c.Write(response); err != nil {
					return
				}
				size = 0
			}
		}()
	}
}

// serveEpoll serves all connections with one thread that waits for any of them. Each request arrives in one read, and
// each response fits in the socket's buffer.
func serveEpoll(listener net.Listener, r *Record, responses []Response) error {
	tcp, ok := listener.(*net.TCPListener)
	if !ok {
		return errors.New("the epoll loop has no TLS")
	}
	file, err := tcp.File()
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	f, accepting := newFloor(r, responses), int(file.Fd())
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return err
	}
	add := func(fd int) error {
		return unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
	}
	if err := add(accepting); err != nil {
		return err
	}
	var buffer [receiveBuffer]byte
	for events := make([]unix.EpollEvent, 128); ; {
		count, err := unix.EpollWait(poll, events, -1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		for _, event := range events[:max(count, 0)] {
			fd := int(event.Fd)
			if fd == accepting {
				if fd, _, err = unix.Accept4(accepting, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC); err == nil {
					err = add(fd)
				}
				if err != nil {
					return err
				}
				continue
			}
			n, err := unix.Read(fd, buffer[:])
			if err == nil && n > 0 {
				var response []byte
				if response, err = f.respond(buffer[:n]); err == nil && response != nil {
					_, err = unix.Write(fd, response)
				}
			}
			if err != nil || n == 0 {
				_ = unix.Close(fd)
			}
		}
	}
}
