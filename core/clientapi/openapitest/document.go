// Package openapitest checks requests and responses of tests against an OpenAPI document.
package openapitest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Document is an OpenAPI document.
type Document struct{ *openapi3.T }

// Load returns the document in a file, with closed objects: a field that is not documented is an
// error here, although clients must ignore it.
func Load(path string) (Document, error) {
	document, err := openapi3.NewLoader().LoadFromFile(path)
	if err != nil {
		return Document{}, err
	}
	return Document{document}, document.WalkSchemas(func(at string, ref *openapi3.SchemaRef) error {
		schema := ref.Value
		if len(schema.AllOf) > 0 {
			return fmt.Errorf("%s: what is put together with allOf cannot be closed", at)
		}
		if schema.Type.Is(openapi3.TypeObject) && len(schema.Properties) > 0 && schema.AdditionalProperties.Schema == nil {
			schema.AdditionalProperties.Has = new(false)
		}
		// kin-openapi validates references as OpenAPI 3.0 does. The referenced schemas are loaded,
		// so the references can go.
		for _, property := range schema.Properties {
			property.Ref = ""
		}
		for _, element := range slices.Concat(openapi3.SchemaRefs{schema.Items, schema.AdditionalProperties.Schema}, schema.AnyOf) {
			if element != nil {
				element.Ref = ""
			}
		}
		return nil
	})
}

// compiledSchemas caches compiled schemas: compiling one takes longer than serving a request.
var compiledSchemas sync.Map

// Validate validates a value by JSON Schema 2020-12, formats included.
func Validate(schema *openapi3.Schema, value any) error {
	compiled, ok := compiledSchemas.Load(schema)
	if !ok {
		text, err := schema.MarshalJSON()
		if err != nil {
			return err
		}
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return err
		}
		compiler := jsonschema.NewCompiler()
		compiler.AssertFormat()
		compiler.RegisterFormat(&jsonschema.Format{Name: "email", Validate: checkEmail})
		compiler.RegisterFormat(&jsonschema.Format{Name: "int64", Validate: checkInt64})
		if err := compiler.AddResource("schema.json", document); err != nil {
			return err
		}
		schemaValidator, err := compiler.Compile("schema.json")
		if err != nil {
			return err
		}
		compiled, _ = compiledSchemas.LoadOrStore(schema, schemaValidator)
	}
	return compiled.(*jsonschema.Schema).Validate(value) //nolint:errcheck // the map has no other values
}

// checkInt64 rejects integers of more than 64 bits: JSON Schema does not bound the format int64.
func checkInt64(value any) error {
	number, ok := value.(json.Number)
	if !ok {
		return nil
	}
	exact, ok := new(big.Rat).SetString(number.String())
	if !ok || exact.IsInt() && !exact.Num().IsInt64() {
		return errors.New("this is no 64-bit integer")
	}
	return nil
}

// checkEmail accepts addresses longer than RFC 5321 allows, which the library's format rejects.
func checkEmail(value any) error {
	text, ok := value.(string)
	if !ok {
		return nil
	}
	if local, domain, _ := strings.Cut(text, "@"); local == "" || domain == "" || strings.ContainsAny(text, " <>") {
		return errors.New("this is no e-mail address")
	}
	return nil
}

// Body is a request's body and its content type.
type Body struct {
	ContentType string
	Content     []byte
}

// Exchange is a request with its response.
type Exchange struct {
	Method, Target string
	Sent           Body
	Status         int
	Header         http.Header
	Body           []byte // of the response
}

// Request returns the method and the target, for messages.
func (e Exchange) Request() string { return e.Method + " " + e.Target }

// CommonResponses are the components of responses that may come before an operation is reached, by
// status.
var CommonResponses = map[int]string{
	400: "Malformed", 404: "NotFound", 405: "MethodNotAllowed", 408: "RequestTimeout", 413: "TooLarge", 429: "TooMany", 431: "HeaderTooLarge",
}

// Check returns an error if the document does not allow the response, or not the request though it
// succeeded.
func (d Document) Check(x Exchange) error {
	target, err := url.ParseRequestURI(x.Target)
	if err != nil {
		return err
	}
	if x.Method == http.MethodOptions { // preflights are described in the introduction only
		if x.Status != http.StatusNoContent || len(x.Body) > 0 {
			return fmt.Errorf("a preflight is answered with %d and %d bytes", x.Status, len(x.Body))
		}
		return nil
	}
	path, parameters := d.Find(target.EscapedPath())
	if path == nil {
		if x.Status != http.StatusNotFound && x.Status != http.StatusTooManyRequests {
			return fmt.Errorf("the path is not documented, but answered with %d", x.Status)
		}
		return d.checkCommonResponse(x)
	}
	operation := path.Operations()[x.Method]
	if x.Method == http.MethodHead && path.Get != nil {
		return d.checkHead(path.Get, x)
	}
	if operation == nil {
		if x.Status != http.StatusMethodNotAllowed && x.Status != http.StatusTooManyRequests {
			return fmt.Errorf("the method is not documented, but answered with %d", x.Status)
		}
		return d.checkCommonResponse(x)
	}
	if err := d.checkResponse(operation, x); err != nil || x.Status >= 300 {
		return err
	}
	return CheckRequest(operation.Parameters, parameters, target.Query(), operation.RequestBody, x.Sent)
}

// checkHead checks a response to HEAD, which is the response to GET without its body.
func (d Document) checkHead(get *openapi3.Operation, x Exchange) error {
	resp := get.Responses.Status(x.Status)
	if resp == nil || len(x.Body) > 0 {
		return fmt.Errorf("HEAD is answered with %d and %d bytes", x.Status, len(x.Body))
	}
	if kind := x.Header.Get("Content-Type"); len(resp.Value.Content) > 0 && resp.Value.Content.Get(kind) == nil {
		return fmt.Errorf("HEAD is answered with the type %q", kind)
	}
	return nil
}

// Find returns the documented path that a request's path matches, nil if none, and the values of
// its parameters. A parameter with an enumeration matches its values only, so that at most one path
// matches.
func (d Document) Find(requested string) (path *openapi3.PathItem, parameters map[string]string) {
	segments := strings.Split(strings.TrimRight(requested, "/"), "/") // a trailing slash is ignored
	for template, path := range d.Paths.Map() {
		parameters := map[string]string{}
		fits := slices.EqualFunc(strings.Split(template, "/"), segments, func(want, got string) bool {
			name, suffix, isParameter := strings.Cut(strings.TrimPrefix(want, "{"), "}")
			if !isParameter {
				return want == got
			}
			got, hasSuffix := strings.CutSuffix(got, suffix)
			value, err := url.PathUnescape(got)
			parameters[name] = value
			return hasSuffix && err == nil && got != ""
		})
		if fits && allowsAll(path, parameters) {
			return path, parameters
		}
	}
	return nil, nil
}

// allowsAll reports whether the enumerations of a path's parameters have the values.
func allowsAll(path *openapi3.PathItem, values map[string]string) bool {
	for _, operation := range path.Operations() {
		for _, parameter := range operation.Parameters {
			if p := parameter.Value; p.In == openapi3.ParameterInPath && len(p.Schema.Value.Enum) > 0 && !slices.Contains(p.Schema.Value.Enum, any(values[p.Name])) {
				return false
			}
		}
	}
	return true
}

// checkCommonResponse checks a response that belongs to no operation.
func (d Document) checkCommonResponse(x Exchange) error {
	resp := d.Components.Responses[CommonResponses[x.Status]]
	if resp == nil {
		return fmt.Errorf("the status %d is documented for no request whatever", x.Status)
	}
	return d.checkResponse(&openapi3.Operation{Responses: openapi3.NewResponses(openapi3.WithStatus(x.Status, resp))}, x)
}

// CheckRaw checks a raw HTTP response that belongs to no operation.
func (d Document) CheckRaw(answer string) error {
	resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(answer)), nil)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	return d.checkCommonResponse(Exchange{Status: resp.StatusCode, Header: resp.Header, Body: content})
}

// checkResponse checks status, headers, content type and body. A header that the document defines
// must be listed for this response.
func (d Document) checkResponse(operation *openapi3.Operation, x Exchange) error {
	resp := operation.Responses.Status(x.Status)
	if resp == nil {
		return fmt.Errorf("the status %d is not documented", x.Status)
	}
	if err := d.checkHeaders(resp.Value, x); err != nil {
		return err
	}
	if len(resp.Value.Content) == 0 {
		if len(x.Body) > 0 || x.Header.Get("Content-Type") != "" {
			return fmt.Errorf("status %d is documented to have no body, but has %q of type %q", x.Status, x.Body, x.Header.Get("Content-Type"))
		}
		return nil
	}
	kind := x.Header.Get("Content-Type")
	media := resp.Value.Content.Get(kind)
	switch {
	case kind == "" || media == nil:
		return fmt.Errorf("status %d: a body of type %q is not documented", x.Status, kind)
	case media.Schema == nil:
		return nil
	}
	var content any = string(x.Body)
	if strings.HasPrefix(kind, "application/json") {
		var err error
		if content, err = jsonschema.UnmarshalJSON(bytes.NewReader(x.Body)); err != nil {
			return fmt.Errorf("status %d: %q: %w", x.Status, x.Body, err)
		}
	}
	if err := Validate(media.Schema.Value, content); err != nil {
		return fmt.Errorf("status %d: %q: %w", x.Status, x.Body, err)
	}
	return nil
}

// checkHeaders checks the headers of a response.
func (d Document) checkHeaders(resp *openapi3.Response, x Exchange) error {
	for name := range d.Components.Headers {
		if x.Header.Get(name) != "" && resp.Headers[name] == nil && name != "Cache-Control" { // every response of /api has it
			return fmt.Errorf("status %d: the header %s is not documented", x.Status, name)
		}
	}
	for name, header := range resp.Headers {
		texts := x.Header.Values(name)
		switch {
		case len(texts) == 0 && header.Value.Required:
			return fmt.Errorf("status %d: the header %s is missing", x.Status, name)
		case len(texts) == 0:
			continue
		}
		if err := Validate(header.Value.Schema.Value, parseTexts(header.Value.Schema.Value, texts)); err != nil {
			return fmt.Errorf("status %d: the header %s: %w", x.Status, name, err)
		}
	}
	return nil
}

// CheckRequest checks the parameters and the body of a request, after the rules of the introduction
// that no schema can express: text is trimmed, undocumented fields are ignored, and form values are
// text.
func CheckRequest(
	documented openapi3.Parameters, inPath map[string]string, inQuery url.Values, wanted *openapi3.RequestBodyRef, sent Body,
) error {
	for _, parameter := range documented {
		p := parameter.Value
		texts := formTexts(inQuery, p.Name)
		if p.In == openapi3.ParameterInPath {
			texts = []string{inPath[p.Name]}
		}
		if len(texts) == 0 {
			continue // no query parameter is required
		}
		value := parseTexts(p.Schema.Value, texts)
		if value == nil {
			continue // an empty number
		}
		if err := Validate(p.Schema.Value, value); err != nil {
			return fmt.Errorf("the parameter %s: %w", p.Name, err)
		}
	}

	switch {
	case wanted == nil:
		return nil // the body is not read
	case len(sent.Content) == 0 && wanted.Value.Required:
		return errors.New("the body is documented to be required, but is not")
	case len(sent.Content) == 0:
		return nil
	}
	kind, parameters, err := mime.ParseMediaType(sent.ContentType)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return err
	}
	sent.Content = bytes.TrimPrefix(sent.Content, []byte("\xef\xbb\xbf"))
	media := wanted.Value.Content.Get(kind)
	if media == nil {
		return fmt.Errorf("a body of type %s is not documented, but accepted", kind)
	}
	if media.Schema.Value.Type.Is(openapi3.TypeArray) {
		elements, err := jsonschema.UnmarshalJSON(bytes.NewReader(sent.Content))
		if err != nil {
			return err
		}
		return Validate(media.Schema.Value, elements)
	}
	fields, err := DecodeFields(media.Schema.Value, kind, parameters["boundary"], sent.Content)
	if err != nil {
		return err
	}
	if err := Validate(media.Schema.Value, fields); err != nil {
		return fmt.Errorf("the request: %w", err)
	}
	return nil
}

// parseTexts converts the texts of a parameter or form field to the type of a schema.
func parseTexts(schema *openapi3.Schema, texts []string) any {
	switch {
	case schema.Type.Includes(openapi3.TypeArray):
		values := []any{}
		for _, text := range texts {
			values = append(values, normalize(schema.Items.Value, text))
		}
		return values
	case schema.Type.Includes(openapi3.TypeBoolean):
		switch strings.ToLower(strings.TrimSpace(texts[0])) {
		case "on", "yes":
			return true
		case "off", "no":
			return false
		}
	}
	return normalize(schema, texts[0])
}

// integerText matches the text of an integer.
var integerText = regexp.MustCompile(`^[-+]?[0-9]+$`)

// normalize returns the plain form of a JSON value that the introduction allows to be written in
// several ways.
func normalize(schema *openapi3.Schema, value any) any {
	text, isText := value.(string)
	word := strings.TrimSpace(text)
	switch {
	case schema.Type.Includes(openapi3.TypeInteger) && isText && word == "":
		return nil
	case schema.Type.Includes(openapi3.TypeInteger) && integerText.MatchString(word):
		return json.Number(strings.TrimPrefix(word, "+"))
	case schema.Type.Includes(openapi3.TypeBoolean):
		switch strings.ToLower(strings.TrimSpace(fmt.Sprint(value))) {
		case "true", "1":
			return true
		case "false", "0":
			return false
		}
	case isText && schema.Format != "password":
		return word
	case schema.Type.Includes(openapi3.TypeArray):
		if elements, ok := value.([]any); ok {
			values := make([]any, len(elements))
			for i, element := range elements {
				values[i] = normalize(schema.Items.Value, element)
			}
			return values
		}
	}
	return value
}

// DecodeFields decodes the documented fields of a body.
func DecodeFields(schema *openapi3.Schema, kind, boundary string, content []byte) (map[string]any, error) {
	fields := map[string]any{}
	if kind == "application/json" {
		sent := map[string]any{}
		decoder := json.NewDecoder(bytes.NewReader(content))
		decoder.UseNumber()
		if err := decoder.Decode(&sent); err != nil {
			return nil, err
		}
		for name, property := range schema.Properties {
			if value, ok := sent[name]; ok {
				fields[name] = normalize(property.Value, value)
			}
		}
		return fields, nil
	}

	form, err := url.ParseQuery(string(content))
	if kind == "multipart/form-data" {
		form, err = decodeMultipart(boundary, content)
	}
	for name, property := range schema.Properties {
		if texts := formTexts(form, name); len(texts) > 0 {
			fields[name] = parseTexts(property.Value, texts)
			if fields[name] == nil {
				delete(fields, name) // an empty number
			}
		}
	}
	return fields, err
}

// formTexts returns the values of a form field, or of the elements of an array.
func formTexts(form url.Values, name string) []string {
	element := regexp.MustCompile(`^` + regexp.QuoteMeta(name) + `(\[[0-9]*\])?$`)
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(form)) {
		if element.MatchString(key) {
			texts = append(texts, form[key]...)
		}
	}
	return texts
}

func decodeMultipart(boundary string, content []byte) (url.Values, error) {
	form := url.Values{}
	for parts := multipart.NewReader(bytes.NewReader(content), boundary); ; {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return form, nil
		}
		if err != nil {
			return nil, err
		}
		value, err := io.ReadAll(part)
		if err != nil {
			return nil, err
		}
		form.Add(part.FormName(), string(value))
	}
}
