package api

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/serve"
)

// held reports whether a visitor says that they have what an entity tag names, by
// RFC 9110, section 13, and returns a PreconditionFailed fault if they want
// only something else. Nothing here has a date of its last change, so conditions
// on dates hold.
//
// It looks through the header as it came: most have no condition, and asking for each
// by its name would take longer.
func held(fields []byte, etag *edge.ETag) (bool, error) {
	wanted, matches, has := false, false, false
	for len(fields) > 0 {
		var line []byte
		line, fields, _ = bytes.Cut(fields, []byte("\n"))
		if len(line) < 3 || line[0]|0x20 != 'i' || line[1]|0x20 != 'f' || line[2] != '-' {
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case bytes.EqualFold(name, []byte(fasthttp.HeaderIfMatch)):
			wanted = true
			matches = matches || serve.MatchETag(value, etag[:], false)
		case bytes.EqualFold(name, []byte(fasthttp.HeaderIfNoneMatch)):
			has = has || serve.MatchETag(value, etag[:], true)
		}
	}
	if wanted && !matches {
		return false, fault.New(fault.PreconditionFailed, "This is another picture than the one that If-Match names.")
	}
	return has, nil
}
