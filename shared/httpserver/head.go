package httpserver

import (
	"bytes"
	"errors"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/fault"
)

// validateHead returns a handler that rejects heads which fasthttp accepts, but which a proxy
// may parse differently (request smuggling). The connection is closed, as it is not certain
// where the next request begins.
func (o Options) validateHead(badRequest *Route, handler fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(rc *fasthttp.RequestCtx) {
		err := checkFields(rc.Request.Header.RawHeaders())
		if err == nil {
			handler(rc)
			return
		}
		badRequest.AssignTo(rc)
		if o.DefaultHeaders != nil {
			o.DefaultHeaders(rc)
		}
		WriteError(rc, err)
		rc.SetConnectionClose()
	}
}

// checkFields returns an error if the field lines of a request are ambiguous. fasthttp itself
// rejects non-token bytes in names (except spaces), control characters in values, and a
// second Content-Length, Host or Transfer-Encoding.
func checkFields(lines []byte) error {
	hasLength, hasCoding := false, false
	for len(lines) > 0 {
		line, rest, ok := cutLine(lines)
		if !ok { // RFC 9112, section 2.2
			return fault.New(fault.Malformed, "A line of the header block does not end with CR LF.")
		}
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		if bytes.IndexByte(name, ' ') >= 0 || name[0] == '\t' { // sections 5.1 and 5.2
			return fault.New(fault.Malformed, "The name of a header field has a space in it, or a field is folded.")
		}
		switch {
		case equalName(name, "content-length"):
			hasLength = true
		case equalName(name, "transfer-encoding"):
			hasCoding = true
			if !bytes.EqualFold(bytes.Trim(value, " \t"), []byte("chunked")) { // section 6.3
				return fault.New(fault.Malformed, "The only transfer coding that is known here is chunked.")
			}
		}
		lines = rest
	}
	if hasLength && hasCoding { // section 6.1
		return fault.New(fault.Malformed, "A request has either Content-Length or Transfer-Encoding, not both.")
	}
	return nil
}

// headReceived normalises an Expect header that is a list, which fasthttp does not parse.
// Without that a client would wait for a 100 that never comes (RFC 9110, sections 5.6.1 and
// 10.1.1).
func headReceived(header *fasthttp.RequestHeader) (unchanged fasthttp.RequestConfig) {
	const continue100 = "100-continue"
	for _, line := range header.PeekAll(fasthttp.HeaderExpect) {
		for member := range bytes.SplitSeq(line, []byte(",")) {
			if bytes.EqualFold(bytes.Trim(member, " \t"), []byte(continue100)) {
				header.Set(fasthttp.HeaderExpect, continue100)
				return unchanged
			}
		}
	}
	return unchanged
}

// errBareLF ends the reading of a request.
var errBareLF = errors.New("a line of the head does not end with CR LF")

// headScan looks for a field line that ends with a bare LF. RFC 9112, section 2.2, lets a
// server accept such lines; behind a proxy that does not, the two would parse a request
// differently. fasthttp neither accepts nor rejects such a head, but waits for more until the
// timeout. A bare LF after the request line is not detected; it is harmless, since a proxy
// takes it for a bad request.
type headScan struct {
	active   bool
	started  bool // bytes have arrived
	inFields bool // the request line has ended
	size     int  // of the current line
	last     byte // byte of the current line
}

// start begins the scan of a head.
func (h *headScan) start() { *h = headScan{active: true} }

// scan scans received bytes, and returns how many come before a bare LF. The error is never
// at the first byte of a request: fasthttp would close the connection without a response.
func (h *headScan) scan(arrived []byte) (n int, err error) {
	h.started = true
	for rest := arrived; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			h.size += len(rest)
			h.last = rest[len(rest)-1]
			break
		}
		before := h.last
		if end > 0 {
			before = rest[end-1]
		}
		size := h.size + end
		switch {
		case !h.inFields: // fasthttp skips empty lines
			h.inFields = size > len("\r") || size == len("\r") && before != '\r'
		case size == 0 || before != '\r':
			return len(arrived) - len(rest) + end, errBareLF
		case size == len("\r"):
			h.active = false
			return len(arrived), nil
		}
		h.size, rest = 0, rest[end+1:]
	}
	return len(arrived), nil
}
