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

// FastPath answers requests from memory before the server reads them.
type FastPath struct {
	Options
	handler        func(*FastContext) bool
	addressLimiter *AddressLimiter
	// panicLog bounds the log lines about panics, and unavailableLog those of the server
	// about 503s on connections with the fast path.
	panicLog, unavailableLog *ratelimit.Limiter[struct{}]
}

// FastPath returns a fast path. Its handler answers a request, or returns false to leave it
// to the server. The handler must not block, and must not keep anything of the request.
// Requests count for the limiter that the server has.
func (o Options) FastPath(addressLimiter *AddressLimiter, handler func(*FastContext) bool) *FastPath {
	return &FastPath{Options: o, handler: handler, addressLimiter: addressLimiter, panicLog: ratelimit.New[struct{}](1, time.Minute, 1), unavailableLog: newUnavailableLog()}
}

// FastContext is a request on the fast path, and the response to it.
type FastContext struct {
	*fastpath.Context
	Scratch any // the handler's own, kept from one request to the next

	conn    *conn
	network netip.Prefix // of the client, if requests are limited by address
	route   *Route
	id      []byte
	shard   int // of the counters
}

// fastContexts numbers them, which spreads them over the shards.
var fastContexts atomic.Int64

// SetStatusCode sets the status of the response; the default is 200.
func (c *FastContext) SetStatusCode(status int) { c.Status = status }

// SetBody sets the body of the response. It must not change until the next request.
func (c *FastContext) SetBody(body []byte) { c.Body = body }

// SetBodyRaw sets the body of the response. It must never change.
func (c *FastContext) SetBodyRaw(body []byte) { c.Body = body }

// SetRoute sets the route under which the request is counted.
func (c *FastContext) SetRoute(route *Route) { c.route = route }

// ClientIP returns the address of the client, as the server finds it.
func (c *FastContext) ClientIP() netip.Addr {
	return c.conn.listener.fastPath.Proxies.ClientIPFrom(c.conn.RemoteAddr(), c.Context)
}

// IsUnavailableLogged reports whether the server would log a 503 for the request. Then it
// should be left to the server.
func (c *FastContext) IsUnavailableLogged() bool {
	return c.conn.listener.fastPath.unavailableLog.Peek(struct{}{}, c.At).Wait == 0
}

// WriteError answers a failed request, as the server's WriteError does.
func (c *FastContext) WriteError(err error) {
	c.Status, c.Body, _ = prepareError(c, !c.HasField("Cache-Control"), err)
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

// TryHandle answers a request on the fast path. It is not counted as in flight, since no
// scrape could see it. Requests that are logged or traced are left to the server.
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

// tryHandle calls the handler. If that panics, the server answers instead.
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

// Send sends responses of the fast path, and starts the timeout in which the next request
// must begin to arrive.
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
