package yggdrasil

import (
	"context"
	_ "embed" // for the document

	"github.com/valyala/fasthttp"
)

//go:embed openapi.yaml
var document []byte

// handleDocument handles GET /openapi.yaml.
func (s *Server) handleDocument(_ context.Context, rc *fasthttp.RequestCtx) error {
	rc.SetContentType("application/yaml; charset=utf-8")
	rc.Response.SetBodyRaw(document) // which never changes
	return nil
}
