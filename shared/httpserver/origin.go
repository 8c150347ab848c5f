package httpserver

import (
	"bytes"
	"encoding/hex"
	"slices"

	"github.com/valyala/fasthttp"
)

// OriginForm returns the path and query of a request as they were sent (RFC 9112, section
// 3.2.1), without the scheme, user name and host of an absolute target.
func OriginForm(uri *fasthttp.URI) []byte {
	target := slices.Clone(uri.PathOriginal())
	if query := uri.QueryString(); len(query) > 0 {
		target = append(append(target, '?'), query...)
	}
	return target
}

// Canonicalise replaces a path below a root with its canonical form: without empty segments, which a base URL with a slash
// at its end makes, and with unreserved characters as themselves (RFC 3986, section 6.2.2.2). Other characters that are
// encoded stay so, such as a slash. A path that does not begin with the literal root stays as it is.
func Canonicalise(uri *fasthttp.URI, root string) {
	sent := uri.PathOriginal()
	if !bytes.HasPrefix(sent, []byte(root)) || bytes.IndexByte(sent, '%') < 0 && !bytes.Contains(sent, []byte("//")) {
		return
	}
	path := make([]byte, 0, len(sent))
	for i := 0; i < len(sent); i++ {
		c := [1]byte{sent[i]}
		switch {
		case c[0] == '/' && i > 0 && sent[i-1] == '/':
			continue
		case c[0] == '%' && i+2 < len(sent):
			if _, err := hex.Decode(c[:], sent[i+1:i+3]); err == nil && isUnreserved(c[0]) {
				i += 2
			} else {
				c[0] = '%'
			}
		}
		path = append(path, c[0])
	}
	uri.SetPathBytes(path)
}

// isUnreserved reports whether a character never needs to be encoded (RFC 3986, section 2.3).
func isUnreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || bytes.IndexByte([]byte("-._~"), c) >= 0
}
