package api_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/veneer-skins/veneer/core/api"
	"github.com/veneer-skins/veneer/core/clientapi/openapitest"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

func TestDocumentIsValid(t *testing.T) {
	t.Parallel()
	asServed := testenv.Must(openapi3.NewLoader().LoadFromFile("openapi.yaml"))(t)
	testenv.Equal(t, asServed.IsOpenAPI31OrLater(), true, "the document is of OpenAPI 3.1")
	// Examples are valid by their schemas, to the last field.
	for _, document := range []*openapi3.T{asServed, mustLoadContract(t).T} {
		err := document.Validate(t.Context(), openapi3.EnableExamplesValidation(), openapi3.EnableSchemaPatternValidation())
		testenv.Is(t, err, nil, "the document")
	}
	testenv.Do(t, mustLoadContract(t).WalkSchemas(func(at string, ref *openapi3.SchemaRef) error {
		for _, example := range ref.Value.Examples {
			testenv.Is(t, openapitest.Validate(ref.Value, example), nil, "%s: the example %v", at, example)
		}
		return nil
	}))
}

// Every request body and every response has an example, or has no schema. A file has no example; a
// form with a file has examples of its other fields.
func TestDocumentHasExamples(t *testing.T) {
	t.Parallel()
	f := func(what string, content openapi3.Content) {
		t.Helper()
		for kind, media := range content {
			if media.Schema == nil || media.Example != nil || len(media.Examples) > 0 {
				continue
			}
			properties := media.Schema.Value.Properties
			if isBinary(media.Schema.Value) {
				continue
			}
			testenv.Equal(t, properties["file"] != nil, true, "%s: there is an example of %s", what, kind)
			for name, property := range properties {
				if p := property.Value; name != "file" && len(p.Examples)+len(p.Enum) == 0 && p.Default == nil {
					t.Errorf("%s: there is no example of the field %s", what, name)
				}
			}
		}
	}
	for path, item := range mustLoadContract(t).Paths.Map() {
		for method, operation := range item.Operations() {
			if operation.RequestBody != nil {
				f(method+" "+path, operation.RequestBody.Value.Content)
			}
			for status, resp := range operation.Responses.Map() {
				f(method+" "+path+" "+status, resp.Value.Content)
			}
		}
	}
}

// The paths of core are /api and those under it; edge serves those of pictures and files, also
// below the root of the Yggdrasil API.
func isCorePath(path string) bool {
	return (path == "/api" || strings.HasPrefix(path, "/api/")) && !isEdgePath(path)
}

func isEdgePath(path string) bool {
	if strings.HasPrefix(path, "/api/yggdrasil/skins/") {
		return true
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return slices.Contains([]string{
		"avatar", "preview", "card", "{view}", "textures", "raw", "skin", "skins", "MinecraftSkins", "cape", "cloaks", "MinecraftCloaks", "legacy", "csl", "usm", "{name}.json", "heads.json", "sprite",
	}, first)
}

// The route table and the document name the same operations.
func TestRoutesAreDocumented(t *testing.T) {
	t.Parallel()
	options := httpserver.Options{Log: slog.New(slog.DiscardHandler)}
	server := testenv.Must(api.New(options, api.Services{}, newSite(t).Setup.API, 0, time.Now))(t)
	var served, documented []string
	routes := server.Routes()
	for _, path := range routes[http.MethodHead] {
		testenv.Equal(t, slices.Contains(routes[http.MethodGet], path), true, "%s, which knows HEAD, knows GET", path)
	}
	delete(routes, http.MethodHead) // HEAD is no operation of its own
	for method, paths := range routes {
		for _, path := range paths {
			// Pages for browsers and crawlers are not documented.
			if isCorePath(path) && method != http.MethodHead {
				served = append(served, path+" "+method)
			}
		}
	}
	for path, item := range mustLoadContract(t).Paths.Map() {
		testenv.Equal(t, isCorePath(path) || isEdgePath(path), true, "%s is core's or edge's", path)
		for method := range item.Operations() {
			if isCorePath(path) {
				documented = append(documented, path+" "+method)
			}
		}
	}
	slices.Sort(served)
	slices.Sort(documented)
	cmptest.Same(t, served, documented, "operations")
}

// isOptional reports whether an operation takes a token but does not require one.
func isOptional(security openapi3.SecurityRequirements) bool {
	return slices.ContainsFunc(security, func(r openapi3.SecurityRequirement) bool { return len(r) == 0 })
}

// requiresToken reports whether an operation requires a token.
func (c contract) requiresToken(e endpoint) bool {
	security := c.Security
	if e.Security != nil {
		security = *e.Security
	}
	return len(security) > 0 && !isOptional(security)
}

// A request without a token gets 401 where the document requires a token, and nowhere else.
func TestDocumentedSecurity(t *testing.T) {
	t.Parallel()
	c := start(t)
	document := mustLoadContract(t)
	for _, e := range document.endpoints() {
		a := c.Send(t, e.method, e.path, body{})
		testenv.Equal(t, a.Status == 401, document.requiresToken(e),
			"%s: without a token: %d, which asks for one", a.Request(), a.Status)
	}
}

// The documented files are served, and no others.
func TestDocumentedFiles(t *testing.T) {
	t.Parallel()
	var served, documented []string
	for _, source := range pageFiles {
		served = append(served, path.Base(source))
	}
	parameters := mustLoadContract(t).Paths.Value("/api/docs/{digest}/{file}").Get.Parameters
	for _, file := range parameters.GetByInAndName("path", "file").Schema.Value.Enum {
		documented = append(documented, file.(string)) //nolint:errcheck,forcetypeassert // the document is valid
	}
	slices.Sort(served)
	slices.Sort(documented)
	cmptest.Same(t, served, documented, "the files")
	// The example of a digest is a current one.
	example := parameters.GetByInAndName("path", "digest").Example
	testenv.Equal(t, fmt.Sprint(example)+"/LICENSE", assetOf("docs/LICENSE"), "the file at the example of a digest")
}

// No two paragraphs of the introduction share three quarters of the words of the shorter one.
func TestIntroductionHasNoRepetition(t *testing.T) {
	t.Parallel()
	f := func(introduction string) (twice []string) {
		var paragraphs []string
		for paragraph := range strings.SplitSeq(introduction, "\n\n") {
			if words := strings.Fields(paragraph); len(words) >= 10 && !strings.HasPrefix(paragraph, "|") && !strings.HasPrefix(paragraph, "```") {
				paragraphs = append(paragraphs, paragraph)
			}
		}
		slices.SortFunc(paragraphs, func(a, b string) int { return len(a) - len(b) })
		for i, shorter := range paragraphs {
			words := strings.Fields(shorter)
			for _, longer := range paragraphs[i+1:] {
				in := strings.Fields(longer)
				same := 0
				for _, word := range words {
					if slices.Contains(in, word) {
						same++
					}
				}
				if 4*same >= 3*len(words) {
					twice = append(twice, shorter+"\n"+longer)
				}
			}
		}
		return twice
	}
	for _, twice := range f(mustLoadContract(t).Info.Description) {
		t.Errorf("two paragraphs say the same:\n%s", twice)
	}
	if len(f("An upload and a report tell of their own limit instead, as soon as they count for it.\n\nAn upload tells of its own limit instead, as soon as it and a report count for it.")) != 1 {
		t.Error("two versions of a paragraph are not seen")
	}
}
