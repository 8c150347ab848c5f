package api

import (
	"bytes"
	"encoding/hex"

	"github.com/valyala/fasthttp"
)

// isCanonical reports whether a path below a root is sent in a form that all servers
// interpret alike: it begins with the literal root, and has neither empty nor dot segments,
// percent-encoded ones included. A proxy between the edge and core then sees the same path.
func isCanonical(uri *fasthttp.URI, root string) bool {
	sent, rest := uri.PathOriginal(), uri.Path()
	if !bytes.HasPrefix(sent, []byte(root)) {
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
