package api

import "github.com/valyala/fasthttp"

// IsForwarded reports whether a request is forwarded to the upstream, if there is one.
func IsForwarded(rc *fasthttp.RequestCtx) bool {
	path := string(rc.Path())
	return isAPI(path) && isCanonical(rc.URI(), apiRoot) || isBelow(path, consoleRoot) && isCanonical(rc.URI(), consoleRoot)
}
