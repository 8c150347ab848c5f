package decode

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/fault"
)

// Form has the fields of a request, from a JSON body, a form, a multipart form, or, with DELETE,
// also the query; the body takes precedence. Errors are collected: of the body, or else all
// of the fields, and Err returns them. Unknown fields are ignored.
type Form struct {
	File []byte // first field "file" of a multipart body

	byName    map[string]field
	bodyError error
	errors    map[string][]string
}

// field is the value of a field.
type field struct {
	raw    []byte   // JSON; nil in a form
	values []string // in a form: the values of all fields of the name
	nested bool     // in a form: as in name[key]=value, which no route takes
}

// UnmarshalJSON keeps the raw value: its type is checked when it is read.
func (f *field) UnmarshalJSON(raw []byte) error {
	f.raw = bytes.Clone(raw)
	return nil
}

func (f field) isNull() bool { return string(f.raw) == "null" }

// str returns the value if it is text.
func (f field) str() (text string, ok bool) {
	switch {
	case f.raw == nil:
		return f.first(), !f.nested
	case f.raw[0] != '"':
		return "", false
	case bytes.IndexByte(f.raw, '\\') < 0:
		return string(f.raw[1 : len(f.raw)-1]), true
	default:
		return text, json.Unmarshal(f.raw, &text) == nil
	}
}

// first returns the first value of a form field.
func (f field) first() string {
	if len(f.values) == 0 {
		return ""
	}
	return f.values[0]
}

// ParseForm parses the request's fields.
func ParseForm(rc *fasthttp.RequestCtx) *Form {
	f := new(Form)
	f.bodyError = f.readBody(rc, typeJSON, typeForm, typeMultipart)
	if f.bodyError == nil && rc.IsDelete() {
		f.addMissing(f.collect(argEntries(rc.QueryArgs())))
	}
	return f
}

// ParseUpload parses the fields of an upload. Only multipart forms are accepted: the body may be
// large, and other types would need more memory.
func ParseUpload(rc *fasthttp.RequestCtx) *Form {
	f := new(Form)
	f.bodyError = f.readBody(rc, typeMultipart)
	return f
}

// ParseQuery parses the request's query.
func ParseQuery(rc *fasthttp.RequestCtx) *Form {
	f := new(Form)
	f.byName = f.collect(argEntries(rc.QueryArgs()))
	return f
}

// readBody parses a body of one of the accepted media types.
func (f *Form) readBody(rc *fasthttp.RequestCtx, accepted ...string) error {
	body, err := readContent(rc, accepted...)
	if err != nil || len(body.bytes) == 0 {
		return err
	}
	switch body.mediaType {
	case typeJSON:
		return f.readJSON(body.bytes)
	case typeForm:
		return f.readURLEncoded(body.bytes)
	default:
		return f.readMultipart(body)
	}
}

// addMissing adds the fields that are absent or null so far.
func (f *Form) addMissing(others map[string]field) {
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

func (f *Form) readJSON(body []byte) error {
	if err := decodeJSON(body, &f.byName, "object"); err != nil || f.byName == nil {
		return cmp.Or(err, error(fault.New(fault.Malformed, "The body is no JSON object.")))
	}
	if hasLoneSurrogate(body) {
		// Package json has replaced it with U+FFFD, in a name too.
		for name, value := range f.byName {
			if hasLoneSurrogate(value.raw) || strings.ContainsRune(name, utf8.RuneError) {
				f.AddError(name, "The field %s has half of a surrogate pair, which is no character.", name)
			}
		}
	}
	return nil
}

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
func (f *Form) collect(entries []entry) map[string]field {
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.index, b.index) })
	byName := make(map[string]field, len(entries))
	for _, e := range entries {
		if !utf8.ValidString(e.name) || !utf8.ValidString(e.text) {
			e.name = strings.ToValidUTF8(e.name, string(utf8.RuneError))
			f.AddError(e.name, "The field %s must be valid UTF-8.", e.name)
		}
		value := byName[e.name]
		value.values = append(value.values, e.text)
		value.nested = value.nested || e.nested
		byName[e.name] = value
	}
	return byName
}

func (f *Form) readURLEncoded(body []byte) error {
	var args fasthttp.Args
	args.ParseBytes(body)
	if args.Len() > maxFields {
		return errTooManyFields
	}
	f.byName = f.collect(argEntries(&args))
	return nil
}

func (f *Form) readMultipart(body content) error {
	var entries []entry
	err := body.eachPart(func(part Part) {
		e := newEntry(part.Name, "")
		if e.name == "file" {
			if f.File == nil {
				f.File = part.Content
			}
			return
		}
		e.text = string(part.Content)
		entries = append(entries, e)
	})
	if err == nil {
		f.byName = f.collect(entries)
	}
	return err
}

// AddError records an error of a field.
func (f *Form) AddError(name, format string, args ...any) {
	if f.errors == nil {
		f.errors = map[string][]string{}
	}
	f.errors[name] = append(f.errors[name], fmt.Sprintf(format, args...))
}

// Err returns the fault of the body, an Invalid fault with all recorded errors of fields, or nil.
func (f *Form) Err() error {
	if f.bodyError != nil || len(f.errors) == 0 {
		return f.bodyError
	}
	names := strings.Join(slices.Sorted(maps.Keys(f.errors)), ", ")
	return &fault.Error{Kind: fault.Invalid, Message: "These fields are missing or wrong: " + names + ".", Fields: f.errors}
}

// Has reports whether a field is present, with any value.
func (f *Form) Has(name string) bool {
	_, ok := f.byName[name]
	return ok
}

// IsAbsent reports whether a field is absent or null in JSON, which means the same.
func (f *Form) IsAbsent(name string) bool {
	value, ok := f.byName[name]
	return !ok || value.isNull()
}

// Str returns the text of a required field, untrimmed.
func (f *Form) Str(name string) string {
	if f.IsAbsent(name) {
		f.AddError(name, "The field %s is required.", name)
		return ""
	}
	return f.OptionalStr(name, "")
}

// OptionalStr returns the text of a field, untrimmed, or def.
func (f *Form) OptionalStr(name, def string) string {
	if f.IsAbsent(name) {
		return def
	}
	text, ok := f.byName[name].str()
	if !ok {
		f.AddError(name, "The field %s must be text.", name)
	}
	return text
}

// OptionalTime returns the time of a field, or nil when the field is absent or empty.
func (f *Form) OptionalTime(name string) *time.Time {
	text := strings.TrimSpace(f.OptionalStr(name, ""))
	if text == "" {
		return nil
	}
	at, err := time.Parse(time.DateTime, text)
	if err != nil {
		f.AddError(name, "The field %s must be a time in UTC, as 2031-02-03 04:05:06.", name)
	}
	return &at
}

// OptionalInteger returns the integer of a field, or nil when the field is absent or empty.
func (f *Form) OptionalInteger(name string) *int64 {
	if f.IsAbsent(name) {
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
		f.AddError(name, "The field %s must be an integer.", name)
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

// Integer returns the integer of a field, or def.
func (f *Form) Integer(name string, def int64) int64 {
	if n := f.OptionalInteger(name); n != nil {
		return *n
	}
	return def
}

// RequiredInteger returns the integer of a required field.
func (f *Form) RequiredInteger(name string) int64 {
	n := f.OptionalInteger(name)
	if n == nil {
		if f.errors[name] == nil {
			f.AddError(name, "The field %s is required.", name)
		}
		return 0
	}
	return *n
}

// ID returns the id in a field, 0 when the field is absent.
func (f *Form) ID(name string) int64 {
	n := f.OptionalInteger(name)
	switch {
	case n == nil:
		return 0
	case *n < 1:
		f.AddError(name, "The field %s must be at least 1.", name)
	}
	return *n
}

// Page returns the parameters page and perPage of a list, which are 1 and size when they are absent.
func (f *Form) Page(size int) (page, perPage int) {
	return int(f.Integer("page", 1)), int(f.Integer("perPage", int64(size)))
}

// OptionalBool returns the boolean of a field, or def.
func (f *Form) OptionalBool(name string, def bool) bool {
	if f.IsAbsent(name) {
		return def
	}
	value := f.byName[name]
	word, isText := value.str()
	if !isText {
		word = string(value.raw)
	}
	is, ok := parseBool(word, value.raw == nil)
	if !ok {
		f.AddError(name, "The field %s must be true or false.", name)
	}
	return is
}

// parseBool returns the boolean that a word stands for, and reports whether it stands for one. Forms have more words.
func parseBool(word string, isForm bool) (is, ok bool) {
	switch word = strings.ToLower(strings.TrimSpace(word)); {
	case word == "true" || word == "1" || isForm && (word == "on" || word == "yes"):
		return true, true
	case word == "false" || word == "0" || isForm && (word == "off" || word == "no"):
		return false, true
	default:
		return false, false
	}
}

// Bool is a boolean in a JSON body, which may also be 1 or 0, or a text.
type Bool bool

// UnmarshalJSON decodes a boolean. null leaves it as it is.
func (b *Bool) UnmarshalJSON(text []byte) error {
	is, ok := parseBool(strings.Trim(string(text), `"`), false)
	switch {
	case ok:
		*b = Bool(is)
	case string(text) != "null":
		return fmt.Errorf("%s is no boolean", text)
	}
	return nil
}

// RequiredBool returns the boolean of a required field.
func (f *Form) RequiredBool(name string) bool {
	if f.IsAbsent(name) {
		f.AddError(name, "The field %s is required.", name)
	}
	return f.OptionalBool(name, false)
}

// Strs returns the texts of an array; a form repeats the field.
func (f *Form) Strs(name string) []string {
	value := f.byName[name]
	texts := slices.Clone(value.values)
	if value.nested || value.raw != nil && json.Unmarshal(value.raw, &texts) != nil {
		f.AddError(name, "The field %s must be an array of texts.", name)
	}
	return texts
}
