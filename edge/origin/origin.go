// Package origin is where an edge gets things from: mappings and the stream of
// their changes from core, texture files from the object store.
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

	"github.com/veneer-skins/veneer/shared/breaker"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/tlsreload"
)

// Config says where core is and how much it is asked at once.
type Config struct {
	URL                  string        `env:"URL,required,notEmpty" example:"http://127.0.0.1:9090" help:"core's listener for edges, as in http://127.0.0.1:9090 or https://core.example.org"`
	Secrets              []string      `env:"SECRETS,required,notEmpty" random:"true" example:"one-of-CORE_EDGE_SECRETS" help:"secrets shared with core, separated by commas; the first is sent"`
	CA                   string        `env:"CA" example:"/etc/ssl/certs/ca-certificates.crt" help:"path of a PEM file with the authorities that core's certificate may come from; empty: the system's"`
	Queue                int           `env:"QUEUE" envDefault:"8192" help:"most look-ups that wait to be sent to core; more are answered with 503"`
	UnknownKeysPerSecond int           `env:"UNKNOWN_KEYS_PER_SECOND" envDefault:"1000" help:"most look-ups a second of names and numbers that turn out to lead nowhere; beyond that, but for bursts of ten times as many, unknown ones are answered with 503; one client network has no more of it than a tenth while others need it; 0 limits none"`
	Timeout              time.Duration `env:"TIMEOUT" envDefault:"2s" help:"longest time that core may take to answer"`
}

// dependency is what faults and metrics call core.
const dependency = "core"

const (
	// maxInFlight is the most look-ups that core is sent at once. Each takes along all
	// that are waiting, so that more would help nobody.
	maxInFlight = 8
	// unknownInFlight is how many of them are for keys that led nowhere so far, and
	// unknownPause the pause after each. Anybody can make such keys up, as many as
	// they like; the pause makes batches of them, which are cheaper for core. An edge
	// that has just started knows none of its keys, so those that lead somewhere do not
	// count in the end.
	unknownInFlight = 2
	unknownPause    = 10 * time.Millisecond
	// retryPause is about how long a failed look-up waits before it is sent again.
	retryPause = 20 * time.Millisecond
)

var (
	lookupRequests       = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_core_requests_total", Help: "Requests for look-ups sent to core."})
	lookupRequestsFailed = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_core_requests_failed_total", Help: "Requests for look-ups that failed."})
	secretsRejected      = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_core_unauthorized_total", Help: "Requests whose secret core refused."})
	keysLookedUp         = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_core_keys_total", Help: "Keys that core was asked for."})
	queueFull            = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_core_queue_full_total", Help: "Look-ups refused, since too many waited."})
	streamsOpened        = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_streams_total", Help: "Streams of changes opened."})

	unknownRejected = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_edge_unknown_keys_rejected_total", Help: "Look-ups of unknown keys refused, since their client network made too many."})
)

// Core is the core that an edge belongs to.
type Core struct {
	base    string
	secret  string
	timeout time.Duration
	client  *http.Client
	log     *slog.Logger
	breaker *breaker.Breaker

	// Whoever asks for keys that are known to lead somewhere, but have changed, does
	// not wait behind those who make keys up.
	knownQueue, unknownQueue chan pendingLookup
	knownKeys                *bloomFilter
	unknownLimit             *unknownLimiter // bounds strangers; nil: nothing does

	// previousStream is the name that core gave the last stream that had one. It belongs to
	// Follow.
	previousStream string
	// secretRejected is set while core does not accept our secret, so that this is
	// logged once and not for every request.
	secretRejected atomic.Bool
}

// NewCore returns core as configured. It reaches nothing yet.
func NewCore(cfg Config, log *slog.Logger) (*Core, error) {
	base, ok := config.ParseURL(cfg.URL)
	if !ok || strings.Trim(base.Path, "/") != "" || base.RawQuery != "" {
		return nil, fmt.Errorf("URL is %s, but must look like http://host:port or https://host", config.QuoteRedacted(cfg.URL))
	}
	secrets, err := edgeproto.Secrets(cfg.Secrets)
	switch {
	case err != nil:
		return nil, fmt.Errorf("SECRETS: %w", err)
	case len(secrets) == 0:
		return nil, errors.New("SECRETS holds no secret")
	case cfg.Queue < 1:
		return nil, fmt.Errorf("QUEUE is %d, but must be at least 1", cfg.Queue)
	case cfg.UnknownKeysPerSecond < 0 || cfg.UnknownKeysPerSecond > maxUnknownPerSecond:
		return nil, fmt.Errorf("UNKNOWN_KEYS_PER_SECOND is %d, but must be 0 to %d", cfg.UnknownKeysPerSecond, maxUnknownPerSecond)
	case cfg.Timeout <= 0:
		return nil, fmt.Errorf("TIMEOUT is %s, but must be longer than 0", cfg.Timeout)
	}
	tlsConfig, err := tlsreload.ClientConfig(cfg.CA)
	if err != nil {
		return nil, fmt.Errorf("CA %w", err)
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
				// The look-ups, the acknowledgements, a probe, the stream, and one that is being closed.
				MaxConnsPerHost:     maxInFlight + 4,
				MaxIdleConnsPerHost: maxInFlight + 2,
				IdleConnTimeout:     30 * time.Second,
			},
			// Our secret goes to nobody that core may name.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		log:          log,
		breaker:      breaker.New(dependency),
		knownQueue:   make(chan pendingLookup, cfg.Queue),
		unknownQueue: make(chan pendingLookup, cfg.Queue),
		knownKeys:    newBloomFilter(),
		unknownLimit: newUnknownLimiter(cfg.UnknownKeysPerSecond),
	}, nil
}

// Check sends core a look-up of a user that never exists, past all queues and limits. The
// error begins with the name of a setting and says what to do. It is a settings.WrongError
// if only another setting can mend it.
func (c *Core) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	_, err := c.lookupOnce(ctx, edgeproto.LookupRequest{Keys: []edgeproto.Key{edgeproto.UIDKey(0)}})
	err = fault.CauseOf(err)
	status, answered := errors.AsType[statusError](err)
	wrong := func(format string, args ...any) error {
		return config.SettingError{Cause: fmt.Errorf(format, args...)}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, http.ErrSchemeMismatch):
		return wrong("URL is %q, but the listener there has no certificate: it must begin with http://: %w", c.base, err)
	case errors.As(err, new(*tls.CertificateVerificationError)): // core may get another one
		return fmt.Errorf("CA does not vouch for the certificate at %q: %w", c.base, err)
	case !answered || status >= http.StatusInternalServerError || status == http.StatusTooManyRequests:
		return fmt.Errorf("URL is %q, where core does not answer; start core, or correct the URL%s: %w", c.base, tlsreload.HTTPSHint(c.base, err), err)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return wrong("SECRETS begins with a secret that core at %q refuses: it must be among CORE_EDGE_SECRETS there", c.base)
	default:
		listener, known := c.identifyListener(ctx)
		if !known {
			listener += " (it answers " + status.Error() + ")"
		}
		return wrong("URL is %q, which is %s, but must be core's listener for edges: the address that CORE_EDGES_LISTEN names there, whose port is 9090 unless it is set",
			c.base, listener)
	}
}

// identifyListener says what listens where core's listener for edges should, and whether it is one
// of Veneer's.
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

// send sends a request and returns core's answer, whose body the caller must
// close. Every answer but 200 is an Unavailable fault.
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
			c.log.ErrorContext(request.Context(), "core refuses our secret", "status", response.StatusCode, "url", c.base)
		}
	}
	_ = response.Body.Close()
	return nil, fault.NewUnavailable(dependency, fmt.Errorf("%s %s: %w", request.Method, request.URL.Path, statusError(response.StatusCode)))
}

// statusError is how core answers what it does not do.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("%d %s", int(e), http.StatusText(int(e))) }
