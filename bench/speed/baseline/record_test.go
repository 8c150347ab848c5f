package baseline

import (
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// Check detects every difference to the edge's responses.
func TestCheck(t *testing.T) {
	t.Parallel()
	recorded := Record{
		Bodies:     [][]byte{[]byte("picture")},
		Full:       []Response{{Target: "/a?b", Status: 200, Headers: []Header{{"Content-Type", "image/png"}, {"Etag", `"1"`}}}},
		Unmodified: []Response{{Target: "/a?b", Status: 304, Headers: []Header{{"Etag", `"1"`}}}},
	}
	f := func(ownTags bool, change func(*Record), want string) {
		t.Helper()
		served := Record{Bodies: recorded.Bodies, Full: cloneResponses(recorded.Full), Unmodified: cloneResponses(recorded.Unmodified)}
		change(&served)
		s := &Server{
			Name: "it", Address: serveHandler(t, served.handler(served.Full)), Conditional: serveHandler(t, served.handler(served.Unmodified)),
			OwnTags: ownTags,
		}
		tags, err := s.Check(t.Context(), &recorded)
		switch {
		case want == "" && (err != nil || !cmp.Equal(tags, []string{`"1"`})):
			t.Errorf("check: %q, %v", tags, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("check: %v; want an error with %q", err, want)
		}
	}

	f(false, func(*Record) {}, "")
	f(false, func(r *Record) { r.Bodies = [][]byte{[]byte("pixture")} }, "7 bytes to /a?b, and not the 7")
	f(false, func(r *Record) { r.Full[0].Status = 201 }, "it answers 201 to /a?b; the edge 200")
	f(false, func(r *Record) { r.Unmodified[0].Status = 200 }, "it answers 200 to /a?b; the edge 304")
	f(false, func(r *Record) { r.Full[0].Headers[0].Value = "image/webp" }, "image/webp")
	f(false, func(r *Record) { r.Full[0].Headers = append(r.Full[0].Headers, Header{"X-More", "1"}) }, "X-More")
	f(false, func(r *Record) { r.Full[0].Target = "/b" }, "404")
	f(true, func(r *Record) { r.Full[0].Headers[0].Value = "image/webp" }, "")
	f(true, func(r *Record) { r.Full[0].Headers = r.Full[0].Headers[:1] }, "it answers no Etag to /a?b")
}

func cloneResponses(responses []Response) []Response {
	own := append([]Response(nil), responses...)
	for i := range own {
		own[i].Headers = append([]Header(nil), own[i].Headers...)
	}
	return own
}

func serveHandler(t *testing.T, handler fasthttp.RequestHandler) string {
	t.Helper()
	listener := testenv.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	server := &fasthttp.Server{Handler: handler, NoDefaultServerHeader: true, NoDefaultContentType: true}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		testenv.Do(t, server.Shutdown())
		_ = listener.Close() // already by Shutdown, unless the server did not serve yet
		testenv.Do(t, <-served)
	})
	return listener.Addr().String()
}
