//go:build !race

package api_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// BenchmarkHit serves hits on a connection in memory, so it measures the program without the
// kernel. bare is a fasthttp handler that looks up the same body and headers in a map by the
// target of the request.
func BenchmarkHit(b *testing.B) {
	w := openSeeded(b)
	w.set(b, map[edgeproto.Key]edgeproto.Mapping{})
	const target = "/avatar/player/Steve?size=64&3d"
	w.get(b, target)
	got := w.get(b, target)
	request := []byte("GET " + target + " HTTP/1.1\r\nHost: images.example.org\r\n\r\n")

	type line struct{ key, value []byte }
	type answer struct {
		header []line
		body   []byte
	}
	answers := map[string]*answer{}
	want := &answer{body: []byte(got.body)}
	for name, values := range got.header {
		if name != "Date" && name != "Content-Length" {
			want.header = append(want.header, line{[]byte(name), []byte(values[0])})
		}
	}
	answers[target] = want
	bare := &fasthttp.Server{NoDefaultServerHeader: true, NoDefaultContentType: true, Handler: func(rc *fasthttp.RequestCtx) {
		got := answers[string(rc.RequestURI())]
		for _, line := range got.header {
			rc.Response.Header.SetCanonical(line.key, line.value)
		}
		rc.Response.SetBodyRaw(got.body)
	}}

	for _, of := range []struct {
		name   string
		server *fasthttp.Server
	}{{"edge", w.server}, {"bare", bare}} {
		b.Run("of="+of.name, func(b *testing.B) {
			through := &loopConn{request: request, left: b.N, want: []byte("HTTP/1.1 200 OK\r\n")}
			b.ReportAllocs()
			if err := of.server.ServeConn(through); err != nil {
				b.Fatal(err)
			}
			testenv.Check(b, through.wrong == 0, "%d answers are not 200", through.wrong)
		})
	}
}

// loopConn is a connection on which the same request arrives a number of times.
type loopConn struct {
	memoryConn

	request, want []byte
	left, wrong   int
}

func (l *loopConn) Read(into []byte) (int, error) {
	if l.left == 0 {
		return 0, io.EOF
	}
	l.left--
	return copy(into, l.request), nil
}

func (l *loopConn) Write(part []byte) (int, error) {
	if !bytes.HasPrefix(part, l.want) {
		l.wrong++
	}
	return len(part), nil
}
