//go:build !race

package httpserver

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// Neither timeouts nor large responses cost an allocation.
func TestResponseAllocations(t *testing.T) {
	ln := testenv.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = ln.Close() })
	client := testenv.Must(net.Dial("tcp", ln.Addr().String()))(t)
	accepted := testenv.Must(Listener{Server: &fasthttp.Server{WriteTimeout: time.Minute}}.Wrap(ln).Accept())(t)
	c := connOf(accepted)
	var reader sync.WaitGroup
	reader.Go(func() { _, _ = io.Copy(io.Discard, client) })
	t.Cleanup(func() {
		_ = c.Close()
		reader.Wait()
		_ = client.Close()
	})

	rc, full, rest := request(c, 2*writeBuffer), make([]byte, writeBuffer), make([]byte, writeBuffer)
	n := testing.AllocsPerRun(1000, func() {
		c.setState(fasthttp.StateActive)
		c.beginResponse(rc, time.Now())
		for _, part := range [][]byte{full, rest} {
			if _, err := c.Write(part); err != nil {
				t.Fatal(err)
			}
		}
		c.setState(fasthttp.StateIdle)
	})
	testenv.Equal(t, n, 0, "allocations of an answer")
}
