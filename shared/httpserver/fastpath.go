package httpserver

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/veneer-skins/veneer/shared/ratelimit"
)

// FastPath answers requests from memory before the server reads them.
type FastPath struct {
	Options
	handler        func(*FastContext) bool
	addressLimiter *AddressLimiter
	// panicLog bounds the log lines about panics, unavailableLog the lines about 503s on connections
	// with the fast path.
	panicLog, unavailableLog *ratelimit.Limiter[struct{}]
}

// FastPath returns a fast path. Its handler answers a request, or returns false to leave it
// to the server. The handler must not block, and must not keep anything of the request.
// Requests count for the limiter that the server has.
func (o Options) FastPath(addressLimiter *AddressLimiter, handler func(*FastContext) bool) *FastPath {
	return &FastPath{Options: o, handler: handler, addressLimiter: addressLimiter, panicLog: ratelimit.New[struct{}](1, time.Minute, 1), unavailableLog: newUnavailableLog()}
}

// FastContext is a request on the fast path, and the response to it: a GET request of HTTP/1.1
// without a body and without headers that need an HTTP server.
type FastContext struct {
	Target     []byte    // as it was sent; SplitTarget must accept it, unless it equals one that it has accepted
	Path       []byte    // of SplitTarget: without escapes, empty segments and segments that begin with a dot
	Query      []byte    // of SplitTarget: raw
	Conditions []byte    // all field lines if one of them begins with If-, otherwise nil
	NoneMatch  []byte    // If-None-Match if it is the only one of these, otherwise nil
	At         time.Time // when the request was read, then when its response was ready
	Scratch    any       // the handler's own, kept from one request to the next

	conn     *conn
	lines    []byte       // the request's fields, each with its CRLF
	values   [][]byte     // result of PeekAll
	sentID   []byte       // the client's X-Request-ID
	isTraced bool         // whether the client's traceparent has the sampled flag
	network  netip.Prefix // of the client, if requests are limited by address

	id     []byte
	route  *Route
	status int    // of a response with a body, 204 or 304
	header []byte // the response's fields
	more   []byte // further ones, of a Stored
	body   []byte // must not change until the next request; never, if it is larger than maxCopied

	out    []byte // responses that are not sent yet
	second int64  // of date
	date   []byte
	shard  int // of the counters
}

// fastContexts pools as many as connections are answered at once. Their number spreads them over
// the shards.
var (
	fastContextCount atomic.Int64
	fastContexts     = sync.Pool{New: func() any { return &FastContext{shard: int(fastContextCount.Add(1) % shards)} }}
)

// SetCanonical adds a field to the response. Date and Content-Length are added automatically.
func (c *FastContext) SetCanonical(name, value []byte) {
	c.header = append(append(c.header, name...), ": "...)
	c.header = append(append(c.header, value...), "\r\n"...)
}

// hasField reports whether the response has a field.
func (c *FastContext) hasField(name string) bool { return bytes.Contains(c.header, []byte(name+": ")) }

// SetStatusCode sets the status of the response; the default is 200.
func (c *FastContext) SetStatusCode(status int) { c.status = status }

// SetBody sets the body of the response. It must not change until the next request.
func (c *FastContext) SetBody(body []byte) { c.body = body }

// SetBodyRaw sets the body of the response. It must never change.
func (c *FastContext) SetBodyRaw(body []byte) { c.body = body }

// SetRoute sets the route under which the request is counted.
func (c *FastContext) SetRoute(route *Route) { c.route = route }

// ClientIP returns the address of the client, as the server finds it.
func (c *FastContext) ClientIP() netip.Addr {
	return c.conn.listener.fastPath.Proxies.ClientIPFrom(c.conn.RemoteAddr(), c)
}

// IsUnavailableLogged reports whether the server would log a 503 for the request. Then it
// should be left to the server.
func (c *FastContext) IsUnavailableLogged() bool {
	return c.conn.listener.fastPath.unavailableLog.Peek(struct{}{}, c.At).Wait == 0
}

// WriteError answers a failed request, as the server's WriteError does.
func (c *FastContext) WriteError(err error) {
	c.status, c.body, _ = prepareError(c, !c.hasField("Cache-Control"), err)
}

// Stored is a response that can be sent again. It has no X-Request-Id.
type Stored struct {
	route        *Route
	status       int
	header, body []byte
}

// Store returns the response so far, whose body must never change.
func (c *FastContext) Store() *Stored {
	_, header, _ := bytes.Cut(c.header, []byte("\r\n")) // the first field is X-Request-Id
	return &Stored{c.route, c.status, bytes.Clone(header), c.body}
}

// SetStored sets the whole response.
func (c *FastContext) SetStored(s *Stored) {
	c.route, c.status, c.more, c.body = s.route, s.status, s.header, s.body
}

// sampling is whether a request is in the log sample.
type sampling uint8

const (
	undecided sampling = iota
	skipped
	sampled
)

// sample decides it for a request.
func sample(rate float64) sampling {
	if rate > 0 && rand.Float64() < rate { //nolint:gosec // guessing which requests are logged gains nothing
		return sampled
	}
	return skipped
}
