package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/getkin/kin-openapi/openapi3"
	"pgregory.net/rapid"

	"github.com/veneer-skins/veneer/core"
)

// undocumentedErrors are the reasons for which a request is refused as invalid (422) though its
// schema allows it: they depend on what the site holds, on the body and the query together,
// or on two parameters. The introduction and the operations' descriptions tell of all of them.
var undocumentedErrors = map[string]*regexp.Regexp{
	"deleteUser":                    regexp.MustCompile(`The field password is required|The password is wrong`),
	"changePassword":                regexp.MustCompile(`The password is wrong`),
	"changeEmail":                   regexp.MustCompile(`The password is wrong`),
	"setAvatar":                     regexp.MustCompile(`is not a skin`),
	"applyTextures":                 regexp.MustCompile(`Texture \d+ is not a`),
	"applyTexturesAsAdministrator":  regexp.MustCompile(`Texture \d+ is not a`),
	"removeTextures":                regexp.MustCompile(`Say what to take off`),
	"removeTexturesAsAdministrator": regexp.MustCompile(`Say what to take off`),
	"changeTexture":                 regexp.MustCompile(`cannot become`),
	"changeTextureAsAdministrator":  regexp.MustCompile(`cannot become`),
	"uploadTexture":                 regexp.MustCompile(`"file":`),
	"listTextures":                  regexp.MustCompile(`Look for at least 3 characters|The page must be at least 1, and no more than`),
	"listTexturesAsAdministrator":   regexp.MustCompile(`Look for at least 3 characters|The page must be at least 1, and no more than`),
	"sendNotification":              regexp.MustCompile(`Say whom it is for`),
}

// hashingOperations are the operations that hash a password when their request is valid, which
// takes so long that they are tried less often.
var hashingOperations = []string{"login", "register", "deleteUser", "changePassword", "changeEmail", "resetPassword", "setUserPassword"}

// What the document allows the server does not call invalid, and what the document does
// not allow it does. A failure is printed with the seed that leads to it.
func TestDocumentAgreesWithServer(t *testing.T) {
	t.Parallel()

	c := start(t, "LIMIT_REQUESTS=0", "LIMIT_REGISTRATIONS=0", "LIMIT_UPLOADS=0", "LIMIT_CHANGES=0", "LIMIT_REPORTS=0", "LIMIT_RESETS=0", "QUOTA_TEXTURES=0", "QUOTA_PLAYERS=0",
		"LIMIT_LOGIN_FAILURES=0", "LIMIT_LOGIN_FAILURES_PER_ADDRESS=0", "LIMIT_LOGIN_FAILURES_PER_ACCOUNT=0").signUp(t)
	c.withPassword(t, rightPassword)
	c.permit(t, core.SuperAdministrator)
	other := c.signUp(t)
	skin := c.texture(t, "name=N&type=steve", skinFile(t, 1))
	paths := strings.NewReplacer("/api/players/1", c.player(t, "Steve"), "/api/admin/users/1", fmt.Sprintf("/api/admin/users/%d", other.uid))
	reported := other.texture(t, "name=N&type=steve", skinFile(t, 2))
	c.post(t, "/api/reports", `{"tid":`+reported+`,"reason":"R"}`)
	c.fillCloset(t, "cape", "Cape")

	var endpoints []endpoint
	for _, e := range mustLoadContract(t).endpoints() {
		e.path = strings.Replace(paths.Replace(e.path), "/textures/1", "/textures/"+skin, 1)
		if e.RequestBody != nil || slices.ContainsFunc(e.Parameters, func(p *openapi3.ParameterRef) bool { return p.Value.In == openapi3.ParameterInQuery }) {
			endpoints = append(endpoints, e)
		}
	}
	file := skinFile(t, 3)
	rapid.Check(t, func(r *rapid.T) {
		for range 20 {
			e := rapid.SampledFrom(endpoints).Draw(r, "operation")
			if slices.Contains(hashingOperations, e.OperationID) && rapid.IntRange(0, 5).Draw(r, "chance") > 0 {
				continue
			}
			path, sent := e.path, body{}
			if query := drawQuery(r, e); len(query) > 0 {
				path += "?" + query.Encode()
			}
			if e.RequestBody != nil {
				sent = drawBody(t, r, e, file)
			}
			a, err := c.exchange(e.method, path, sent)
			if err != nil {
				r.Fatal(err)
			}
			if len(sent.content) > 60<<10 && a.status == 413 {
				continue // as the limits have it, which count bytes
			}
			invalid := e.validate(path, sent)
			calledInvalid := a.status == 400 || a.status == 415 || a.status == 422
			switch {
			case a.status >= 500 || a.status == 401 && e.OperationID != "login":
				r.Fatalf("%s with %s %q: %d %s", a.request, sent.contentType, sent.content, a.status, a.body)
			case invalid != nil && !calledInvalid:
				r.Fatalf("%s with %s %q: %d %s, but the document says: %v", a.request, sent.contentType, sent.content, a.status, a.body, invalid)
			case invalid == nil && calledInvalid && (undocumentedErrors[e.OperationID] == nil || !undocumentedErrors[e.OperationID].Match(a.body)):
				r.Fatalf("%s with %s %q: %d %s, but the document allows it", a.request, sent.contentType, sent.content, a.status, a.body)
			}
		}
	})
}

// validate returns what the document has against a request; nil if nothing.
func (e endpoint) validate(path string, sent body) error {
	target, err := url.ParseRequestURI(path)
	if err != nil {
		return err
	}
	inBody := map[string]any{}
	if e.RequestBody != nil && len(sent.content) > 0 {
		contentType, _, _ := strings.Cut(sent.contentType, ";")
		_, boundary, _ := strings.Cut(sent.contentType, "boundary=")
		fields, err := decodeFields(e.RequestBody.Value.Content.Get(contentType).Schema.Value, contentType, boundary, sent.content)
		if err != nil {
			return err
		}
		if strings.Contains(string(sent.content), loneSurrogate) {
			return errors.New("half of a surrogate pair")
		}
		for name, value := range fields {
			if err := e.checkText(name, value); err != nil {
				return err
			}
		}
		inBody = fields
	}
	var inQuery openapi3.Parameters
	for _, p := range e.Parameters {
		name := p.Value.Name
		if p.Value.In != openapi3.ParameterInQuery || p.Value.AllowEmptyValue || inBody[name] != nil { // over which the body wins
			continue
		}
		if err := e.checkText(name, target.Query().Get(name)); err != nil {
			return err
		}
		inQuery = append(inQuery, p)
	}
	return checkRequest(inQuery, nil, target.Query(), e.RequestBody, sent)
}

// checkText says what the introduction does of text.
func (e endpoint) checkText(name string, value any) error {
	text, ok := value.(string)
	presenceCounts := e.method == "DELETE" && (name == "skin" || name == "cape")
	if !ok || presenceCounts || strings.Contains(name, "password") || name == "token" || name == "file" {
		return nil
	}
	text = strings.TrimSpace(text)
	if name == "content" || name == "reason" { // which may have several lines
		text = strings.NewReplacer("\n", "", "\t", "").Replace(text)
	}
	if strings.ContainsFunc(text, unicode.IsControl) {
		return errors.New("a control character")
	}
	return nil
}

const loneSurrogate = `\ud83d"`

// drawQuery draws some of an operation's parameters.
func drawQuery(r *rapid.T, e endpoint) url.Values {
	query := url.Values{}
	for _, p := range e.Parameters {
		if p.Value.In == openapi3.ParameterInQuery && rapid.IntRange(0, 3).Draw(r, "parameter") == 0 {
			drawForm(r, query, p.Value.Name, p.Value.Schema.Value)
		}
	}
	return query
}

// drawBody draws a body of one of the kinds that an operation takes.
func drawBody(t *testing.T, r *rapid.T, e endpoint, file []byte) body {
	t.Helper()
	content := e.RequestBody.Value.Content
	contentType := rapid.SampledFrom(slices.Sorted(maps.Keys(content))).Draw(r, "kind")
	schema := content[contentType].Schema.Value
	names := slices.Sorted(maps.Keys(schema.Properties))
	// Most bodies have all that is required: one flaw hides others.
	isThere := func(name string) bool {
		return rapid.IntRange(0, 9).Draw(r, "presence of "+name) < 5 || slices.Contains(schema.Required, name) && rapid.IntRange(0, 9).Draw(r, "absence") > 0
	}
	if contentType == "application/json" {
		var members []string
		for _, name := range names {
			if isThere(name) {
				members = append(members, fmt.Sprintf("%q:%s", name, jsonOf(schema.Properties[name].Value).Draw(r, name)))
			}
		}
		if rapid.IntRange(0, 9).Draw(r, "another field") == 0 {
			members = append(members, `"hat":`+jsonNoise.Draw(r, "hat"))
		}
		return encodeJSON("{" + strings.Join(members, ",") + "}")
	}
	form := url.Values{}
	for _, name := range names {
		if name != "file" && isThere(name) {
			drawForm(r, form, name, schema.Properties[name].Value)
		}
	}
	switch {
	case schema.Properties["file"] != nil && isThere("file"):
		return encodeMultipart(t, form.Encode(), file)
	case contentType == "multipart/form-data":
		return encodeMultipart(t, form.Encode(), nil)
	default:
		return encodeForm(form.Encode())
	}
}

// drawForm adds a field to a form or a query.
func drawForm(r *rapid.T, form url.Values, name string, schema *openapi3.Schema) {
	if schema.Type.Includes(openapi3.TypeArray) {
		keys := rapid.SampledFrom([][]string{{name, name, name}, {name + "[]", name + "[]", name + "[]"}, {name + "[0]", name + "[1]", name + "[2]"}, {name + "[7]", name + "[3]", name + "[5]"}}).Draw(r, "keys")
		for _, key := range keys[:rapid.IntRange(1, 3).Draw(r, "elements")] {
			form.Add(key, formTextOf(schema.Items.Value).Draw(r, key))
		}
		return
	}
	form.Set(name, formTextOf(schema).Draw(r, name))
}

// textNoise are texts of a form that hardly any field takes, or a few.
var textNoise = rapid.SampledFrom([]string{"", " ", "x", "1.5", "62", "-1", "true", "null", "é", "a\x00b", "a\nb", "99999999999999999999", "skin", "all"})

// formTextOf draws what stands in a form for a value of a schema, and at times something else.
func formTextOf(schema *openapi3.Schema) *rapid.Generator[string] {
	valid := textNoise
	switch {
	case schema.Type.Includes(openapi3.TypeInteger):
		valid = rapid.Map(integerOf(schema), func(n int64) string { return fmt.Sprint(n) })
	case schema.Type.Includes(openapi3.TypeBoolean):
		valid = rapid.SampledFrom([]string{"true", "False", "1", "0", "on", "OFF", "yes", "no", " true "})
	case schema.Type.Includes(openapi3.TypeString):
		valid = stringOf(schema)
	}
	return rapid.OneOf(valid, valid, valid, valid, valid, valid, textNoise)
}

// jsonNoise are values that hardly any field takes, or a few.
var jsonNoise = rapid.SampledFrom([]string{
	`null`, `true`, `1`, `0`, `-1`, `1.5`, `1e2`, `62.0`, `1e19`, `"1.5"`, `"62"`, `""`, `" "`, `[]`, `{}`, `[null]`, `["skin"]`, `"skin"`, `"é"`, `"a\u0000b"`, `"a\nb"`,
	`"a` + loneSurrogate, `["` + loneSurrogate + `]`, `"\ud83d\ude00"`, `99999999999999999999`,
})

// jsonOf draws a value of a schema, as JSON, and at times another one.
func jsonOf(schema *openapi3.Schema) *rapid.Generator[string] {
	valid := jsonNoise
	switch {
	case schema.Type.Includes(openapi3.TypeInteger):
		spelling := rapid.SampledFrom([]string{"%d", "%d.0", "%de0", "%d.00E+0", `"%d"`, `" %d "`})
		valid = rapid.Custom(func(r *rapid.T) string {
			return fmt.Sprintf(spelling.Draw(r, "spelling"), integerOf(schema).Draw(r, "integer"))
		})
	case schema.Type.Includes(openapi3.TypeBoolean):
		valid = rapid.SampledFrom([]string{`true`, `false`, `1`, `0`, `"true"`, `"FALSE"`, `"1"`, `"0"`})
	case schema.Type.Includes(openapi3.TypeArray):
		valid = rapid.Map(rapid.SliceOfN(jsonOf(schema.Items.Value), 0, 3), func(elements []string) string { return "[" + strings.Join(elements, ",") + "]" })
	case schema.Type.Includes(openapi3.TypeString):
		valid = rapid.Map(stringOf(schema), func(text string) string {
			quoted, err := json.Marshal(text)
			if err != nil {
				panic(err)
			}
			return string(quoted)
		})
	}
	return rapid.OneOf(valid, valid, valid, valid, valid, valid, jsonNoise)
}

// integerOf draws integers that a schema allows, and those next to its bounds.
func integerOf(schema *openapi3.Schema) *rapid.Generator[int64] {
	generators := []*rapid.Generator[int64]{rapid.Int64Range(0, 3), rapid.Int64()}
	for _, bound := range []*float64{schema.Min, schema.Max} {
		if bound != nil {
			generators = append(generators, rapid.Int64Range(int64(*bound)-1, int64(*bound)+1))
		}
	}
	return rapid.OneOf(generators...)
}

// stringOf draws texts that a schema allows, and those that are a little too short or too
// long.
func stringOf(schema *openapi3.Schema) *rapid.Generator[string] {
	if len(schema.Enum) > 0 {
		var choices []string
		for _, choice := range schema.Enum {
			choices = append(choices, fmt.Sprint(choice), " "+fmt.Sprint(choice)+"\n", fmt.Sprint(choice)+"s")
		}
		return rapid.SampledFrom(choices)
	}
	most := 80
	if schema.MaxLength != nil {
		most = int(*schema.MaxLength) + 1
	}
	length := rapid.OneOf(rapid.IntRange(0, min(most, 20)), rapid.IntRange(max(0, int(schema.MinLength)-1), int(schema.MinLength)+1), rapid.IntRange(max(0, most-2), most))
	letters := []rune("aZ09_-. é中😀")
	switch {
	case schema.Format == "email":
		letters = []rune("aZ09_-.+")
	case schema.Pattern != "":
		letters = []rune("aZ09_-")
	}
	return rapid.Custom(func(r *rapid.T) string {
		n := length.Draw(r, "length")
		if schema.Format == "email" {
			return strings.Repeat("a", max(1, n-20)) + rapid.StringOfN(rapid.SampledFrom(letters[:4]), 0, 3, -1).Draw(r, "local") + rapid.SampledFrom([]string{"@example.com", "@example.com", "@example.com", "", "@"}).Draw(r, "domain")
		}
		if n > 100 { // its length is all that matters
			return strings.Repeat(string(rapid.SampledFrom(letters).Draw(r, "letter")), n)
		}
		return rapid.StringOfN(rapid.SampledFrom(letters), n, n, -1).Draw(r, "text")
	})
}
