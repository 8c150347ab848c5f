// Package tracing sends spans of some requests to an OpenTelemetry collector. Traces span all
// programs that a request passes.
//
// A request is a span, and its stages are child spans: Start starts a child of the span in
// the context. So only servers need a Tracer, and an untraced request costs little more than
// a look into its context.
package tracing

import (
	"context"
	"iter"
	"log/slog"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/veneer-skins/veneer/shared/config"
)

// Config configures tracing.
type Config struct {
	URL    string  `env:"URL" example:"http://127.0.0.1:4318" help:"OpenTelemetry collector that traces are sent to with OTLP, as in http://127.0.0.1:4318; empty: nothing is traced. The OTEL_ variables that OpenTelemetry defines set the rest: headers, certificates, attributes"`
	Sample float64 `env:"SAMPLE" envDefault:"0.01" min:"0" max:"1" help:"share of requests that are traced, from 0 to 1, unless a trusted proxy has decided that; what an edge answers on its fast path is only traced if such a proxy samples it"`
}

// scope is the instrumentation scope of the spans.
const scope = "github.com/veneer-skins/veneer"

// flushTimeout bounds the flush at the end of a program.
const flushTimeout = 3 * time.Second

// Tracer starts the spans of requests. A nil one traces nothing.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer // cached, as a look-up in provider takes a lock
	follows  bool
}

// New returns the tracer of a program, nil if no collector is set. It does not connect yet.
func New(ctx context.Context, program string, cfg Config, log *slog.Logger) (*Tracer, error) {
	if cfg.URL == "" {
		return nil, nil //nolint:nilnil // a nil Tracer traces nothing
	}
	target, ok := config.ParseURL(cfg.URL)
	if !ok || target.RawQuery != "" || target.User != nil {
		return nil, config.Errorf("URL", "is %s, but must look like http://host:port or https://host", config.QuoteRedacted(cfg.URL))
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(target.JoinPath("v1", "traces").String()))
	if err != nil {
		return nil, config.Errorf("URL", "%w", err)
	}
	res, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "veneer-"+program)),
		resource.WithHost(), resource.WithProcessPID(), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, config.Errorf("URL", "cannot be used with the OTEL_ variables: %w", err)
	}
	provider := sdk.NewTracerProvider(
		sdk.WithResource(res),
		sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(cfg.Sample))),
		sdk.WithSpanProcessor(newQueue(exporter, log)),
	)
	return &Tracer{provider: provider, tracer: provider.Tracer(scope)}, nil
}

// Close sends the queued spans, for at most flushTimeout.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	_ = t.provider.Shutdown(ctx) // the program ends anyway
}

// Provider returns the provider for instrumented libraries, nil if nothing is traced.
func (t *Tracer) Provider() trace.TracerProvider {
	if t == nil {
		return nil
	}
	return t.provider
}

// Follower returns a tracer that starts no traces, but continues the traces of its clients.
func (t *Tracer) Follower() *Tracer {
	if t == nil {
		return nil
	}
	return &Tracer{provider: t.provider, tracer: t.tracer, follows: true}
}

// Follows reports whether the tracer is a Follower.
func (t *Tracer) Follows() bool { return t.follows }

// propagator carries the trace context between programs.
var propagator propagation.TraceContext

// HeaderNames returns the names of the headers with the trace context.
func HeaderNames() []string { return propagator.Fields() }

// StartRequest starts the span of a request that arrived at a time: as a child of the span in
// header, unless that is nil, and sampled like it. The span is nil if the tracer is a
// Follower and the client does not trace the request.
func (t *Tracer) StartRequest(header propagation.TextMapCarrier, at time.Time) trace.Span {
	ctx := context.Background()
	if header != nil {
		ctx = propagator.Extract(ctx, header)
	}
	if t.follows && !trace.SpanContextFromContext(ctx).IsSampled() {
		return nil
	}
	_, span := t.tracer.Start(ctx, "request", trace.WithTimestamp(at), trace.WithSpanKind(trace.SpanKindServer))
	return span
}

// Inject writes the trace context of ctx, if any, into the header of a request.
func Inject(ctx context.Context, header propagation.TextMapCarrier) { propagator.Inject(ctx, header) }

// Start starts a child of the span in ctx, if that is sampled. It must be ended.
func Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	parent := trace.SpanFromContext(ctx)
	// Not IsRecording: a stage may outlive the span of its caller.
	if !parent.SpanContext().IsSampled() {
		return ctx, noopSpan
	}
	return parent.TracerProvider().Tracer(scope).Start(ctx, name, options...)
}

// noopSpan is the span of what is not traced.
var noopSpan trace.Span = noop.Span{}

// StartLinked starts a span for work that is shared by several spans: as a child of the first
// sampled one, with links to the others.
func StartLinked(ctx context.Context, name string, spans iter.Seq[trace.Span], options ...trace.SpanStartOption) (context.Context, trace.Span) {
	var first trace.Span
	for span := range spans {
		switch sc := span.SpanContext(); {
		case !sc.IsSampled():
		case first == nil:
			first = span
		default:
			options = append(options, trace.WithLinks(trace.Link{SpanContext: sc}))
		}
	}
	if first == nil {
		return ctx, noopSpan
	}
	return Start(trace.ContextWithSpan(ctx, first), name, options...)
}

// Record records a span that has ended already.
func Record(ctx context.Context, name string, start, end time.Time) {
	_, span := Start(ctx, name, trace.WithTimestamp(start))
	span.End(trace.WithTimestamp(end))
}

// End ends a span, with the error if there is one.
func End(span trace.Span, err *error) {
	if *err != nil && span.IsRecording() {
		SetError(span, *err)
	}
	span.End()
}

// SetError sets the status of a span to an error.
func SetError(span trace.Span, err error) { span.SetStatus(codes.Error, ValidText(err.Error())) }

// maxText bounds the texts of a client in a trace.
const maxText = 1024

// ValidText returns a text that is safe to export: a collector rejects a whole batch for one
// text that is not UTF-8.
func ValidText(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxText)], "\uFFFD")
}

// requestIDKey is the context key of the request id.
type requestIDKey struct{}

// WithRequestID returns a context with the id of its request, which names it in the logs of
// all programs.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey{}, id)
}

// RequestID returns the id of the context's request, empty if it has none.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}
