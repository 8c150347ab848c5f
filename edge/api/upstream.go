package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/trace"

	"github.com/veneer-skins/veneer/shared/breaker"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
	"github.com/veneer-skins/veneer/shared/ratelimit"
	"github.com/veneer-skins/veneer/shared/tlsreload"
	"github.com/veneer-skins/veneer/shared/tracing"
)

const (
	headerRequestID = "X-Request-ID"
	// maxResponseBytes bounds a response of core, which is held in memory.
	maxResponseBytes = 16 << 20
	// maxConns is how many requests may wait for core at once, besides those with a body that
	// is streamed. One client network has at most half of them.
	maxConns     = 1024
	networkConns = maxConns / 2
	// streamBytes is the share of a streamed body in the budget of bodies: its first 8 KiB, the
	// buffers of a connection to core, 20 KiB, and the kernel's buffers of both connections.
	streamBytes = 64 << 10
)

// hopByHop are the headers of one connection (RFC 9110, section 7.6.1), beside those that a
// Connection header names. Expect is among them because the edge has answered it before it
// forwards the request.
var hopByHop = []string{
	fasthttp.HeaderConnection, "Keep-Alive", "Proxy-Connection", fasthttp.HeaderProxyAuthenticate, fasthttp.HeaderProxyAuthorization,
	fasthttp.HeaderTE, fasthttp.HeaderTrailer, fasthttp.HeaderTransferEncoding, fasthttp.HeaderUpgrade, fasthttp.HeaderExpect,
}

// The headers of clients' requests and of core's responses that are not forwarded.
var (
	keptFromCore = newHeaderSet(hopByHop, tracing.HeaderNames(), []string{
		fasthttp.HeaderHost, clientip.HeaderForwardedHost, fasthttp.HeaderXForwardedFor, fasthttp.HeaderForwarded, headerRequestID,
	})
	keptFromClients = newHeaderSet(hopByHop, []string{headerRequestID})
)

// headerSet holds names of headers as fasthttp writes them, in which X-Request-ID is X-Request-Id.
type headerSet map[string]struct{}

func newHeaderSet(lists ...[]string) headerSet {
	set := headerSet{}
	for _, name := range slices.Concat(lists...) {
		set[http.CanonicalHeaderKey(name)] = struct{}{}
	}
	return set
}

// upstream is core's public listener, to which /api and /console are forwarded.
type upstream struct {
	scheme, host string
	client       *fasthttp.HostClient
	breaker      *breaker.Breaker
	opts         httpserver.Options
	// conns and networks bound the requests without a streamed body: all of them, and the
	// requests of a client network.
	conns    chan struct{}
	networks *ratelimit.Semaphore[netip.Prefix]
}

// dependency is the name of core's public listener in faults and metrics.
const dependency = "API"

// newUpstream returns the configured upstream, nil if there is none.
func newUpstream(cfg Config, opts httpserver.Options) (*upstream, error) {
	if cfg.APIUpstream == "" {
		return nil, nil //nolint:nilnil // see above
	}
	target, ok := config.ParseURL(cfg.APIUpstream)
	if !ok || strings.Trim(target.Path, "/") != "" || target.RawQuery != "" {
		return nil, config.Errorf("API_UPSTREAM", "is %s, but must look like http://host:port or https://host", config.QuoteRedacted(cfg.APIUpstream))
	}
	verified, err := tlsreload.ClientConfig(cfg.APICA)
	if err != nil {
		return nil, config.Errorf("API_CA", "%w", err)
	}
	verified.ServerName = target.Hostname()
	isTLS := target.Scheme == "https"
	client := &fasthttp.HostClient{
		Addr:      fasthttp.AddMissingPort(target.Host, isTLS),
		Dial:      (&fasthttp.TCPDialer{}).DialDualStack,
		IsTLS:     isTLS,
		TLSConfig: verified,
		// Streamed bodies have connections of their own, as many as the budget allows.
		MaxConns:                 maxConns + opts.Limits.BodiesBytes/streamBytes,
		MaxIdleConnDuration:      30 * time.Second, // less than core's idle timeout
		MaxConnWaitTimeout:       time.Second,      // an aborted body holds its connection a little longer
		MaxResponseBodySize:      maxResponseBytes,
		ReadBufferSize:           16 << 10,
		NoDefaultUserAgentHeader: true,
		DisablePathNormalizing:   true,
		Transport:                transport{opts.Limits},
		// Core may close an idle connection just as it is used again. Only GET and HEAD are
		// sent again; all others are for the client to repeat.
		MaxIdemponentCallAttempts: 2,
		RetryIfErr: func(request *fasthttp.Request, _ int, _ error) (resetTimeout, retry bool) {
			return false, request.Header.IsGet() || request.Header.IsHead()
		},
	}
	return &upstream{
		scheme: target.Scheme, host: target.Host, client: client, breaker: breaker.New(dependency), opts: opts,
		conns: make(chan struct{}, maxConns), networks: ratelimit.NewSemaphore[netip.Prefix](networkConns),
	}, nil
}

// forward forwards a request, as one for a path and query, and returns the response, both otherwise unchanged but for
// the headers of the connections, and for the host: the client's is in X-Forwarded-Host. Bodies of
// more than 8 KiB are streamed. Smaller ones are read first, so that they occupy no connection to
// core while they arrive.
func (u *upstream) forward(rc *fasthttp.RequestCtx, target []byte) error {
	body, err := httpserver.OpenBody(rc, 0)
	if err == nil && body != nil {
		var whole bool
		whole, err = body.ReadSmall(rc)
		if whole {
			body = nil
		} else if err == nil {
			err = body.Stream(streamBytes, u.opts.Limits.UploadTimeout)
		}
	}
	if err != nil {
		setAPIDefaultHeaders(rc)
		return err
	}
	ctx, cancel := u.opts.RequestContext(rc)
	defer cancel()
	if body == nil { // the budget bounds the streamed ones
		release, err := u.acquire(ctx, clientip.Network(u.opts.Proxies.ClientIP(rc)))
		if err != nil {
			setAPIDefaultHeaders(rc)
			return err
		}
		defer release()
	} else if err := u.probe(ctx); err != nil {
		setAPIDefaultHeaders(rc)
		return err
	}
	return u.exchange(ctx, rc, target, body)
}

// acquire waits until another request of a client network may be sent to core. The caller
// calls release after it.
func (u *upstream) acquire(ctx context.Context, network netip.Prefix) (release func(), err error) {
	releaseNetwork, err := u.networks.Acquire(ctx, network)
	if err != nil {
		return nil, fmt.Errorf("wait for other requests of the network: %w", err)
	}
	select {
	case u.conns <- struct{}{}:
		return func() { <-u.conns; releaseNetwork() }, nil
	case <-ctx.Done():
		releaseNetwork()
		return nil, fmt.Errorf("wait for other requests: %w", ctx.Err())
	}
}

// probe sends a small request if the breaker is open. A streamed body must not be the request
// that decides whether the breaker closes: it may take UPLOAD_TIMEOUT, and all other requests
// would be rejected for as long.
func (u *upstream) probe(ctx context.Context) error {
	if !u.breaker.IsOpen() {
		return nil
	}
	deadline, _ := ctx.Deadline()
	return u.breaker.Call(func() error {
		if _, _, err := u.client.GetDeadline(nil, u.scheme+"://"+u.host+"/api", deadline); err != nil {
			return fault.NewUnavailable(dependency, err)
		}
		return nil
	})
}

// exchange sends a request for a path and query to core and responds with its response. body is the streamed body,
// nil if rc has the body.
func (u *upstream) exchange(ctx context.Context, rc *fasthttp.RequestCtx, target []byte, body *httpserver.Body) (err error) {
	ctx, span := tracing.Start(ctx, "forward", trace.WithSpanKind(trace.SpanKindClient))
	defer tracing.End(span, &err)
	deadline, ok := ctx.Deadline()
	if !ok {
		return errors.New("BUG: a request is passed on without a deadline")
	}
	id := httpserver.RequestID(rc)

	request := fasthttp.AcquireRequest()
	defer fasthttp.ReleaseRequest(request)
	request.Header.SetMethodBytes(rc.Method())
	request.SetRequestURIBytes(target)
	request.URI().SetScheme(u.scheme)
	request.URI().SetHost(u.host)
	request.Header.SetNoDefaultContentType(true)
	copyHeader(&request.Header, &rc.Request.Header, keptFromCore)
	request.Header.SetHost(u.host)
	request.Header.Set(fasthttp.HeaderXForwardedFor, u.opts.Proxies.ClientIP(rc).String())
	request.Header.Set(clientip.HeaderForwardedHost, u.opts.Proxies.RequestedHost(rc))
	request.Header.Set(headerRequestID, id)
	httpserver.ForwardTrace(ctx, u.opts.Proxies, rc, &request.Header)
	if body != nil {
		request.SetBodyStream(body, body.Size())
		deadline = deadline.Add(u.opts.Limits.UploadTimeout)
	} else {
		request.SetBodyRaw(rc.Request.Body())
	}

	response := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(response)
	err = u.breaker.Call(func() error {
		switch err := u.client.DoDeadline(request, response, deadline); {
		case errors.Is(err, breaker.ErrNotAttempted):
			return err
		case errors.Is(err, fasthttp.ErrNoFreeConns):
			return fault.NewUnavailable(dependency, errors.Join(err, breaker.ErrNotAttempted))
		case errors.Is(err, fasthttp.ErrBodyTooLarge):
			return err // core has responded, so the breaker counts no failure
		case err != nil:
			return fault.NewUnavailable(dependency, err)
		default:
			return nil // whatever the status
		}
	})
	if err != nil {
		setAPIDefaultHeaders(rc)
		return err
	}
	if body != nil && !body.IsComplete() {
		rc.SetConnectionClose() // core has responded before the end of the body
	}
	rc.SetStatusCode(response.StatusCode())
	response.Header.SetNoDefaultContentType(true)
	copyHeader(&rc.Response.Header, &response.Header, keptFromClients)
	rc.Response.Header.Set(headerCacheStatus, cacheStatusNoCache)
	rc.Response.SwapBody(response.SwapBody(nil))
	return nil
}

// header is the header of a request or of a response.
type header interface {
	All() iter.Seq2[[]byte, []byte]
	PeekAll(key string) [][]byte
	AddBytesKV(key, value []byte)
}

// copyHeader copies a header in its order, without omitted ones and those that its Connection header names.
func copyHeader(to, from header, omitted headerSet) {
	var named []string
	for _, line := range from.PeekAll(fasthttp.HeaderConnection) {
		for name := range strings.SplitSeq(string(line), ",") {
			named = append(named, strings.TrimSpace(name))
		}
	}
	for name, value := range from.All() {
		_, isOmitted := omitted[string(name)]
		if !isOmitted && !slices.ContainsFunc(named, func(n string) bool { return strings.EqualFold(n, string(name)) }) {
			to.AddBytesKV(name, value)
		}
	}
}

// CheckUpstream checks that the upstream, if there is one, is core's public listener. The
// error begins with the name of a setting, and is a final config.Error if only another value of
// it helps.
func (s *Server) CheckUpstream(ctx context.Context) error {
	if s.upstream == nil {
		return nil
	}
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	base := s.upstream.scheme + "://" + s.upstream.host
	// Only the operators' listener has this path. The listener for edges answers 401 for every
	// path.
	request.SetRequestURI(base + "/livez")
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(time.Minute)
	}
	if err := s.upstream.client.DoDeadline(request, response, deadline); err != nil {
		if record, ok := errors.AsType[tls.RecordHeaderError](err); ok && string(record.RecordHeader[:]) == "HTTP/" {
			return config.Finalf("API_UPSTREAM", "is %q, but the listener there has no certificate: it must begin with http://: %w", base, err)
		}
		if errors.As(err, new(*tls.CertificateVerificationError)) { // core's may be replaced
			return config.Errorf("API_CA", "does not vouch for the certificate at %q: %w", base, err)
		}
		if errors.Is(err, fasthttp.ErrConnectionClosed) { // its text is about fasthttp's API
			err = io.EOF
		}
		return config.Errorf("API_UPSTREAM", "is %q, where core does not answer; start core, or correct the URL%s: %w", base, tlsreload.HTTPSHint(base, err), err)
	}
	listener := ""
	switch response.StatusCode() {
	case fasthttp.StatusOK:
		if strings.Contains(string(response.Body()), `"live":true`) {
			listener = "operators"
		}
	case fasthttp.StatusUnauthorized:
		listener = "edges"
	}
	if listener == "" {
		return nil
	}
	return config.Finalf("API_UPSTREAM", "is %q, which is a listener for %s, but must be core's public one: "+
		"the address that CORE_LISTEN names there, whose port is 8080 unless it is set", base, listener)
}
