package serve

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"
)

// errCrowded is why a connection is refused when too many are open. The server's
// ErrorHandler answers it.
var errCrowded = errors.New("too many connections are open")

var (
	connectionsRefused = metrics.NewCounter("veneer_connections_refused_total")
	connectionsOpen    atomic.Int64
	connectionsLimit   atomic.Int64 // the highest of all listeners
	_                  = metrics.NewGauge("veneer_connections", func() float64 { return float64(Connections()) })
	_                  = metrics.NewGauge("veneer_connections_limit", func() float64 { return float64(connectionsLimit.Load()) })
)

// Connections returns how many connections all listeners of the process have open.
func Connections() int64 { return connectionsOpen.Load() }

const (
	// mostPartings is how many refused connections are told why at a time; those beyond
	// are closed unanswered. partingTime is how long one may take to hear it.
	mostPartings = 256
	partingTime  = time.Second
	// partingBytes is how much is read of a request that is not wanted. A connection
	// closed with something unread is reset, and the client might never see the answer.
	partingBytes = 64 << 10
)

// crowd bounds how many connections a listener has open. The server would close those
// beyond with a text in place of an answer, and allow itself as long as they like for it.
type crowd struct {
	most     int64 // 0: any number
	open     atomic.Int64
	answer   func(*fasthttp.RequestCtx, error)
	tell     bool // whether an answer can be sent as it is
	partings chan struct{}
}

// crowdOf takes the bound over from a server.
func crowdOf(server *fasthttp.Server) crowd {
	most := server.Concurrency
	for known := connectionsLimit.Load(); int64(most) > known && !connectionsLimit.CompareAndSwap(known, int64(most)); known = connectionsLimit.Load() {
	}
	if most > 0 {
		// A server is done with a connection a little after that is closed.
		server.Concurrency = 2 * most
	}
	return crowd{most: int64(most), answer: server.ErrorHandler, partings: make(chan struct{}, mostPartings)}
}

func (c *crowd) isFull() bool { return c.most > 0 && c.open.Load() >= c.most }

func (c *crowd) add(n int64) {
	c.open.Add(n)
	connectionsOpen.Add(n)
}

// turnAway refuses a connection. Nobody waits until it is gone.
func (c *crowd) turnAway(conn net.Conn) {
	connectionsRefused.Inc()
	if !c.tell || c.answer == nil {
		_ = conn.Close()
		return
	}
	select {
	case c.partings <- struct{}{}:
		go func() {
			defer func() { <-c.partings }()
			c.part(conn)
		}()
	default:
		_ = conn.Close()
	}
}

// part tells a connection why it is refused, and closes it.
func (c *crowd) part(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	if conn.SetDeadline(time.Now().Add(partingTime)) != nil {
		return
	}
	var rc fasthttp.RequestCtx
	rc.Init2(conn, nil, true)
	c.answer(&rc, errCrowded)
	rc.SetConnectionClose()
	out := bufio.NewWriterSize(conn, writeBuffer)
	if rc.Response.Write(out) != nil || out.Flush() != nil {
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok && tcp.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, conn, partingBytes)
	}
}
