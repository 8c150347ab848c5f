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

// form has the fields of a request, from a JSON body, a form, a multipart form, or, with DELETE,
// also the query; the body takes precedence. Errors of fields are collected, and err returns all of
// them. Unknown fields are ignored.
type form struct {
	byName map[string]field
	file   []byte // first field "file" of a multipart body
	errors map[string][]string
}

// field is the value of a field.
type field struct {
	raw    []byte   // JSON; nil in a form
	values []string // in a form: the values of all fields of the name
	nested bool     // in a form: as in name[key]=value, which no route takes
}

// UnmarshalJSON keeps the raw value: its type is checked when it is read.
func (v *field) UnmarshalJSON(raw []byte) error {
	v.raw = bytes.Clone(raw)
	return nil
}

func (v field) isNull() bool { return string(v.raw) == "null" }

// str returns the value if it is text.
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

// first returns the first value of a form field.
func (v field) first() string {
	if len(v.values) == 0 {
		return ""
	}
	return v.values[0]
}

// Media types of bodies.
const (
	typeJSON      = "application/json"
	typeForm      = "application/x-www-form-urlencoded"
	typeMultipart = "multipart/form-data"
)

// parseForm parses the request's fields.
func parseForm(rc *fasthttp.RequestCtx) (*form, error) {
	f := new(form)
	err := f.readBody(rc, typeJSON, typeForm, typeMultipart)
	if err == nil && rc.IsDelete() {
		f.addMissing(f.collect(argEntries(rc.QueryArgs())))
	}
	return f, err
}

// parseUpload parses the fields of an upload. Only multipart forms are accepted: the body may be
// large, and other types would need more memory.
func parseUpload(rc *fasthttp.RequestCtx) (*form, error) {
	f := new(form)
	return f, f.readBody(rc, typeMultipart)
}

// parseQuery parses the request's query.
func parseQuery(rc *fasthttp.RequestCtx) *form {
	f := new(form)
	f.byName = f.collect(argEntries(rc.QueryArgs()))
	return f
}

// byteOrderMark is written by some programs before UTF-8.
var byteOrderMark = []byte("\xef\xbb\xbf")

// readBody parses a body of one of the accepted media types.
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

// isUTF8 reports whether a media type has no charset but UTF-8.
func isUTF8(parameters map[string]string) bool {
	charset, ok := parameters["charset"]
	return !ok || strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "utf8")
}

// addMissing adds the fields that are absent or null so far.
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

// maxDepth is the maximum nesting of a JSON body; the body itself is level 1.
const maxDepth = 32

func (f *form) readJSON(body []byte) error {
	// Package json replaces invalid UTF-8 with U+FFFD instead of rejecting it.
	if err := json.Unmarshal(body, &f.byName); err != nil || f.byName == nil || !utf8.Valid(body) {
		return fault.New(fault.Malformed, "The body is no JSON object.")
	}
	if isDeeper(body, maxDepth) {
		return fault.New(fault.Malformed, "The body nests deeper than %d levels.", maxDepth)
	}
	if hasLoneSurrogate(body) {
		// Package json has replaced it with U+FFFD, in a name too.
		for name, value := range f.byName {
			if hasLoneSurrogate(value.raw) || strings.ContainsRune(name, utf8.RuneError) {
				f.addError(name, "The field %s has half of a surrogate pair, which is no character.", name)
			}
		}
	}
	return nil
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
// of a pair (RFC 8259, section 8.2).
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

var errTooManyFields = fault.New(fault.Malformed, "The body has more than %d fields.", maxFields)

// entry is one key and value of a form.
type entry struct {
	name   string
	index  uint64 // in an array
	nested bool
	text   string
}

// newEntry parses a key. type[] and type[1] are elements of the array type; any other key in
// brackets is nested.
func newEntry(key, text string) entry {
	name, digits, isElement := strings.Cut(key, "[")
	digits, isClosed := strings.CutSuffix(digits, "]")
	switch {
	case !isElement || !isClosed:
		return entry{name: key, text: text}
	case digits == "":
		return entry{name: name, text: text}
	}
	index, err := strconv.ParseUint(digits, 10, 64)
	return entry{name, index, err != nil, text}
}

func argEntries(args *fasthttp.Args) []entry {
	entries := make([]entry, 0, args.Len())
	for key, value := range args.All() {
		entries = append(entries, newEntry(string(key), string(value)))
	}
	return entries
}

// collect groups entries by name, elements of arrays in the order of their indices.
func (f *form) collect(entries []entry) map[string]field {
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.index, b.index) })
	byName := make(map[string]field, len(entries))
	for _, e := range entries {
		if !utf8.ValidString(e.name) || !utf8.ValidString(e.text) {
			e.name = strings.ToValidUTF8(e.name, string(utf8.RuneError))
			f.addError(e.name, "The field %s must be valid UTF-8.", e.name)
		}
		value := byName[e.name]
		value.values = append(value.values, e.text)
		value.nested = value.nested || e.nested
		byName[e.name] = value
	}
	return byName
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
		if err == io.EOF { //nolint:errorlint // a wrapped EOF means that the last boundary is missing
			f.byName = f.collect(entries)
			return nil
		}
		if err != nil {
			return malformed
		}
		content, err := io.ReadAll(part) // bounded by the body
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
		// Apache HttpClient declares ISO-8859-1 by default, also for ASCII.
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

// addError records an error of a field.
func (f *form) addError(name, format string, args ...any) {
	if f.errors == nil {
		f.errors = map[string][]string{}
	}
	f.errors[name] = append(f.errors[name], fmt.Sprintf(format, args...))
}

// err returns an Invalid fault with all recorded errors, or nil.
func (f *form) err() error {
	if len(f.errors) == 0 {
		return nil
	}
	names := strings.Join(slices.Sorted(maps.Keys(f.errors)), ", ")
	return &fault.Error{Kind: fault.Invalid, Message: "These fields are missing or wrong: " + names + ".", Fields: f.errors}
}

// has reports whether a field is present, with any value.
func (f *form) has(name string) bool {
	_, ok := f.byName[name]
	return ok
}

// isAbsent reports whether a field is absent or null in JSON, which means the same.
func (f *form) isAbsent(name string) bool {
	value, ok := f.byName[name]
	return !ok || value.isNull()
}

// str returns the text of a required field, untrimmed.
func (f *form) str(name string) string {
	if f.isAbsent(name) {
		f.addError(name, "The field %s is required.", name)
		return ""
	}
	return f.optionalStr(name, "")
}

// optionalStr returns the text of a field, untrimmed, or def.
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

// optionalInteger returns the integer of a field, or nil when the field is absent or empty.
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

// maxNumberLength bounds numbers that are not written as plain integers: computing an exact
// fraction takes many times longer than its text suggests.
const maxNumberLength = 64

// jsonNumber matches a JSON number with an exponent of at most three digits.
var jsonNumber = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?$`)

// parseNumber returns the integer value of a JSON number: 62, 62.0 and 6.2e1 are the same.
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

// integer returns the integer of a field, or def.
func (f *form) integer(name string, def int64) int64 {
	if n := f.optionalInteger(name); n != nil {
		return *n
	}
	return def
}

// requiredInteger returns the integer of a required field.
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

// optionalBool returns the boolean of a field, or def.
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

// strs returns the texts of an array; a form repeats the field.
func (f *form) strs(name string) []string {
	value := f.byName[name]
	texts := slices.Clone(value.values)
	if value.nested || value.raw != nil && json.Unmarshal(value.raw, &texts) != nil {
		f.addError(name, "The field %s must be an array of texts.", name)
	}
	return texts
}
