package api

import "github.com/valyala/fasthttp"

// IsForwarded reports whether a request is forwarded to the upstream, if there is one.
func IsForwarded(rc *fasthttp.RequestCtx) bool {
	return isAPI(string(rc.Path())) && isCanonicalAPI(rc.URI())
}
