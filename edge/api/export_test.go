package api

import "github.com/valyala/fasthttp"

// IsForwarded reports whether a request goes to the upstream, where there is one.
func IsForwarded(rc *fasthttp.RequestCtx) bool {
	return isAPI(string(rc.Path())) && isCanonicalAPI(rc.URI())
}
