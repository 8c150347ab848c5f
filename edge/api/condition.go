package api

import (
	"bytes"
	"net/http"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/serve"
)

// conditions are those of a request, by RFC 9110, section 13.1.
type conditions struct {
	match, noneMatch                 listed
	modifiedSince, unmodifiedSince   time.Time // zero: none, or nothing that counts
	modifiedSinces, unmodifiedSinces int       // of which several count as none
}

// listed is a condition on entity tags.
type listed struct{ given, holds bool }

// isUnchanged reports whether a client has what was found, and returns a
// PreconditionFailed fault if it wants only something else.
//
// It looks through the header as it came: most have no condition, and asking for each
// by its name would take longer.
func (found *shown) isUnchanged(fields []byte) (bool, error) {
	var asked conditions
	for len(fields) > 0 {
		var line []byte
		line, fields, _ = bytes.Cut(fields, []byte("\n"))
		if len(line) < 3 || line[0]|0x20 != 'i' || line[1]|0x20 != 'f' || line[2] != '-' {
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case bytes.EqualFold(name, []byte(fasthttp.HeaderIfMatch)):
			asked.match.given = true
			asked.match.holds = asked.match.holds || serve.MatchETag(value, found.etag[:], false)
		case bytes.EqualFold(name, []byte(fasthttp.HeaderIfNoneMatch)):
			asked.noneMatch.given = true
			asked.noneMatch.holds = asked.noneMatch.holds || serve.MatchETag(value, found.etag[:], true)
		case bytes.EqualFold(name, []byte(fasthttp.HeaderIfModifiedSince)):
			asked.modifiedSince = parseDate(value)
			asked.modifiedSinces++
		case bytes.EqualFold(name, []byte(fasthttp.HeaderIfUnmodifiedSince)):
			asked.unmodifiedSince = parseDate(value)
			asked.unmodifiedSinces++
		}
	}
	return found.meets(&asked)
}

// meets evaluates conditions in the order of RFC 9110, section 13.2.2. Those on dates
// count only where there is no condition on entity tags, and what was found has a date.
func (found *shown) meets(asked *conditions) (unchanged bool, err error) {
	hasDate := found.modified > 0
	switch {
	case asked.match.given && !asked.match.holds:
		return false, fault.New(fault.PreconditionFailed, "This is another picture than the one that If-Match names.")
	case asked.match.given || !hasDate || asked.unmodifiedSinces != 1 || asked.unmodifiedSince.IsZero():
	case found.modified > asked.unmodifiedSince.Unix():
		return false, fault.New(fault.PreconditionFailed, "This has changed since the date that If-Unmodified-Since names.")
	}
	if asked.noneMatch.given {
		return asked.noneMatch.holds, nil
	}
	if !hasDate || asked.modifiedSinces != 1 || asked.modifiedSince.IsZero() {
		return false, nil
	}
	// A date in the future is no date of a copy.
	since := asked.modifiedSince.Unix()
	return found.modified <= since && since <= found.at.Unix(), nil
}

// parseDate returns the moment that a field names in one of the three forms of HTTP, or
// the zero Time.
func parseDate(value []byte) time.Time {
	at, err := http.ParseTime(borrowed(bytes.TrimSpace(value)))
	if err != nil {
		return time.Time{}
	}
	return at
}

// dateOf returns when what was found has changed last, in seconds since 1970, or 0 if
// no client should rely on that.
//
// Dates are rounded up to the full second, and used from a second after it. So whatever
// was answered in the second of a change, or before the change had arrived here, has
// another date, or none. Nothing is known of a change that core could not tell.
func (found *shown) dateOf() int64 {
	isFile := found.want.File || found.about.route == profile
	if !isFile || found.source == edge.Stale || found.at.Unix() <= found.led.Modified {
		return 0
	}
	return found.led.Modified
}
