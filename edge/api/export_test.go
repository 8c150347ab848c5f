package api

import "github.com/valyala/fasthttp"

// IsPassedOn reports whether a request goes to the upstream, where there is one.
func IsPassedOn(rc *fasthttp.RequestCtx) bool {
	return isAPI(string(rc.Path())) && isPlainAPI(rc.URI())
}
