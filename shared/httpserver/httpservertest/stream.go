// Package httpservertest sends valid and invalid streams of HTTP/1.1 requests to servers over
// real sockets and reads the responses, so that tests can compare two servers.
package httpservertest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Stream is what a client sends on one connection.
type Stream struct {
	Opened bool // another request is answered first, since the first one of a connection is not for the fast path
	Sent   []byte
	Cuts   []int // where it is cut into segments, in ascending order
}

// String returns the stream for a log, with one line per segment.
func (s Stream) String() string {
	var out strings.Builder
	if s.Opened {
		fmt.Fprintf(&out, "%q\n", opening)
	}
	for part := range s.segments {
		fmt.Fprintf(&out, "%q\n", part)
	}
	return out.String()
}

func (s Stream) segments(yield func([]byte) bool) {
	from := 0
	for _, cut := range append(slices.Clone(s.Cuts), len(s.Sent)) {
		if cut = min(cut, len(s.Sent)); cut > from {
			if !yield(s.Sent[from:cut]) {
				return
			}
			from = cut
		}
	}
}

// opening is the request before an opened stream.
const (
	openingID = "opening"
	opening   = "GET / HTTP/1.1\r\nHost: a\r\nX-Request-ID: " + openingID + "\r\n\r\n"
)

// Cut returns a stream that is opened in two of three cases, and cut into a few segments in
// as many.
func Cut(sent []byte, seed uint64) Stream {
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // reproducible tests
	s := Stream{Opened: random.IntN(3) > 0, Sent: sent}
	for range max(0, random.IntN(6)-1) {
		s.Cuts = append(s.Cuts, random.IntN(len(sent)+1))
	}
	slices.Sort(s.Cuts)
	return s
}

// Generator generates streams: the same ones for the same seed.
type Generator struct {
	templates []string
	prefix    string
	random    *rand.Rand
	count     int
}

// NewGenerator returns a generator of streams that consist of the given requests. {id} in a
// request is replaced by a unique word of at most 32 letters, digits and hyphens.
func NewGenerator(prefix string, seed uint64, requests []string) *Generator {
	return &Generator{templates: requests, prefix: prefix, random: rand.New(rand.NewPCG(seed, 1))} //nolint:gosec // reproducible tests
}

// Next returns the next stream: one to four requests with up to four mutations.
func (g *Generator) Next() Stream {
	g.count++
	var sent []byte
	for i := range 1 + g.random.IntN(4) {
		sent = append(sent, g.request(i)...)
	}
	for range g.random.IntN(5) {
		if sent = g.change(sent); len(sent) == 0 {
			break
		}
	}
	return Cut(sent, g.random.Uint64())
}

func (g *Generator) request(number int) string {
	template := g.templates[g.random.IntN(len(g.templates))]
	for part := 0; strings.Contains(template, "{id}"); part++ {
		template = strings.Replace(template, "{id}", fmt.Sprintf("%s-%d-%d-%d", g.prefix, g.count, number, part), 1)
	}
	return template
}

// fragments are inserted by mutations, since servers disagree about them.
var fragments = []string{
	"Content-Length: 0\r\n", "Content-Length: 5\r\n", "content-length:7\r\n", "Content-Length: +5\r\n", "Content-Length: 5, 5\r\n", "Content-Length: \r\n",
	"Content-Length : 5\r\n", "Content- Length: 5\r\n", "Content-Length: 99999999999999999999\r\n", "Content-Length: 0x5\r\n", "Content-Length: 05\r\n",
	"Transfer-Encoding: chunked\r\n", "transfer-encoding:Chunked\r\n", "Transfer-Encoding : chunked\r\n", "Transfer-Encoding: gzip, chunked\r\n",
	"Transfer-Encoding: identity\r\n", "Transfer-Encoding: chunked, identity\r\n", "Transfer-Encoding:\x0bchunked\r\n", "Transfer-Encoding: \r\n chunked\r\n", "Transfer-Encoding: xchunked\r\n",
	"Connection: close\r\n", "Connection: Close\r\n", "Connection: keep-alive, close\r\n", "Connection: Keep-Alive\r\n", "Connection: Content-Length\r\n", "Connection: X-Request-ID, Host\r\n",
	"Expect: 100-continue\r\n", "Expect: 100-Continue, x\r\n", "Expect: x\r\n", "Host: other.test\r\n", "Host:\r\n", "Host : a\r\n", "Host: a b\r\n",
	"X : y\r\n", "X\r\n", ": y\r\n", " folded\r\n", "\tfolded\r\n", "X: a\nY: b\r\n", "X: a\rY: b\r\n", "X: \x00\r\n", "Trailer: X\r\n", "TE: trailers\r\n", "Upgrade: h2c\r\nConnection: Upgrade\r\n",
	"If-None-Match: *\r\n", "If-Match: *\r\n", "Range: bytes=0-1\r\n", "X-Long: " + strings.Repeat("x", 5000) + "\r\n",
	"\r\n", "\n", "\r", "\r\n\r\n", "0\r\n\r\n", "5\r\nhello\r\n", "5;a=b\r\nhello\r\n", "5\nhello\n", "0\r\nX: y\r\n\r\n", "ffffffffffffffff\r\n", "-1\r\n",
	"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.0", "HTTP/1.2", "HTTP/2.0", "HTTP/0.9", "//", "/./", "/../", "%2e", "%2f", "%00", "#", "?", "\\", " ",
}

// specialBytes are bytes with a meaning in a request, or invalid ones.
const specialBytes = "\r\n\t :;,/.?%#-+_=\"\x00\x0b\x7f\x80aA05"

// change returns a stream with one mutation.
func (g *Generator) change(sent []byte) []byte {
	at := g.random.IntN(len(sent))
	other := g.random.IntN(len(sent))
	switch g.random.IntN(12) {
	case 0:
		return slices.Delete(sent, at, at+1)
	case 1:
		return slices.Insert(sent, at, sent[at])
	case 2:
		sent[at] = specialBytes[g.random.IntN(len(specialBytes))]
		return sent
	case 3:
		sent[at], sent[other] = sent[other], sent[at]
		return sent
	case 4: // flips the case of a letter, or a bit
		sent[at] ^= 0x20
		return sent
	case 5:
		return sent[:max(1, at)]
	case 6:
		return slices.Insert(sent, at, []byte(g.fragment())...)
	case 7, 8, 9: // inserts at the beginning of a line
		return slices.Insert(sent, lineAt(sent, at), []byte(g.fragment())...)
	case 10: // removes or doubles a line
		from := lineAt(sent, at)
		to := from + 1 + bytes.IndexByte(append(sent[from:len(sent):len(sent)], '\n'), '\n')
		to = min(to, len(sent))
		if g.random.IntN(2) == 0 {
			return slices.Delete(sent, from, to)
		}
		return slices.Insert(sent, from, slices.Clone(sent[from:to])...)
	default: // removes a CR
		end := bytes.IndexByte(sent[at:], '\r')
		if end < 0 {
			return sent
		}
		return slices.Delete(sent, at+end, at+end+1)
	}
}

func (g *Generator) fragment() string { return fragments[g.random.IntN(len(fragments))] }

// lineAt returns the offset of the line that contains a byte.
func lineAt(sent []byte, at int) int { return bytes.LastIndexByte(sent[:at], '\n') + 1 }

// WithContentLength returns a request with a head, given without Content-Length, and a body.
func WithContentLength(head, body string) string {
	return fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(body), body)
}

// Chunked returns a request with a head, given without Transfer-Encoding, and a body in
// chunks.
func Chunked(head string, chunks ...string) string {
	var out strings.Builder
	out.WriteString(head + "Transfer-Encoding: chunked\r\n\r\n")
	for _, chunk := range chunks {
		fmt.Fprintf(&out, "%x;x=y\r\n%s\r\n", len(chunk), chunk)
	}
	return out.String() + "0\r\n\r\n"
}
