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
	"github.com/veneer-skins/veneer/core/clientapi/openapitest"
)

// undocumentedErrors are the messages of a 422 to a request that its schema allows: they depend on
// stored data, on body and query together, or on two parameters. The introduction and the
// operations' descriptions name all of them.
var undocumentedErrors = map[string]*regexp.Regexp{
	"deleteUser":                    regexp.MustCompile(`The field password is required|The password is wrong`),
	"changePassword":                regexp.MustCompile(`The password is wrong|` + guessed),
	"changeEmail":                   regexp.MustCompile(`The password is wrong`),
	"setAvatar":                     regexp.MustCompile(`is not a skin`),
	"applyTextures":                 regexp.MustCompile(`Texture \d+ is not a`),
	"applyTexturesAsAdministrator":  regexp.MustCompile(`Texture \d+ is not a`),
	"removeTextures":                regexp.MustCompile(`Say what to take off`),
	"removeTexturesAsAdministrator": regexp.MustCompile(`Say what to take off`),
	"changeTexture":                 regexp.MustCompile(`cannot become`),
	"changeTextureAsAdministrator":  regexp.MustCompile(`cannot become`),
	"uploadTexture":                 regexp.MustCompile(`"file":`),
	"priceUpload":                   regexp.MustCompile(`"file":`),
	"listTextures":                  regexp.MustCompile(`Look for at least 3 characters|The page must be at least 1, and no more than`),
	"findUsers":                     regexp.MustCompile(noUserNamed),
	"findPlayers":                   regexp.MustCompile(noUserNamed),
	"listAuditEntries":              regexp.MustCompile(noUserNamed),
	"setUserPermission":             regexp.MustCompile(`Only a ban has|must be a time in UTC|must be in the future`),
	"settleReport":                  regexp.MustCompile(`Only a ban has|Only the pixels|must be a time in UTC|must be in the future`),
	"listTexturesAsAdministrator":   regexp.MustCompile(noUserNamed + `|Look for at least 3 characters|The page must be at least 1, and no more than`),
	"register":                      regexp.MustCompile(guessed),
	"verifyEmail":                   regexp.MustCompile(guessed),
	"resetPassword":                 regexp.MustCompile(guessed),
	"setUserPassword":               regexp.MustCompile(guessed),
	"sendNotification":              regexp.MustCompile(`Say whom it is for`),
}

// noUserNamed matches the refusals of names that are no user's.
const noUserNamed = `No user has this|Several users have|A uid is at least 1`

// guessed matches the refusals of passwords that are easily guessed.
const guessed = `among the first that attackers try|must not be the name of the site`

// hashingOperations hash a password when their request is valid. That is slow, so they are tried
// less often.
var hashingOperations = []string{"login", "register", "deleteUser", "changePassword", "changeEmail", "resetPassword", "setUserPassword"}

// The server rejects a request as invalid if and only if the document does not allow it. rapid
// prints the seed of a failure.
func TestDocumentAgreesWithServer(t *testing.T) {
	t.Parallel()
	c := start(t, "LIMIT_REQUESTS=0", "LIMIT_REGISTRATIONS=0", "LIMIT_UPLOADS=0", "LIMIT_PRICES=0", "LIMIT_CHANGES=0", "LIMIT_REPORTS=0", "LIMIT_RESETS=0", "QUOTA_TEXTURES=0", "QUOTA_PLAYERS=0",
		"LIMIT_LOGIN_FAILURES=0", "LIMIT_LOGIN_FAILURES_PER_ADDRESS=0", "LIMIT_LOGIN_FAILURES_PER_ACCOUNT=0").signUp(t)
	c.withPassword(t, rightPassword)
	c.permit(t, core.SuperAdministrator)
	other := c.signUp(t)
	skin := c.texture(t, "name=N&type=steve", skinFile(t, 1))
	paths := strings.NewReplacer("/api/players/1", c.player(t, "Steve"), "/api/admin/users/1", fmt.Sprintf("/api/admin/users/%d", other.UID))
	reported := other.texture(t, "name=N&type=steve", skinFile(t, 2))
	c.Post(t, "/api/reports", `{"tid":`+reported+`,"reason":"R"}`)
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
			a, err := c.Exchange(e.method, path, sent)
			if err != nil {
				r.Fatal(err)
			}
			if len(sent.Content) > 60<<10 && a.Status == 413 {
				continue // the limit of bodies is in bytes
			}
			invalid := e.validate(path, sent)
			calledInvalid := a.Status == 400 || a.Status == 415 || a.Status == 422
			switch {
			case a.Status >= 500 || a.Status == 401 && e.OperationID != "login":
				r.Fatalf("%s with %s %q: %d %s", a.Request(), sent.ContentType, sent.Content, a.Status, a.Body)
			case invalid != nil && !calledInvalid:
				r.Fatalf("%s with %s %q: %d %s, but the document says: %v", a.Request(), sent.ContentType, sent.Content, a.Status, a.Body, invalid)
			case invalid == nil && calledInvalid && (undocumentedErrors[e.OperationID] == nil || !undocumentedErrors[e.OperationID].Match(a.Body)):
				r.Fatalf("%s with %s %q: %d %s, but the document allows it", a.Request(), sent.ContentType, sent.Content, a.Status, a.Body)
			}
		}
	})
}

// validate returns why the document does not allow a request; nil if it does.
func (e endpoint) validate(path string, sent body) error {
	target, err := url.ParseRequestURI(path)
	if err != nil {
		return err
	}
	inBody := map[string]any{}
	if e.RequestBody != nil && len(sent.Content) > 0 {
		contentType, _, _ := strings.Cut(sent.ContentType, ";")
		_, boundary, _ := strings.Cut(sent.ContentType, "boundary=")
		fields, err := openapitest.DecodeFields(e.RequestBody.Value.Content.Get(contentType).Schema.Value, contentType, boundary, sent.Content)
		if err != nil {
			return err
		}
		if strings.Contains(string(sent.Content), loneSurrogate) {
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
		if p.Value.In != openapi3.ParameterInQuery || p.Value.AllowEmptyValue || inBody[name] != nil { // a field of the body replaces it
			continue
		}
		if err := e.checkText(name, target.Query().Get(name)); err != nil {
			return err
		}
		inQuery = append(inQuery, p)
	}
	return openapitest.CheckRequest(inQuery, nil, target.Query(), e.RequestBody, sent)
}

// checkText checks text by the rules of the introduction.
func (e endpoint) checkText(name string, value any) error {
	text, ok := value.(string)
	presenceCounts := e.method == "DELETE" && (name == "skin" || name == "cape")
	if !ok || presenceCounts || strings.Contains(name, "password") || slices.Contains([]string{"token", "file", "lang", "terms_version"}, name) {
		return nil
	}
	text = strings.TrimSpace(text)
	if name == "content" || name == "reason" { // multi-line text
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

// drawBody draws a body of one of an operation's content types.
func drawBody(t *testing.T, r *rapid.T, e endpoint, file []byte) body {
	t.Helper()
	content := e.RequestBody.Value.Content
	contentType := rapid.SampledFrom(slices.Sorted(maps.Keys(content))).Draw(r, "kind")
	schema := content[contentType].Schema.Value
	names := slices.Sorted(maps.Keys(schema.Properties))
	// Most bodies have all required fields: one error hides others.
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

// textNoise are form values that few fields accept.
var textNoise = rapid.SampledFrom([]string{"", " ", "x", "1.5", "62", "-1", "true", "null", "é", "a\x00b", "a\nb", "99999999999999999999", "skin", "all"})

// formTextOf draws the form value of a schema's field, and sometimes noise.
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

// jsonNoise are JSON values that few fields accept.
var jsonNoise = rapid.SampledFrom([]string{
	`null`, `true`, `1`, `0`, `-1`, `1.5`, `1e2`, `62.0`, `1e19`, `"1.5"`, `"62"`, `""`, `" "`, `[]`, `{}`, `[null]`, `["skin"]`, `"skin"`, `"é"`, `"a\u0000b"`, `"a\nb"`,
	`"a` + loneSurrogate, `["` + loneSurrogate + `]`, `"\ud83d\ude00"`, `99999999999999999999`,
})

// jsonOf draws a JSON value of a schema, and sometimes noise.
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

// integerOf draws integers within the bounds of a schema, and next to them.
func integerOf(schema *openapi3.Schema) *rapid.Generator[int64] {
	generators := []*rapid.Generator[int64]{rapid.Int64Range(0, 3), rapid.Int64()}
	for _, bound := range []*float64{schema.Min, schema.Max} {
		if bound != nil {
			generators = append(generators, rapid.Int64Range(int64(*bound)-1, int64(*bound)+1))
		}
	}
	return rapid.OneOf(generators...)
}

// stringOf draws strings within the lengths of a schema, and a little shorter or longer ones.
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
		if n > 100 { // only the length matters
			return strings.Repeat(string(rapid.SampledFrom(letters).Draw(r, "letter")), n)
		}
		return rapid.StringOfN(rapid.SampledFrom(letters), n, n, -1).Draw(r, "text")
	})
}
