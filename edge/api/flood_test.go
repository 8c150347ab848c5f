package api_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
)

// A client that does not read its pictures holds up nobody: a slot is for drawing,
// and what is drawn waits without one.
func TestSlowClientHoldsNoSlot(t *testing.T) {
	t.Parallel()
	w := openTown(t, func(with *setup) {
		with.pictures.RenderSlots, with.pictures.RenderQueue = 1, 3 // half of whom may fetch
		with.studio.padding = make([]byte, 1<<20)                   // so that few are more than the kernel keeps
	})
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	must(t, err)
	defer func() { _ = conn.Close() }()
	const asked = 512 / 8
	for i := range asked {
		_, err := fmt.Fprintf(conn, "GET /avatar/11?size=%d HTTP/1.1\r\nHost: test\r\n\r\n", 8*(i+1))
		must(t, err)
	}

	// Others get their pictures before the server is stuck in writing and ever after.
	own, drawn, stuck := int64(0), int64(0), 0
	for ; stuck < 3; own++ {
		if status := w.get(t, fmt.Sprintf("/avatar/12?3d&size=%d", 8*(own+1))).status; status != 200 {
			t.Fatalf("another client's picture after %d of %d: %d; want 200", drawn, asked, status)
		}
		if now := w.studio.drawn.Load() - own - 1; now > drawn {
			drawn, stuck = now, 0
		} else if now > 0 {
			stuck++
		}
	}
	if drawn == asked {
		t.Error("all pictures were written though nobody has read one")
	}
}
