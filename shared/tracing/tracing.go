// Package tracing tells an OpenTelemetry collector where the time of some requests
// went, in all programs that they passed.
//
// A request is a span, and its stages are spans within: Start begins one of whatever
// its context is a part of. So only whoever answers requests needs a Tracer, and what
// is done for a request that is not traced costs hardly more than a look into its context.
package tracing

import (
	"context"
	"fmt"
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

// Config says what is traced, and who is told.
type Config struct {
	URL    string  `env:"URL" example:"http://127.0.0.1:4318" help:"OpenTelemetry collector that traces are sent to with OTLP, as in http://127.0.0.1:4318; empty: nothing is traced. The OTEL_ variables that OpenTelemetry defines say the rest: headers, certificates, attributes"`
	Sample float64 `env:"SAMPLE" envDefault:"0.01" help:"share of requests that are traced, from 0 to 1, where no trusted proxy has decided that; what an edge answers out of memory before its server sees it is only traced if such a proxy wants it"`
}

// scope names what makes the spans.
const scope = "github.com/veneer-skins/veneer"

// flushTimeout bounds how long a program that ends waits for the collector.
const flushTimeout = 3 * time.Second

// Tracer begins the spans of requests. A nil one traces nothing.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer // of provider, which locks to find it
	follows  bool
}

// New returns the tracer of a program, nil if there is no collector. It reaches
// nothing yet.
func New(ctx context.Context, program string, cfg Config, log *slog.Logger) (*Tracer, error) {
	if ok := 0 <= cfg.Sample && cfg.Sample <= 1; !ok {
		return nil, fmt.Errorf("SAMPLE is %v, but must be from 0 to 1", cfg.Sample)
	}
	if cfg.URL == "" {
		return nil, nil //nolint:nilnil // a nil Tracer is one
	}
	target, ok := config.ParseURL(cfg.URL)
	if !ok || target.RawQuery != "" || target.User != nil {
		return nil, fmt.Errorf("URL is %s, but must look like http://host:port or https://host", config.QuoteRedacted(cfg.URL))
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(target.JoinPath("v1", "traces").String()))
	if err != nil {
		return nil, fmt.Errorf("URL: %w", err)
	}
	res, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "veneer-"+program)),
		resource.WithHost(), resource.WithProcessPID(), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("URL cannot be used with the OTEL_ variables: %w", err)
	}
	provider := sdk.NewTracerProvider(
		sdk.WithResource(res),
		sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(cfg.Sample))),
		sdk.WithSpanProcessor(newQueue(exporter, log)),
	)
	return &Tracer{provider: provider, tracer: provider.Tracer(scope)}, nil
}

// Close sends what is still to be sent, if the collector takes it soon.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	_ = t.provider.Shutdown(ctx) // whoever ends can do no more about it
}

// Provider returns what libraries make spans with, nil if nothing is traced.
func (t *Tracer) Provider() trace.TracerProvider {
	if t == nil {
		return nil
	}
	return t.provider
}

// Follower returns a tracer that begins no traces, and follows those of whoever asks.
func (t *Tracer) Follower() *Tracer {
	if t == nil {
		return nil
	}
	return &Tracer{provider: t.provider, tracer: t.tracer, follows: true}
}

// Follows reports whether the tracer is a Follower.
func (t *Tracer) Follows() bool { return t.follows }

// propagator is how a request tells the next program of which trace it is a part.
var propagator propagation.TraceContext

// HeaderNames returns the names of the headers that do.
func HeaderNames() []string { return propagator.Fields() }

// StartRequest begins the span of a request that has arrived at a time: as a part of the trace
// that its header names, if that is given, and chosen as there. The span is nil if the
// tracer only follows and there is nothing to follow.
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

// Inject writes into the header of a request of which trace it is a part, if any.
func Inject(ctx context.Context, header propagation.TextMapCarrier) { propagator.Inject(ctx, header) }

// Start begins a stage of whatever the context is a part of, if that is traced. It must
// be ended.
func Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	parent := trace.SpanFromContext(ctx)
	// Not IsRecording: a stage may outlive who asked for it.
	if !parent.SpanContext().IsSampled() {
		return ctx, noopSpan
	}
	return parent.TracerProvider().Tracer(scope).Start(ctx, name, options...)
}

// noopSpan is the span of what is not traced.
var noopSpan trace.Span = noop.Span{}

// StartLinked begins a stage that is done once for many: of the first of them that is
// traced, with links to the others.
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

// Record tells of a stage that is over.
func Record(ctx context.Context, name string, start, end time.Time) {
	_, span := Start(ctx, name, trace.WithTimestamp(start))
	span.End(trace.WithTimestamp(end))
}

// End ends a stage that came to nothing if there is an error.
func End(span trace.Span, err *error) {
	if *err != nil && span.IsRecording() {
		SetError(span, *err)
	}
	span.End()
}

// SetError says that what a span is about failed.
func SetError(span trace.Span, err error) { span.SetStatus(codes.Error, ValidText(err.Error())) }

// maxText bounds what a client can put into a trace.
const maxText = 1024

// ValidText returns a text as it can be told: a collector takes a batch with all texts of
// UTF-8 or not at all.
func ValidText(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxText)], "\uFFFD")
}

// requestIDKey is the key of the name of the request that a context belongs to.
type requestIDKey struct{}

// WithRequestID returns a context that knows the id of the request it belongs to, which
// names it in the logs of all programs.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey{}, id)
}

// RequestID returns that id, empty if none is known.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}
