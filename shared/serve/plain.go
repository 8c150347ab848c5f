package serve

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/limit"
)

// Plain is a GET request of HTTP/1.1 without a body, in which nothing is said that
// takes an HTTP server to understand, and the answer to it.
type Plain struct {
	Path       []byte // nothing in it is escaped, and no segment is empty or begins with a dot
	Query      []byte // as it came
	Conditions []byte // the field lines from the first to the last one that begins with If-, each with its CRLF
	At         time.Time

	Status int // of answers that have a body, or 304
	Body   []byte
	Route  *Route // what it is counted under

	// Scratch is the shortcut's own, and stays from one request to the next.
	Scratch any

	peer    net.Addr
	proxies *Proxies

	fields   []byte // of the answer
	id       []byte // the X-Request-ID that its client sent
	traced   bool   // whoever sends it says so
	refusals *limit.Limiter[struct{}]
}

// IsRefusalLogged reports whether the server would log that it answers the request with
// 503. Then that should be left to it.
func (p *Plain) IsRefusalLogged() bool { return p.refusals.Look(struct{}{}, p.At).Wait == 0 }

// Client returns the address of the client. It reports false for a trusted proxy's
// request: the shortcut does not read what that tells.
func (p *Plain) Client() (client netip.Addr, ok bool) {
	client = addressOf(p.peer)
	return client, !p.proxies.trusts(client)
}

// SetCanonical adds a field to the answer. Date and Content-Length come by
// themselves.
func (p *Plain) SetCanonical(name, value []byte) {
	before, size := len(p.fields), len(name)+len(": ")+len(value)+len("\r\n")
	p.fields = slices.Grow(p.fields, size)[:before+size]
	line := p.fields[before:]
	line = line[copy(line, name):]
	line[0], line[1] = ':', ' '
	line = line[2:]
	line = line[copy(line, value):]
	line[0], line[1] = '\r', '\n'
}

// appendHead appends all of the answer but its body.
func (p *Plain) appendHead(dst []byte) []byte {
	switch p.Status {
	case fasthttp.StatusOK:
		dst = append(dst, "HTTP/1.1 200 OK\r\nDate: "...)
	case fasthttp.StatusNotModified:
		dst = append(dst, "HTTP/1.1 304 Not Modified\r\nDate: "...)
	default:
		dst = strconv.AppendInt(append(dst, "HTTP/1.1 "...), int64(p.Status), 10)
		dst = append(append(append(dst, ' '), fasthttp.StatusMessage(p.Status)...), "\r\nDate: "...)
	}
	dst = append(dst, dateOf(p.At)...)
	if p.Status != fasthttp.StatusNotModified {
		dst = append(dst, "\r\nContent-Length: "...)
		dst = strconv.AppendInt(dst, int64(len(p.Body)), 10)
	}
	dst = append(dst, "\r\n"+headerRequestID+": "...)
	dst = appendRequestID(dst, p.id)
	dst = append(dst, "\r\n"...)
	dst = append(dst, p.fields...)
	return append(dst, "\r\n"...)
}

// date is a second as answers tell it.
type date struct {
	second int64
	text   []byte
}

var lastDate atomic.Pointer[date]

// dateOf returns the value of Date at a moment.
func dateOf(at time.Time) []byte {
	d := lastDate.Load()
	if second := at.Unix(); d == nil || d.second != second {
		d = &date{second: second, text: fasthttp.AppendHTTPDate(nil, at)}
		lastDate.Store(d)
	}
	return d.text
}

// read reads the request that some bytes begin with, and returns how many it has: 0
// if it is not all there, or not a plain one. Of what RFC 9112 allows it takes only
// what programs send; all else is for the server to judge.
func (p *Plain) read(in []byte) int {
	p.fields, p.Conditions, p.id, p.traced = p.fields[:0], nil, nil, false
	rest, ok := p.readTarget(in)
	if !ok {
		return 0
	}
	hosts, ids, condition := 0, 0, -1
	for {
		from := len(in) - len(rest)
		var line []byte
		if line, rest, ok = cutLine(rest); !ok {
			return 0
		}
		if len(line) == 0 {
			break
		}
		name, value, ok := cutField(line)
		switch {
		case !ok || !isPlain(name, value):
			return 0
		case named(name, "host"):
			hosts++
		case len(name) > 3 && named(name[:3], "if-"):
			if condition < 0 {
				condition = from
			}
			p.Conditions = in[condition : len(in)-len(rest)]
		case len(name) == len("traceparent") && named(name, "traceparent"):
			p.traced = isSampled(value)
		case len(name) == len(headerRequestID) && named(name, "x-request-id"):
			ids++
			p.id = value
		}
	}
	if hosts != 1 || ids > 1 {
		return 0
	}
	return len(in) - len(rest)
}

// isSampled reports whether a traceparent says that whoever sends it traces the request:
// in the last of the bits behind its ids (W3C Trace Context, section 3.2.2.5).
func isSampled(traceparent []byte) bool {
	const flags = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-")
	return len(traceparent) >= flags+2 && strings.IndexByte("13579bdf", traceparent[flags+1]) >= 0
}

// isPlain reports whether a plain request can have a field.
func isPlain(name, value []byte) bool {
	switch name[0] | 0x20 {
	case 'h':
		return !named(name, "host") || isHost(value)
	case 'c':
		return !named(name, "content-length") && (!named(name, "connection") || named(value, "keep-alive"))
	case 't':
		return !named(name, "transfer-encoding") && !named(name, "trailer")
	case 'e':
		return !named(name, "expect")
	default:
		return true
	}
}

// readTarget reads the request line and returns what follows it.
func (p *Plain) readTarget(in []byte) (rest []byte, ok bool) {
	const method = "GET "
	if len(in) <= len(method) || string(in[:len(method)+1]) != method+"/" {
		return nil, false
	}
	target := in[len(method):]
	path, end := -1, 1
	before := byte('/')
	for ; end < len(target) && target[end] != ' '; end++ {
		c := target[end]
		switch kinds[c] {
		case letter:
		case inQueries:
			if path < 0 {
				return nil, false
			}
		case queryMark:
			if path < 0 {
				path = end
			}
		case segmentMark: // neither // nor /. in a path
			if path < 0 && before == '/' {
				return nil, false
			}
		default:
			return nil, false
		}
		before = c
	}
	const version = " HTTP/1.1\r\n"
	rest = target[end:]
	if len(rest) < len(version) || string(rest[:len(version)]) != version {
		return nil, false
	}
	p.Path, p.Query = target[:end], nil
	if path >= 0 {
		p.Path, p.Query = target[:path], target[path+1:end]
	}
	return rest[len(version):], true
}

// The kinds of bytes in a target.
const (
	foreign     = iota // controls and what is not ASCII; # and :, which may mean another server; \
	letter             // means itself
	inQueries          // needs decoding in a path
	queryMark          // ?
	segmentMark        // / and .
)

var kinds = func() (kinds [256]byte) {
	for c := '!'; c <= '~'; c++ {
		kinds[c] = letter
	}
	kinds['#'], kinds[':'], kinds['\\'] = foreign, foreign, foreign
	kinds['%'], kinds['?'], kinds['/'], kinds['.'] = inQueries, queryMark, segmentMark, segmentMark
	return kinds
}()

// inNames says which bytes names of fields, and hosts, usually have.
var inNames = func() (is [256]bool) {
	for _, c := range "-_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" {
		is[c] = true
	}
	return is
}()

// cutLine cuts off the first line of a header.
func cutLine(in []byte) (line, rest []byte, ok bool) {
	end := bytes.IndexByte(in, '\n')
	if end < 1 || in[end-1] != '\r' {
		return nil, nil, false
	}
	return in[:end-1], in[end+1:], true
}

// cutField cuts a field line into a name and the value without the space around it.
func cutField(line []byte) (name, value []byte, ok bool) {
	colon := 0
	for colon < len(line) && inNames[line[colon]] {
		colon++
	}
	if colon == 0 || colon == len(line) || line[colon] != ':' {
		return nil, nil, false
	}
	value = bytes.Trim(line[colon+1:], " ")
	return line[:colon], value, isText(value)
}

// isText reports whether there are no controls in a text. It looks at eight bytes at
// a time, by the tests for a byte that is less than another one, and for one that is
// zero, of Bit Twiddling Hacks (Anderson).
func isText(text []byte) bool {
	const each, top = 0x0101010101010101, 0x8080808080808080
	for len(text) >= 8 {
		word := binary.LittleEndian.Uint64(text)
		deletes := word ^ 0x7f*each
		if ((word-0x20*each)&^word|(deletes-each)&^deletes)&top != 0 {
			return false
		}
		text = text[8:]
	}
	for _, c := range text {
		if c < ' ' || c == 0x7f {
			return false
		}
	}
	return true
}

// isHost reports whether a text is a host as most are: a name or an IPv4 address, with
// a port or without.
func isHost(text []byte) bool {
	host, port, hasPort := bytes.Cut(text, []byte(":"))
	for _, c := range host {
		if !inNames[c] && c != '.' {
			return false
		}
	}
	for _, c := range port {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(host) > 0 && (!hasPort || len(port) > 0)
}

// named reports whether a text is a name, in whatever case, that is given in lower
// case. Both have no bytes but those of names.
func named(text []byte, name string) bool {
	if len(text) != len(name) {
		return false
	}
	for i, c := range text {
		if c|0x20 != name[i] {
			return false
		}
	}
	return true
}
