package httpserver

import (
	"encoding/hex"
	"math/rand/v2"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/httpserver/fastpath"
)

// headerRequestID names a request in the logs of every program it passes. It is in the form
// in which fasthttp keeps names of headers, and every answer has it.
const headerRequestID = "X-Request-Id"

var keyRequestID = []byte(headerRequestID)

// maxRequestID is the length of the longest id that is taken from a client.
const maxRequestID = 64

// appendRequestID appends the id of a request: the one that its client sent if that is a
// plain word, else 64 random bits in hexadecimal. Ids are not secret, so a generator
// without system calls and locks makes them.
func appendRequestID(dst, sent []byte) []byte {
	if isWord(sent) {
		return append(dst, sent...)
	}
	bits := rand.Uint64() //nolint:gosec // an id that is guessed gives access to nothing
	return hex.AppendEncode(dst, []byte{
		byte(bits >> 56), byte(bits >> 48), byte(bits >> 40), byte(bits >> 32), byte(bits >> 24), byte(bits >> 16), byte(bits >> 8), byte(bits),
	})
}

// isWord reports whether an id is safe to be logged and sent on.
func isWord(id []byte) bool {
	for _, c := range id {
		if !fastpath.IsNameByte(c) && c != '.' {
			return false
		}
	}
	return 0 < len(id) && len(id) <= maxRequestID
}

// RequestID returns the id that names a request in the logs of every program it passes. The
// answer has it as X-Request-ID. It is empty unless a Door's server has the request.
func RequestID(rc *fasthttp.RequestCtx) string {
	if r := stateOf(rc); r != nil {
		return string(r.id)
	}
	return ""
}
