package httpserver

import (
	"bytes"
	"errors"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver/fastpath"
)

// validateHead returns a handler that refuses heads which fasthttp takes, and which others
// may read otherwise: a request that a proxy and a server divide differently can hide
// another one. The connection is closed, as nobody knows where the next request begins.
func (d Options) validateHead(badRequest *Route, handler fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(rc *fasthttp.RequestCtx) {
		err := checkFields(rc.Request.Header.RawHeaders())
		if err == nil {
			handler(rc)
			return
		}
		badRequest.AssignTo(rc)
		if d.DefaultHeaders != nil {
			d.DefaultHeaders(rc)
		}
		WriteError(rc, err)
		rc.SetConnectionClose()
	}
}

// checkFields returns an error if the field lines of a request are ambiguous. What
// fasthttp refuses by itself is not looked for: other bytes that are no token's in names,
// controls in values, a second Content-Length, Host or Transfer-Encoding.
func checkFields(lines []byte) error {
	hasLength, hasCoding := false, false
	for len(lines) > 0 {
		line, rest, ok := fastpath.CutLine(lines)
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
		case fastpath.EqualName(name, "content-length"):
			hasLength = true
		case fastpath.EqualName(name, "transfer-encoding"):
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

// headReceived spells an Expect that is a list as fasthttp knows it, or a client would wait
// for a 100 that never comes (RFC 9110, sections 5.6.1 and 10.1.1).
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

// errBareLF is why a request is not read on.
var errBareLF = errors.New("a line of the head does not end with CR LF")

// headScan looks for a field line of a request that ends without CR. RFC 9112, section
// 2.2, lets a server take such lines. What is behind a proxy that does not is then read
// otherwise than the proxy has read it. fasthttp neither takes nor refuses a head that ends
// so: it waits for the rest until the time is over. How a request line ends it does not
// tell, so that may be a bare LF: no proxy reads more into it than a bad request.
type headScan struct {
	active   bool
	started  bool // something has arrived
	inFields bool // the request line has ended
	size     int  // of the line that is arriving
	last     byte // of that line
}

// start says that what arrives next begins a head.
func (h *headScan) start() { *h = headScan{active: true} }

// scan looks at bytes that have arrived, and returns how many come before a bare LF. An
// error is never at the first byte of a request: the server would close without an answer.
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
		case !h.inFields: // fasthttp skips lines that are empty
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
