package api

import (
	"bytes"
	"net/http"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

// conditions are those of a request, by RFC 9110, section 13.1.
type conditions struct {
	match, noneMatch                         etagCondition
	modifiedSince, unmodifiedSince           time.Time // zero: none, or nothing that counts
	modifiedSinceCount, unmodifiedSinceCount int       // of which several count as none
}

// etagCondition is a condition on entity tags.
type etagCondition struct{ given, holds bool }

// checkConditions reports whether a client has what was found, and returns a
// PreconditionFailed fault if it wants only something else.
//
// It looks through the header as it came: most have no condition, and asking for each
// by its name would take longer.
func (res *response) checkConditions(fields []byte) (bool, error) {
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
			asked.match.holds = asked.match.holds || httpserver.MatchETag(value, res.etag[:], false)
		case bytes.EqualFold(name, []byte(fasthttp.HeaderIfNoneMatch)):
			asked.noneMatch.given = true
			asked.noneMatch.holds = asked.noneMatch.holds || httpserver.MatchETag(value, res.etag[:], true)
		case bytes.EqualFold(name, []byte(fasthttp.HeaderIfModifiedSince)):
			asked.modifiedSince = parseDate(value)
			asked.modifiedSinceCount++
		case bytes.EqualFold(name, []byte(fasthttp.HeaderIfUnmodifiedSince)):
			asked.unmodifiedSince = parseDate(value)
			asked.unmodifiedSinceCount++
		}
	}
	return res.evaluate(&asked)
}

// evaluate evaluates conditions in the order of RFC 9110, section 13.2.2. Those on dates
// count only where there is no condition on entity tags, and what was found has a date.
func (res *response) evaluate(asked *conditions) (unchanged bool, err error) {
	hasDate := res.modified > 0
	switch {
	case asked.match.given && !asked.match.holds:
		return false, fault.New(fault.PreconditionFailed, "This is another picture than the one that If-Match names.")
	case asked.match.given || !hasDate || asked.unmodifiedSinceCount != 1 || asked.unmodifiedSince.IsZero():
	case res.modified > asked.unmodifiedSince.Unix():
		return false, fault.New(fault.PreconditionFailed, "This has changed since the date that If-Unmodified-Since names.")
	}
	if asked.noneMatch.given {
		return asked.noneMatch.holds, nil
	}
	if !hasDate || asked.modifiedSinceCount != 1 || asked.modifiedSince.IsZero() {
		return false, nil
	}
	// A date in the future is no date of a copy.
	since := asked.modifiedSince.Unix()
	return res.modified <= since && since <= res.at.Unix(), nil
}

// parseDate returns the moment that a field names in one of the three forms of HTTP, or
// the zero Time.
func parseDate(value []byte) time.Time {
	at, err := http.ParseTime(unsafeString(bytes.TrimSpace(value)))
	if err != nil {
		return time.Time{}
	}
	return at
}

// lastModified returns when what was found has changed last, in seconds since 1970, or 0 if
// no client should rely on that.
//
// Dates are rounded up to the full second, and used from a second after it. So whatever
// was answered in the second of a change, or before the change had arrived here, has
// another date, or none. Nothing is known of a change that core could not tell.
func (res *response) lastModified() int64 {
	isFile := res.want.File || res.target.route == profile
	if !isFile || res.lookup == edge.LookupStale || res.at.Unix() <= res.mapping.Modified {
		return 0
	}
	return res.mapping.Modified
}
