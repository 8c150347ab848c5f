package httpserver

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/veneer-skins/veneer/shared/httpserver/fastpath"
	"github.com/veneer-skins/veneer/shared/ratelimit"
)

// FastPath answers requests out of memory in the place of a server.
type FastPath struct {
	Options
	handler        func(*FastContext) bool
	addressLimiter *AddressLimiter
	// panicLog bounds the lines about them, and refusals those of the server about 503s on
	// the connections of the fast path.
	panicLog, unavailableLog *ratelimit.Limiter[struct{}]
}

// FastPath returns a fast path on which answer responds to requests, or reports false:
// then the server does. It must wait for nothing, and keep nothing of the request. Requests
// count for the limiter that bounds the server's.
func (d Options) FastPath(addressLimiter *AddressLimiter, handler func(*FastContext) bool) *FastPath {
	return &FastPath{Options: d, handler: handler, addressLimiter: addressLimiter, panicLog: ratelimit.New[struct{}](1, time.Minute, 1), unavailableLog: newUnavailableLog()}
}

// FastContext is a request on the fast path, and the response to it.
type FastContext struct {
	*fastpath.Context
	Scratch any // the answerer's, and stays from one request to the next

	conn    *conn
	network netip.Prefix // that it counts for, where requests are limited by address
	route   *Route
	id      []byte
	shard   int // where it is counted
}

// fastContexts counts them. As records do, they count in shards of their own.
var fastContexts atomic.Int64

// SetStatusCode sets the status of the response, of which the default is 200.
func (c *FastContext) SetStatusCode(status int) { c.Status = status }

// SetBody sets the body of the response. It must stay as it is until the next request.
func (c *FastContext) SetBody(body []byte) { c.Body = body }

// SetBodyRaw sets the body of the response. It must never change.
func (c *FastContext) SetBodyRaw(body []byte) { c.Body = body }

// SetRoute says which route the request is counted under.
func (c *FastContext) SetRoute(route *Route) { c.route = route }

// ClientIP returns the address of the client, as the server finds it.
func (c *FastContext) ClientIP() netip.Addr {
	return c.conn.listener.fastPath.Proxies.clientIP(c.conn.RemoteAddr(), c.Context)
}

// IsUnavailableLogged reports whether the server would log that it answers the request with
// 503. Then that should be left to it.
func (c *FastContext) IsUnavailableLogged() bool {
	return c.conn.listener.fastPath.unavailableLog.Peek(struct{}{}, c.At).Wait == 0
}

// WriteError answers a request that failed, as the server's Refuse does.
func (c *FastContext) WriteError(err error) {
	c.Status, c.Body, _ = prepareError(c, !c.HasField("Cache-Control"), err)
}

// sampling says whether chance wants a request logged.
type sampling uint8

const (
	undecided sampling = iota
	skipped
	sampled
)

// sample decides it for a request.
func sample(rate float64) sampling {
	if rate > 0 && rand.Float64() < rate { //nolint:gosec // to guess which requests are logged gains nothing
		return sampled
	}
	return skipped
}

// TryHandle answers a request on the fast path. It is not counted as in flight: nothing could
// see it. Lines of the log are the server's, and so are traces.
func (c *conn) TryHandle(p *fastpath.Context) bool {
	f := c.listener.fastPath
	if c.listener.draining.Load() || p.Traced && f.Tracer != nil {
		return false
	}
	if c.sampling = sample(f.LogSampleRate); c.sampling == sampled {
		return false
	}
	ctx, _ := p.UserData.(*FastContext)
	if ctx == nil {
		ctx = &FastContext{Context: p, shard: int(fastContexts.Add(1) % shards)}
		p.UserData = ctx
	}
	ctx.conn = c
	if !f.addressLimiter.allow(ctx) {
		return false
	}
	ctx.id = appendRequestID(ctx.id[:0], p.RequestID)
	p.SetCanonical(keyRequestID, ctx.id)
	if !f.tryHandle(ctx) {
		f.addressLimiter.refund(ctx)
		return false
	}
	c.sampling = undecided
	took := time.Since(p.At)
	p.At = p.At.Add(took)
	ctx.route.counts.count(ctx.shard, p.Status, took)
	return true
}

// tryHandle has a request answered. Should that panic, the server answers instead.
func (f *FastPath) tryHandle(ctx *FastContext) (answered bool) {
	defer func() {
		if caught := recover(); caught != nil {
			answered = false
			if f.panicLog.Take(struct{}{}, ctx.At).Wait == 0 {
				f.Log.Error("panic on the fast path", "panic", fmt.Sprint(caught), "stack", string(debug.Stack()))
			}
		}
	}()
	return f.handler(ctx)
}

// Send sends responses of the fast path, and begins the time in which the next request must
// begin to arrive.
func (c *conn) Send(ready time.Time, responses, body []byte) (sent time.Time, err error) {
	c.readyAt, c.isLarge = ready.Sub(c.opened), len(body) > 0 && c.listener.tls == nil
	c.writeDeadline.markDue()
	_, err = c.plaintext.Write(responses)
	if err == nil && len(body) > 0 {
		_, err = c.plaintext.Write(body)
	}
	sent = time.Now()
	c.readDeadline.markDue()
	c.writeDeadline.markDue()
	if err == nil {
		err = c.readDeadline.arm(c.opened, sent.Sub(c.opened), c.listener.idleTimeout)
	}
	return sent, err
}
