package httpserver

import (
	"math/rand/v2"

	"github.com/valyala/fasthttp"
)

// headerRequestID names a request in the logs of all programs. It is in fasthttp's canonical
// form, and is in every response.
const headerRequestID = "X-Request-Id"

var keyRequestID = []byte(headerRequestID)

// maxRequestID is the length of the longest id that is accepted from a client.
const maxRequestID = 64

// appendRequestID appends the id of a request: the client's if it is a plain word, else 64
// random bits in hexadecimal. Ids are not secret, so a generator without system calls and
// locks is used.
func appendRequestID(dst, sent []byte) []byte {
	if isWord(sent) {
		return append(dst, sent...)
	}
	bits := rand.Uint64() //nolint:gosec // guessing an id gives access to nothing
	for range 16 {
		dst = append(dst, "0123456789abcdef"[bits>>60])
		bits <<= 4
	}
	return dst
}

// isWord reports whether an id is safe to log and to send on.
func isWord(id []byte) bool {
	for _, c := range id {
		if !isNameByte(c) && c != '.' {
			return false
		}
	}
	return 0 < len(id) && len(id) <= maxRequestID
}

// RequestID returns the id of a request, which names it in the logs of all programs. The
// response has it as X-Request-ID. It is empty unless a server of Options has the request.
func RequestID(rc *fasthttp.RequestCtx) string {
	if r := stateOf(rc); r != nil {
		return string(r.id)
	}
	return ""
}
