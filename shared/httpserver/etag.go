package httpserver

import "bytes"

// MatchETag reports whether an entity tag, with its quotes, is among the tags of an
// If-None-Match or If-Match header (RFC 9110, section 13.1). weak selects the weak
// comparison, which If-None-Match uses and which ignores W/.
func MatchETag(list, etag []byte, weak bool) bool {
	list = bytes.TrimSpace(list)
	if string(list) == "*" {
		return true
	}
	for len(list) > 0 {
		tag, isWeak := bytes.CutPrefix(list, []byte("W/"))
		if len(tag) == 0 || tag[0] != '"' {
			list = list[1:] // a comma, a space, or garbage
			continue
		}
		end := bytes.IndexByte(tag[1:], '"') + 2 // a tag may contain commas
		if end < 2 {
			return false
		}
		if bytes.Equal(tag[:end], etag) && (weak || !isWeak) {
			return true
		}
		list = tag[end:]
	}
	return false
}
