// Package bench measures Veneer's speed from end to end, beside what the
// machine can do at all.
package bench_test

import (
	"net"
	"strconv"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/system"
	"github.com/veneer-skins/veneer/shared/objects"
)

// BenchmarkHotPicture gets one cached picture over and over, on as many
// keep-alive connections as there are goroutines: from an edge, and from a bare
// fasthttp handler that does nothing but return the same bytes. What the edge
// costs is the ratio of the two within one run; a figure alone says more about
// the machine.
func BenchmarkHotPicture(b *testing.B) {
	s := system.Start(b, objects.Config{URL: "file://" + b.TempDir()})
	address := s.Images + "/avatar/user/1"
	status, picture, err := fasthttp.Get(nil, address)
	if err != nil || status != fasthttp.StatusOK {
		b.Fatalf("%s: %d, %v", address, status, err)
	}

	bare := serveBare(b, picture)
	b.Run("of=bare", func(b *testing.B) { get(b, bare, picture) })
	b.Run("of=edge", func(b *testing.B) { get(b, address, picture) })
}

// serveBare serves the same bytes to everybody.
func serveBare(b *testing.B, body []byte) string {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &fasthttp.Server{Handler: func(rc *fasthttp.RequestCtx) {
		rc.SetContentType("image/webp")
		rc.Response.SetBodyRaw(body)
	}}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	b.Cleanup(func() {
		if err := server.Shutdown(); err != nil {
			b.Error(err)
		}
		if err := <-served; err != nil {
			b.Error(err)
		}
	})
	return "http://" + listener.Addr().String() + "/"
}

func get(b *testing.B, address string, want []byte) {
	b.Helper()
	client := &fasthttp.Client{MaxConnsPerHost: 1024}
	defer client.CloseIdleConnections()
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
		defer fasthttp.ReleaseRequest(request)
		defer fasthttp.ReleaseResponse(response)
		request.SetRequestURI(address)
		for pb.Next() {
			if err := client.Do(request, response); err != nil {
				b.Error(err)
				return
			}
			if response.StatusCode() != fasthttp.StatusOK || len(response.Body()) != len(want) {
				b.Error("status " + strconv.Itoa(response.StatusCode()))
				return
			}
		}
	})
}
