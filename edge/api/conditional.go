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

// conditions are the conditional headers of a request (RFC 9110, section 13.1).
type conditions struct {
	match, noneMatch                         etagCondition
	modifiedSince, unmodifiedSince           time.Time // zero: none, or invalid
	modifiedSinceCount, unmodifiedSinceCount int       // several are ignored
}

// etagCondition is a condition on entity tags.
type etagCondition struct{ given, holds bool }

// checkConditions completes the validators of a response, which Last-Modified and a profile's
// ETag are, and decides whether it is 304 Not Modified. It returns a PreconditionFailed fault
// if it is 412.
//
// It scans the raw header lines: most requests have no condition, and looking up each header
// by its name would take longer.
func (e *exchange) checkConditions(fields []byte) (err error) {
	e.modified = e.lastModified()
	if e.request.Kind == edge.KindProfile {
		e.setProfile()
	}
	conds := parseConditions(fields, e.response.ETag[:])
	e.notModified, err = conds.evaluate(e.modified, e.at)
	return err
}

// checkETag decides by the conditions on entity tags whether a response is 304 Not Modified. It returns
// a PreconditionFailed fault if it is 412.
func checkETag(fields []byte, etag edge.ETag) (isUnchanged bool, err error) {
	conds := parseConditions(fields, etag[:])
	return conds.evaluate(0, time.Time{})
}

// parseConditions parses the conditional headers of raw header lines.
func parseConditions(fields, etag []byte) (conds conditions) {
	for len(fields) > 0 {
		var line []byte
		line, fields, _ = bytes.Cut(fields, []byte("\n"))
		if len(line) < 3 || line[0]|0x20 != 'i' || line[1]|0x20 != 'f' || line[2] != '-' {
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case bytes.EqualFold(name, []byte(fasthttp.HeaderIfMatch)):
			conds.match.given = true
			conds.match.holds = conds.match.holds || httpserver.MatchETag(value, etag, false)
		case bytes.EqualFold(name, []byte(fasthttp.HeaderIfNoneMatch)):
			conds.noneMatch.given = true
			conds.noneMatch.holds = conds.noneMatch.holds || httpserver.MatchETag(value, etag, true)
		case bytes.EqualFold(name, []byte(fasthttp.HeaderIfModifiedSince)):
			conds.modifiedSince = parseDate(value)
			conds.modifiedSinceCount++
		case bytes.EqualFold(name, []byte(fasthttp.HeaderIfUnmodifiedSince)):
			conds.unmodifiedSince = parseDate(value)
			conds.unmodifiedSinceCount++
		}
	}
	return conds
}

// evaluate evaluates conditions in the order of RFC 9110, section 13.2.2. Those on dates are
// ignored if there is one on entity tags, or if the response has no date, which modified is in seconds
// since 1970. The request arrived at a time.
func (c *conditions) evaluate(modified int64, at time.Time) (unchanged bool, err error) {
	hasDate := modified > 0
	switch {
	case c.match.given && !c.match.holds:
		return false, fault.New(fault.PreconditionFailed, "This is another picture than the one that If-Match names.")
	case c.match.given || !hasDate || c.unmodifiedSinceCount != 1 || c.unmodifiedSince.IsZero():
	case modified > c.unmodifiedSince.Unix():
		return false, fault.New(fault.PreconditionFailed, "This has changed since the date that If-Unmodified-Since names.")
	}
	if c.noneMatch.given {
		return c.noneMatch.holds, nil
	}
	if !hasDate || c.modifiedSinceCount != 1 || c.modifiedSince.IsZero() {
		return false, nil
	}
	// A date in the future is invalid (RFC 9110, section 13.1.3).
	since := c.modifiedSince.Unix()
	return modified <= since && since <= at.Unix(), nil
}

// parseDate parses a date in one of the three formats of HTTP. It returns the zero Time for an
// invalid one.
func parseDate(value []byte) time.Time {
	at, err := http.ParseTime(unsafeString(bytes.TrimSpace(value)))
	if err != nil {
		return time.Time{}
	}
	return at
}

// lastModified returns the Last-Modified of a file, a profile or a sheet, in seconds since 1970,
// 0 for none. Other pictures also change with the renderer's revision, which has no date.
//
// Dates are rounded up to the full second, and not used before that second is over. So a
// response from the second of a change, or from before the change arrived here, has another
// date or none. A stale mapping has no date, since there may be changes that have not
// arrived.
func (e *exchange) lastModified() int64 {
	res := &e.response
	if !e.request.IsForGames() || res.Lookup == edge.LookupStale || e.at.Unix() <= res.Mapping.Modified {
		return 0
	}
	return res.Mapping.Modified
}
