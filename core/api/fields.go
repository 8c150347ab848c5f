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

// fields is what a request says, whichever way it says it: JSON, a form, a
// multipart form, or, with DELETE, the query, over which the body wins. A field
// that is wrong is noted; fault tells of all of them at once. Unknown fields are
// ignored.
type fields struct {
	named map[string]field
	file  []byte // of a multipart body's first field "file"
	wrong map[string][]string
}

// field is one field's value.
type field struct {
	raw    []byte   // of a JSON body; nil of a form
	texts  []string // of a form: the values of all fields of the name
	nested bool     // of a form: as in name[key]=value, which nothing here takes
}

// UnmarshalJSON keeps the value as it is: its type is known once it is read.
func (v *field) UnmarshalJSON(raw []byte) error {
	v.raw = bytes.Clone(raw)
	return nil
}

func (v field) isNull() bool { return string(v.raw) == "null" }

// text returns a value that is text.
func (v field) text() (text string, ok bool) {
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
	if len(v.texts) == 0 {
		return ""
	}
	return v.texts[0]
}

// The ways of a body.
const (
	kindJSON      = "application/json"
	kindForm      = "application/x-www-form-urlencoded"
	kindMultipart = "multipart/form-data"
)

// read reads the request's fields.
func read(rc *fasthttp.RequestCtx) (*fields, error) {
	f := new(fields)
	err := f.readBody(rc, kindJSON, kindForm, kindMultipart)
	if err == nil && rc.IsDelete() {
		f.under(f.form(entriesOf(rc.QueryArgs())))
	}
	return f, err
}

// readUpload reads the fields of a request that carries a file. Its body may be
// large, so no more is made of it than a file and a few fields.
func readUpload(rc *fasthttp.RequestCtx) (*fields, error) {
	f := new(fields)
	return f, f.readBody(rc, kindMultipart)
}

// readQuery reads the fields of a request's query.
func readQuery(rc *fasthttp.RequestCtx) *fields {
	f := new(fields)
	f.named = f.form(entriesOf(rc.QueryArgs()))
	return f
}

// byteOrderMark is what some programs write before UTF-8.
var byteOrderMark = []byte("\xef\xbb\xbf")

// readBody reads a body that may be of some kinds.
func (f *fields) readBody(rc *fasthttp.RequestCtx, kinds ...string) error {
	body := bytes.TrimPrefix(rc.PostBody(), byteOrderMark)
	if len(body) == 0 {
		return nil
	}
	kind, parameters := parseMedia(string(rc.Request.Header.ContentType()))
	if !slices.Contains(kinds, kind) {
		return fault.New(fault.UnsupportedMedia, "The body must be %s.", oneOf(kinds))
	}
	if !isUTF8(parameters) {
		return errCharset
	}
	switch kind {
	case kindJSON:
		return f.readJSON(body)
	case kindForm:
		return f.readForm(body)
	default:
		return f.readMultipart(body, parameters["boundary"])
	}
}

var errCharset = fault.New(fault.UnsupportedMedia, "The body must be UTF-8.")

// oneOf returns kinds as a sentence lists them.
func oneOf(kinds []string) string {
	last := len(kinds) - 1
	if last == 0 {
		return kinds[0]
	}
	return strings.Join(kinds[:last], ", ") + " or " + kinds[last]
}

// parseMedia returns a media type, in lower case, and its parameters; none when they
// are malformed, as they hardly ever matter.
func parseMedia(text string) (kind string, parameters map[string]string) {
	kind, parameters, err := mime.ParseMediaType(text)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return "", nil
	}
	return kind, parameters
}

// isUTF8 reports whether a media type names no other charset than UTF-8.
func isUTF8(parameters map[string]string) bool {
	charset, ok := parameters["charset"]
	return !ok || strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "utf8")
}

// under adds fields below those that are there: of one that is null, or absent, they
// tell more.
func (f *fields) under(others map[string]field) {
	if f.named == nil {
		f.named = others
		return
	}
	for name, other := range others {
		if own, ok := f.named[name]; !ok || own.isNull() {
			f.named[name] = other
		}
	}
}

// maxDepth is how deep a JSON body nests at most, the body included.
const maxDepth = 32

func (f *fields) readJSON(body []byte) error {
	// Package json would put replacement characters in place of what is no UTF-8.
	if err := json.Unmarshal(body, &f.named); err != nil || f.named == nil || !utf8.Valid(body) {
		return fault.New(fault.Malformed, "The body is no JSON object.")
	}
	if isDeeper(body, maxDepth) {
		return fault.New(fault.Malformed, "The body nests deeper than %d levels.", maxDepth)
	}
	if hasLoneSurrogate(body) {
		// Package json has put a replacement character in place of it, in a name too.
		for name, value := range f.named {
			if hasLoneSurrogate(value.raw) || strings.ContainsRune(name, utf8.RuneError) {
				f.flaw(name, "The field %s has half of a surrogate pair, which is no character.", name)
			}
		}
	}
	return nil
}

// isDeeper reports whether valid JSON nests deeper than so many levels.
func isDeeper(text []byte, most int) bool {
	if bytes.Count(text, []byte{'{'})+bytes.Count(text, []byte{'['}) <= most {
		return false // as good as always
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	for depth := 0; depth <= most; {
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

var errFields = fault.New(fault.Malformed, "The body has more than %d fields.", maxFields)

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

func entriesOf(args *fasthttp.Args) []entry {
	entries := make([]entry, 0, args.Len())
	for key, value := range args.All() {
		entries = append(entries, newEntry(string(key), string(value)))
	}
	return entries
}

// form returns a form's fields.
func (f *fields) form(entries []entry) map[string]field {
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.number, b.number) })
	named := make(map[string]field, len(entries))
	for _, e := range entries {
		if !utf8.ValidString(e.name) || !utf8.ValidString(e.text) {
			e.name = strings.ToValidUTF8(e.name, string(utf8.RuneError))
			f.flaw(e.name, "The field %s must be valid UTF-8.", e.name)
		}
		value := named[e.name]
		value.texts = append(value.texts, e.text)
		value.nested = value.nested || e.nested
		named[e.name] = value
	}
	return named
}

func (f *fields) readForm(body []byte) error {
	var args fasthttp.Args
	args.ParseBytes(body)
	if args.Len() > maxFields {
		return errFields
	}
	f.named = f.form(entriesOf(&args))
	return nil
}

func (f *fields) readMultipart(body []byte, boundary string) error {
	malformed := fault.New(fault.Malformed, "The body is no well-formed multipart/form-data.")
	if boundary == "" {
		return malformed
	}
	var entries []entry
	parts := multipart.NewReader(bytes.NewReader(body), boundary)
	for range maxFields + 1 {
		part, err := parts.NextPart()
		if err == io.EOF { //nolint:errorlint // wrapped, it says that the last boundary is missing
			f.named = f.form(entries)
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
			return errCharset
		}
		e.text = string(content)
		entries = append(entries, e)
	}
	return errFields
}

func isASCII(text []byte) bool {
	return !slices.ContainsFunc(text, func(c byte) bool { return c >= utf8.RuneSelf })
}

// flaw notes that a field is wrong.
func (f *fields) flaw(name, format string, args ...any) {
	if f.wrong == nil {
		f.wrong = map[string][]string{}
	}
	f.wrong[name] = append(f.wrong[name], fmt.Sprintf(format, args...))
}

// fault returns an Invalid fault that names all fields noted as wrong, or nil.
func (f *fields) fault() error {
	if len(f.wrong) == 0 {
		return nil
	}
	names := strings.Join(slices.Sorted(maps.Keys(f.wrong)), ", ")
	return &fault.Error{Kind: fault.Invalid, Message: "These fields are missing or wrong: " + names + ".", Fields: f.wrong}
}

// has reports whether a field is present, whatever its value.
func (f *fields) has(name string) bool {
	_, ok := f.named[name]
	return ok
}

// null reports whether a field is absent, or null in JSON, which says the same.
func (f *fields) null(name string) bool {
	value, ok := f.named[name]
	return !ok || value.isNull()
}

// text returns a field that must be there, as it was sent.
func (f *fields) text(name string) string {
	if f.null(name) {
		f.flaw(name, "The field %s is required.", name)
		return ""
	}
	return f.optionalText(name, "")
}

// optionalText returns a field as it was sent, or otherwise.
func (f *fields) optionalText(name, otherwise string) string {
	if f.null(name) {
		return otherwise
	}
	text, ok := f.named[name].text()
	if !ok {
		f.flaw(name, "The field %s must be text.", name)
	}
	return text
}

// optionalInteger returns a field's integer, or nil when the field is absent or empty.
func (f *fields) optionalInteger(name string) *int64 {
	if f.null(name) {
		return nil
	}
	value := f.named[name]
	digits, isText := value.text()
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
		f.flaw(name, "The field %s must be an integer.", name)
		return nil
	}
	return &n
}

// longestNumber bounds numbers that are not written as plain integers: what stands
// behind the point and in the exponent takes many times as long to compute.
const longestNumber = 64

// jsonNumber is a number as JSON writes it, whose exponent is no larger than any integer's.
var jsonNumber = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?$`)

// parseNumber returns the integer that a number in JSON is, as 62, 62.0 and 6.2e1 are.
func parseNumber(text string) (n int64, ok bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil {
		return n, true
	}
	if len(text) > longestNumber || !jsonNumber.MatchString(text) {
		return 0, false
	}
	exact, ok := new(big.Rat).SetString(text)
	if !ok || !exact.IsInt() || !exact.Num().IsInt64() {
		return 0, false
	}
	return exact.Num().Int64(), true
}

// integer returns a field's integer, or otherwise.
func (f *fields) integer(name string, otherwise int64) int64 {
	if n := f.optionalInteger(name); n != nil {
		return *n
	}
	return otherwise
}

// requiredInteger returns the integer of a field that must be there.
func (f *fields) requiredInteger(name string) int64 {
	n := f.optionalInteger(name)
	if n == nil {
		if f.wrong[name] == nil {
			f.flaw(name, "The field %s is required.", name)
		}
		return 0
	}
	return *n
}

// optionalBool returns a field's truth value, or otherwise.
func (f *fields) optionalBool(name string, otherwise bool) bool {
	if f.null(name) {
		return otherwise
	}
	value := f.named[name]
	word, isText := value.text()
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
		f.flaw(name, "The field %s must be true or false.", name)
		return false
	}
}

// texts returns a field that is an array of texts; in a form it is repeated.
func (f *fields) texts(name string) []string {
	value := f.named[name]
	texts := slices.Clone(value.texts)
	if value.nested || value.raw != nil && json.Unmarshal(value.raw, &texts) != nil {
		f.flaw(name, "The field %s must be an array of texts.", name)
	}
	return texts
}
