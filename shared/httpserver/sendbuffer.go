package httpserver

import "net"

// sendBuffer is how many bytes of answers the system holds for a connection. Linux reserves
// twice as many. Without a bound it holds up to 4 MiB (tcp_wmem) for a client that reads
// nothing, and WRITE_TIMEOUT does not count for what the system has taken. A client with a
// round trip of 100 ms still gets more than 640 KB a second.
const sendBuffer = 64 << 10

// limitSendBuffer bounds what the system holds of the connection's answers.
func (c *conn) limitSendBuffer() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer) // if that fails, the connection is closed
	}
}
