package httpserver

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/trace"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/ratelimit"
)

// requestState is what the server keeps of a request until it is answered.
type requestState struct {
	route    *Route
	cause    error       // cause of the failure, if operators must know it
	logAttrs []slog.Attr // added by the handler
	shard    int         // of the counters
	id       []byte      // request id
	span     trace.Span  // nil if nothing is traced

	instr *instrumentation // of the listener
	body  Body
}

// requestStates pools one state per request in flight. A sync.Pool keeps them per core as far
// as it can, so each core mostly counts in a shard of its own.
var requestStates = func() *sync.Pool {
	var count atomic.Int64
	return &sync.Pool{New: func() any { return &requestState{shard: int(count.Add(1) % shards)} }}
}()

// stateKey is the user value that holds a request's requestState.
type stateKey struct{}

// stateOf returns the state of a request, nil if no server of Options has it.
func stateOf(rc *fasthttp.RequestCtx) *requestState {
	r, _ := rc.UserValue(stateKey{}).(*requestState)
	return r
}

// AddLogAttr adds an attribute to the log line of a request, if it gets one. It must hold no
// secret, and be added before the handler returns.
func AddLogAttr(rc *fasthttp.RequestCtx, attr slog.Attr) {
	if r := stateOf(rc); r != nil {
		r.logAttrs = append(r.logAttrs, attr)
	}
}

// instrumentation counts, traces and logs the requests of a listener.
type instrumentation struct {
	Options
	inFlight *shardedGauge
	budget   *budget
}

// serve runs a handler for a request that arrived at a time. The request is counted under
// route unless the handler assigns another. It is logged if it failed on the server's side,
// or if it is in the sample.
func (in *instrumentation) serve(rc *fasthttp.RequestCtx, arrived time.Time, route *Route, handler fasthttp.RequestHandler) {
	r, _ := requestStates.Get().(*requestState)
	r.route, r.instr = route, in
	in.inFlight.add(r.shard, 1)
	rc.SetUserValue(stateKey{}, r)
	if in.Tracer != nil {
		r.span = in.startSpan(rc, arrived)
	}
	r.id = appendRequestID(r.id[:0], rc.Request.Header.PeekCanonical(keyRequestID))
	handler(rc)
	if r.body.stream != nil && !r.body.IsComplete() {
		rc.SetConnectionClose() // the rest of a rejected body is not waited for
	}
	// Last, so that no handler can replace it.
	rc.Response.Header.SetCanonical(keyRequestID, r.id)
	in.inFlight.add(r.shard, -1)

	status, took := rc.Response.StatusCode(), time.Since(arrived)
	r.route.counts.count(r.shard, status, took)
	if r.span != nil {
		in.endSpan(rc, r, arrived.Add(took))
	}
	decision, unavailableLog := undecided, in.unavailableLog
	if c := connOf(rc.Conn()); c != nil {
		if c.beginResponse(rc, arrived.Add(took)) {
			rc.SetConnectionClose()
		}
		c.lingerOnClose.Store(hasUnreadBody(rc, &r.body))
		if f := c.listener.fastPath; f != nil {
			unavailableLog = f.unavailableLog
		}
		decision, c.sampling = c.sampling, undecided
	}
	if decision == undecided {
		decision = sample(in.LogSampleRate)
	}
	if shouldLog(status, decision, unavailableLog) {
		in.log(rc, r, took)
	}
	rc.RemoveUserValue(stateKey{})
	r.body.release()
	clear(r.logAttrs)
	r.instr = nil
	r.route, r.cause, r.logAttrs, r.span = nil, nil, r.logAttrs[:0], nil
	requestStates.Put(r)
}

// hasUnreadBody reports whether more of a request may arrive after its response.
func hasUnreadBody(rc *fasthttp.RequestCtx, body *Body) bool {
	return rc.Request.IsBodyStream() && rc.Request.Header.ContentLength() != 0 && !body.IsComplete()
}

// shouldLog reports whether a request with this status is logged. While a dependency is down,
// or the server is overloaded, nearly all requests get 503, and a few lines tell as much as
// all.
func shouldLog(status int, decision sampling, unavailableLog *ratelimit.Limiter[struct{}]) bool {
	if status == fasthttp.StatusServiceUnavailable {
		return unavailableLog.Take(struct{}{}, time.Now()).Wait == 0
	}
	return status >= fasthttp.StatusInternalServerError || decision == sampled
}

// log writes the line of a request. It never holds a header, a query or a body, since
// passwords and tokens are there.
func (o Options) log(rc *fasthttp.RequestCtx, r *requestState, took time.Duration) {
	status, level := rc.Response.StatusCode(), slog.LevelInfo
	switch {
	case r.cause != nil && fault.KindOf(r.cause) == fault.Internal:
		level = slog.LevelError
	case status >= fasthttp.StatusInternalServerError:
		level = slog.LevelWarn
	}
	line := []slog.Attr{
		slog.String("request_id", string(r.id)),
		slog.String("listener", o.Listener),
		slog.String("method", logText(rc.Method())),
		slog.String("route", r.route.name),
		slog.String("path", logText(rc.Path())),
		slog.Int("status", status),
		slog.Float64("duration_ms", float64(took)/float64(time.Millisecond)),
		slog.Int("bytes", bodySize(rc)),
		slog.String("client", o.Proxies.ClientIP(rc).String()),
	}
	for _, label := range r.route.labels {
		line = append(line, slog.String(label.Name, label.Value))
	}
	if r.span != nil && r.span.SpanContext().IsSampled() {
		line = append(line, slog.String("trace_id", r.span.SpanContext().TraceID().String()))
	}
	line = append(line, r.logAttrs...)
	if r.cause != nil {
		line = append(line, slog.Any("error", r.cause))
	}
	o.Log.LogAttrs(context.Background(), level, "request", line...)
}

// maxLogText is the most bytes of a method and of a path in a log line. Both may be as long
// as the header block, and a client may cause a hundred lines a second.
const maxLogText = 256

// logText returns a text of the client, cut to maxLogText.
func logText(sent []byte) string {
	if len(sent) <= maxLogText {
		return string(sent)
	}
	return strings.ToValidUTF8(string(sent[:maxLogText]), "") + "…"
}

// bodySize returns the size of the response body, -1 for a stream, which has no known size.
func bodySize(rc *fasthttp.RequestCtx) int {
	switch status := rc.Response.StatusCode(); {
	case rc.IsHead(), rc.Response.SkipBody, status == fasthttp.StatusNoContent, status == fasthttp.StatusNotModified:
		return 0
	case rc.Response.IsBodyStream():
		return -1
	default:
		return len(rc.Response.Body())
	}
}
