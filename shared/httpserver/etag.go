package httpserver

import "bytes"

// MatchETag reports whether an entity tag, with its quotes, is among those that an
// If-None-Match or If-Match header lists (RFC 9110, section 13.1). Only the weak
// comparison, which If-None-Match asks for, takes a weak tag for a strong one.
func MatchETag(list, etag []byte, weak bool) bool {
	list = bytes.TrimSpace(list)
	if string(list) == "*" {
		return true
	}
	for len(list) > 0 {
		tag, isWeak := bytes.CutPrefix(list, []byte("W/"))
		if len(tag) == 0 || tag[0] != '"' {
			list = list[1:] // a comma, space, or nothing that makes sense
			continue
		}
		end := bytes.IndexByte(tag[1:], '"') + 2 // a tag may hold commas
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
