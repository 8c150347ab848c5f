package httpserver

import "bytes"

// codings are what proxies that compress a response append to its entity tag: Apache's mod_deflate, lighttpd and others.
var codings = [...]string{"-gzip", "--gzip", ";gzip", "-br", ";br", "-zstd", ";zstd"}

// isCompressed reports whether an entity tag is another one with a coding.
func isCompressed(tag, etag []byte) bool {
	last := len(etag) - 1 // the quote
	if len(tag) <= len(etag) || !bytes.Equal(tag[:last], etag[:last]) {
		return false
	}
	for _, coding := range codings {
		if string(tag[last:len(tag)-1]) == coding {
			return true
		}
	}
	return false
}

// MatchETag reports whether an entity tag, with its quotes, is among the tags of an
// If-None-Match or If-Match header (RFC 9110, section 13.1). weak selects the weak
// comparison, which If-None-Match uses and which ignores W/ and the name of a coding that a proxy has appended.
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
		if bytes.Equal(tag[:end], etag) && (weak || !isWeak) || weak && isCompressed(tag[:end], etag) {
			return true
		}
		list = tag[end:]
	}
	return false
}
