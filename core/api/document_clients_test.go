package api_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// generatedSuffixes are what generators append to an operationId to name the types of its
// parameters, bodies and responses: oapi-codegen, openapi-typescript, @hey-api/openapi-ts and
// OpenAPI Generator.
var generatedSuffixes = []string{
	"Params", "Request", "RequestBody", "Body", "JSONBody", "JSONRequestBody", "FormdataBody", "FormdataRequestBody",
	"MultipartBody", "MultipartRequestBody", "RequestBuilder", "Response", "Responses", "ResponseBody", "200Response",
	"Data", "Error", "Errors",
}

// identifier returns a name as the strictest generator compares it: in lower case, and only letters
// and digits.
func identifier(name string) string {
	return strings.ToLower(regexp.MustCompile(`[^A-Za-z0-9]`).ReplaceAllString(name, ""))
}

// Generators make a type or a constant of each component, and several of each operation. Two of the
// same name make the generator fail, or get a number that changes with the next version of the
// document. Examples and headers get no names.
func TestGeneratedNamesAreUnique(t *testing.T) {
	t.Parallel()
	owners := map[string]string{}
	claim := func(name, owner string) {
		t.Helper()
		other, ok := owners[identifier(name)]
		testenv.Check(t, !ok, "%s and %s: a generator names both %s", owner, other, name)
		owners[identifier(name)] = owner
	}

	document := mustLoadContract(t)
	components := document.Components
	for kind, names := range map[string][]string{
		"schema":          slices.Collect(maps.Keys(components.Schemas)),
		"parameter":       slices.Collect(maps.Keys(components.Parameters)),
		"request body":    slices.Collect(maps.Keys(components.RequestBodies)),
		"response":        slices.Collect(maps.Keys(components.Responses)),
		"security scheme": slices.Collect(maps.Keys(components.SecuritySchemes)),
	} {
		for _, name := range names {
			claim(name, "the "+kind+" "+name)
		}
	}
	for path, item := range document.Paths.Map() {
		for method, operation := range item.Operations() {
			owner := "the operation " + method + " " + path
			claim(operation.OperationID, owner)
			for _, suffix := range generatedSuffixes {
				claim(operation.OperationID+suffix, owner)
			}
		}
	}
}

// An operationId becomes the name of a function in generated clients, which do not show the path:
// it is a verb and a noun.
func TestOperationIDsNameVerbAndNoun(t *testing.T) {
	t.Parallel()
	verbAndNoun := regexp.MustCompile(`^[a-z]+([A-Z]+[a-z0-9]*)+$`)
	ofOneWord := []string{"login", "logout", "register"}
	for path, item := range mustLoadContract(t).Paths.Map() {
		for method, operation := range item.Operations() {
			if id := operation.OperationID; !verbAndNoun.MatchString(id) && !slices.Contains(ofOneWord, id) {
				t.Errorf("%s %s has the operationId %q; want a verb and a noun, as in listPlayers", method, path, id)
			}
		}
	}
}

// isBinary reports whether generated clients map a schema to a file: a File, a Blob, an io.Reader.
func isBinary(schema *openapi3.Schema) bool {
	return schema.Type.Is(openapi3.TypeString) && schema.Format == "binary"
}

// Files are `format: binary`, which generators support, beside contentMediaType, which OpenAPI 3.1
// specifies and few generators support.
func TestFilesAreBinary(t *testing.T) {
	t.Parallel()
	document := mustLoadContract(t)
	schemas := 0
	check := func(at string, ref *openapi3.SchemaRef) error {
		schema := ref.Value
		if schema.ContentMediaType != "" {
			schemas++
		}
		testenv.Equal(t, isBinary(schema), schema.ContentMediaType != "", "%s: the schema of a file is binary", at)
		return nil
	}
	testenv.Do(t, document.WalkSchemas(check))
	testenv.Equal(t, schemas > 0, true, "a schema is a file's")

	for path, item := range document.Paths.Map() {
		for method, operation := range item.Operations() {
			if body := operation.RequestBody; body != nil && body.Value.Content.Get("application/json") == nil {
				media := body.Value.Content.Get("multipart/form-data")
				if media == nil || !slices.ContainsFunc(slices.Collect(maps.Values(media.Schema.Value.Properties)), func(p *openapi3.SchemaRef) bool { return isBinary(p.Value) }) {
					t.Errorf("%s %s takes no JSON, but no file either", method, path)
				}
			}
			for status, resp := range operation.Responses.Map() {
				for kind, media := range resp.Value.Content {
					if !strings.HasPrefix(kind, "image/") {
						continue
					}
					if media.Schema == nil || !isBinary(media.Schema.Value) || media.Schema.Value.ContentMediaType != kind {
						t.Errorf("%s %s %s: the answer of type %s is not documented as binary", method, path, status, kind)
					}
				}
			}
		}
	}
}
