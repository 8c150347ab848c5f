package httpserver

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"
)

// PeekAll returns the values of all fields of a name, as fasthttp does. They are valid until
// the next call.
func (c *FastContext) PeekAll(name string) [][]byte {
	c.values = c.values[:0]
	for line := range bytes.Lines(c.lines) {
		key, value, _ := bytes.Cut(line, []byte(":"))
		if len(key) == len(name) && strings.EqualFold(string(key), name) { // string(key) of a longer key would allocate
			c.values = append(c.values, bytes.Trim(value, " \r\n"))
		}
	}
	return c.values
}

// appendHead appends the status line and the header of the response.
func (c *FastContext) appendHead(dst []byte) []byte {
	if second := c.At.Unix(); second != c.second {
		c.second, c.date = second, fasthttp.AppendHTTPDate(c.date[:0], c.At)
	}
	dst = strconv.AppendInt(append(dst, "HTTP/1.1 "...), int64(c.status), 10)
	dst = append(append(dst, ' '), fasthttp.StatusMessage(c.status)...)
	dst = append(append(dst, "\r\nDate: "...), c.date...)
	if c.status != fasthttp.StatusNotModified && c.status != fasthttp.StatusNoContent {
		dst = strconv.AppendInt(append(dst, "\r\nContent-Length: "...), int64(len(c.body)), 10)
	}
	dst = append(append(append(dst, "\r\n"...), c.header...), c.more...)
	return append(dst, "\r\n"...)
}

// parse parses the request at the beginning of in, all but the target, and returns its length: 0
// if it is incomplete, or needs a server. It accepts only the part of RFC 9112 that clients
// commonly send; the server judges everything else.
func (c *FastContext) parse(in []byte) int {
	c.header, c.more, c.Conditions, c.NoneMatch, c.sentID, c.isTraced = c.header[:0], nil, nil, nil, nil, false
	c.status, c.body = fasthttp.StatusOK, nil
	const method, version = "GET ", " HTTP/1.1\r\n"
	if len(in) <= len(method) || string(in[:len(method)+1]) != method+"/" {
		return 0
	}
	rest := in[len(method):]
	end := bytes.IndexByte(rest, ' ')
	if end < 0 || len(rest)-end < len(version) || string(rest[end:end+len(version)]) != version {
		return 0
	}
	c.Target, c.Path, c.Query, rest = rest[:end], nil, nil, rest[end+len(version):]
	c.lines = rest
	hosts, ids, conditions := 0, 0, 0
	for {
		line, after, ok := cutLine(rest)
		if !ok {
			return 0
		}
		if rest = after; len(line) == 0 {
			break
		}
		name, value, ok := cutField(line)
		switch {
		case !ok || !isSimple(name, value):
			return 0
		case equalName(name, "host"):
			hosts++
		case len(name) > 3 && equalName(name[:3], "if-"):
			if conditions++; equalName(name, "if-none-match") {
				c.NoneMatch = value
			}
		case equalName(name, "traceparent"):
			c.isTraced = isSampled(value)
		case equalName(name, "x-request-id"):
			ids++
			c.sentID = value
		}
	}
	if hosts != 1 || ids > 1 {
		return 0
	}
	c.lines = c.lines[:len(c.lines)-len(rest)-len("\r\n")]
	if conditions > 0 {
		c.Conditions = c.lines
	}
	if conditions > 1 {
		c.NoneMatch = nil
	}
	return len(in) - len(rest)
}

// isSampled reports whether a traceparent has the sampled flag (W3C Trace Context, section
// 3.2.2.5).
func isSampled(traceparent []byte) bool {
	const flags = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-")
	return len(traceparent) >= flags+2 && strings.IndexByte("13579bdf", traceparent[flags+1]) >= 0
}

// isSimple reports whether a field does not need a server.
func isSimple(name, value []byte) bool {
	switch name[0] | 0x20 {
	case 'h':
		return !equalName(name, "host") || isHost(value)
	case 'c':
		return !equalName(name, "content-length") && (!equalName(name, "connection") || equalName(value, "keep-alive"))
	case 't':
		return !equalName(name, "transfer-encoding") && !equalName(name, "trailer")
	case 'e':
		return !equalName(name, "expect")
	default:
		return true
	}
}

// SplitTarget sets Path and Query, and reports whether Target is one that all servers parse alike. The handler must leave
// any other one to the server.
func (c *FastContext) SplitTarget() bool {
	path, before := -1, byte('/')
	for i, b := range c.Target[1:] {
		switch byteClasses[b] {
		case literalByte:
		case queryByte:
			if path < 0 {
				return false
			}
		case queryMark:
			if path < 0 {
				path = i + 1
			}
		case segmentMark: // no // and no /. in a path
			if path < 0 && before == '/' {
				return false
			}
		default:
			return false
		}
		before = b
	}
	c.Path = c.Target
	if path >= 0 {
		c.Path, c.Query = c.Target[:path], c.Target[path+1:]
	}
	return true
}

// Classes of bytes in a request target.
const (
	unsafeByte  = iota // control characters, non-ASCII, and # : \ which servers may treat differently
	literalByte        // stands for itself
	queryByte          // needs decoding in a path
	queryMark          // ?
	segmentMark        // / and .
)

var byteClasses = func() (classes [256]byte) {
	for c := '!'; c <= '~'; c++ {
		classes[c] = literalByte
	}
	classes['#'], classes[':'], classes['\\'] = unsafeByte, unsafeByte, unsafeByte
	classes['%'], classes['?'], classes['/'], classes['.'] = queryByte, queryMark, segmentMark, segmentMark
	return classes
}()

// isNameByte reports whether a byte is usual in field names and hosts.
func isNameByte(c byte) bool { return nameBytes[c] }

var nameBytes = func() (is [256]bool) {
	for _, c := range "-_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" {
		is[c] = true
	}
	return is
}()

// cutLine cuts off the first line of a header, and reports whether it ends with CRLF.
func cutLine(in []byte) (line, rest []byte, ok bool) {
	end := bytes.IndexByte(in, '\n')
	if end < 1 || in[end-1] != '\r' {
		return nil, nil, false
	}
	return in[:end-1], in[end+1:], true
}

// cutField cuts a field line into the name and the trimmed value.
func cutField(line []byte) (name, value []byte, ok bool) {
	colon := 0
	for i, c := range line {
		if !nameBytes[c] {
			colon = i
			break
		}
	}
	if colon == 0 || line[colon] != ':' {
		return nil, nil, false
	}
	value = line[colon+1:]
	for len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	for len(value) > 0 && value[len(value)-1] == ' ' {
		value = value[:len(value)-1]
	}
	return line[:colon], value, isText(value)
}

// isText reports whether a text has no control characters.
func isText(text []byte) bool {
	// Eight bytes at once: the first term has the high bit of a byte below the space, the second one of a DEL.
	const ones, high = 0x0101010101010101, 0x8080808080808080
	for ; len(text) >= 8; text = text[8:] {
		word := binary.LittleEndian.Uint64(text)
		del := word ^ 0x7f*ones
		if ((word-' '*ones)&^word|(del-ones)&^del)&high != 0 {
			return false
		}
	}
	for _, c := range text {
		if c < ' ' || c == 0x7f {
			return false
		}
	}
	return true
}

// isHost reports whether a text is a common form of host: a name or an IPv4 address, with an
// optional port.
func isHost(text []byte) bool {
	host, port, hasPort := bytes.Cut(text, []byte(":"))
	for _, c := range host {
		if !nameBytes[c] && c != '.' {
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

// equalName reports whether a text equals a lower-case name, ignoring case. Both may have
// name bytes only.
func equalName(text []byte, name string) bool {
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
