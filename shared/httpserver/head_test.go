package httpserver_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// arrivals are the ways in which a request can arrive: on a new connection, after a response,
// in a pipeline, and byte by byte.
var arrivals = []arrival{
	{name: "first"}, {name: "later", before: "answered"}, {name: "pipelined", before: "together"}, {name: "byte for byte", byByte: true},
}

type arrival struct {
	name, before string
	byByte       bool
}

// exchangeAs sends a request in one of those ways, and returns the response and whether the
// server closed the connection within five seconds.
func exchangeAs(t *testing.T, address, request, before string, byByte bool) (answer string, closed bool) {
	t.Helper()
	if before == "together" {
		request = get + request
	}
	conn := send(t, address, "")
	defer func() { _ = conn.Close() }()
	reader := bufio.NewReader(conn)
	if before == "answered" {
		_, _ = io.WriteString(conn, get)
		readResponse(t, conn, reader)
	}
	size := len(request)
	if byByte {
		size = 1
	}
	for part := range slices.Chunk([]byte(request), size) {
		if _, err := conn.Write(part); err != nil { // the server may reject the beginning
			break
		}
	}
	if before == "together" {
		readResponse(t, conn, reader)
	}
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	got, err := io.ReadAll(reader)
	return string(got), !errors.Is(err, os.ErrDeadlineExceeded)
}

// expectClosed sends a request in each of some ways, and expects a status, after which the connection is closed and
// nothing more is taken for a request.
func expectClosed(t *testing.T, address, request, status string, ways ...arrival) {
	t.Helper()
	for _, way := range ways {
		t.Run(fmt.Sprintf("%s %.60q", way.name, request), func(t *testing.T) {
			t.Parallel()
			got, closed := exchangeAs(t, address, request, way.before, way.byByte)
			if !strings.HasPrefix(got, "HTTP/1.1 "+status) || !strings.Contains(got, "Connection: close\r\n") || strings.Contains(got, "smuggled") || !closed {
				t.Errorf("the answer is %q, and then the connection is closed: %t", got, closed)
			}
		})
	}
}

// bothPaths returns the addresses of a server that has the fast path, and of one that has not.
func bothPaths(t *testing.T) [2]string {
	t.Helper()
	return [2]string{newEcho(limits()).listen(t, true), newEcho(limits()).listen(t, false)}
}

// firstAndSecond runs a test with the first request of a connection, and with the second.
func firstAndSecond(t *testing.T, address, name string, test func(t *testing.T, conn net.Conn, reader *bufio.Reader)) {
	t.Helper()
	for _, before := range []string{"", get} {
		t.Run(fmt.Sprintf("%d %q", len(before), name), func(t *testing.T) {
			t.Parallel()
			conn := send(t, address, before)
			reader := bufio.NewReader(conn)
			if before != "" {
				readResponse(t, conn, reader)
			}
			test(t, conn, reader)
		})
	}
}

// readResponse reads a response, and returns its status and whether it closes the connection.
func readResponse(t *testing.T, conn net.Conn, reader *bufio.Reader) (status int, last bool) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	response, err := http.ReadResponse(reader, nil)
	testenv.Do(t, err)
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	return response.StatusCode, response.Close
}

// A head that a proxy may parse differently is rejected at once, and the connection is
// closed: nothing after it is taken for a request.
func TestAmbiguousHeads(t *testing.T) {
	t.Parallel()
	const (
		head  = "POST /a HTTP/1.1\r\nHost: a\r\n"
		chunk = "0\r\n\r\n"
		next  = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
	)
	for _, address := range bothPaths(t) {
		f := func(request string) { expectClosed(t, address, request, "400 ", arrivals...) }

		// RFC 9112, section 6.1: both headers, in any order, case and value.
		f(head + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk + next)
		f(head + "transfer-encoding: Chunked\r\ncontent-length: 0\r\n\r\n" + chunk + next)
		f(head + "Content-Length: 5\r\nTransfer-Encoding: identity\r\n\r\nhello" + next)
		f("GET /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk + next)

		// Ambiguous lengths and codings.
		f(head + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!" + next)
		f(head + "Content-Length: 5, 6\r\n\r\nhello!" + next)
		f(head + "Content-Length: +5\r\n\r\nhello" + next)
		f(head + "Content-Length: 0x5\r\n\r\nhello" + next)
		f(head + "Content-Length: -1\r\n\r\n" + next)
		f(head + "Content-Length:\r\n\r\n" + next)
		f(head + "Content-Length: 5 5\r\n\r\nhello" + next)
		f(head + "Transfer-Encoding: gzip, chunked\r\n\r\n" + chunk + next)
		f(head + "Transfer-Encoding: chunked, identity\r\n\r\n" + chunk + next)
		f(head + "Transfer-Encoding: identity\r\n\r\n" + next)
		f(head + "Transfer-Encoding: xchunked\r\n\r\n" + next)
		f(head + "Transfer-Encoding:\r\n\r\n" + next)
		f(head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk + next)
		f("POST /a HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk + next)

		// Names that are not tokens, and folded fields.
		f(head + "Content- ength: 5\r\n\r\nhello" + next)
		f(head + "Content Length: 5\r\n\r\nhello" + next)
		f(head + "Content-Length : 5\r\n\r\nhello" + next)
		f(head + "X\tY: 5\r\n\r\n" + next)
		f(head + "X(Y): 5\r\n\r\n" + next)
		f(head + ": 5\r\n\r\n" + next)
		f(head + "X\r\n\r\n" + next)
		f(head + "X: 1\r\n Content-Length: 5\r\n\r\nhello" + next)
		f(head + "X: 1\r\n\tTransfer-Encoding: chunked\r\n\r\n" + chunk + next)

		// Lines with a bare LF or a bare CR.
		f("GET /a HTTP/1.1\r\nHost: a\r\nX: 1\nY: 2\r\n\r\n" + next)
		f("GET /a HTTP/1.1\r\nHost: a\r\nX: 1\n\r\n\r\n" + next)
		f("GET /a HTTP/1.1\r\nHost: a\r\nX: 1\rY: 2\r\n\r\n" + next)
	}
}

// A head is rejected before its timeout if its fields end with a bare LF.
func TestBareLineFeeds(t *testing.T) {
	t.Parallel()
	for _, address := range bothPaths(t) { // the timeout is a minute
		for _, request := range []string{
			"GET /a HTTP/1.1\nHost: a\n\n", "POST /a HTTP/1.1\nHost: a\nContent-Length: 5\n\nhello", "GET /a HTTP/1.1\r\nHost: a\r\n\n", "GET /a HTTP/1.1\nHost: a\n",
			"\r\nGET /a HTTP/1.1\r\nHost: a\nX: 1",
		} { // only fasthttp knows where one begins in a pipeline
			expectClosed(t, address, request, "400 ", slices.DeleteFunc(slices.Clone(arrivals), func(way arrival) bool { return way.before == "together" })...)
		}
	}
}

// Line feeds in a body, or before a request line, are not part of a head.
func TestLineFeedsOutsideFields(t *testing.T) {
	t.Parallel()
	for _, address := range bothPaths(t) {
		for _, request := range []string{
			"POST /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 6\r\n\r\na\nb\n\nc",
			"\r\n\r\nPOST /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: Chunked\r\n\r\n6\r\na\nb\n\nc\r\n0\r\n\r\n",
			"GET /a HTTP/1.0\r\n\r\n", "GET /a HTTP/1.1\nHost: a\r\nConnection: close\r\n\r\n", "\nGET /a HTTP/1.0\r\n\r\n", "\r\n\n\nGET /a HTTP/1.0\r\n\r\n",
		} {
			expectClosed(t, address, request, "200 ", arrivals...)
		}
	}
}

// Java's client sends 100-Continue, and waits for 100 before it sends a body. The token is
// case-insensitive, and may be in a list (RFC 9110, sections 5.6.1 and 10.1.1).
func TestExpect(t *testing.T) {
	t.Parallel()
	for _, address := range bothPaths(t) {
		for _, fields := range []string{
			"Expect: 100-continue\r\n", "Expect: 100-Continue\r\n", "expect:100-CONTINUE \r\n", "Expect: , 100-continue\r\n", "Expect: 100-continue,\r\n",
			"Expect: 100-continue, 100-Continue\r\n", "Expect: other\r\nExpect: 100-Continue\r\n", "Expect: a=\"b\", 100-continue\r\n",
		} {
			firstAndSecond(t, address, fields, func(t *testing.T, conn net.Conn, reader *bufio.Reader) {
				t.Helper()
				_, _ = io.WriteString(conn, "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"+fields+"\r\n")
				if got, _ := readResponse(t, conn, reader); got != http.StatusContinue {
					t.Fatalf("the first answer is %d; want 100", got)
				}
				_, _ = io.WriteString(conn, "hello")
				got, _ := readResponse(t, conn, reader)
				testenv.Check(t, got == http.StatusOK, "the answer is %d; want 200", got)
			})
		}
	}
}

// Connection: close is honoured in any case and in any list (RFC 9110, section 7.6.1).
func TestConnectionClose(t *testing.T) {
	t.Parallel()
	for _, address := range bothPaths(t) {
		for fields, want := range map[string]bool{
			"Connection: close\r\n": true, "Connection: Close\r\n": true, "connection:CLOSE \r\n": true, "Connection: keep-alive, Close\r\n": true,
			"Connection: close, TE\r\n": true, "Connection: ,close,\r\n": true, "Connection: TE\r\nConnection: Close\r\n": true, "Connection: keep-alive\r\nConnection: close\r\n": true,
			"": false, "Connection: keep-alive\r\n": false, "Connection: Keep-Alive, closed\r\n": false, "X: close\r\n": false,
		} {
			firstAndSecond(t, address, fields, func(t *testing.T, conn net.Conn, reader *bufio.Reader) {
				t.Helper()
				_, _ = io.WriteString(conn, "GET /a HTTP/1.1\r\nHost: a\r\n"+fields+"\r\n")
				if got, last := readResponse(t, conn, reader); got != http.StatusOK || last != want {
					t.Errorf("the answer is %d and says that the connection closes: %t; want %t", got, last, want)
				}
				_, _ = io.WriteString(conn, get)
				_, err := reader.ReadByte()
				closed := err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
				testenv.Check(t, closed == want, "the connection is closed: %t (%v); want %t", closed, err, want)
			})
		}
	}
}

// Ciphertext may contain any bytes.
func TestHeadsUnderTLS(t *testing.T) {
	t.Parallel()
	server := httpserver.Options{Log: silent(), Limits: limits()}.NewServer(func(rc *fasthttp.RequestCtx) { rc.SetConnectionClose() })
	address := serveOn(t, httpserver.Listener{Server: server, TLS: serverTLS(t)}).Addr().String()
	for range 20 {
		conn := tlsClient(send(t, address, ""))
		_, _ = io.WriteString(conn, get)
		expect(t, receive(t, conn), "HTTP/1.1 200 ")
	}
}
