package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"iter"
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
	// maxResponseBytes bounds what an answer of core may take in memory.
	maxResponseBytes = 16 << 20
	// maxConns is how many requests may wait for core at once, besides those whose bodies
	// are being passed on. One client network has at most half of them, so that others have
	// some, too.
	maxConns     = 1024
	networkConns = maxConns / 2
	// streamBytes is what a body takes of the budget while it is passed on: its first 8 KiB, the
	// buffers of a connection to core, 20 KiB, and what the system holds of both connections.
	streamBytes = 64 << 10
)

// hopByHop are the headers that concern one connection only (RFC 9110, 7.6.1),
// beside those that a Connection header names. Expect is among them because the
// edge has answered it by the time it passes the request on.
var hopByHop = []string{
	fasthttp.HeaderConnection, "Keep-Alive", "Proxy-Connection", fasthttp.HeaderProxyAuthenticate, fasthttp.HeaderProxyAuthorization,
	fasthttp.HeaderTE, fasthttp.HeaderTrailer, fasthttp.HeaderTransferEncoding, fasthttp.HeaderUpgrade, fasthttp.HeaderExpect,
}

// upstream is core's public listener, to which /api is passed on.
type upstream struct {
	scheme, host string
	client       *fasthttp.HostClient
	breaker      *breaker.Breaker
	httpServer   httpserver.Options
	// conns and networks bound the requests whose bodies are not passed on: all of them, and
	// those of a client network.
	conns    chan struct{}
	networks *ratelimit.Semaphore[netip.Prefix]
}

// dependency is what faults and metrics call core's public listener.
const dependency = "API"

// newUpstream returns the upstream that is configured, nil if none is.
func newUpstream(cfg Config, httpServer httpserver.Options) (*upstream, error) {
	if cfg.APIUpstream == "" {
		return nil, nil //nolint:nilnil // see above
	}
	target, ok := config.ParseURL(cfg.APIUpstream)
	if !ok || strings.Trim(target.Path, "/") != "" || target.RawQuery != "" {
		return nil, fmt.Errorf("API_UPSTREAM is %s, but must look like http://host:port or https://host", config.QuoteRedacted(cfg.APIUpstream))
	}
	verified, err := tlsreload.ClientConfig(cfg.APICA)
	if err != nil {
		return nil, fmt.Errorf("API_CA %w", err)
	}
	verified.ServerName = target.Hostname()
	isTLS := target.Scheme == "https"
	client := &fasthttp.HostClient{
		Addr:      fasthttp.AddMissingPort(target.Host, isTLS),
		Dial:      (&fasthttp.TCPDialer{}).DialDualStack,
		IsTLS:     isTLS,
		TLSConfig: verified,
		// Bodies that are passed on have connections of their own, one for each share.
		MaxConns:                 maxConns + httpServer.Limits.BodiesBytes/streamBytes,
		MaxIdleConnDuration:      30 * time.Second, // less than core keeps one open
		MaxConnWaitTimeout:       time.Second,      // a body that was ended has one for a moment more
		MaxResponseBodySize:      maxResponseBytes,
		ReadBufferSize:           16 << 10,
		NoDefaultUserAgentHeader: true,
		DisablePathNormalizing:   true,
		Transport:                transport{httpServer.Limits},
		// A connection may close just as it is used again. What only reads may be
		// sent twice; for all else the client decides.
		MaxIdemponentCallAttempts: 2,
		RetryIfErr: func(request *fasthttp.Request, _ int, _ error) (resetTimeout, retry bool) {
			return false, request.Header.IsGet() || request.Header.IsHead()
		},
	}
	return &upstream{
		scheme: target.Scheme, host: target.Host, client: client, breaker: breaker.New(dependency), httpServer: httpServer,
		conns: make(chan struct{}, maxConns), networks: ratelimit.NewSemaphore[netip.Prefix](networkConns),
	}, nil
}

// forward passes a request on and its answer back, both as they are, but for what
// concerns the connections. Bodies of more than 8 KiB are passed on while they arrive;
// smaller ones are waited for, so that they take no connection to core meanwhile.
func (u *upstream) forward(rc *fasthttp.RequestCtx) error {
	body, err := httpserver.OpenBody(rc, 0)
	if err == nil && body != nil {
		var whole bool
		whole, err = body.ReadSmall(rc)
		if whole {
			body = nil
		} else if err == nil {
			err = body.Stream(streamBytes, u.httpServer.Limits.UploadTimeout)
		}
	}
	if err != nil {
		setAPIDefaultHeaders(rc)
		return err
	}
	ctx, cancel := u.httpServer.RequestContext(rc)
	defer cancel()
	if body == nil { // others take no more connections than the budget has shares
		release, err := u.acquire(ctx, clientip.Network(u.httpServer.Proxies.ClientIP(rc)))
		if err != nil {
			setAPIDefaultHeaders(rc)
			return err
		}
		defer release()
	} else if err := u.probe(ctx); err != nil {
		setAPIDefaultHeaders(rc)
		return err
	}
	return u.exchange(ctx, rc, body)
}

// acquire waits until one more request of a client network may be sent to core, and returns
// the function that ends it.
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

// probe asks core for something small if the breaker is open. A body that is passed on must
// not be what the breaker waits for: it may take UPLOAD_TIMEOUT to arrive, and others would
// be refused meanwhile.
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

// exchange sends a request to core and answers with what core answers. body is the body
// that is yet to arrive, nil if rc has it.
func (u *upstream) exchange(ctx context.Context, rc *fasthttp.RequestCtx, body *httpserver.Body) (err error) {
	ctx, span := tracing.Start(ctx, "pass on", trace.WithSpanKind(trace.SpanKindClient))
	defer tracing.End(span, &err)
	deadline, ok := ctx.Deadline()
	if !ok {
		return errors.New("BUG: a request is passed on without a deadline")
	}
	id := httpserver.RequestID(rc)

	request := fasthttp.AcquireRequest()
	defer fasthttp.ReleaseRequest(request)
	request.Header.SetMethodBytes(rc.Method())
	request.SetRequestURIBytes(originForm(rc.URI()))
	request.URI().SetScheme(u.scheme)
	request.URI().SetHost(u.host)
	request.Header.SetNoDefaultContentType(true)
	copyHeader(&request.Header, &rc.Request.Header, append(tracing.HeaderNames(), fasthttp.HeaderHost, fasthttp.HeaderXForwardedFor, fasthttp.HeaderForwarded, headerRequestID)...)
	request.Header.SetHost(u.host)
	request.Header.Set(fasthttp.HeaderXForwardedFor, u.httpServer.Proxies.ClientIP(rc).String())
	request.Header.Set(headerRequestID, id)
	httpserver.ForwardTrace(ctx, u.httpServer.Proxies, rc, &request.Header)
	if body != nil {
		request.SetBodyStream(body, body.Size())
		deadline = deadline.Add(u.httpServer.Limits.UploadTimeout)
	} else {
		request.SetBodyRaw(rc.Request.Body())
	}

	answer := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(answer)
	err = u.breaker.Call(func() error {
		switch err := u.client.DoDeadline(request, answer, deadline); {
		case errors.Is(err, breaker.ErrNotAttempted):
			return err
		case errors.Is(err, fasthttp.ErrNoFreeConns):
			return fault.NewUnavailable(dependency, errors.Join(err, breaker.ErrNotAttempted))
		case errors.Is(err, fasthttp.ErrBodyTooLarge):
			return err // an answer, though none to pass on
		case err != nil:
			return fault.NewUnavailable(dependency, err)
		default:
			return nil // core's own refusals are answers
		}
	})
	if err != nil {
		setAPIDefaultHeaders(rc)
		return err
	}
	if body != nil && !body.IsComplete() {
		rc.SetConnectionClose() // core has answered before it had all of the body
	}
	rc.SetStatusCode(answer.StatusCode())
	answer.Header.SetNoDefaultContentType(true)
	copyHeader(&rc.Response.Header, &answer.Header, headerRequestID)
	rc.Response.Header.Set(headerCacheStatus, cacheStatusBypass)
	rc.Response.SwapBody(answer.SwapBody(nil))
	return nil
}

// header is that of a request or of a response.
type header interface {
	All() iter.Seq2[[]byte, []byte]
	PeekAll(key string) [][]byte
	AddBytesKV(key, value []byte)
}

// copyHeader copies a header in its order, but for what concerns one connection
// only and what is omitted besides.
func copyHeader(to, from header, omitted ...string) {
	omitted = append(omitted, hopByHop...)
	for _, line := range from.PeekAll(fasthttp.HeaderConnection) {
		for name := range strings.SplitSeq(string(line), ",") {
			omitted = append(omitted, strings.TrimSpace(name))
		}
	}
	for name, value := range from.All() {
		if !slices.ContainsFunc(omitted, func(o string) bool { return strings.EqualFold(o, string(name)) }) {
			to.AddBytesKV(name, value)
		}
	}
}

// CheckUpstream says whether core's public listener is where it should be, if there is an
// upstream. The error begins with the name of a setting, and is a settings.WrongError if
// only another one can mend it.
func (s *Server) CheckUpstream(ctx context.Context) error {
	if s.upstream == nil {
		return nil
	}
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	base := s.upstream.scheme + "://" + s.upstream.host
	// Only operators' listeners have this path, and only the one for edges says of none
	// whether it has it.
	request.SetRequestURI(base + "/livez")
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(time.Minute)
	}
	if err := s.upstream.client.DoDeadline(request, response, deadline); err != nil {
		if record, ok := errors.AsType[tls.RecordHeaderError](err); ok && string(record.RecordHeader[:]) == "HTTP/" {
			return config.SettingError{Cause: fmt.Errorf("API_UPSTREAM is %q, but the listener there has no certificate: it must begin with http://: %w", base, err)}
		}
		if errors.As(err, new(*tls.CertificateVerificationError)) { // core may get another one
			return fmt.Errorf("API_CA does not vouch for the certificate at %q: %w", base, err)
		}
		if errors.Is(err, fasthttp.ErrConnectionClosed) { // whose text is about the server's code
			err = io.EOF
		}
		return fmt.Errorf("API_UPSTREAM is %q, where core does not answer; start core, or correct the URL%s: %w", base, tlsreload.HTTPSHint(base, err), err)
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
	return config.SettingError{Cause: fmt.Errorf("API_UPSTREAM is %q, which is a listener for %s, but must be core's public one: "+
		"the address that CORE_LISTEN names there, whose port is 8080 unless it is set", base, listener)}
}
