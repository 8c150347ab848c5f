package httpserver

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
)

// errTooManyConns is the reason for rejecting a connection beyond the listener's limit. The
// server's ErrorHandler answers it.
var errTooManyConns = errors.New("too many connections are open")

var (
	connectionsRejected = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_connections_rejected_total", Help: "Connections rejected, since too many were open."})
	connectionsEvicted  = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_connections_evicted_total", Help: "Connections evicted for those of other client networks."})
	connectionsOpen     atomic.Int64
	connectionsLimit    atomic.Int64 // the highest of all listeners

	_ = promauto.NewGaugeFunc(prometheus.GaugeOpts{Name: "veneer_connections", Help: "Connections that all listeners have open."},
		func() float64 { return float64(Connections()) })
	_ = promauto.NewGaugeFunc(prometheus.GaugeOpts{Name: "veneer_connections_limit", Help: "Highest limit of open connections of a listener."},
		func() float64 { return float64(connectionsLimit.Load()) })
)

// Connections returns how many connections all listeners of the process have open.
func Connections() int64 { return connectionsOpen.Load() }

const (
	// maxRejecting is how many rejected connections are answered at once; those beyond are
	// closed without a response. rejectTimeout is how long a client may take to read the
	// response.
	maxRejecting  = 256
	rejectTimeout = time.Second
	// rejectBytes is how much is drained of a rejected request. Closing a socket with unread
	// data sends a RST, and the client might not see the response.
	rejectBytes = 64 << 10
)

// networkShareDivisor makes the share of a client network 1/64 of a listener's connections.
// It keeps that many whatever others open; fewer than 64 networks can have more.
const networkShareDivisor = 64

// connLimiter bounds the connections of a listener, and of each address. When the listener is
// full, a connection of another client network replaces the oldest one of the network with
// the most. The replaced connection is evicted: it ends before its next request. The limiter
// does no work per request.
type connLimiter struct {
	peerLimits   PeerLimits
	maxConns     int // 0: any number
	maxEvicted   int // evicted connections that may be open beyond maxConns
	networkShare int // connections that a network keeps

	mu             sync.Mutex
	open           int // all connections, including evicted ones
	connsByAddress map[netip.Prefix]int
	listByNetwork  map[netip.Prefix]*connList
	overShare      map[*connList]struct{} // networks with more than networkShare
	proxied        connList               // of trusted proxies
	evicted        connList               // but still open
	aborted        connList               // evicted ones that were closed for writing, too

	errorHandler func(*fasthttp.RequestCtx, error)
	plaintext    bool // whether a response can be sent without TLS
	rejecting    chan struct{}
}

// connList is connections in the order in which they were added. Each open connection is in
// one list.
type connList struct {
	network        netip.Prefix // of these connections; zero: several
	oldest, newest *conn
	size           int
}

func (l *connList) add(c *conn) {
	c.list, c.older = l, l.newest
	if l.newest == nil {
		l.oldest = c
	} else {
		l.newest.newer = c
	}
	l.newest = c
	l.size++
}

func (l *connList) remove(c *conn) {
	if c.older == nil {
		l.oldest = c.newer
	} else {
		c.older.newer = c.newer
	}
	if c.newer == nil {
		l.newest = c.older
	} else {
		c.newer.older = c.older
	}
	c.list, c.older, c.newer = nil, nil, nil
	l.size--
}

// newConnLimiter takes the limit over from a server, which would answer connections beyond it
// with plain text, and without a timeout.
func newConnLimiter(server *fasthttp.Server, peerLimits PeerLimits, plaintext bool) *connLimiter {
	maxConns := server.Concurrency
	for highest := connectionsLimit.Load(); int64(maxConns) > highest && !connectionsLimit.CompareAndSwap(highest, int64(maxConns)); highest = connectionsLimit.Load() {
	}
	maxEvicted := maxConns/8 + 16
	if maxConns > 0 {
		// fasthttp counts a connection until a little after it is closed.
		server.Concurrency = 2 * (maxConns + maxEvicted)
	}
	return &connLimiter{
		peerLimits: peerLimits, maxConns: maxConns, maxEvicted: maxEvicted, networkShare: maxConns / networkShareDivisor,
		connsByAddress: map[netip.Prefix]int{}, listByNetwork: map[netip.Prefix]*connList{}, overShare: map[*connList]struct{}{},
		errorHandler: server.ErrorHandler, plaintext: plaintext, rejecting: make(chan struct{}, maxRejecting),
	}
}

// errAddressConns is the reason for rejecting a connection beyond the limit of its address.
var errAddressConns = errors.New("too many connections of the address are open")

// admit counts a connection until release. The error is errTooManyConns or errAddressConns.
func (l *connLimiter) admit(c *conn) error {
	peer := clientip.PeerIP(c.RemoteAddr())
	trusted := l.peerLimits.proxies.Trusts(peer)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !trusted && l.peerLimits.maxConns > 0 && l.connsByAddress[clientip.Prefix(peer)] >= l.peerLimits.maxConns {
		return errAddressConns
	}
	list := &l.proxied
	if !trusted {
		list = l.networkOf(peer)
	}
	if l.isFull() && !l.evictOldest(list) {
		return errTooManyConns
	}
	l.add(1)
	list.add(c)
	if trusted {
		return nil
	}
	if list.size == 1 {
		l.listByNetwork[list.network] = list
	}
	if list.size > l.networkShare {
		l.overShare[list] = struct{}{}
	}
	if l.peerLimits.maxConns > 0 {
		l.connsByAddress[clientip.Prefix(peer)]++
	}
	return nil
}

// networkOf returns the connections of a peer's network, an empty list if there are none.
func (l *connLimiter) networkOf(peer netip.Addr) *connList {
	network := clientip.Network(peer)
	if list := l.listByNetwork[network]; list != nil {
		return list
	}
	return &connList{network: network}
}

// release uncounts a connection that was admitted.
func (l *connLimiter) release(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.list == nil {
		return
	}
	trusted := c.list == &l.proxied
	l.unlist(c)
	l.add(-1)
	if trusted || l.peerLimits.maxConns == 0 {
		return
	}
	address := clientip.Prefix(clientip.PeerIP(c.RemoteAddr()))
	if l.connsByAddress[address]--; l.connsByAddress[address] == 0 {
		delete(l.connsByAddress, address)
	}
}

// unlist removes a connection from its list.
func (l *connLimiter) unlist(c *conn) {
	list := c.list
	list.remove(c)
	if !list.network.IsValid() {
		return
	}
	if list.size <= l.networkShare {
		delete(l.overShare, list)
	}
	if list.size == 0 {
		delete(l.listByNetwork, list.network)
	}
}

func (l *connLimiter) add(n int) {
	l.open += n
	connectionsOpen.Add(int64(n))
}

// isFull reports whether another connection is too many. Evicted ones are about to end.
func (l *connLimiter) isFull() bool {
	return l.maxConns > 0 && l.open-l.evicted.size-l.aborted.size >= l.maxConns
}

// evictOldest evicts the oldest connection of the network with the most, for a new one of
// another network, and reports whether there is a place now. There is none if no network has
// more than its share, or if the new one's would then have the most.
func (l *connLimiter) evictOldest(newcomer *connList) bool {
	if l.evicted.size >= l.maxEvicted/2 {
		// A client that does not read its response would hold its place for WRITE_TIMEOUT.
		l.abort(l.evicted.oldest)
	}
	if l.evicted.size+l.aborted.size >= l.maxEvicted {
		return false
	}
	var largest *connList
	for list := range l.overShare {
		if largest == nil || list.size > largest.size {
			largest = list
		}
	}
	others := 0 // trusted proxies carry many networks
	if newcomer != &l.proxied {
		others = newcomer.size
	}
	if largest == nil || largest.size <= others+1 {
		return false
	}
	c := largest.oldest
	l.unlist(c)
	l.evicted.add(c)
	connectionsEvicted.Inc()
	c.endReads()
	return true
}

// abort ends an evicted connection even while its response is being sent.
func (l *connLimiter) abort(c *conn) {
	l.unlist(c)
	l.aborted.add(c)
	c.endWrites()
}

// reject rejects a connection without waiting until it has ended.
func (l *connLimiter) reject(conn net.Conn) {
	if !l.plaintext || l.errorHandler == nil {
		_ = conn.Close()
		return
	}
	select {
	case l.rejecting <- struct{}{}:
		go func() {
			defer func() { <-l.rejecting }()
			l.writeRejection(conn)
		}()
	default:
		_ = conn.Close()
	}
}

// writeRejection answers a rejected connection, and closes it.
func (l *connLimiter) writeRejection(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	if conn.SetDeadline(time.Now().Add(rejectTimeout)) != nil {
		return
	}
	var rc fasthttp.RequestCtx
	rc.Init2(conn, nil, true)
	l.errorHandler(&rc, errTooManyConns)
	rc.SetConnectionClose()
	out := bufio.NewWriterSize(conn, writeBuffer)
	if rc.Response.Write(out) != nil || out.Flush() != nil {
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok && tcp.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, conn, rejectBytes)
	}
}
