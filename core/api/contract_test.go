package api_test

import (
	"net/http"
	"sync"
	"testing"

	"github.com/veneer-skins/veneer/core/public/openapitest"
)

// contract is the OpenAPI document. Every response of the tests is checked against it.
type contract struct{ openapitest.Document }

var loadContract = sync.OnceValues(func() (contract, error) {
	document, err := openapitest.Load("openapi.yaml")
	return contract{document}, err
})

func mustLoadContract(t *testing.T) contract {
	t.Helper()
	c, err := loadContract()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newExchange returns a request and its response for the check.
func newExchange(method, target string, body body, a response) openapitest.Exchange {
	header := http.Header{}
	for name, value := range a.header.All() {
		header.Add(string(name), string(value))
	}
	return openapitest.Exchange{
		Method: method, Target: target, Body: sentBody(body), Status: a.status, Header: header, ResponseBody: a.body,
	}
}

// sentBody returns a request's body for the check.
func sentBody(b body) openapitest.Body {
	return openapitest.Body{ContentType: b.contentType, Content: b.content}
}
