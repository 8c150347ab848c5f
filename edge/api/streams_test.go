package api_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/edge/api"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/httpserver/httpservertest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// streams is how many streams each test sends.
const streams = 1000

// pictureRequests are the requests in streams to an edge.
var pictureRequests = []string{
	"GET /avatar/player/Steve?size=64 HTTP/1.1\r\nHost: veneer.test\r\nX-Request-ID: {id}\r\nAccept: image/webp\r\n\r\n",
	"GET /skin/Steve.png HTTP/1.1\r\nHost: veneer.test:8081\r\nConnection: keep-alive\r\nX-Request-ID: {id}\r\nIf-None-Match: *\r\n\r\n",
	"GET /csl/Steve.json HTTP/1.1\r\nHost: a\r\nIf-None-Match: \"x\"\r\nIf-Modified-Since: Sat, 21 Nov 2026 00:00:00 GMT\r\nX-Request-ID: {id}\r\n\r\n",
	"GET /body/player/Steve.png?height=64&turn=3&wear=elytra&pose=sit&exact HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\n\r\n",
	"GET /left/11?height=x HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\n\r\n",
	"GET /helm/Steve/64?y=45&no=hat HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\n\r\n",
	"GET /avatars/00000000-0000-0000-0000-000000000001?size=20&overlay&default=MHF_Alex HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\n\r\n",
	"GET /helm//64 HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\n\r\n",
	"GET /helm/.Name/128 HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\n\r\n",
	"GET /helm/Steve/100@2x.png HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\n\r\n",
	"GET /helm/Steve/-5/ HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\n\r\n",
	"GET /head/64/Steve.png?no=ears,cape&amp;y=70 HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\n\r\n",
	"GET /fullbody/Steve?back HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\n\r\n",
	"GET /render/pixel/Steve/full HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\n\r\n",
	"GET /Steve/helm/64 HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\n\r\n",
	"GET /head.png?texture=&uuid=&name=Steve&overlay HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\n\r\n",
	"GET /minecraft/helm/Steve.png/64 HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\n\r\n",
	"GET /helm/%20Steve/64x64 HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\n\r\n",
	"GET /avatars/?size=64 HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\n\r\n",
	"GET /helm/player//64@1.5x HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\n\r\n",
	"GET /body/player/.png HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\n\r\n",
	"GET /body/11?width=64&height=96&exact HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\n\r\n",
	"GET /skin/00000000-0000-0000-0000-000000000001.png?default=slim HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\n\r\n",
	"GET /heads.json?players[]=Steve,%20Alex HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\n\r\n",
	"GET /download/Steve HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\n\r\n",
	"GET /heads.json?players=Steve,Alex HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\n\r\n",
	"GET /sprite/face.png?players=Steve,nobody&size=8 HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\n\r\n",
	"GET /avatar/99 HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\n\r\n",
	"GET / HTTP/1.0\r\nConnection: keep-alive\r\nX-Request-ID: {id}\r\n\r\n",
	"HEAD /preview/12 HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\n\r\n",
	"OPTIONS /avatar/11 HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\n\r\n",
	"POST /avatar/11 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nX-Request-ID: {id}\r\n\r\nhello",
	httpservertest.WithContentLength("GET /avatar/11 HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\n", "GET /avatar/12 HTTP/1.1\r\nHost: a\r\nX-Request-ID: smuggled\r\n\r\n"),
	httpservertest.Chunked("POST /avatar/11 HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\n", "GET /avatar/12 HTTP/1.1\r\nHost: a\r\n\r\n", "abc"),
	"PUT /avatar/11 HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 5\r\nX-Request-ID: {id}\r\n\r\nhello",
	"GET /avatar/11 HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Request-ID: {id}\r\n\r\n",
}

// addressOf returns the address of a URL.
func addressOf(url string) string { return strings.TrimPrefix(url, "http://") }

// sameOnFastPath compares the responses with and without the fast path. These may differ: Date;
// ids that the servers generate; Cache-Status, since the second server finds in the cache what
// the first one has rendered; the message and the id of a 400, and whether a 100 comes before
// it, since a bare LF is detected as it arrives, or after the whole head if its beginning came
// with the request before.
func sameOnFastPath(t *testing.T, w *testServer, s httpservertest.Stream) {
	t.Helper()
	exchange := func(url string) []httpservertest.StreamResponse {
		responses, err := httpservertest.Exchange(t.Context(), addressOf(url), s)
		testenv.Check(t, err == nil, "%s: %v\n%s", url, err, s)
		for i, response := range responses {
			delete(response.Header, "Cache-Status")
			if response.Status == fasthttp.StatusBadRequest {
				delete(response.Header, "Content-Length")
				responses[i].Body, responses[i].ID = "", ""
			}
		}
		for i := len(responses) - 2; i >= 0; i-- {
			if responses[i].Status == fasthttp.StatusContinue && responses[i+1].Status == fasthttp.StatusBadRequest {
				responses = slices.Delete(responses, i, i+1)
			}
		}
		return responses
	}
	diff := cmp.Diff(exchange(w.slowURL), exchange(w.url))
	testenv.Check(t, diff == "", "answered differently (-server +fast path):\n%s%s", s, diff)
}

// Streams of valid and invalid requests get the same responses with and without the fast path,
// however they are cut into segments.
func TestStreamsOnTheFastPath(t *testing.T) {
	t.Parallel()
	w := openSeeded(t)
	generator := httpservertest.NewGenerator("s", 1, pictureRequests)
	for range streams {
		sameOnFastPath(t, w.testServer, generator.Next())
		if t.Failed() {
			return
		}
	}
	handled := w.handled.Load()
	testenv.Check(t, handled != 0, "no request was left to the server")
}

func FuzzStreamsOnTheFastPath(f *testing.F) {
	w := openSeeded(f)
	generator := httpservertest.NewGenerator("f", 2, pictureRequests)
	for seed := range uint64(30) {
		f.Add(generator.Next().Sent, seed)
	}
	f.Fuzz(func(t *testing.T, sent []byte, cuts uint64) {
		sameOnFastPath(t, w.testServer, httpservertest.Cut(sent, cuts))
	})
}

// apiRequests are the requests in streams to an edge and its upstream. Their unique ids show
// which one a response belongs to.
var apiRequests = []string{
	"GET /api/players?a=%20&b HTTP/1.1\r\nHost: veneer.test\r\nX-Request-ID: {id}\r\nAuthorization: Bearer x\r\n\r\n",
	"GET /api HTTP/1.1\r\nHost: veneer.test\r\nConnection: keep-alive\r\nX-Request-ID: {id}\r\n\r\n",
	"HEAD /api/x HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\n\r\n",
	"POST /api/closet/%E2%9C%93 HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 7\r\nX-Request-ID: {id}\r\n\r\n{\"a\":1}",
	"DELETE /api/x HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\nCookie: a=b\r\nCookie: c=d\r\n\r\n",
	httpservertest.WithContentLength("PUT /api/x HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\n", "GET /api/smuggled HTTP/1.1\r\nHost: a\r\nX-Request-ID: smuggled\r\n\r\n"),
	httpservertest.Chunked("POST /api/x HTTP/1.1\r\nHost: a\r\nX-Request-ID: {id}\r\n", "GET /api/smuggled HTTP/1.1\r\nHost: a\r\n\r\n", "abc"),
	"POST /api/x HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 5\r\nX-Request-ID: {id}\r\n\r\nhello",
	"POST /api/x HTTP/1.0\r\nContent-Length: 5\r\nX-Request-ID: {id}\r\n\r\nhello",
	"GET http://a/api/x?y HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Request-ID: {id}\r\n\r\n",
}

// echoUpstream starts a server like core's, which responds with the request. Like an edge, it
// reads the body only of requests that an edge forwards, so that both respond to any other one
// with an incomplete body.
func echoUpstream(tb testing.TB) (url string) {
	tb.Helper()
	opts := httpserver.Options{Listener: "echo", Limits: httpserver.Limits{HeaderBytes: 16 << 10, BodiesBytes: 64 << 20, MaxConnections: 4096}, Log: slog.New(slog.DiscardHandler)}
	route := opts.Route("echo").AcceptBody(1<<20, 0)
	return listen(tb, httpserver.Listener{Server: opts.NewServer(opts.HandleNoContext(func(rc *fasthttp.RequestCtx) error {
		route.AssignTo(rc)
		if api.IsForwarded(rc) {
			if err := httpserver.ReadBody(rc); err != nil {
				return err
			}
		}
		rc.Response.Header.Set("X-Echo", "yes")
		_, _ = fmt.Fprintf(rc, "%s %s?%s\n%q\n", rc.Method(), rc.Path(), rc.URI().QueryString(), rc.PostBody())
		for _, name := range []string{"Authorization", "Content-Type", "If-None-Match", "X"} {
			_, _ = fmt.Fprintf(rc, "%s: %q\n", name, rc.Request.Header.PeekAll(name))
		}
		return nil
	}))})
}

// compareForwarded compares the responses of an upstream with those through an edge. The edge
// itself responds to paths outside /api and to non-canonical ones. Every other response must
// equal the upstream's in the same place. So no request can be smuggled in the body of another
// one.
func compareForwarded(t *testing.T, upstream, edge string, s httpservertest.Stream) (passed int) {
	t.Helper()
	exchange := func(url string) []httpservertest.StreamResponse {
		responses, err := httpservertest.Exchange(t.Context(), addressOf(url), s)
		testenv.Check(t, err == nil, "%s: %v\n%s", url, err, s)
		return responses
	}
	direct, through := exchange(upstream), exchange(edge)
	for i, response := range through {
		delete(response.Header, "Cache-Status")
		switch {
		case i >= len(direct):
		case response.Header.Get("X-Echo") != "":
			passed++
		case direct[i].Header.Get("X-Echo") != "" && slices.Contains([]int{200, 204, 304, 404, 405, 422}, response.Status):
			through[i] = direct[i] // of the edge itself
		case response.Status >= 400 && response.Status == direct[i].Status:
			// The headers of errors about invalid requests differ.
			through[i] = direct[i]
		}
	}
	diff := cmp.Diff(direct, through)
	testenv.Check(t, diff == "", "answered differently (-upstream +edge):\n%s%s", s, diff)
	return passed
}

func TestStreamsForwarded(t *testing.T) {
	t.Parallel()
	upstream := echoUpstream(t)
	s := open(t, func(s *setup) { s.api.APIUpstream = upstream })
	generator := httpservertest.NewGenerator("s", 3, apiRequests)
	passed := 0
	for range streams {
		passed += compareForwarded(t, upstream, s.slowURL, generator.Next())
		if t.Failed() {
			return
		}
	}
	testenv.Check(t, passed >= streams/2, "of %d streams only %d requests were forwarded", streams, passed)
}

func FuzzStreamsForwarded(f *testing.F) {
	upstream := echoUpstream(f)
	s := open(f, func(s *setup) { s.api.APIUpstream = upstream })
	generator := httpservertest.NewGenerator("f", 4, apiRequests)
	for seed := range uint64(30) {
		f.Add(generator.Next().Sent, seed)
	}
	// An incomplete body of a request outside /api.
	f.Add([]byte("HEAD /api/x HTTP/1.1\r\nHost: a\r\n\r\nPOST /GGapi/x HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\n{"), uint64(0))
	f.Fuzz(func(t *testing.T, sent []byte, cuts uint64) {
		compareForwarded(t, upstream, s.slowURL, httpservertest.Cut(sent, cuts))
	})
}
