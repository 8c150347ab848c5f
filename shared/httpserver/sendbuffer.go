package httpserver

import "net"

// sendBuffer is the size in bytes of a socket's send buffer (SO_SNDBUF). Linux reserves twice
// as much. By default it grows up to 4 MiB (tcp_wmem) for a client that reads nothing, and
// WRITE_TIMEOUT does not cover what the buffer holds. A client with a round trip of 100 ms
// still gets more than 640 KB a second.
const sendBuffer = 64 << 10

// limitSendBuffer sets the size of the send buffer.
func (c *conn) limitSendBuffer() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer) // if that fails, the connection is closed
	}
}
