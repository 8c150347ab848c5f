package baseline

import (
	"testing"

	"github.com/valyala/fasthttp"
)

// The baseline of the edge's hits does not allocate.
func TestFasthttpAllocatesNothing(t *testing.T) {
	r := Record{
		Bodies: [][]byte{[]byte("picture")},
		Full:   []Response{{Target: "/a?3d&size=8", Status: 200, Headers: []Header{{"Content-Type", "image/png"}, {"Cache-Status", "veneer; hit"}}}},
	}
	handler := r.handler(r.Full)
	var rc fasthttp.RequestCtx
	rc.Request.SetRequestURI("/a?3d&size=8")
	handler(&rc)
	if string(rc.Response.Body()) != "picture" || string(rc.Response.Header.Peek("Cache-Status")) != "veneer; hit" {
		t.Errorf("it answers %s", rc.Response.String())
	}
	if n := testing.AllocsPerRun(1000, func() {
		rc.Response.Header.Reset()
		handler(&rc)
	}); n != 0 {
		t.Errorf("a response allocates %v times", n)
	}
}
