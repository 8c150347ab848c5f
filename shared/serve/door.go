package serve

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
	"github.com/veneer-skins/veneer/shared/limit"
	"github.com/veneer-skins/veneer/shared/tracing"
)

// Handler answers a request or says why not. What it hands on must not keep rc
// nor bytes taken from it: both are used again once it returns. ctx bounds the
// work; it does not end when the client goes away.
type Handler func(ctx context.Context, rc *fasthttp.RequestCtx) error

// Limits bounds what one client can take of a server.
type Limits struct {
	ReadTimeout    time.Duration `env:"READ_TIMEOUT" envDefault:"10s" help:"longest time in which a whole request must arrive"`
	UploadTimeout  time.Duration `env:"UPLOAD_TIMEOUT" envDefault:"60s" help:"longest time in which a whole upload must arrive"`
	WriteTimeout   time.Duration `env:"WRITE_TIMEOUT" envDefault:"30s" help:"longest time in which a whole answer must be taken"`
	IdleTimeout    time.Duration `env:"IDLE_TIMEOUT" envDefault:"75s" help:"longest time a connection stays open without a request"`
	WorkTimeout    time.Duration `env:"WORK_TIMEOUT" envDefault:"10s" help:"longest time to work on one request"`
	HeaderBytes    int           `env:"HEADER_BYTES" envDefault:"16384" help:"largest header block, in bytes"`
	MaxConnections int           `env:"MAX_CONNECTIONS" envDefault:"8192" help:"most connections that are open at once on a listener, each of which takes 30 KiB, up to 80 KiB while a large request arrives, and up to 36 KiB more with TLS; beyond them a new one is answered with 503, or takes the place of the oldest of the client network (IPv4 /24, IPv6 /56) that has the most, if that has more than a 64th and more than the new one's network; until evicted ones have ended, an eighth more are open"`
	BodiesBytes    int           `env:"BODIES_BYTES" envDefault:"67108864" help:"most bytes that all request bodies of a listener take at once; bodies of up to 8 KiB take none. Several of one client network (IPv4 /24, IPv6 /56) take at most three quarters. When they are used up, the slowest body that arrives with less than 16 KiB a second is ended with 408, and if there is none, a new one is refused with 503"`

	AddressConnections int `env:"ADDRESS_CONNECTIONS" envDefault:"0" help:"most connections of one address that are open at once on the public listener, trusted proxies left out; those beyond are closed unanswered; 0 for any number"`
	AddressRequests    int `env:"ADDRESS_REQUESTS" envDefault:"0" help:"most requests a second of one client address on the public listener; those beyond are answered 429; 0, the faster, for any number"`
	AddressBurst       int `env:"ADDRESS_BURST" envDefault:"100" help:"most of those requests at once, after a pause"`
}

// leastBodies is the least budget of bodies, the largest upload by default and its form.
const leastBodies = 2 << 20

// mostTimes bounds limits of an address, far beyond any that limits: times between
// requests are reckoned in nanoseconds.
const mostTimes = 1_000_000

// Check returns an error that names a limit which makes no sense. Only those of one
// address can be switched off: without another one client could take everything.
func (l Limits) Check() error {
	for name, value := range map[string]time.Duration{
		"READ_TIMEOUT": l.ReadTimeout, "UPLOAD_TIMEOUT": l.UploadTimeout, "WRITE_TIMEOUT": l.WriteTimeout,
		"IDLE_TIMEOUT": l.IdleTimeout, "WORK_TIMEOUT": l.WorkTimeout,
	} {
		if value <= 0 {
			return fmt.Errorf("%s is %s, but must be longer than 0", name, value)
		}
	}
	if l.HeaderBytes < 1024 {
		return fmt.Errorf("HEADER_BYTES is %d, but must be at least 1024", l.HeaderBytes)
	}
	if l.BodiesBytes < leastBodies {
		return fmt.Errorf("BODIES_BYTES is %d, but must be at least %d", l.BodiesBytes, leastBodies)
	}
	if l.MaxConnections < 1 {
		return fmt.Errorf("MAX_CONNECTIONS is %d, but must be at least 1", l.MaxConnections)
	}
	for name, value := range map[string]int{
		"ADDRESS_CONNECTIONS": l.AddressConnections, "ADDRESS_REQUESTS": l.AddressRequests, "ADDRESS_BURST": l.AddressBurst,
	} {
		if value < 0 || value > mostTimes {
			return fmt.Errorf("%s is %d, but must be 0 to %d", name, value, mostTimes)
		}
	}
	if l.AddressRequests > 0 && l.AddressBurst < 1 {
		return fmt.Errorf("ADDRESS_BURST is %d, but must be at least 1", l.AddressBurst)
	}
	return nil
}

// refusalsLogged is how many requests answered with 503 a server logs a second, and its fast
// path as many.
const refusalsLogged = 100

func limitRefusals() *limit.Limiter[struct{}] {
	return limit.New[struct{}](refusalsLogged, time.Second, refusalsLogged)
}

// Door makes fasthttp servers and handlers out of handlers that return errors.
type Door struct {
	Listener string // its name in the log and the metrics: public, edges, operators
	Log      *slog.Logger
	// Sample is the share of requests that are logged besides those that fail
	// through no fault of the client's.
	Sample float64
	Limits Limits
	// Proxies finds the addresses of clients.
	Proxies *Proxies
	// Tracer, unless nil, has requests traced.
	Tracer *tracing.Tracer
	// Mark, unless nil, sets the headers that every answer has on those to requests that
	// are not read, which reach no handler.
	Mark func(*fasthttp.RequestCtx)

	refusals *limit.Limiter[struct{}] // of the lines about 503s; each server has its own
}

// Server returns a server for a handler. Requests that fasthttp itself refuses are
// answered, counted and logged like all others. A panic is answered as an internal
// error and ends nothing else. The handler is called when the head and the first byte of
// a body have arrived; it reads the rest by ReadBody or OpenBody, or leaves it alone.
func (d Door) Server(handler fasthttp.RequestHandler) *fasthttp.Server {
	d.refusals = limitRefusals()
	other, unreadable, connLimit := d.Route("other"), d.Route("unreadable"), d.Route("conn_limit")
	o := &observer{Door: d, inFlight: counted.at(d.Listener), budget: newBudget(d.Listener, int64(d.Limits.BodiesBytes))}
	survived := survive(d.validated(unreadable, handler))
	return &fasthttp.Server{
		Handler: func(rc *fasthttp.RequestCtx) { o.observe(rc, rc.Time(), other, survived) },
		ErrorHandler: func(rc *fasthttp.RequestCtx, err error) {
			route := unreadable
			if errors.Is(err, errTooManyConns) {
				route = connLimit
			}
			o.observe(rc, time.Now(), route, survive(func(rc *fasthttp.RequestCtx) {
				if d.Mark != nil {
					d.Mark(rc)
				}
				Refuse(rc, d.unreadable(err))
			}))
			if c := connOf(rc.Conn()); c != nil {
				c.lingers.Store(true) // what follows is not read
			}
		},
		Concurrency:           d.Limits.MaxConnections,
		ReadBufferSize:        d.Limits.HeaderBytes,
		WriteBufferSize:       writeBuffer,
		ReadTimeout:           d.Limits.ReadTimeout,
		WriteTimeout:          d.Limits.WriteTimeout,
		IdleTimeout:           d.Limits.IdleTimeout,
		HeaderReceived:        headReceived,
		StreamRequestBody:     true,
		MaxRequestBodySize:    1, // so much of a body is read before the handler is called, the least there is
		CloseOnShutdown:       true,
		NoDefaultServerHeader: true,
		NoDefaultContentType:  true,
		SecureErrorLogMessage: true,
		Logger:                quiet{d.Log},
		// fasthttp would write files of large forms to disk, and every form anew.
		DisablePreParseMultipartForm: true,
	}
}

// survive returns a handler that answers where another one panics.
func survive(handler fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(rc *fasthttp.RequestCtx) {
		defer func() {
			if caught := recover(); caught != nil {
				// What every answer has, set already, stays.
				rc.Response.Header.Del(fasthttp.HeaderCacheControl)
				rc.Response.Header.Del(fasthttp.HeaderETag)
				Refuse(rc, fmt.Errorf("panic: %v\n%s", caught, debug.Stack()))
			}
		}()
		handler(rc)
	}
}

// unreadable returns the fault of a request that has no handler.
func (d Door) unreadable(err error) error {
	switch {
	case errors.Is(err, errTooManyConns):
		return &fault.Error{Kind: fault.Unavailable, Message: "There are too many connections at the moment. Please try again.", RetryAfter: time.Second}
	case errors.As(err, new(*fasthttp.ErrSmallBuffer)):
		return fault.New(fault.HeaderTooLarge, "The header block is larger than %d bytes.", d.Limits.HeaderBytes)
	default:
		return unread(err)
	}
}

// unread returns the fault of a request that could not be read.
func unread(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return fault.New(fault.Timeout, "The request did not arrive in time.")
	}
	return fault.New(fault.Malformed, "The request is no valid HTTP.")
}

// Handle returns a fasthttp handler that gives h a bounded time and answers its
// error.
func (d Door) Handle(h Handler) fasthttp.RequestHandler {
	return d.Guard(func(rc *fasthttp.RequestCtx) error {
		ctx, cancel := d.Bound(rc)
		defer cancel()
		return h(ctx, rc)
	})
}

// Bound returns a context that bounds the work on a request, as from now, and is a part
// of its trace.
func (d Door) Bound(rc *fasthttp.RequestCtx) (context.Context, context.CancelFunc) {
	ctx := context.Background()
	if r := recordOf(rc); r != nil && r.span != nil {
		ctx = trace.ContextWithSpan(ctx, r.span)
	}
	return context.WithTimeout(ctx, d.Limits.WorkTimeout)
}

// Guard returns a fasthttp handler that answers h's error, as Handle does, but
// makes no context: for paths where that would cost too much. Should such a
// request have to wait for something after all, Bound bounds that.
func (d Door) Guard(h func(rc *fasthttp.RequestCtx) error) fasthttp.RequestHandler {
	return func(rc *fasthttp.RequestCtx) {
		err := h(rc)
		if err == nil {
			return
		}
		if errors.Is(err, context.DeadlineExceeded) && fault.KindOf(err) == fault.Internal {
			err = &fault.Error{Kind: fault.Unavailable, Message: "This took too long. Please try again.", RetryAfter: time.Second, Cause: err}
		}
		Refuse(rc, err)
	}
}

// quiet gives fasthttp's complaints about single connections, which any client
// can cause, to the log's lowest level.
type quiet struct{ log *slog.Logger }

func (q quiet) Printf(format string, args ...any) {
	q.log.Debug("connection trouble", "error", fmt.Sprintf(format, args...))
}
