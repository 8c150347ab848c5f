package yggdrasil_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/core/public/openapitest"
	"github.com/veneer-skins/veneer/core/yggdrasil"
)

var loadDocument = sync.OnceValues(func() (openapitest.Document, error) { return openapitest.Load("openapi.yaml") })

func mustLoadDocument(t *testing.T) openapitest.Document {
	t.Helper()
	document, err := loadDocument()
	if err != nil {
		t.Fatal(err)
	}
	return document
}

// checkDocument returns an error if the document does not allow a response, or not the request
// though it succeeded.
func checkDocument(t *testing.T, method, path string, body body, got response) error {
	t.Helper()
	header := http.Header{}
	for name, value := range got.header.All() {
		header.Add(string(name), string(value))
	}
	return mustLoadDocument(t).Check(openapitest.Exchange{
		Method: method, Target: yggdrasil.Root + path, Body: openapitest.Body{ContentType: body.contentType, Content: body.content},
		Status: got.status, Header: header, ResponseBody: got.body,
	})
}

// The document and its examples are valid, to the last field.
func TestDocumentIsValid(t *testing.T) {
	t.Parallel()

	asServed, err := openapi3.NewLoader().LoadFromFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range []*openapi3.T{asServed, mustLoadDocument(t).T} {
		if err := document.Validate(t.Context(), openapi3.EnableExamplesValidation(), openapi3.EnableSchemaPatternValidation()); err != nil {
			t.Error(err)
		}
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
	if diff := cmp.Diff(documented, served); diff != "" {
		t.Errorf("the routes (-documented +served):\n%s", diff)
	}
	got := c.get(t, "/openapi.yaml")
	if got.status != 200 || !strings.HasPrefix(string(got.body), "# The OpenAPI document of the API for launchers") {
		t.Errorf("%d %.100s", got.status, got.body)
	}
}
