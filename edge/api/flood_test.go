package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// A client that does not read its pictures delays no other client: a response that waits to be
// written occupies no worker.
func TestSlowClientHoldsNoWorker(t *testing.T) {
	t.Parallel()
	w := openSeeded(t, func(with *setup) {
		with.pictures.RenderWorkers, with.pictures.RenderQueuePerWorker = 1, 3 // half of these may fetch
		with.backend.padding = make([]byte, 1<<20)                             // so that a few fill the socket buffers
	})
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	must(t, err)
	defer func() { _ = conn.Close() }()
	const asked = 512 / 8
	for i := range asked {
		_, err := fmt.Fprintf(conn, "GET /avatar/11?size=%d HTTP/1.1\r\nHost: test\r\n\r\n", 8*(i+1))
		must(t, err)
	}

	// Other clients get their pictures, before and after the server blocks in writing.
	own, drawn, stuck := int64(0), int64(0), 0
	for ; stuck < 3; own++ {
		if status := w.get(t, fmt.Sprintf("/avatar/12?3d&size=%d", 8*(own+1))).status; status != 200 {
			t.Fatalf("another client's picture after %d of %d: %d; want 200", drawn, asked, status)
		}
		if now := w.backend.drawn.Load() - own - 1; now > drawn {
			drawn, stuck = now, 0
		} else if now > 0 {
			stuck++
		}
	}
	if drawn == asked {
		t.Error("all pictures were written though the client has read none")
	}
}

// A network that makes names up is rejected, mostly on the fast path. All other networks are
// served, whether the names exist or not.
func TestUnknownNamesOfOneNetwork(t *testing.T) {
	t.Parallel()
	w := openSeeded(t, func(with *setup) { with.unknown = 10 })
	from := func(address string) (get func(target string) int) {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
		conn, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(w.url, "http://"))
		must(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		reader := bufio.NewReader(conn)
		return func(target string) int {
			_, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", target)
			must(t, err)
			response, err := http.ReadResponse(reader, nil)
			must(t, err)
			_, err = io.Copy(io.Discard, response.Body)
			must(t, err)
			_ = response.Body.Close()
			return response.StatusCode
		}
	}
	hostile, made := from("127.0.2.1"), 0
	makeUp := func() int {
		made++
		return hostile(fmt.Sprintf("/avatar/player/made_up_%d", made))
	}
	for makeUp() == http.StatusNotFound {
	}
	const many = 1000
	before := w.handled.Load()
	for range many {
		if status := makeUp(); status != http.StatusServiceUnavailable && status != http.StatusNotFound {
			t.Fatalf("a name that is made up: %d", status)
		}
	}
	if handled := w.handled.Load() - before; handled > many/2 {
		t.Errorf("%d of %d rejections did not take the fast path", handled, many)
	}
	for i, target := range []string{"/avatar/player/Steve", "/skin/Alex.png", "/avatar/player/nobody", "/avatar/uuid/00000000000000000000000000000000"} {
		if status := from(fmt.Sprintf("127.0.3.%d", i+1))(target); status != http.StatusOK && status != http.StatusNotFound {
			t.Errorf("%s for another network: %d", target, status)
		}
		_ = makeUp()
	}
}
