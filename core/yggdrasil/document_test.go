package yggdrasil_test

import (
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/veneer-skins/veneer/core/clientapi/openapitest"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

var loadDocument = sync.OnceValues(func() (openapitest.Document, error) { return openapitest.Load("openapi.yaml") })

func mustLoadDocument(t *testing.T) openapitest.Document {
	t.Helper()
	return testenv.Must(loadDocument())(t)
}

// checkResponse checks that the document allows a response, and the request if it succeeded.
func checkResponse(t *testing.T, r response) {
	t.Helper()
	testenv.Is(t, mustLoadDocument(t).Check(r.Exchange), nil, "%s", r.Request())
}

// The document and its examples are valid, to the last field.
func TestDocumentIsValid(t *testing.T) {
	t.Parallel()
	asServed := testenv.Must(openapi3.NewLoader().LoadFromFile("openapi.yaml"))(t)
	for _, document := range []*openapi3.T{asServed, mustLoadDocument(t).T} {
		err := document.Validate(t.Context(), openapi3.EnableExamplesValidation(), openapi3.EnableSchemaPatternValidation())
		testenv.Is(t, err, nil, "the document")
	}
}

// The route table and the document name the same operations, and the site serves the document.
func TestRoutesAreDocumented(t *testing.T) {
	t.Parallel()
	c := start(t)
	var served, documented []string
	for method, paths := range c.ygg.Routes() {
		for _, path := range paths {
			if method != http.MethodHead {
				served = append(served, path+" "+method)
			}
		}
	}
	for path, item := range mustLoadDocument(t).Paths.Map() {
		for method := range item.Operations() {
			documented = append(documented, path+" "+method)
		}
	}
	slices.Sort(served)
	slices.Sort(documented)
	cmptest.Same(t, served, documented, "the routes")
	got := c.Get(t, "/openapi.yaml")
	got.HasStatus(t, 200)
	testenv.Contains(t, string(got.Body[:100]), "# The OpenAPI document of the API for launchers", "the document")
}
