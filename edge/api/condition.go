package api

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/shared/fault"
)

// held reports whether a visitor says that they have what an entity tag names, by
// RFC 9110, section 13, and returns a PreconditionFailed fault if they want
// only something else. Nothing here has a date of its last change, so conditions
// on dates hold. Most requests make none, which takes one look at their header.
func held(rc *fasthttp.RequestCtx, etag edge.ETag) (bool, error) {
	if !mayBeConditional(rc.Request.Header.RawHeaders()) {
		return false, nil
	}
	if lines := rc.Request.Header.PeekAll(fasthttp.HeaderIfMatch); len(lines) > 0 && !names(lines, etag, false) {
		return false, fault.New(fault.PreconditionFailed, "This is another picture than the one that If-Match names.")
	}
	lines := rc.Request.Header.PeekAll(fasthttp.HeaderIfNoneMatch)
	return len(lines) > 0 && names(lines, etag, true), nil
}

// names reports whether an entity tag is among those of a header. Only the weak
// comparison takes a weak tag for a strong one.
func names(lines [][]byte, etag edge.ETag, weak bool) bool {
	for _, line := range lines {
		for len(line) > 0 {
			var candidate []byte
			candidate, line, _ = bytes.Cut(line, []byte(","))
			candidate = bytes.TrimSpace(candidate)
			if weak {
				candidate = bytes.TrimPrefix(candidate, []byte("W/"))
			}
			if string(candidate) == "*" || bytes.Equal(candidate, etag[:]) {
				return true
			}
		}
	}
	return false
}

// mayBeConditional reports whether a line of a header begins with If-.
func mayBeConditional(header []byte) bool {
	for {
		if len(header) > 3 && header[0]|0x20 == 'i' && header[1]|0x20 == 'f' && header[2] == '-' {
			return true
		}
		end := bytes.IndexByte(header, '\n')
		if end < 0 {
			return false
		}
		header = header[end+1:]
	}
}
