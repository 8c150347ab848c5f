package httpserver

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/pprofhandler"

	"github.com/veneer-skins/veneer/shared/cli"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/metrics"
	"github.com/veneer-skins/veneer/shared/version"
)

// Check probes a dependency of the program; Probe returns what is wrong with it, or nil. An
// Optional one is reported, but not needed for readiness.
type Check struct {
	Name     string
	Optional bool
	Probe    func(ctx context.Context) error
}

// Health is the readiness of a program. It is ready once every check but the optional ones
// has passed, and stays so until it drains. A dependency that is lost later is reported in
// the body of /readyz and in the metrics, but does not fail it: that would take all nodes out
// at once.
type Health struct {
	checks   []Check
	ready    atomic.Bool
	draining atomic.Bool
}

// NewHealth returns the health of a program with these dependencies.
func NewHealth(checks ...Check) *Health { return &Health{checks: checks} }

func (h *Health) drain() { h.draining.Store(true) }

// report is the body of /readyz.
type report struct {
	Ready    bool              `json:"ready"`
	Draining bool              `json:"draining,omitempty"`
	Checks   map[string]string `json:"checks"`
}

// probeTimeout bounds a probe, and readyProbeTimeout the wait for it once the program is
// ready: balancers time out after about a second, and would take out every program that
// depends on something that hangs.
const (
	probeTimeout      = 2 * time.Second
	readyProbeTimeout = 500 * time.Millisecond
)

var errNoAnswer = fmt.Errorf("no answer within %s", readyProbeTimeout)

func (h *Health) report(ctx context.Context) report {
	var briefDone <-chan struct{} // nil, and so no limit, until the program is ready
	if h.ready.Load() {
		brief, stop := context.WithTimeout(ctx, readyProbeTimeout)
		defer stop()
		briefDone = brief.Done()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout)
	probeErrs := make([]chan error, len(h.checks))
	var probes sync.WaitGroup
	for i, check := range h.checks {
		probeErrs[i] = make(chan error, 1)
		probes.Go(func() { probeErrs[i] <- check.Probe(ctx) }) // in parallel, so that one that hangs does not delay the others
	}
	go func() { probes.Wait(); cancel() }()

	r := report{Draining: h.draining.Load(), Checks: map[string]string{}}
	passed := true
	for i, check := range h.checks {
		r.Checks[check.Name] = "ok"
		var err error
		select {
		case err = <-probeErrs[i]:
		default: // no result yet
			select {
			case err = <-probeErrs[i]:
			case <-briefDone:
				err = errNoAnswer
			}
		}
		if err != nil {
			passed = passed && check.Optional
			r.Checks[check.Name] = err.Error()
		}
	}
	if passed {
		h.ready.Store(true)
	}
	r.Ready = h.ready.Load() && !r.Draining
	return r
}

var buildInfo = promauto.NewGaugeVec(prometheus.GaugeOpts{
	Name: "veneer_build_info", Help: "Constant 1, with the version of the build as labels.",
}, []string{"version", "go_version", "revision"})

// OperatorServer returns the server of the operators' listener: /livez, /readyz, /metrics and
// /debug/pprof, the last for loopback only unless pprofForAll. /metrics has the metrics of
// registry and the metrics of the process.
func OperatorServer(opts Options, health *Health, registry prometheus.Gatherer, pprofForAll bool) *fasthttp.Server {
	build := version.Current()
	buildInfo.WithLabelValues(build.Version, build.Go, build.Revision).Set(1)
	gatherers := prometheus.Gatherers{prometheus.DefaultGatherer, registry}
	opts.Listener, opts.Tracer, opts.DefaultHeaders = operatorsListener, nil, SetSecurityHeaders // operators' own requests are not traced
	live, ready, metricsRoute, profiles := opts.Route("GET /livez"), opts.Route("GET /readyz"), opts.Route("GET /metrics"), opts.Route("GET /debug/pprof")
	server := opts.NewServer(opts.Handle(func(ctx context.Context, rc *fasthttp.RequestCtx) error {
		SetSecurityHeaders(rc)
		switch path := string(rc.Path()); {
		case path == "/livez":
			live.AssignTo(rc)
			return WriteJSON(rc, fasthttp.StatusOK, map[string]bool{"live": true})
		case path == "/readyz":
			ready.AssignTo(rc)
			r := health.report(ctx)
			if !r.Ready {
				return WriteJSON(rc, fasthttp.StatusServiceUnavailable, r)
			}
			return WriteJSON(rc, fasthttp.StatusOK, r)
		case path == "/metrics":
			metricsRoute.AssignTo(rc)
			rc.SetContentType(metrics.ContentType)
			return metrics.Write(rc, gatherers)
		case strings.HasPrefix(path, "/debug/pprof"):
			profiles.AssignTo(rc)
			if peer, ok := rc.RemoteAddr().(*net.TCPAddr); !pprofForAll && (!ok || !peer.IP.IsLoopback()) {
				return fault.New(fault.Forbidden, "Profiles are for loopback only.")
			}
			rc.Response.Header.Del(fasthttp.HeaderXContentTypeOptions) // some profiles add it again
			pprofhandler.PprofHandler(rc)
			SetSecurityHeaders(rc)
			return nil
		default:
			return fault.New(fault.NotFound, "There is nothing at this path.")
		}
	}))
	// A CPU profile takes as long as the request asks for.
	server.WriteTimeout = 0
	return server
}

// HealthCommand returns the command of a program that asks the running one whether it is ready.
func HealthCommand[Settings any](program, prefix string, address func(Settings) Address) cli.Command {
	return cli.Command{
		Name: "health", Help: "check whether the running " + program + " is ready", Settings: config.Help[Settings],
		Run: func(_ context.Context, i cli.Invocation) error {
			if _, err := i.ParseArg(cli.Flags(program+" health"), ""); err != nil {
				return err
			}
			settings, err := config.Read[Settings](prefix, i.Environ)
			if err != nil {
				return err
			}
			if err := askReady(string(address(settings))); err != nil {
				return err
			}
			fmt.Fprintln(i.Stdout, "ready")
			return nil
		},
	}
}

// askReady requests /readyz at an operators' listener, and returns an error with the reason if
// the program is not ready.
func askReady(address string) error {
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	request.SetRequestURI("http://" + address + "/readyz")
	if err := fasthttp.DoTimeout(request, response, 3*time.Second); err != nil {
		return fmt.Errorf("ask %s: %w", address, err)
	}
	if response.StatusCode() != fasthttp.StatusOK {
		return fmt.Errorf("not ready: %s", response.Body())
	}
	return nil
}
