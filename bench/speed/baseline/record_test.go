package baseline

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fasthttp"
)

func TestTypical(t *testing.T) {
	t.Parallel()

	responses := make([]Response, 4)
	for i, length := range []int{1, 100, 30, 2} { // 33 on average
		responses[i] = Response{Target: fmt.Sprint(length), Headers: []Header{{"", strings.Repeat("x", length)}}}
	}
	if got := typicalResponse(responses).Target; got != "30" {
		t.Errorf("the one with %s bytes is typical; want 30", got)
	}
}

func TestNginxConfig(t *testing.T) {
	t.Parallel()

	text := nginxConfig("127.0.0.1:1", "127.0.0.1:2", "/srv", "/srv/by body", 7, []Header{
		{"Content-Type", "image/webp"}, {"Cache-Status", "veneer; hit"}, {"Etag", `"abc"`},
	})
	for want, count := range map[string]int{
		"listen 127.0.0.1:1;": 1, "listen 127.0.0.1:2;": 1, "max=7 ": 1, `root "/srv/by body";`: 1, "default_type image/webp;": 1,
		`add_header Cache-Status "veneer; hit";`: 2, `add_header Etag "\"abc\"";`: 1, "{": 5, "}": 5,
	} {
		if got := strings.Count(text, want); got != count {
			t.Errorf("%q is there %d times; want %d", want, got, count)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

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

// cloneResponses returns a copy that can be changed.
func cloneResponses(responses []Response) []Response {
	own := append([]Response(nil), responses...)
	for i := range own {
		own[i].Headers = append([]Header(nil), own[i].Headers...)
	}
	return own
}

// serveHandler serves a handler on loopback and returns its address.
func serveHandler(t *testing.T, handler fasthttp.RequestHandler) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &fasthttp.Server{Handler: handler, NoDefaultServerHeader: true, NoDefaultContentType: true}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		if err := server.Shutdown(); err != nil {
			t.Error(err)
		}
		_ = listener.Close() // already by Shutdown, unless the server did not serve yet
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}
