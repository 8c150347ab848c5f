package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"mime"
	"mime/multipart"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/fault"
)

// form is what a request says, whichever way it says it: JSON, a form, a
// multipart form, or, with DELETE, the query, over which the body wins. A field
// that is wrong is noted; fault tells of all of them at once. Unknown fields are
// ignored.
type form struct {
	byName map[string]field
	file   []byte // of a multipart body's first field "file"
	errors map[string][]string
}

// field is one field's value.
type field struct {
	raw    []byte   // of a JSON body; nil of a form
	values []string // of a form: the values of all fields of the name
	nested bool     // of a form: as in name[key]=value, which nothing here takes
}

// UnmarshalJSON keeps the value as it is: its type is known once it is read.
func (v *field) UnmarshalJSON(raw []byte) error {
	v.raw = bytes.Clone(raw)
	return nil
}

func (v field) isNull() bool { return string(v.raw) == "null" }

// str returns a value that is text.
func (v field) str() (text string, ok bool) {
	switch {
	case v.raw == nil:
		return v.first(), !v.nested
	case v.raw[0] != '"':
		return "", false
	case bytes.IndexByte(v.raw, '\\') < 0:
		return string(v.raw[1 : len(v.raw)-1]), true
	default:
		return text, json.Unmarshal(v.raw, &text) == nil
	}
}

// first returns the first of a form's values.
func (v field) first() string {
	if len(v.values) == 0 {
		return ""
	}
	return v.values[0]
}

// The ways of a body.
const (
	typeJSON      = "application/json"
	typeForm      = "application/x-www-form-urlencoded"
	typeMultipart = "multipart/form-data"
)

// parseForm reads the request's fields.
func parseForm(rc *fasthttp.RequestCtx) (*form, error) {
	f := new(form)
	err := f.readBody(rc, typeJSON, typeForm, typeMultipart)
	if err == nil && rc.IsDelete() {
		f.addMissing(f.collect(argEntries(rc.QueryArgs())))
	}
	return f, err
}

// parseUpload reads the fields of a request that carries a file. Its body may be
// large, so no more is made of it than a file and a few fields.
func parseUpload(rc *fasthttp.RequestCtx) (*form, error) {
	f := new(form)
	return f, f.readBody(rc, typeMultipart)
}

// parseQuery reads the fields of a request's query.
func parseQuery(rc *fasthttp.RequestCtx) *form {
	f := new(form)
	f.byName = f.collect(argEntries(rc.QueryArgs()))
	return f
}

// byteOrderMark is what some programs write before UTF-8.
var byteOrderMark = []byte("\xef\xbb\xbf")

// readBody reads a body that may be of some kinds.
func (f *form) readBody(rc *fasthttp.RequestCtx, accepted ...string) error {
	body := bytes.TrimPrefix(rc.PostBody(), byteOrderMark)
	if len(body) == 0 {
		return nil
	}
	mediaType, parameters := parseMedia(string(rc.Request.Header.ContentType()))
	if !slices.Contains(accepted, mediaType) {
		return fault.New(fault.UnsupportedMedia, "The body must be %s.", joinOr(accepted))
	}
	if !isUTF8(parameters) {
		return errNotUTF8
	}
	switch mediaType {
	case typeJSON:
		return f.readJSON(body)
	case typeForm:
		return f.readURLEncoded(body)
	default:
		return f.readMultipart(body, parameters["boundary"])
	}
}

var errNotUTF8 = fault.New(fault.UnsupportedMedia, "The body must be UTF-8.")

// joinOr returns kinds as a sentence lists them.
func joinOr(accepted []string) string {
	last := len(accepted) - 1
	if last == 0 {
		return accepted[0]
	}
	return strings.Join(accepted[:last], ", ") + " or " + accepted[last]
}

// parseMedia returns a media type, in lower case, and its parameters; none when they
// are malformed, as they hardly ever matter.
func parseMedia(text string) (mediaType string, parameters map[string]string) {
	mediaType, parameters, err := mime.ParseMediaType(text)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return "", nil
	}
	return mediaType, parameters
}

// isUTF8 reports whether a media type names no other charset than UTF-8.
func isUTF8(parameters map[string]string) bool {
	charset, ok := parameters["charset"]
	return !ok || strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "utf8")
}

// addMissing adds fields below those that are there: of one that is null, or absent, they
// tell more.
func (f *form) addMissing(others map[string]field) {
	if f.byName == nil {
		f.byName = others
		return
	}
	for name, other := range others {
		if current, ok := f.byName[name]; !ok || current.isNull() {
			f.byName[name] = other
		}
	}
}

// maxDepth is how deep a JSON body nests at most, the body included.
const maxDepth = 32

func (f *form) readJSON(body []byte) error {
	// Package json would put replacement characters in place of what is no UTF-8.
	if err := json.Unmarshal(body, &f.byName); err != nil || f.byName == nil || !utf8.Valid(body) {
		return fault.New(fault.Malformed, "The body is no JSON object.")
	}
	if isDeeper(body, maxDepth) {
		return fault.New(fault.Malformed, "The body nests deeper than %d levels.", maxDepth)
	}
	if hasLoneSurrogate(body) {
		// Package json has put a replacement character in place of it, in a name too.
		for name, value := range f.byName {
			if hasLoneSurrogate(value.raw) || strings.ContainsRune(name, utf8.RuneError) {
				f.addError(name, "The field %s has half of a surrogate pair, which is no character.", name)
			}
		}
	}
	return nil
}

// isDeeper reports whether valid JSON nests deeper than so many levels.
func isDeeper(text []byte, limit int) bool {
	if bytes.Count(text, []byte{'{'})+bytes.Count(text, []byte{'['}) <= limit {
		return false // as good as always
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	for depth := 0; depth <= limit; {
		token, err := decoder.Token()
		switch {
		case err != nil:
			return false // the end
		case token == json.Delim('{') || token == json.Delim('['):
			depth++
		case token == json.Delim('}') || token == json.Delim(']'):
			depth--
		}
	}
	return true
}

// hasLoneSurrogate reports whether a string in valid JSON has an escaped surrogate that
// is not one of a pair (RFC 8259, section 8.2).
func hasLoneSurrogate(text []byte) bool {
	for {
		at := bytes.IndexByte(text, '\\')
		if at < 0 {
			return false
		}
		unit := utf16Escape(text[at:])
		switch {
		case !utf16.IsSurrogate(unit):
			text = text[at+2:] // a reverse solidus may be what is escaped
		case utf16.DecodeRune(unit, utf16Escape(text[at+6:])) == utf8.RuneError:
			return true
		default:
			text = text[at+12:]
		}
	}
}

// utf16Escape returns the unit of UTF-16 that a text begins with as \uXXXX; 0 if it
// begins with something else.
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

// maxFields is the most fields of a form in a body: each costs many times what it
// takes there. A query is bounded by the header block.
const maxFields = 64

var errTooManyFields = fault.New(fault.Malformed, "The body has more than %d fields.", maxFields)

// entry is a field as a form has it: one of several of a name, perhaps.
type entry struct {
	name   string
	number uint64 // of the element of an array
	nested bool
	text   string
}

// newEntry returns an entry. type[] and type[1] are elements of the array type; any
// other key in brackets is nested.
func newEntry(key, text string) entry {
	name, index, isElement := strings.Cut(key, "[")
	index, isClosed := strings.CutSuffix(index, "]")
	switch {
	case !isElement || !isClosed:
		return entry{name: key, text: text}
	case index == "":
		return entry{name: name, text: text}
	}
	number, err := strconv.ParseUint(index, 10, 64)
	return entry{name, number, err != nil, text}
}

func argEntries(args *fasthttp.Args) []entry {
	entries := make([]entry, 0, args.Len())
	for key, value := range args.All() {
		entries = append(entries, newEntry(string(key), string(value)))
	}
	return entries
}

// collect returns a form's fields.
func (f *form) collect(entries []entry) map[string]field {
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.number, b.number) })
	named := make(map[string]field, len(entries))
	for _, e := range entries {
		if !utf8.ValidString(e.name) || !utf8.ValidString(e.text) {
			e.name = strings.ToValidUTF8(e.name, string(utf8.RuneError))
			f.addError(e.name, "The field %s must be valid UTF-8.", e.name)
		}
		value := named[e.name]
		value.values = append(value.values, e.text)
		value.nested = value.nested || e.nested
		named[e.name] = value
	}
	return named
}

func (f *form) readURLEncoded(body []byte) error {
	var args fasthttp.Args
	args.ParseBytes(body)
	if args.Len() > maxFields {
		return errTooManyFields
	}
	f.byName = f.collect(argEntries(&args))
	return nil
}

func (f *form) readMultipart(body []byte, boundary string) error {
	malformed := fault.New(fault.Malformed, "The body is no well-formed multipart/form-data.")
	if boundary == "" {
		return malformed
	}
	var entries []entry
	parts := multipart.NewReader(bytes.NewReader(body), boundary)
	for range maxFields + 1 {
		part, err := parts.NextPart()
		if err == io.EOF { //nolint:errorlint // wrapped, it says that the last boundary is missing
			f.byName = f.collect(entries)
			return nil
		}
		if err != nil {
			return malformed
		}
		content, err := io.ReadAll(part) // no more than the body, which is bounded
		if err != nil {
			return malformed
		}
		e := newEntry(part.FormName(), "")
		if e.name == "file" {
			if f.file == nil {
				f.file = content
			}
			continue
		}
		// Apache's HttpClient names ISO-8859-1 unless told otherwise, for ASCII too.
		if _, parameters := parseMedia(part.Header.Get("Content-Type")); !isUTF8(parameters) && !isASCII(content) {
			return errNotUTF8
		}
		e.text = string(content)
		entries = append(entries, e)
	}
	return errTooManyFields
}

func isASCII(text []byte) bool {
	return !slices.ContainsFunc(text, func(c byte) bool { return c >= utf8.RuneSelf })
}

// addError notes that a field is wrong.
func (f *form) addError(name, format string, args ...any) {
	if f.errors == nil {
		f.errors = map[string][]string{}
	}
	f.errors[name] = append(f.errors[name], fmt.Sprintf(format, args...))
}

// err returns an Invalid fault that names all fields noted as wrong, or nil.
func (f *form) err() error {
	if len(f.errors) == 0 {
		return nil
	}
	names := strings.Join(slices.Sorted(maps.Keys(f.errors)), ", ")
	return &fault.Error{Kind: fault.Invalid, Message: "These fields are missing or wrong: " + names + ".", Fields: f.errors}
}

// has reports whether a field is present, whatever its value.
func (f *form) has(name string) bool {
	_, ok := f.byName[name]
	return ok
}

// isAbsent reports whether a field is absent, or null in JSON, which says the same.
func (f *form) isAbsent(name string) bool {
	value, ok := f.byName[name]
	return !ok || value.isNull()
}

// str returns a field that must be there, as it was sent.
func (f *form) str(name string) string {
	if f.isAbsent(name) {
		f.addError(name, "The field %s is required.", name)
		return ""
	}
	return f.optionalStr(name, "")
}

// optionalStr returns a field as it was sent, or otherwise.
func (f *form) optionalStr(name, def string) string {
	if f.isAbsent(name) {
		return def
	}
	text, ok := f.byName[name].str()
	if !ok {
		f.addError(name, "The field %s must be text.", name)
	}
	return text
}

// optionalInteger returns a field's integer, or nil when the field is absent or empty.
func (f *form) optionalInteger(name string) *int64 {
	if f.isAbsent(name) {
		return nil
	}
	value := f.byName[name]
	digits, isText := value.str()
	digits = strings.TrimSpace(digits)
	if isText && digits == "" {
		return nil
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	ok := isText && err == nil
	if !isText {
		n, ok = parseNumber(string(value.raw))
	}
	if !ok {
		f.addError(name, "The field %s must be an integer.", name)
		return nil
	}
	return &n
}

// maxNumberLength bounds numbers that are not written as plain integers: what stands
// behind the point and in the exponent takes many times as long to compute.
const maxNumberLength = 64

// jsonNumber is a number as JSON writes it, whose exponent is no larger than any integer's.
var jsonNumber = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?$`)

// parseNumber returns the integer that a number in JSON is, as 62, 62.0 and 6.2e1 are.
func parseNumber(text string) (n int64, ok bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil {
		return n, true
	}
	if len(text) > maxNumberLength || !jsonNumber.MatchString(text) {
		return 0, false
	}
	exact, ok := new(big.Rat).SetString(text)
	if !ok || !exact.IsInt() || !exact.Num().IsInt64() {
		return 0, false
	}
	return exact.Num().Int64(), true
}

// integer returns a field's integer, or otherwise.
func (f *form) integer(name string, def int64) int64 {
	if n := f.optionalInteger(name); n != nil {
		return *n
	}
	return def
}

// requiredInteger returns the integer of a field that must be there.
func (f *form) requiredInteger(name string) int64 {
	n := f.optionalInteger(name)
	if n == nil {
		if f.errors[name] == nil {
			f.addError(name, "The field %s is required.", name)
		}
		return 0
	}
	return *n
}

// optionalBool returns a field's truth value, or otherwise.
func (f *form) optionalBool(name string, def bool) bool {
	if f.isAbsent(name) {
		return def
	}
	value := f.byName[name]
	word, isText := value.str()
	if !isText {
		word = string(value.raw)
	}
	word = strings.ToLower(strings.TrimSpace(word))
	isForm := value.raw == nil
	switch {
	case word == "true" || word == "1" || isForm && (word == "on" || word == "yes"):
		return true
	case word == "false" || word == "0" || isForm && (word == "off" || word == "no"):
		return false
	default:
		f.addError(name, "The field %s must be true or false.", name)
		return false
	}
}

// strs returns a field that is an array of texts; in a form it is repeated.
func (f *form) strs(name string) []string {
	value := f.byName[name]
	texts := slices.Clone(value.values)
	if value.nested || value.raw != nil && json.Unmarshal(value.raw, &texts) != nil {
		f.addError(name, "The field %s must be an array of texts.", name)
	}
	return texts
}
