package yggdrasil_test

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/veneer-skins/veneer/core/clientapi/openapitest"
	"github.com/veneer-skins/veneer/core/coretest"
	"github.com/veneer-skins/veneer/core/yggdrasil"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

var loadDocument = sync.OnceValues(func() (openapitest.Document, error) { return openapitest.Load("openapi.yaml") })

func mustLoadDocument(t *testing.T) openapitest.Document {
	t.Helper()
	return testenv.Must(loadDocument())(t)
}

// Routes tell the limit that they count for where the document says so. All others are listed in security.md.
func TestRoutesHaveLimits(t *testing.T) {
	t.Parallel()
	c := start(t)
	fill := strings.NewReplacer(yggdrasil.Root, "", "{uuid}", strings.Repeat("0", 32), "{name}", "Nobody", "{player}", "Nobody", "{slot}", "skin", "{file}", "x.png")
	var unlimited []string
	for path, item := range mustLoadDocument(t).Paths.Map() {
		for method, operation := range item.Operations() {
			got := c.Send(t, method, fill.Replace(path), coretest.JSON([]string{}))
			isLimited := got.Header.Get("RateLimit-Limit") != ""
			for _, status := range []int{200, 204} {
				if response := operation.Responses.Status(status); response != nil {
					testenv.Equal(t, response.Value.Headers["RateLimit-Limit"] != nil, isLimited, "%s %s has a limit", method, path)
				}
			}
			if !isLimited {
				unlimited = append(unlimited, "`"+method+" "+strings.TrimPrefix(path, yggdrasil.Root)+"`")
			}
		}
	}
	slices.Sort(unlimited)
	page := string(testenv.Must(os.ReadFile("../../docs/operations/security.md"))(t))
	_, listed, _ := strings.Cut(page, "(`core/yggdrasil` TestRoutesHaveLimits):\n\n")
	listed, _, _ = strings.Cut(listed, "\n")
	testenv.Equal(t, listed, strings.Join(unlimited, ", "), "the routes without a limit in security.md")
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
