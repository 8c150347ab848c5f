package load_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/load"
)

func numbered(buffer []byte, n int64) []byte {
	return fmt.Appendf(buffer, "GET /%d HTTP/1.1\r\nHost: test\r\n\r\n", n)
}

func TestFloodSendsEachNumberOnce(t *testing.T) {
	t.Parallel()

	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	seen := map[string]int{}
	address := serve(t, func(rc *fasthttp.RequestCtx) {
		mu.Lock()
		defer mu.Unlock()
		seen[string(rc.Path())]++
		if len(seen) == 600 {
			cancel()
		}
		if string(rc.Path()) == "/1003" {
			rc.SetStatusCode(fasthttp.StatusNotFound)
		}
	})
	flood := load.Flood{Address: address, Connections: 3, Append: numbered}
	statuses, err := flood.Run(ctx, 3000, 1000)
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	// However the connections share them: from 1000 on, nearly without a gap.
	for i := range 300 {
		if n := seen[fmt.Sprintf("/%d", 1000+i)]; n != 1 {
			t.Errorf("request %d was sent %d times; want once", 1000+i, n)
		}
	}
	if diff := cmp.Diff(1, int(statuses[fasthttp.StatusNotFound])); diff != "" || statuses[fasthttp.StatusOK] < 300 {
		t.Errorf("answers by status: %v; want one 404 and otherwise 200", statuses)
	}
}

func TestFloodEndsWithAConnection(t *testing.T) {
	t.Parallel()

	address := serve(t, func(rc *fasthttp.RequestCtx) { rc.HijackSetNoResponse(true); rc.Hijack(func(net.Conn) {}) })
	flood := load.Flood{Address: address, Connections: 1, Append: numbered}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := flood.Run(ctx, 1000, 0); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Run: %v; want that the connection broke", err)
	}
}
