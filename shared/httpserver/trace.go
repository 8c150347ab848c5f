package httpserver

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
	"github.com/veneer-skins/veneer/shared/tracing"
)

// headerCarrier carries a trace in the header of a request.
type headerCarrier struct{ header *fasthttp.RequestHeader }

func (c headerCarrier) Get(key string) string { return string(c.header.Peek(key)) }
func (c headerCarrier) Set(key, value string) { c.header.Set(key, value) }
func (c headerCarrier) Keys() []string        { return tracing.HeaderNames() }

// startSpan starts the span of a request; nil if it is not traced. A client's traceparent is
// ignored unless it comes from a trusted proxy: clients could have all their requests traced.
func (o Options) startSpan(rc *fasthttp.RequestCtx, arrived time.Time) trace.Span {
	if o.Tracer.Follows() || o.Proxies.Trusts(clientip.PeerIP(rc.RemoteAddr())) {
		return o.Tracer.StartRequest(headerCarrier{&rc.Request.Header}, arrived)
	}
	return o.Tracer.StartRequest(nil, arrived)
}

// endSpan ends the span of a request.
func (o Options) endSpan(rc *fasthttp.RequestCtx, r *requestState, ended time.Time) {
	if !r.span.IsRecording() {
		return
	}
	status := rc.Response.StatusCode()
	r.span.SetName(r.route.name)
	r.span.SetAttributes(
		attribute.String("request_id", string(r.id)),
		attribute.String("listener", o.Listener),
		semconv.HTTPRequestMethodKey.String(tracing.ValidText(string(rc.Method()))),
		semconv.URLPath(tracing.ValidText(string(rc.Path()))),
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
		tracing.SetError(r.span, r.cause)
	default: // the response of another program, for example
		tracing.SetError(r.span, errors.New(fasthttp.StatusMessage(status)))
	}
	r.span.End(trace.WithTimestamp(ended))
}

// ForwardTrace sets the traceparent of a request that is made on behalf of another one: that
// of the context or, where nothing is traced, the one from a trusted proxy.
func ForwardTrace(ctx context.Context, proxies *clientip.Proxies, rc *fasthttp.RequestCtx, to *fasthttp.RequestHeader) {
	tracing.Inject(ctx, headerCarrier{to})
	if trace.SpanContextFromContext(ctx).IsValid() || !proxies.Trusts(clientip.PeerIP(rc.RemoteAddr())) {
		return
	}
	for _, name := range tracing.HeaderNames() {
		if value := rc.Request.Header.Peek(name); len(value) > 0 {
			to.SetBytesV(name, value)
		}
	}
}
