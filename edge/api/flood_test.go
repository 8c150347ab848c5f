package api_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// A client that does not read its pictures delays no other client: a response that waits to be
// written occupies no worker.
func TestSlowClientHoldsNoWorker(t *testing.T) {
	t.Parallel()
	w := openSeeded(t, func(with *setup) {
		with.pictures.RenderWorkers, with.pictures.RenderQueuePerWorker = 1, 3 // half of these may fetch
		with.backend.padding = make([]byte, 1<<20)                             // so that a few fill the socket buffers
	})
	conn := dial(t, w.url, "")
	const asked = 512 / 8
	for i := range asked {
		conn.send(t, fmt.Sprintf("GET /avatar/11?size=%d HTTP/1.1\r\nHost: test\r\n\r\n", 8*(i+1)))
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
	testenv.Check(t, drawn != asked, "all pictures were written though the client has read none")
}

// A network that makes names up is rejected, mostly on the fast path. All other networks are
// served, whether the names exist or not.
func TestUnknownNamesOfOneNetwork(t *testing.T) {
	t.Parallel()
	w := openSeeded(t, func(with *setup) { with.unknown = 10 })
	hostile, made := dial(t, w.url, "127.0.2.1"), 0
	makeUp := func() int {
		made++
		return hostile.get(t, fmt.Sprintf("/avatar/player/made_up_%d", made)).status
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
	handled := w.handled.Load() - before
	testenv.Check(t, handled <= many/2, "%d of %d rejections did not take the fast path", handled, many)
	for i, target := range []string{"/avatar/player/Steve", "/skin/Alex.png", "/avatar/player/nobody", "/avatar/uuid/00000000000000000000000000000000"} {
		if status := dial(t, w.url, fmt.Sprintf("127.0.3.%d", i+1)).get(t, target).status; status != http.StatusOK && status != http.StatusNotFound {
			t.Errorf("%s for another network: %d", target, status)
		}
		_ = makeUp()
	}
}
