package api_test

import (
	"sync"
	"testing"

	"github.com/veneer-skins/veneer/core/clientapi/openapitest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// contract is the OpenAPI document. Every response of the tests is checked against it.
type contract struct{ openapitest.Document }

var loadContract = sync.OnceValues(func() (contract, error) {
	document, err := openapitest.Load("openapi.yaml")
	return contract{document}, err
})

func mustLoadContract(t *testing.T) contract {
	t.Helper()
	c := testenv.Must(loadContract())(t)
	return c
}
