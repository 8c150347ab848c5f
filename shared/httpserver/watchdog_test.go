package httpserver_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// A program whose operators' listener accepts connections and answers none ends by itself. One that answers goes on.
func TestWatchdog(t *testing.T) {
	t.Parallel()
	var answered atomic.Int32
	stuck, release := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(release) })
	server := &fasthttp.Server{Handler: func(*fasthttp.RequestCtx) {
		select {
		case <-stuck:
			<-release
		default:
			answered.Add(1)
		}
	}}
	listeners := testenv.Must(httpserver.Open(t.Context(), silent(), nil, httpserver.Listener{Name: "operators", Setting: "OPS_LISTEN", Address: "127.0.0.1:0", Server: server}))(t)
	listeners.SetWatchdog(20 * time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- listeners.Run(ctx, silent(), httpserver.NewHealth(), httpserver.Drain{}, nil) }()
	testenv.Eventually(t, "the watchdog has asked more often than it waits for", func() bool { return answered.Load() > 10 })
	select {
	case err := <-ended:
		t.Fatalf("it ends although it answers: %v", err)
	default:
	}
	close(stuck)
	testenv.ErrorHas(t, <-ended, "the program is stuck: ", "Run")
}
