package api

import (
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/roots"
)

// IsForwarded reports whether a request is forwarded to the upstream, if there is one.
func IsForwarded(rc *fasthttp.RequestCtx) bool {
	path := string(rc.Path())
	root := roots.Of(path)
	return root != "" && isCanonical(rc.URI(), root)
}
