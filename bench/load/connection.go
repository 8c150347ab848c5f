package load

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/valyala/fasthttp"
)

// connection sends one request after another and notes the answers.
type connection struct {
	conn     net.Conn
	reader   *bufio.Reader
	answer   fasthttp.Response
	requests []Request
	random   *rand.Rand

	latencies *hdrhistogram.Histogram
	statuses  map[int]int64
	wrong     int64
}

// dial opens all connections.
func (l Load) dial(ctx context.Context) ([]*connection, error) {
	var connections []*connection
	for i := range l.Connections {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", l.Address)
		if err != nil {
			hangUp(connections)
			return nil, err
		}
		connections = append(connections, &connection{
			conn: conn, reader: bufio.NewReader(conn),
			requests: l.Requests, random: rand.New(rand.NewPCG(0, uint64(i))),
			latencies: newLatencies(), statuses: map[int]int64{},
		})
	}
	return connections, nil
}

func hangUp(connections []*connection) {
	for _, c := range connections {
		_ = c.conn.Close()
	}
}

// endWith has the connection fail when the context ends. What it returns calls
// that off.
func (c *connection) endWith(ctx context.Context) func() bool {
	return context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })
}

// ask sends a request and reads the answer to it.
func (c *connection) ask() error {
	request := &c.requests[c.random.IntN(len(c.requests))]
	if _, err := c.conn.Write(request.Bytes); err != nil {
		return fmt.Errorf("send a request: %w", err)
	}
	if err := c.answer.Read(c.reader); err != nil {
		return fmt.Errorf("read an answer: %w", err)
	}
	c.statuses[c.answer.StatusCode()]++
	if !bytes.HasPrefix(c.answer.Body(), request.Want) {
		c.wrong++
	}
	return nil
}

// note counts an answer.
func (c *connection) note(latency time.Duration) {
	_ = c.latencies.RecordValue(int64(min(latency, longest))) // which it can hold
}
