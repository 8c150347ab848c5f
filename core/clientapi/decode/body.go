// Package decode parses the bodies and queries of requests on core's public listener: JSON into a
// value, and JSON, forms and queries into a Form, which collects the errors of all fields.
package decode

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/fault"
)

// Media types of bodies.
const (
	typeJSON      = "application/json"
	typeForm      = "application/x-www-form-urlencoded"
	typeMultipart = "multipart/form-data"
)

// content is a request's body of a known media type.
type content struct {
	bytes     []byte
	mediaType string
	boundary  string
}

// byteOrderMark is written by some programs before UTF-8.
var byteOrderMark = []byte("\xef\xbb\xbf")

// readContent returns a body of one of the accepted media types, without a byte order mark. An empty
// body may have any type. The fault is UnsupportedMedia.
func readContent(rc *fasthttp.RequestCtx, accepted ...string) (content, error) {
	body := bytes.TrimPrefix(rc.PostBody(), byteOrderMark)
	if len(body) == 0 {
		return content{}, nil
	}
	if coding := rc.Request.Header.ContentEncoding(); len(coding) > 0 && !bytes.EqualFold(coding, []byte("identity")) {
		rc.Response.Header.Set(fasthttp.HeaderAcceptEncoding, "identity") // RFC 9110, section 15.5.16
		return content{}, fault.New(fault.UnsupportedMedia, "The body must not be compressed.")
	}
	mediaType, parameters := parseMedia(string(rc.Request.Header.ContentType()))
	if !slices.Contains(accepted, mediaType) {
		return content{}, fault.New(fault.UnsupportedMedia, "The body must be %s.", joinOr(accepted))
	}
	if !isUTF8(parameters) {
		return content{}, errNotUTF8
	}
	return content{body, mediaType, parameters["boundary"]}, nil
}

var errNotUTF8 = fault.New(fault.UnsupportedMedia, "The body must be UTF-8.")

// joinOr lists media types as in a sentence: "a, b or c".
func joinOr(accepted []string) string {
	last := len(accepted) - 1
	if last == 0 {
		return accepted[0]
	}
	return strings.Join(accepted[:last], ", ") + " or " + accepted[last]
}

// parseMedia returns a media type in lower case, and its parameters; no parameters if they are
// malformed, since they rarely matter.
func parseMedia(text string) (mediaType string, parameters map[string]string) {
	mediaType, parameters, err := mime.ParseMediaType(text)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return "", nil
	}
	return mediaType, parameters
}

// IsJSON reports whether a request says that its body is JSON. Pages of other sites cannot say so
// without a preflight (Fetch standard, section 4.8), while forms and plain text need none.
func IsJSON(rc *fasthttp.RequestCtx) bool {
	mediaType, parameters := parseMedia(string(rc.Request.Header.ContentType()))
	return mediaType == typeJSON && isUTF8(parameters)
}

// isUTF8 reports whether a media type has no charset but UTF-8.
func isUTF8(parameters map[string]string) bool {
	charset, ok := parameters["charset"]
	return !ok || strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "utf8")
}

// maxDepth is the maximum nesting of a JSON body; the body itself is level 1.
const maxDepth = 32

// decodeJSON decodes a JSON body into the value that a pointer leads to. The fault is Malformed, and
// says what the body should be, as in "object".
func decodeJSON(body []byte, into any, what string) error {
	// Package json replaces invalid UTF-8 with U+FFFD instead of rejecting it.
	if err := json.Unmarshal(body, into); err != nil || !utf8.Valid(body) {
		return fault.New(fault.Malformed, "The body is no JSON %s.", what)
	}
	if isDeeper(body, maxDepth) {
		return fault.New(fault.Malformed, "The body nests deeper than %d levels.", maxDepth)
	}
	return nil
}

// JSON decodes the request's JSON body into the value that a pointer leads to; an absent body is an
// empty object. The fault is Malformed or UnsupportedMedia.
func JSON(rc *fasthttp.RequestCtx, into any) error {
	body, err := readContent(rc, typeJSON)
	if err != nil || len(body.bytes) == 0 {
		return err
	}
	if hasLoneSurrogate(body.bytes) {
		return fault.New(fault.Malformed, "The body has half of a surrogate pair, which is no character.")
	}
	return decodeJSON(body.bytes, into, "of the documented form")
}

// isDeeper reports whether valid JSON nests deeper than limit levels.
func isDeeper(text []byte, limit int) bool {
	if bytes.Count(text, []byte{'{'})+bytes.Count(text, []byte{'['}) <= limit {
		return false // nearly always
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	for depth := 0; depth <= limit; {
		token, err := decoder.Token()
		switch {
		case err != nil:
			return false // end of the text
		case token == json.Delim('{') || token == json.Delim('['):
			depth++
		case token == json.Delim('}') || token == json.Delim(']'):
			depth--
		}
	}
	return true
}

// hasLoneSurrogate reports whether a string in valid JSON has an escaped surrogate that is not one
// of a pair (RFC 8259, section 8.2). Package json replaces it with U+FFFD.
func hasLoneSurrogate(text []byte) bool {
	for {
		at := bytes.IndexByte(text, '\\')
		if at < 0 {
			return false
		}
		unit := utf16Escape(text[at:])
		switch {
		case !utf16.IsSurrogate(unit):
			text = text[at+2:] // the escaped character may be a backslash
		case utf16.DecodeRune(unit, utf16Escape(text[at+6:])) == utf8.RuneError:
			return true
		default:
			text = text[at+12:]
		}
	}
}

// utf16Escape returns the UTF-16 code unit of an escape \uXXXX at the start of a text; 0 if there
// is none.
func utf16Escape(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0
	}
	unit, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(unit)
}

// maxFields is the maximum number of fields of a form: each takes many times its size in the body.
// A query is bounded by the header block.
const maxFields = 64

// errTooManyFields is the fault of a form with more fields than maxFields.
var errTooManyFields = fault.New(fault.Malformed, "The body has more than %d fields.", maxFields)

// Part is a part of a multipart form.
type Part struct {
	Name     string
	FileName string // empty for none
	Content  []byte
}

// EachPart calls do with the parts of a request's multipart form in order; without a body it has
// none. The fault is Malformed, or UnsupportedMedia for another media type or text that is not UTF-8.
func EachPart(rc *fasthttp.RequestCtx, do func(Part)) error {
	body, err := readContent(rc, typeMultipart)
	if err != nil || len(body.bytes) == 0 {
		return err
	}
	return body.eachPart(do)
}

func (c content) eachPart(do func(Part)) error {
	malformed := fault.New(fault.Malformed, "The body is no well-formed multipart/form-data.")
	if c.boundary == "" {
		return malformed
	}
	parts := multipart.NewReader(bytes.NewReader(c.bytes), c.boundary)
	for range maxFields + 1 {
		part, err := parts.NextPart()
		if err == io.EOF { //nolint:errorlint // a wrapped EOF means that the last boundary is missing
			return nil
		}
		if err != nil {
			return malformed
		}
		body, err := io.ReadAll(part) // bounded by the body
		if err != nil {
			return malformed
		}
		// Apache HttpClient declares ISO-8859-1 by default, also for ASCII.
		_, parameters := parseMedia(part.Header.Get("Content-Type"))
		if isFile := part.FormName() == "file" || part.FileName() != ""; !isFile && !isUTF8(parameters) && !isASCII(body) {
			return errNotUTF8
		}
		do(Part{part.FormName(), part.FileName(), body})
	}
	return errTooManyFields
}

func isASCII(text []byte) bool {
	return !slices.ContainsFunc(text, func(c byte) bool { return c >= utf8.RuneSelf })
}
