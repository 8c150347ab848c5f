package serve

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/veneer-skins/veneer/shared/tracing"
)

// carrier has a trace go along with the header of a request.
type carrier struct{ header *fasthttp.RequestHeader }

func (c carrier) Get(key string) string { return string(c.header.Peek(key)) }
func (c carrier) Set(key, value string) { c.header.Set(key, value) }
func (c carrier) Keys() []string        { return tracing.Headers() }

// trace begins the span of a request, nil if it has none. The trace that a visitor names
// is not followed: anybody could have all requests traced.
func (d Door) trace(rc *fasthttp.RequestCtx, arrived time.Time) trace.Span {
	if d.Tracer.Follows() || d.Proxies.trusts(addressOf(rc.RemoteAddr())) {
		return d.Tracer.Begin(carrier{&rc.Request.Header}, arrived)
	}
	return d.Tracer.Begin(nil, arrived)
}

// endTrace ends the span of a request.
func (d Door) endTrace(rc *fasthttp.RequestCtx, r *record, ended time.Time) {
	if !r.span.IsRecording() {
		return
	}
	status := rc.Response.StatusCode()
	r.span.SetName(r.route.name)
	r.span.SetAttributes(
		attribute.String("request_id", string(r.id)),
		attribute.String("listener", d.Listener),
		semconv.HTTPRequestMethodKey.String(tracing.Text(string(rc.Method()))),
		semconv.URLPath(tracing.Text(string(rc.Path()))),
		semconv.HTTPResponseStatusCode(status),
	)
	if at := strings.IndexByte(r.route.name, '/'); at >= 0 { // the path, without the method
		r.span.SetAttributes(semconv.HTTPRoute(r.route.name[at:]))
	}
	for _, label := range r.route.labels {
		r.span.SetAttributes(attribute.String(label.Name, label.Value))
	}
	switch {
	case status < fasthttp.StatusInternalServerError:
	case r.cause != nil:
		tracing.Fail(r.span, r.cause)
	default: // as when it is another program's answer
		tracing.Fail(r.span, errors.New(fasthttp.StatusMessage(status)))
	}
	r.span.End(trace.WithTimestamp(ended))
}

// SendTrace has a request that is made in the course of another one name its trace:
// that of the context or, where nothing is traced, the one that a trusted proxy named.
func (p *Proxies) SendTrace(ctx context.Context, rc *fasthttp.RequestCtx, to *fasthttp.RequestHeader) {
	tracing.Send(ctx, carrier{to})
	if trace.SpanContextFromContext(ctx).IsValid() || !p.trusts(addressOf(rc.RemoteAddr())) {
		return
	}
	for _, name := range tracing.Headers() {
		if value := rc.Request.Header.Peek(name); len(value) > 0 {
			to.SetBytesV(name, value)
		}
	}
}
