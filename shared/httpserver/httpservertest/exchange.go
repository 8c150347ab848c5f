package httpservertest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/textproto"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// StreamResponse is a response of Exchange, in the form in which two servers are compared.
type StreamResponse struct {
	Status int
	ID     string // X-Request-ID, "generated" if it is not the request's
	Header http.Header
	Body   string
}

// IsLast reports whether the response has Connection: close.
func (s StreamResponse) IsLast() bool {
	return strings.Contains(strings.ToLower(strings.Join(s.Header["Connection"], ",")), "close")
}

// ErrStatusLine is returned for a response that does not begin with an HTTP/1 status line.
var ErrStatusLine = errors.New("no status line")

// exchangeTimeout bounds all responses on a connection. Drawing one picture takes more than 20 s
// with the race detector beside a full machine.
const exchangeTimeout = 5 * time.Minute

// Exchange sends a stream and its end on a new connection. It returns the responses until the
// server closes the connection. The error says that the server did not close it, or sent
// invalid HTTP.
func Exchange(ctx context.Context, address string, s Stream) ([]StreamResponse, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(exchangeTimeout)); err != nil {
		return nil, fmt.Errorf("set a deadline: %w", err)
	}
	var responses []StreamResponse
	reader := bufio.NewReader(conn)
	if s.Opened {
		if _, err := io.WriteString(conn, opening); err != nil {
			return nil, fmt.Errorf("send the opening: %w", err)
		}
		response, err := read(reader)
		if err != nil {
			return nil, fmt.Errorf("the opening: %w", err)
		}
		responses = append(responses, response)
	}
	go s.send(conn)
	for {
		if _, err := reader.Peek(1); err != nil {
			if timeout, ok := err.(net.Error); ok && timeout.Timeout() { //nolint:errorlint // it comes from the connection
				return responses, fmt.Errorf("after %d responses the connection is still open: %w", len(responses), err)
			}
			return responses, nil // EOF, or a reset since not all was read
		}
		response, err := read(reader)
		if err != nil {
			return responses, fmt.Errorf("response %d: %w", len(responses)+1, err)
		}
		responses = append(responses, response)
	}
}

// send sends the stream and its end.
func (s Stream) send(conn net.Conn) {
	for segment := range s.segments {
		if _, err := conn.Write(segment); err != nil { // the server may close before it has read all
			return
		}
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
	}
}

func isResponse(reader *bufio.Reader) bool {
	const version = "HTTP/1.1 "
	begin, _ := reader.Peek(len(version))
	return string(begin) == version
}

// generatedID matches request ids that the server generates.
var generatedID = regexp.MustCompile("^[0-9a-f]{16}$")

// read reads one response. No body in these tests begins like a response, so if the next
// bytes do, this is the response to a HEAD request.
func read(reader *bufio.Reader) (StreamResponse, error) {
	text := textproto.NewReader(reader)
	line, err := text.ReadLine()
	if err != nil {
		return StreamResponse{}, fmt.Errorf("read the status line: %w", err)
	}
	version, rest, _ := strings.Cut(line, " ")
	code, _, _ := strings.Cut(rest, " ")
	status, err := strconv.Atoi(code)
	if err != nil || version != "HTTP/1.1" && version != "HTTP/1.0" {
		return StreamResponse{}, fmt.Errorf("%w: %q", ErrStatusLine, line)
	}
	fields, err := text.ReadMIMEHeader()
	if err != nil {
		return StreamResponse{}, fmt.Errorf("read the header after %q: %w", line, err)
	}
	a := StreamResponse{Status: status, ID: fields.Get("X-Request-Id"), Header: http.Header(fields)}
	body := io.Reader(reader)
	length, lengthErr := strconv.ParseInt(fields.Get("Content-Length"), 10, 64)
	switch {
	case status < http.StatusOK || status == http.StatusNoContent || status == http.StatusNotModified || a.ID != openingID && isResponse(reader):
		body = strings.NewReader("")
	case fields.Get("Transfer-Encoding") != "":
		body = httputil.NewChunkedReader(reader)
	case lengthErr == nil:
		body = io.LimitReader(reader, length)
	}
	content, err := io.ReadAll(body)
	if err != nil {
		return a, fmt.Errorf("read the body after %q: %w", line, err)
	}
	if fields.Get("Transfer-Encoding") != "" { // the empty line after the last chunk
		_, _ = text.ReadLine()
	}
	a.Body = string(content)
	delete(a.Header, "Date")
	delete(a.Header, "X-Request-Id")
	if generatedID.MatchString(a.ID) {
		a.ID = "generated"
	}
	return a, nil
}
