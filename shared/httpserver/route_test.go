package httpserver_test

import (
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/metrics/metricstest"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// newOptions returns Options for a listener with a unique name, as metrics belong to the
// whole process, and a function that returns the exposed lines of a metric without that name.
func newOptions(tb testing.TB) (opts httpserver.Options, exposed func(metric string) []string) {
	tb.Helper()
	opts = httpserver.Options{Listener: rand.Text(), Log: silent(), Limits: limits()}
	return opts, func(metric string) (lines []string) {
		listener := fmt.Sprintf("listener=%q", opts.Listener)
		for line := range strings.Lines(metricstest.Text(tb, prometheus.DefaultGatherer)) {
			if labels, ok := strings.CutPrefix(line, metric+"{"); ok && strings.Contains(labels, listener) {
				lines = append(lines, strings.TrimSpace(strings.NewReplacer(listener+",", "", listener, "").Replace(labels)))
			}
		}
		return lines
	}
}

func TestRequestsAreCounted(t *testing.T) {
	t.Parallel()
	opts, exposed := newOptions(t)
	rename := opts.Route("PUT /players/{pid}/name")
	server := opts.NewServer(opts.HandleNoContext(func(rc *fasthttp.RequestCtx) error {
		if !strings.HasPrefix(string(rc.Path()), "/players/") {
			return fault.New(fault.NotFound, "There is nothing at this path.")
		}
		rename.AssignTo(rc)
		rc.SetStatusCode(rc.QueryArgs().GetUintOrZero("status"))
		return nil
	}))
	listener := start(t, server)

	// f checks the counters of 2xx, 3xx, 4xx and 5xx of each route.
	f := func(rename, badRequest, connLimit, other [4]int) {
		t.Helper()
		var want []string
		for i, counts := range [][4]int{rename, badRequest, connLimit, other} {
			route := []string{"PUT /players/{pid}/name", "bad_request", "conn_limit", "other"}[i]
			for class, count := range counts {
				want = append(want, fmt.Sprintf(`route=%q,status="%dxx"} %d`, route, 2+class, count))
			}
		}
		cmptest.Same(t, exposed("veneer_requests_total"), want, "the counters")
	}

	// Routes without labels are exposed from the start.
	f([4]int{}, [4]int{}, [4]int{}, [4]int{})
	for _, status := range []int{200, 200, 204, 304, 404, 422, 599, 999} {
		getPath(t, listener, fmt.Sprintf("/players/%d/name?status=%d", status, status), "")
	}
	getPath(t, listener, "/a-name-that-a-client-makes-up", "")
	exchangeRaw(t, listener, "nonsense\r\n\r\n")
	f([4]int{3, 1, 2, 2}, [4]int{0, 0, 1, 0}, [4]int{}, [4]int{0, 0, 1, 0})
}

func TestLatencies(t *testing.T) {
	t.Parallel()
	// Time is synthetic.
	synctest.Test(t, func(t *testing.T) {
		opts, exposed := newOptions(t)
		route := opts.Route("GET /")
		var takes time.Duration
		server := opts.NewServer(func(rc *fasthttp.RequestCtx) {
			route.AssignTo(rc)
			<-time.After(takes)
		})
		for _, takes = range []time.Duration{
			0, 100 * time.Microsecond, 100*time.Microsecond + 1, 3 * time.Millisecond, 4 * time.Millisecond, 10 * time.Second, 10*time.Second + 1, time.Hour,
		} {
			conn, served := net.Pipe()
			go func() { _ = server.ServeConn(served) }()
			testenv.Must(io.WriteString(conn, "GET / HTTP/1.1\r\nHost: veneer.test\r\nConnection: close\r\n\r\n"))(t)
			testenv.Must(io.ReadAll(conn))(t)
		}

		// The route "other" is exposed beside it.
		f := func(metric string, want ...string) {
			t.Helper()
			got := slices.DeleteFunc(exposed(metric), func(line string) bool { return !strings.HasPrefix(line, `route="GET /"`) })
			cmptest.Same(t, got, want, "%s", metric)
		}
		var buckets []string
		for _, of := range []struct {
			count  int
			bounds string
		}{
			{1, "1e-05 2.5e-05 5e-05"},
			{2, "0.0001"},
			{3, "0.00025 0.0005 0.001 0.0025"},
			{5, "0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5"},
			{6, "10"},
			{8, "+Inf"},
		} {
			for bound := range strings.FieldsSeq(of.bounds) {
				buckets = append(buckets, fmt.Sprintf(`route="GET /",le=%q} %d`, bound, of.count))
			}
		}
		f("veneer_request_seconds_bucket", buckets...)
		f("veneer_request_seconds_sum", `route="GET /"} 3620.007200002`)
		f("veneer_request_seconds_count", `route="GET /"} 8`)
	})
}

// Of the many combinations of labels, only those that have counted a request are exposed.
func TestRoutesWithLabels(t *testing.T) {
	t.Parallel()
	opts, exposed := newOptions(t)
	outcome := func(value string) *httpserver.Route {
		return opts.Route("/avatar/{tid}", httpserver.Label{Name: "format", Value: "webp"}, httpserver.Label{Name: "outcome", Value: value})
	}
	plain, hit, shed := opts.Route("/avatar/{tid}"), outcome("hit"), outcome("shed")
	outcome("rendered")
	server := opts.NewServer(func(rc *fasthttp.RequestCtx) {
		plain.AssignTo(rc)
		hit.AssignTo(rc)
		if rc.Request.Header.ContentLength() > 0 {
			shed.AssignTo(rc)
			rc.SetStatusCode(fasthttp.StatusServiceUnavailable)
		}
	})
	f := func(metric string, want ...string) {
		t.Helper()
		got := slices.DeleteFunc(exposed(metric), func(line string) bool {
			return !strings.Contains(line, `route="/avatar/{tid}"`) || strings.Contains(line, "le=") && !strings.Contains(line, "le=\"+Inf\"")
		})
		cmptest.Same(t, got, want, "%s", metric)
	}

	f("veneer_requests_total",
		`route="/avatar/{tid}",status="2xx"} 0`, `route="/avatar/{tid}",status="3xx"} 0`,
		`route="/avatar/{tid}",status="4xx"} 0`, `route="/avatar/{tid}",status="5xx"} 0`)
	f("veneer_request_seconds_bucket", `route="/avatar/{tid}",le="+Inf"} 0`)
	listener := start(t, server)
	getPath(t, listener, "/", "")
	getPath(t, listener, "/", "")
	exchangeRaw(t, listener, "POST / HTTP/1.1\r\nHost: veneer.test\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx")
	f("veneer_requests_total",
		`route="/avatar/{tid}",status="2xx"} 0`, `route="/avatar/{tid}",status="3xx"} 0`,
		`route="/avatar/{tid}",status="4xx"} 0`, `route="/avatar/{tid}",status="5xx"} 0`,
		`format="webp",outcome="hit",route="/avatar/{tid}",status="2xx"} 2`,
		`format="webp",outcome="shed",route="/avatar/{tid}",status="5xx"} 1`)
	f("veneer_request_seconds_bucket",
		`route="/avatar/{tid}",le="+Inf"} 0`,
		`format="webp",outcome="hit",route="/avatar/{tid}",le="+Inf"} 2`,
		`format="webp",outcome="shed",route="/avatar/{tid}",le="+Inf"} 1`)
	f("veneer_request_seconds_count",
		`route="/avatar/{tid}"} 0`,
		`format="webp",outcome="hit",route="/avatar/{tid}"} 2`,
		`format="webp",outcome="shed",route="/avatar/{tid}"} 1`)
}

// No count is lost when all cores count at once.
func TestRequestsAreCountedInParallel(t *testing.T) {
	t.Parallel()
	opts, exposed := newOptions(t)
	server := opts.NewServer(func(*fasthttp.RequestCtx) {})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			rc := exchange(nil)
			for range 1000 {
				server.Handler(rc)
			}
		})
	}
	group.Wait()
	for metric, want := range map[string]string{
		"veneer_requests_total": `route="other",status="2xx"} 8000`, "veneer_request_seconds_count": `route="other"} 8000`, "veneer_requests_in_flight": "} 0",
	} {
		got := exposed(metric)
		testenv.Check(t, slices.Contains(got, want), "%s is %q; want %s", metric, got, want)
	}
}

func TestRequestsInFlight(t *testing.T) {
	t.Parallel()
	opts, exposed := newOptions(t)
	var during []string
	server := opts.NewServer(func(*fasthttp.RequestCtx) {
		during = exposed("veneer_requests_in_flight")
		panic("it counts as ended")
	})
	before := exposed("veneer_requests_in_flight")
	server.Handler(exchange(nil))
	after := exposed("veneer_requests_in_flight")
	cmptest.Same(t, [][]string{before, during, after}, [][]string{{"} 0"}, {"} 1"}, {"} 0"}},
		"before, during and after a request")
}

// Servers with the same listener name share their counters.
func TestRoutesOfOneNameAreOne(t *testing.T) {
	t.Parallel()
	opts, exposed := newOptions(t)
	for range 2 {
		opts.NewServer(func(*fasthttp.RequestCtx) {}).Handler(exchange(nil))
	}
	f := func(metric, want string) {
		t.Helper()
		got := strings.Join(exposed(metric), "\n")
		testenv.Check(t, strings.Count(got, want) == 1, "%s is\n%s\nwant %s", metric, got, want)
	}

	f("veneer_requests_total", `route="other",status="2xx"} 2`)
	f("veneer_request_seconds_count", `route="other"} 2`)
}
