package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/fault"
)

// fields is what a request says, whichever way it says it: JSON, a form, a
// multipart form, or, with DELETE, the query, over which the body wins. A field
// that is wrong is noted; fault tells of all of them at once. Unknown fields are
// ignored.
type fields struct {
	json  map[string]json.RawMessage // of a JSON body, but for those that are null
	form  map[string][]string        // of everything else; no name is in both
	nulls map[string]bool            // null in a JSON body, which says no more than an absent field
	file  []byte                     // of a multipart body's first field "file"
	wrong map[string][]string
}

func newFields() *fields {
	return &fields{
		json: map[string]json.RawMessage{}, form: map[string][]string{}, nulls: map[string]bool{}, wrong: map[string][]string{},
	}
}

// The ways of a body.
const (
	kindJSON      = "application/json"
	kindForm      = "application/x-www-form-urlencoded"
	kindMultipart = "multipart/form-data"
)

// read reads the request's fields.
func read(rc *fasthttp.RequestCtx) (*fields, error) {
	f := newFields()
	if rc.IsDelete() {
		f.add(rc.QueryArgs())
	}
	body := rc.PostBody()
	if len(body) == 0 {
		return f, nil
	}
	switch kind, parameters := kindOf(rc); kind {
	case kindJSON:
		return f, f.readJSON(body)
	case kindForm:
		var args fasthttp.Args
		args.ParseBytes(body)
		if args.Len() > maxFields {
			return nil, errFields
		}
		f.add(&args)
		return f, nil
	case kindMultipart:
		return f, f.readMultipart(body, parameters["boundary"])
	default:
		return nil, fault.New(fault.UnsupportedMedia, "The body must be %s, %s or %s.", kindJSON, kindForm, kindMultipart)
	}
}

// kindOf returns the media type of a request's body, and its parameters.
func kindOf(rc *fasthttp.RequestCtx) (kind string, parameters map[string]string) {
	kind, parameters, err := mime.ParseMediaType(string(rc.Request.Header.ContentType()))
	if err != nil {
		return "", nil
	}
	return kind, parameters
}

// readUpload reads the fields of a request that carries a file. Its body may be
// large, so no more is made of it than a file and a few fields.
func readUpload(rc *fasthttp.RequestCtx) (*fields, error) {
	kind, parameters := kindOf(rc)
	switch body := rc.PostBody(); {
	case len(body) == 0:
		return newFields(), nil
	case kind != kindMultipart:
		return nil, fault.New(fault.UnsupportedMedia, "The body must be %s.", kindMultipart)
	default:
		f := newFields()
		return f, f.readMultipart(body, parameters["boundary"])
	}
}

// readQuery reads the fields of a request's query.
func readQuery(rc *fasthttp.RequestCtx) *fields {
	f := newFields()
	f.add(rc.QueryArgs())
	return f
}

// maxFields is the most fields of a form in a body: each costs many times what it
// takes there. A query is bounded by the header block.
const maxFields = 64

var errFields = fault.New(fault.Malformed, "The body has more than %d fields.", maxFields)

// add adds a form's fields, which win over those that are there.
func (f *fields) add(args *fasthttp.Args) {
	form := map[string][]string{}
	for key, value := range args.All() {
		name := nameOf(string(key))
		form[name] = append(form[name], string(value))
	}
	maps.Copy(f.form, form)
}

// nameOf returns the name of a form's field: that of an array may bear brackets.
func nameOf(key string) string { return strings.TrimSuffix(key, "[]") }

func (f *fields) readJSON(body []byte) error {
	var object map[string]json.RawMessage
	// Package json would put replacement characters in place of what is no UTF-8.
	if err := json.Unmarshal(body, &object); err != nil || object == nil || !utf8.Valid(body) {
		return fault.New(fault.Malformed, "The body is no JSON object.")
	}
	for name, raw := range object {
		if string(raw) == "null" {
			f.nulls[name] = true
			continue
		}
		f.json[name] = raw
		delete(f.form, name)
	}
	return nil
}

func (f *fields) readMultipart(body []byte, boundary string) error {
	malformed := fault.New(fault.Malformed, "The body is no well-formed multipart/form-data.")
	if boundary == "" {
		return malformed
	}
	form := map[string][]string{}
	parts := multipart.NewReader(bytes.NewReader(body), boundary)
	for range maxFields + 1 {
		part, err := parts.NextPart()
		if err == io.EOF { //nolint:errorlint // wrapped, it says that the last boundary is missing
			maps.Copy(f.form, form)
			return nil
		}
		if err != nil {
			return malformed
		}
		content, err := io.ReadAll(part) // no more than the body, which is bounded
		if err != nil {
			return malformed
		}
		if name := nameOf(part.FormName()); name != "file" {
			form[name] = append(form[name], string(content))
		} else if f.file == nil {
			f.file = content
		}
	}
	return errFields
}

// flaw notes that a field is wrong.
func (f *fields) flaw(name, format string, args ...any) {
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
func (f *fields) has(name string) bool { return f.nulls[name] || !f.null(name) }

// null reports whether a field is absent, or null in JSON, which says the same.
func (f *fields) null(name string) bool {
	_, inJSON := f.json[name]
	_, inForm := f.form[name]
	return !inForm && !inJSON
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
	text := ""
	if raw, ok := f.json[name]; ok {
		if json.Unmarshal(raw, &text) != nil {
			f.flaw(name, "The field %s must be text.", name)
		}
	} else {
		text = f.form[name][0]
	}
	if !utf8.ValidString(text) {
		f.flaw(name, "The field %s must be valid UTF-8.", name)
		return ""
	}
	return text
}

// optionalInteger returns a field's integer, or nil when the field is absent.
func (f *fields) optionalInteger(name string) *int64 {
	if f.null(name) {
		return nil
	}
	raw, ok := f.json[name]
	text := string(raw)
	if !ok {
		text = strings.TrimSpace(f.form[name][0])
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		f.flaw(name, "The field %s must be an integer.", name)
		return nil
	}
	return &n
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
	if f.null(name) {
		f.flaw(name, "The field %s is required.", name)
	}
	return f.integer(name, 0)
}

// optionalBool returns a field's truth value, or otherwise.
func (f *fields) optionalBool(name string, otherwise bool) bool {
	if f.null(name) {
		return otherwise
	}
	if raw, ok := f.json[name]; ok {
		value := false
		if json.Unmarshal(raw, &value) != nil {
			f.flaw(name, "The field %s must be true or false.", name)
		}
		return value
	}
	switch strings.ToLower(strings.TrimSpace(f.form[name][0])) {
	case "true", "1", "on", "yes":
		return true
	case "false", "0", "off", "no":
		return false
	default:
		f.flaw(name, "The field %s must be true or false.", name)
		return false
	}
}

// texts returns a field that is an array of texts; in a form it is repeated.
func (f *fields) texts(name string) []string {
	if raw, ok := f.json[name]; ok {
		var values []string
		if json.Unmarshal(raw, &values) != nil {
			f.flaw(name, "The field %s must be an array of texts.", name)
		}
		return values
	}
	return slices.Clone(f.form[name])
}
