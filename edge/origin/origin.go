// Package origin is an edge's client of core and of the texture store.
//
// Core looks up keys (names and IDs) and returns their mappings: batched, with a circuit
// breaker, and with separate queues for keys that are known to exist and for others, which
// have a limited rate. Follow keeps cached mappings fresh by core's stream of changes. Files
// fetches texture files.
package origin

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/shared/bloom"
	"github.com/veneer-skins/veneer/shared/breaker"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/ratelimit"
	"github.com/veneer-skins/veneer/shared/tlsreload"
)

// Config has the address of core and the limits of requests to it.
// Its settings are EDGE_CORE_URL, EDGE_CORE_SECRETS, EDGE_CORE_CA, EDGE_CORE_QUEUE,
// EDGE_CORE_UNKNOWN_KEYS_PER_SECOND, EDGE_CORE_TIMEOUT.
type Config struct {
	URL                  string        `env:"URL,required,notEmpty" example:"http://127.0.0.1:9090" help:"core's listener for edges, as in http://127.0.0.1:9090 or https://core.example.org"`
	Secrets              []string      `env:"SECRETS,required,notEmpty" random:"true" example:"one-of-CORE_EDGE_SECRETS" help:"secrets shared with core, separated by commas; the first is sent"`
	CA                   string        `env:"CA" example:"/etc/ssl/certs/ca-certificates.crt" help:"PEM file of the certificate authorities that verify core's certificate; empty: the system's"`
	Queue                int           `env:"QUEUE" envDefault:"8192" min:"1" help:"maximum number of look-ups that wait to be sent to core; more get 503"`
	UnknownKeysPerSecond int           `env:"UNKNOWN_KEYS_PER_SECOND" envDefault:"1000" min:"0" max:"1000000" help:"maximum number of look-ups a second of names and IDs that do not exist, with bursts of ten times as many; beyond that, keys not known to exist get 503; one client network gets at most a tenth of it while others need it; 0: no limit"`
	Timeout              time.Duration `env:"TIMEOUT" envDefault:"2s" above:"0s" help:"timeout of requests to core"`
}

// dependency is the name of core in faults and metrics.
const dependency = "core"

const (
	// maxInFlight is the maximum number of look-up requests in flight. Each sends a batch of
	// all queued keys, so that more requests would gain nothing.
	maxInFlight = 8
	// unknownInFlight is how many of them are for keys that are not known to exist, and
	// unknownPause the pause after each. A client can make up any number of such keys; the
	// pause makes larger batches of them, which are cheaper for core. As a new edge knows
	// no keys at all, a key that exists is not charged to the limit.
	unknownInFlight = 2
	unknownPause    = 10 * time.Millisecond
	// retryPause is the mean delay of a retry.
	retryPause = 20 * time.Millisecond
)

var (
	lookupRequests       = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_core_requests_total", Help: "Look-up requests sent to core."})
	lookupRequestsFailed = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_core_requests_failed_total", Help: "Look-up requests that failed."})
	secretsRejected      = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_core_unauthorized_total", Help: "Requests that core rejected for their secret."})
	keysLookedUp         = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_core_keys_total", Help: "Keys in look-up requests sent to core."})
	queueFull            = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_core_queue_full_total", Help: "Look-ups rejected, since the queue was full."})
	streamsOpened        = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_streams_total", Help: "Streams of changes opened."})

	unknownRejected = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_unknown_keys_rejected_total", Help: "Look-ups of keys that are not known to exist that were rejected by their limit."})
)

// Core is a client of core's edge API.
type Core struct {
	base    string
	secret  string
	timeout time.Duration
	client  *http.Client
	log     *slog.Logger
	breaker *breaker.Breaker

	// Look-ups of keys that are known to exist, but have changed, do not wait behind those
	// of made-up keys.
	knownQueue, unknownQueue *lookupQueue
	maxWaiting               int64 // look-ups in each
	knownKeys                *bloom.Filter
	unknownLimit             *ratelimit.Unknown // nil: no limit

	// previousStream is the name of the last stream that had one. Only Follow uses it.
	previousStream string
	// secretRejected is set while core rejects the secret, so that this is logged once and
	// not for every request.
	secretRejected atomic.Bool
}

// NewCore returns a client of core. It does not connect yet.
func NewCore(cfg Config, log *slog.Logger) (*Core, error) {
	base, ok := config.ParseURL(cfg.URL)
	if !ok || strings.Trim(base.Path, "/") != "" || base.RawQuery != "" {
		return nil, config.Errorf("URL", "is %s, but must look like http://host:port or https://host", config.QuoteRedacted(cfg.URL))
	}
	secrets, err := edgeproto.Secrets(cfg.Secrets)
	switch {
	case err != nil:
		return nil, config.Errorf("SECRETS", "%w", err)
	case len(secrets) == 0:
		return nil, config.Errorf("SECRETS", "holds no secret")
	}
	tlsConfig, err := tlsreload.ClientConfig(cfg.CA)
	if err != nil {
		return nil, config.Errorf("CA", "%w", err)
	}
	return &Core{
		base:    base.Scheme + "://" + base.Host,
		secret:  secrets[0],
		timeout: cfg.Timeout,
		client: &http.Client{
			Transport: &http.Transport{
				DialContext:         (&net.Dialer{Timeout: cfg.Timeout, KeepAlive: 15 * time.Second}).DialContext,
				TLSClientConfig:     tlsConfig,
				TLSHandshakeTimeout: cfg.Timeout,
				// Look-ups, acknowledgements, a probe, the stream, and a stream that is being closed.
				MaxConnsPerHost:     maxInFlight + 4,
				MaxIdleConnsPerHost: maxInFlight + 2,
				IdleConnTimeout:     30 * time.Second,
			},
			// Redirects are not followed, so that the secret is sent to core only.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		log:          log,
		breaker:      breaker.New(dependency),
		maxWaiting:   int64(max(cfg.Queue, edge.MaxBatch)),
		knownQueue:   newLookupQueue(cfg.Queue),
		unknownQueue: newLookupQueue(cfg.Queue),
		knownKeys:    bloom.New(),
		unknownLimit: ratelimit.NewUnknown(cfg.UnknownKeysPerSecond),
	}, nil
}

// Check looks up a user that never exists, bypassing queues and limits. Its error begins with
// the name of a setting and says what to do. It is a config.Error, which is final if
// only another setting can correct it.
func (c *Core) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	_, err := c.lookupOnce(ctx, edgeproto.LookupRequest{Keys: []edgeproto.Key{edgeproto.UIDKey(0)}})
	err = fault.CauseOf(err)
	status, answered := errors.AsType[statusError](err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, http.ErrSchemeMismatch):
		return config.Finalf("URL", "is %q, but the listener there has no certificate: it must begin with http://: %w", c.base, err)
	case errors.As(err, new(*tls.CertificateVerificationError)): // core may get another certificate
		return config.Errorf("CA", "does not vouch for the certificate at %q: %w", c.base, err)
	case !answered || status >= http.StatusInternalServerError || status == http.StatusTooManyRequests:
		return config.Errorf("URL", "is %q, where core does not answer; start core, or correct the URL%s: %w", c.base, tlsreload.HTTPSHint(c.base, err), err)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return config.Finalf("SECRETS", "begins with a secret that core at %q refuses: it must be among CORE_EDGE_SECRETS there", c.base)
	default:
		listener, known := c.identifyListener(ctx)
		if !known {
			listener += " (it answers " + status.Error() + ")"
		}
		return config.Finalf("URL", "is %q, which is %s, but must be core's listener for edges: the address that CORE_EDGES_LISTEN names there, whose port is 9090 unless it is set",
			c.base, listener)
	}
}

// identifyListener describes the server at the address of core's edge API, and reports
// whether it is one of Veneer's.
func (c *Core) identifyListener(ctx context.Context) (listener string, known bool) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/livez", http.NoBody)
	if err != nil {
		return "no address", false
	}
	response, err := c.client.Do(request)
	if err != nil {
		return "another server", false
	}
	defer func() { _ = response.Body.Close() }()
	body, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	switch {
	case response.StatusCode == http.StatusOK && bytes.Contains(body, []byte(`"live":true`)):
		return "a listener for operators", true
	case response.StatusCode == http.StatusNotFound && response.Header.Get("Cache-Status") != "":
		return "an edge's public listener", true
	case response.StatusCode == http.StatusNotFound && bytes.HasPrefix(body, []byte(`{"code":3,`)):
		return "core's public listener", true
	default:
		return "another server", false
	}
}

// send sends a request and returns core's response; the caller must close its body. Every
// status except 200 is an Unavailable fault.
func (c *Core) send(request *http.Request) (*http.Response, error) {
	request.Header.Set("Authorization", "Bearer "+c.secret)
	response, err := c.client.Do(request)
	if err != nil {
		return nil, fault.NewUnavailable(dependency, err)
	}
	switch response.StatusCode {
	case http.StatusOK:
		c.secretRejected.Store(false)
		return response, nil
	case http.StatusUnauthorized, http.StatusForbidden:
		secretsRejected.Inc()
		if c.secretRejected.CompareAndSwap(false, true) {
			c.log.ErrorContext(request.Context(), "core rejects the secret", "status", response.StatusCode, "url", c.base)
		}
	}
	_ = response.Body.Close()
	return nil, fault.NewUnavailable(dependency, fmt.Errorf("%s %s: %w", request.Method, request.URL.Path, statusError(response.StatusCode)))
}

// statusError is a status of core other than 200.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("%d %s", int(e), http.StatusText(int(e))) }
