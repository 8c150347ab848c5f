package api

import (
	"bytes"
	"encoding/hex"
	"slices"

	"github.com/valyala/fasthttp"
)

// isCanonicalAPI reports whether a path that means one of /api is spelled so: it begins with
// /api as it was sent, and has neither an empty segment nor one of dots, encoded ones
// included. Whatever stands between the edge and core then finds the path in it that the
// edge has found.
func isCanonicalAPI(uri *fasthttp.URI) bool {
	sent, rest := uri.PathOriginal(), uri.Path()
	if !bytes.HasPrefix(sent, []byte("/api")) {
		return false
	}
	for i := 0; i < len(sent); i++ {
		c := [1]byte{sent[i]}
		if c[0] == '%' && i+2 < len(sent) {
			if _, err := hex.Decode(c[:], sent[i+1:i+3]); err == nil {
				i += 2
			}
		}
		if len(rest) == 0 || rest[0] != c[0] {
			return false
		}
		rest = rest[1:]
	}
	return len(rest) == 0
}

// originForm returns the path and query of a request as they were sent (RFC 9112, section
// 3.2.1), without what else stands in an absolute target, as a user name.
func originForm(uri *fasthttp.URI) []byte {
	target := slices.Clone(uri.PathOriginal())
	if query := uri.QueryString(); len(query) > 0 {
		target = append(append(target, '?'), query...)
	}
	return target
}
