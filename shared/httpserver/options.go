package httpserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"time"

	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/trace"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
	"github.com/veneer-skins/veneer/shared/ratelimit"
	"github.com/veneer-skins/veneer/shared/tracing"
)

// Handler answers a request or returns an error for WriteError. It must not keep rc or bytes
// of it, which are reused after it returns. ctx has the work timeout; it does not end when
// the client disconnects.
type Handler func(ctx context.Context, rc *fasthttp.RequestCtx) error

// Limits bounds what one client can take of a server. Only the limits of an address can be
// disabled: without any of the others one client could take all resources. The smallest BodiesBytes
// holds the largest upload by default, with its form. Rates above the bound of an address would limit
// nothing, as intervals between requests are computed in nanoseconds.
type Limits struct {
	ReadTimeout    time.Duration `env:"READ_TIMEOUT" envDefault:"10s" above:"0s" help:"longest time for a whole request to arrive"`
	UploadTimeout  time.Duration `env:"UPLOAD_TIMEOUT" envDefault:"60s" above:"0s" help:"longest time for a whole upload to arrive"`
	WriteTimeout   time.Duration `env:"WRITE_TIMEOUT" envDefault:"30s" above:"0s" help:"longest time for a client to read a whole response"`
	IdleTimeout    time.Duration `env:"IDLE_TIMEOUT" envDefault:"75s" above:"0s" help:"longest time that a connection stays open without a request"`
	WorkTimeout    time.Duration `env:"WORK_TIMEOUT" envDefault:"10s" above:"0s" help:"longest time to work on one request"`
	HeaderBytes    int           `env:"HEADER_BYTES" envDefault:"16384" min:"1024" help:"largest header block, in bytes"`
	MaxConnections int           `env:"MAX_CONNECTIONS" envDefault:"8192" min:"1" help:"most connections that are open at once on a listener, each of which takes 30 KiB, up to 80 KiB while a large request arrives, and up to 36 KiB more with TLS; beyond them a new one is answered with 503, or evicts the oldest of the client network (IPv4 /24, IPv6 /56) with the most, if that network has more than a 64th and more than the new one's network; until evicted ones have ended, an eighth more may be open"`
	BodiesBytes    int           `env:"BODIES_BYTES" envDefault:"67108864" min:"2097152" help:"most bytes that all request bodies of a listener take at once; bodies of up to 8 KiB take none. Several of one client network (IPv4 /24, IPv6 /56) take at most three quarters. When they are used up, the slowest body that arrives at less than 16 KiB a second is aborted with 408, and if there is none, a new one is rejected with 503"`

	AddressConnections int `env:"ADDRESS_CONNECTIONS" envDefault:"0" min:"0" max:"1000000" help:"most connections of one address that are open at once on the public listener, except of trusted proxies; those beyond are closed without a response; 0 for any number"`
	AddressRequests    int `env:"ADDRESS_REQUESTS" envDefault:"0" min:"0" max:"1000000" help:"most requests a second of one client address on the public listener; those beyond are answered with 429; 0 for any number, which is faster"`
	AddressBurst       int `env:"ADDRESS_BURST" envDefault:"100" min:"1" max:"1000000" help:"most of those requests at once, after a pause"`
}

// unavailableLogRate is how many 503s a server logs a second. The fast path's connections
// have the same again.
const unavailableLogRate = 100

func newUnavailableLog() *ratelimit.Limiter[struct{}] {
	return ratelimit.New[struct{}](unavailableLogRate, time.Second, unavailableLogRate)
}

// Options builds fasthttp servers, routes and handlers of a listener.
type Options struct {
	Listener string // name in the log and the metrics: public, edges, operators
	Log      *slog.Logger
	// LogSampleRate is the share of requests that are logged besides those that failed on the
	// server's side.
	LogSampleRate float64
	Limits        Limits
	// Proxies finds the addresses of clients.
	Proxies *clientip.Proxies
	// Tracer traces requests unless it is nil.
	Tracer *tracing.Tracer
	// DefaultHeaders, unless nil, sets the headers of all responses on those that no handler
	// writes.
	DefaultHeaders func(*fasthttp.RequestCtx)
	// ErrorFormat, unless nil, is the format of errors of the server. The fast path has the
	// standard one.
	ErrorFormat ErrorFormat
	// IsUnlimited, unless nil, reports whether the AddressLimiter does not count requests for a
	// path. It counts those that the fast path answers.
	IsUnlimited func(path []byte) bool

	unavailableLog *ratelimit.Limiter[struct{}] // bounds the log lines about 503s; each server has its own
}

// NewServer returns a server for a handler. Requests that fasthttp itself rejects are
// answered, counted and logged like all others. A panic is answered as an internal error and
// ends only its request. The handler is called when the head and the first byte of a body
// have arrived; it reads the rest with ReadBody or OpenBody, or not at all.
func (o Options) NewServer(handler fasthttp.RequestHandler) *fasthttp.Server {
	o.unavailableLog = newUnavailableLog()
	other, badRequest, connLimit := o.Route("other"), o.Route("bad_request"), o.Route("conn_limit")
	in := &instrumentation{Options: o, inFlight: requestRegistry.inFlightFor(o.Listener), budget: newBudget(o.Listener, int64(o.Limits.BodiesBytes))}
	safeHandler := recoverPanic(o.validateHead(badRequest, handler))
	return &fasthttp.Server{
		Handler: func(rc *fasthttp.RequestCtx) { in.serve(rc, rc.Time(), other, safeHandler) },
		ErrorHandler: func(rc *fasthttp.RequestCtx, err error) {
			route := badRequest
			if errors.Is(err, errTooManyConns) {
				route = connLimit
			}
			in.serve(rc, time.Now(), route, recoverPanic(func(rc *fasthttp.RequestCtx) {
				if o.DefaultHeaders != nil {
					o.DefaultHeaders(rc)
				}
				WriteError(rc, o.requestFault(err))
			}))
			if c := connOf(rc.Conn()); c != nil {
				c.lingerOnClose.Store(true) // the rest of the request is not read
			}
		},
		Concurrency:           o.Limits.MaxConnections,
		ReadBufferSize:        o.Limits.HeaderBytes,
		WriteBufferSize:       writeBuffer,
		ReadTimeout:           o.Limits.ReadTimeout,
		WriteTimeout:          o.Limits.WriteTimeout,
		IdleTimeout:           o.Limits.IdleTimeout,
		HeaderReceived:        headReceived,
		StreamRequestBody:     true,
		MaxRequestBodySize:    1, // how much of a body is read before the handler is called; the minimum
		CloseOnShutdown:       true,
		NoDefaultServerHeader: true,
		NoDefaultContentType:  true,
		SecureErrorLogMessage: true,
		Logger:                debugLogger{o.Log},
		// fasthttp would write files of large forms to disk, and parse every form a second
		// time.
		DisablePreParseMultipartForm: true,
	}
}

// recoverPanic returns a handler that answers a panic of another one with 500.
func recoverPanic(handler fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(rc *fasthttp.RequestCtx) {
		defer func() {
			if caught := recover(); caught != nil {
				// Headers that all responses have are set already, and stay.
				rc.Response.Header.Del(fasthttp.HeaderCacheControl)
				rc.Response.Header.Del(fasthttp.HeaderETag)
				WriteError(rc, fmt.Errorf("panic: %v\n%s", caught, debug.Stack()))
			}
		}()
		handler(rc)
	}
}

// requestFault returns the fault of a request that fasthttp rejects.
func (o Options) requestFault(err error) error {
	switch {
	case errors.Is(err, errTooManyConns):
		return &fault.Error{Kind: fault.Unavailable, Message: "There are too many connections at the moment. Please try again.", RetryAfter: time.Second}
	case errors.As(err, new(*fasthttp.ErrSmallBuffer)):
		return fault.New(fault.HeaderTooLarge, "The header block is larger than %d bytes.", o.Limits.HeaderBytes)
	default:
		return readFault(err)
	}
}

// readFault returns the fault of a request that could not be read.
func readFault(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return fault.New(fault.Timeout, "The request did not arrive in time.")
	}
	return fault.New(fault.Malformed, "The request is no valid HTTP.")
}

// Handle returns a fasthttp handler that calls h with the work timeout, and answers its
// error.
func (o Options) Handle(h Handler) fasthttp.RequestHandler {
	return o.HandleNoContext(func(rc *fasthttp.RequestCtx) error {
		ctx, cancel := o.RequestContext(rc)
		defer cancel()
		return h(ctx, rc)
	})
}

// RequestContext returns a context with the work timeout from now on, and with the request's
// span.
func (o Options) RequestContext(rc *fasthttp.RequestCtx) (context.Context, context.CancelFunc) {
	ctx := context.Background()
	if r := stateOf(rc); r != nil && r.span != nil {
		ctx = trace.ContextWithSpan(ctx, r.span)
	}
	return context.WithTimeout(ctx, o.Limits.WorkTimeout)
}

// HandleNoContext returns a fasthttp handler that answers h's error as Handle does, but makes
// no context, for paths where that costs too much. If such a request has to wait after all, h
// calls RequestContext.
func (o Options) HandleNoContext(h func(rc *fasthttp.RequestCtx) error) fasthttp.RequestHandler {
	return func(rc *fasthttp.RequestCtx) {
		err := h(rc)
		if err == nil {
			return
		}
		if errors.Is(err, context.DeadlineExceeded) && fault.KindOf(err) == fault.Internal {
			err = &fault.Error{Kind: fault.Unavailable, Message: "This took too long. Please try again.", RetryAfter: time.Second, Cause: err}
		}
		WriteError(rc, err)
	}
}

// debugLogger logs fasthttp's messages about single connections, which any client can cause,
// at the debug level.
type debugLogger struct{ log *slog.Logger }

func (l debugLogger) Printf(format string, args ...any) {
	l.log.Debug("connection error", "error", fmt.Sprintf(format, args...))
}
