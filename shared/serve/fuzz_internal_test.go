package serve

import (
	"bufio"
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// What the shortcut takes for a request is one to the server, too: the same bytes, the
// same target and id, without a body, and with nothing that ends the connection.
func FuzzPlain(f *testing.F) {
	for _, request := range []string{
		"GET /avatar/player/Steve.png?size=64&3d HTTP/1.1\r\nHost: veneer.test:8081\r\nAccept: */*\r\n\r\n",
		"GET / HTTP/1.1\r\nhost:a\r\nConnection: Keep-Alive\r\nX-Request-ID: abc\r\nIf-None-Match: \"a\", W/\"b\"\r\nX: y\r\nIf-Match: *\r\n\r\nGET",
		"GET /a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", "GET /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "GET /a HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n",
		"GET /a HTTP/1.1\r\nHost: a\r\nA: b\r\n c\r\n\r\n", "GET /a HTTP/1.1\r\nHost: a\nA: b\r\n\r\n", "GET //a/./%61 HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a HTTP/1.0\r\nHost: a\r\n\r\n",
	} {
		f.Add([]byte(request))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var p Plain
		size := p.read(bytes.Clone(in))
		if size == 0 {
			return
		}
		reader := bufio.NewReader(bytes.NewReader(in))
		var request fasthttp.Request
		if err := request.Read(reader); err != nil {
			t.Fatalf("%q is taken, but the server says: %v", in[:size], err)
		}
		if err := checkFields(request.Header.RawHeaders()); err != nil {
			t.Fatalf("%q is taken, but the server refuses it: %v", in[:size], err)
		}
		if left, _ := reader.Peek(min(len(in)-size, reader.Size()-size)); len(in) < reader.Size() && !bytes.Equal(left, in[size:]) {
			t.Errorf("%q is taken, but the server reads on to %q", in[:size], left)
		}
		uri := request.URI()
		if !request.Header.IsGet() || !request.Header.IsHTTP11() || len(request.Body()) > 0 || request.ConnectionClose() || request.MayContinue() {
			t.Errorf("%q is taken, but is more than a GET", in[:size])
		}
		if !bytes.Equal(p.Path, uri.Path()) || !bytes.Equal(p.Query, uri.QueryString()) {
			t.Errorf("%q has the path %q and the query %q; want %q and %q", in[:size], p.Path, p.Query, uri.Path(), uri.QueryString())
		}
		if got := request.Header.PeekCanonical(keyRequestID); !bytes.Equal(p.id, got) {
			t.Errorf("%q has the id %q; want %q", in[:size], p.id, got)
		}
		for _, name := range []string{"If-Match", "If-None-Match", "If-Modified-Since"} {
			for _, value := range request.Header.PeekAll(name) {
				if !bytes.Contains(p.Conditions, value) {
					t.Errorf("%q has the conditions %q; want %q among them", in[:size], p.Conditions, value)
				}
			}
		}
	})
}

// A head is scanned alike however it is cut.
func FuzzHeadScan(f *testing.F) {
	for _, head := range []string{
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\nHost: a\n\n", "\r\n\n\r\nGET / HTTP/1.1\r\nA: b\r\n\r\nbody\n\n", "GET / HTTP/1.1\r\n\n", "\r\r\n", "a\r\n\r", "a\r\nb\r\r\n\r\nc",
	} {
		f.Add([]byte(head), uint8(3))
	}
	f.Fuzz(func(t *testing.T, head []byte, size uint8) {
		var whole, parts headScan
		whole.begin()
		parts.begin()
		want, wantErr := whole.scan(head)
		got, step := 0, max(1, int(size))
		var err error
		for rest := head; len(rest) > 0 && err == nil && parts.on; {
			part := rest[:min(step, len(rest))]
			var n int
			n, err = parts.scan(part)
			got, rest = got+n, rest[len(part):]
		}
		if !parts.on {
			got = len(head)
		}
		if got != want || err != wantErr || parts.on != whole.on { //nolint:errorlint // it is none but errBareLF
			t.Errorf("%q in parts of %d: %d, %v, %t; want %d, %v, %t", head, step, got, err, parts.on, want, wantErr, whole.on)
		}
	})
}

// The shortcut leaves to the server what is traced, by the standard's own reader.
func FuzzTraceparent(f *testing.F) {
	for _, value := range []string{
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
		"cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more", "00-00000000000000000000000000000000-b7ad6b7169203331-01", "",
	} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		read := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(t.Context(), propagation.MapCarrier{"traceparent": value}))
		if read.IsSampled() && !isSampled([]byte(value)) {
			t.Errorf("%q is traced, but the shortcut would take it", value)
		}
	})
}

// An id is a client's word or one of ours, and fits into a line of a header and of a log.
func FuzzRequestID(f *testing.F) {
	for _, sent := range []string{"", "abc-123_X.y", "a b", "a\r\nb: c", strings.Repeat("a", 65), "é"} {
		f.Add([]byte(sent))
	}
	ours, word := regexp.MustCompile("^[0-9a-f]{16}$"), regexp.MustCompile(`^[-_.0-9A-Za-z]{1,64}$`)
	f.Fuzz(func(t *testing.T, sent []byte) {
		got := appendRequestID(nil, sent)
		if word.Match(sent) != bytes.Equal(got, sent) && !ours.Match(sent) || !word.Match(sent) && !ours.Match(got) || bytes.HasSuffix(got, []byte("\n")) {
			t.Errorf("the id of %q is %q", sent, got)
		}
	})
}

// A tag is found only where it stands, and by the weak comparison whenever by the other.
func FuzzMatchETag(f *testing.F) {
	for _, list := range []string{"*", `"a"`, `W/"a"`, `"b", W/"a" ,"c"`, `"a,"`, `W/`, `"`, `"a`, `b"a"`} {
		f.Add([]byte(list))
	}
	tag := []byte(`"a"`)
	f.Fuzz(func(t *testing.T, list []byte) {
		weak, strong := MatchETag(list, tag, true), MatchETag(list, tag, false)
		if strong && !weak || weak && !bytes.Contains(list, tag) && string(bytes.TrimSpace(list)) != "*" {
			t.Errorf("%q has the tag %s: %t, %t", list, tag, weak, strong)
		}
		if before, _, found := bytes.Cut(list, []byte(`"`)); !found && string(bytes.TrimSpace(before)) != "*" && !MatchETag(append(bytes.Clone(list), `, "x", W/"a"`...), tag, true) {
			t.Errorf("behind %q no tag is found", list)
		}
	})
}
