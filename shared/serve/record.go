package serve

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
	"github.com/veneer-skins/veneer/shared/limit"
)

// record is what is noted of a request while it is answered.
type record struct {
	route *Route
	cause error       // why it failed, if that is for operators to know
	notes []slog.Attr // what its handler wants to be logged
	shard int         // where it is counted
	id    []byte      // names it in the logs
	span  trace.Span  // nil if nothing is traced

	observer *observer // of its listener
	body     Body
}

// records are kept to be used again: there is one for every request. Each core
// keeps its own, as far as it can, and so counts in a shard of its own.
var records = func() *sync.Pool {
	var made atomic.Int64
	return &sync.Pool{New: func() any { return &record{shard: int(made.Add(1) % shards)} }}
}()

// recordKey is the user value under which a request has its record.
type recordKey struct{}

// recordOf returns the record of a request, nil if no Door's server has it.
func recordOf(rc *fasthttp.RequestCtx) *record {
	r, _ := rc.UserValue(recordKey{}).(*record)
	return r
}

// Note adds to what is logged of a request, if it is. It must be nothing secret,
// and noted before the handler returns.
func Note(rc *fasthttp.RequestCtx, attr slog.Attr) {
	if r := recordOf(rc); r != nil {
		r.notes = append(r.notes, attr)
	}
}

// observer sees to it that the requests of a listener are counted and logged.
type observer struct {
	Door
	inFlight *gauge
	budget   *budget
}

// observe has a request answered that arrived at a time, and which is of the route
// until another one claims it. Afterwards it is counted, and logged if it failed
// through no fault of the client's, or if chance wants it.
func (o *observer) observe(rc *fasthttp.RequestCtx, arrived time.Time, route *Route, answer fasthttp.RequestHandler) {
	r, _ := records.Get().(*record)
	r.route, r.observer = route, o
	o.inFlight.add(r.shard, 1)
	rc.SetUserValue(recordKey{}, r)
	if o.Tracer != nil {
		r.span = o.trace(rc, arrived)
	}
	r.id = appendRequestID(r.id[:0], rc.Request.Header.PeekCanonical(keyRequestID))
	answer(rc)
	if r.body.stream != nil && !r.body.IsWhole() {
		rc.SetConnectionClose() // what is left of a body that was refused is not waited for
	}
	// Last, so that nothing that an answer is made of can replace it.
	rc.Response.Header.SetCanonical(keyRequestID, r.id)
	o.inFlight.add(r.shard, -1)

	status, took := rc.Response.StatusCode(), time.Since(arrived)
	r.route.counts.count(r.shard, status, took)
	if r.span != nil {
		o.endTrace(rc, r, arrived.Add(took))
	}
	chance, refusals := undecided, o.refusals
	if c := connOf(rc.Conn()); c != nil {
		if c.answer(rc, arrived.Add(took)) {
			rc.SetConnectionClose()
		}
		c.lingers.Store(isUnread(rc, &r.body))
		if f := c.keeper.fastPath; f != nil {
			refusals = f.refusals
		}
		chance, c.sampling = c.sampling, undecided
	}
	if chance == undecided {
		chance = sample(o.Sample)
	}
	if isNews(status, chance, refusals) {
		o.log(rc, r, took)
	}
	rc.RemoveUserValue(recordKey{})
	r.body.release()
	clear(r.notes)
	r.observer = nil
	r.route, r.cause, r.notes, r.span = nil, nil, r.notes[:0], nil
	records.Put(r)
}

// isUnread reports whether a request may have more to arrive when it has been answered.
func isUnread(rc *fasthttp.RequestCtx, body *Body) bool {
	return rc.Request.IsBodyStream() && rc.Request.Header.ContentLength() != 0 && !body.IsWhole()
}

// isNews reports whether a request with this status is logged. When a dependency is
// away, or more is asked for than can be done, nearly all have the same status, and a
// few lines tell as much as all.
func isNews(status int, chance sampling, refusals *limit.Limiter[struct{}]) bool {
	if status == fasthttp.StatusServiceUnavailable {
		return refusals.Take(struct{}{}, time.Now()).Wait == 0
	}
	return status >= fasthttp.StatusInternalServerError || chance == sampled
}

// log writes the one line about a request. It never holds a header, a query or a
// body: passwords and tokens are there.
func (d Door) log(rc *fasthttp.RequestCtx, r *record, took time.Duration) {
	status, level := rc.Response.StatusCode(), slog.LevelInfo
	switch {
	case r.cause != nil && fault.KindOf(r.cause) == fault.Internal:
		level = slog.LevelError
	case status >= fasthttp.StatusInternalServerError:
		level = slog.LevelWarn
	}
	line := []slog.Attr{
		slog.String("request_id", string(r.id)),
		slog.String("listener", d.Listener),
		slog.String("method", logText(rc.Method())),
		slog.String("route", r.route.name),
		slog.String("path", logText(rc.Path())),
		slog.Int("status", status),
		slog.Float64("duration_ms", float64(took)/float64(time.Millisecond)),
		slog.Int("bytes", bytesOf(rc)),
		slog.String("client", d.Proxies.Client(rc).String()),
	}
	for _, label := range r.route.labels {
		line = append(line, slog.String(label.Name, label.Value))
	}
	if r.span != nil && r.span.SpanContext().IsSampled() {
		line = append(line, slog.String("trace_id", r.span.SpanContext().TraceID().String()))
	}
	line = append(line, r.notes...)
	if r.cause != nil {
		line = append(line, slog.Any("error", r.cause))
	}
	d.Log.LogAttrs(context.Background(), level, "request", line...)
}

// mostLogged is the most bytes of a method and of a path in a line of the log. Both may be
// as long as the header block, and a client may cause a hundred lines a second.
const mostLogged = 256

// logText returns what a client has sent as far as it is logged.
func logText(sent []byte) string {
	if len(sent) <= mostLogged {
		return string(sent)
	}
	return strings.ToValidUTF8(string(sent[:mostLogged]), "") + "…"
}

// bytesOf returns the size of the body that a request is answered with, -1 for a
// stream, of which nobody knows yet.
func bytesOf(rc *fasthttp.RequestCtx) int {
	switch status := rc.Response.StatusCode(); {
	case rc.IsHead(), rc.Response.SkipBody, status == fasthttp.StatusNoContent, status == fasthttp.StatusNotModified:
		return 0
	case rc.Response.IsBodyStream():
		return -1
	default:
		return len(rc.Response.Body())
	}
}
