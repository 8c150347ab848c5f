//go:build !race

package main

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/edge/origin/origintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// backend is an edge behind a balancer.
type backend struct {
	settings          []string
	public, operators string // addresses, the same after a restart
	process           *edgeProcess
	client            *fasthttp.HostClient
	ready             atomic.Bool
	answered          atomic.Int64
}

// start starts the edge.
func (b *backend) start(t *testing.T) {
	t.Helper()
	b.process = start(t, append(b.settings, "EDGE_LISTEN="+b.public, "EDGE_OPS_LISTEN="+b.operators)...)
	if b.client == nil { // first start
		b.public, b.operators = b.process.public, b.process.operators
	}
}

// restart stops the edge, which drains, and starts it again.
func (b *backend) restart(t *testing.T) {
	t.Helper()
	b.process.stop()
	b.start(t)
}

// probe checks whether the edge is ready, as a balancer does. While it is not, idle
// connections are closed, as a balancer notices that the edge closes them.
func (b *backend) probe() {
	status, _, err := fasthttp.GetTimeout(nil, "http://"+b.operators+"/readyz", time.Second)
	b.ready.Store(err == nil && status == fasthttp.StatusOK)
	if !b.ready.Load() {
		b.client.CloseIdleConnections()
	}
}

// get requests a path over a keep-alive connection, without retries.
func (b *backend) get(path string) error {
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	request.SetRequestURI("http://" + b.public + path)
	switch err := b.client.Do(request, response); {
	case err != nil:
		return err
	case response.StatusCode() != fasthttp.StatusOK:
		return fmt.Errorf("%s: %d %s", path, response.StatusCode(), response.Body())
	}
	b.answered.Add(1)
	return nil
}

// A restart of an edge under load fails no request, behind a balancer that checks readiness
// and does not retry.
func TestRestartUnderLoad(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)

	core := origintest.Start(t)
	directory, _ := preparedStore(t)
	backends := [2]*backend{}
	for i := range backends {
		b := &backend{public: "127.0.0.1:0", operators: "127.0.0.1:0", settings: []string{
			"EDGE_CORE_URL=" + core.URL, "EDGE_CORE_SECRETS=" + origintest.Secret, "EDGE_OBJECTS_URL=file://" + directory, "EDGE_DRAIN_WAIT=1s",
		}}
		b.start(t)
		b.client = &fasthttp.HostClient{Addr: b.public, MaxIdemponentCallAttempts: 1, RetryIfErr: func(*fasthttp.Request, int, error) (bool, bool) { return false, false }}
		backends[i] = b
	}

	stop := make(chan struct{})
	var balancer, clients sync.WaitGroup
	for _, b := range backends {
		balancer.Go(func() {
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for {
				b.probe()
				select {
				case <-stop:
					return
				case <-tick.C:
				}
			}
		})
	}
	bothReady := func() bool { return backends[0].ready.Load() && backends[1].ready.Load() }
	testenv.Eventually(t, "both become ready", bothReady)

	for client := range 8 {
		clients.Go(func() {
			tick := time.NewTicker(5 * time.Millisecond) // so that requests are in flight at any time
			defer tick.Stop()
			for n := client; ; n++ {
				select {
				case <-stop:
					return
				case <-tick.C:
				}
				order := slices.Clone(backends[:])
				if n%2 == 1 {
					slices.Reverse(order)
				}
				at := slices.IndexFunc(order, func(b *backend) bool { return b.ready.Load() })
				if at < 0 {
					t.Error("no edge is ready")
					return
				}
				if err := order[at].get("/avatar/user/1"); err != nil {
					t.Errorf("a request fails: %v", err)
					return
				}
			}
		})
	}
	defer func() { // before the edges are stopped
		close(stop)
		clients.Wait()
		balancer.Wait()
	}()
	for range 3 {
		b := backends[0]
		before := b.answered.Load()
		b.restart(t)
		testenv.Eventually(t, "both become ready again", bothReady)
		testenv.Eventually(t, "it gets requests again", func() bool { return b.answered.Load() > before+100 || t.Failed() })
	}
}
