package httpserver

import "github.com/valyala/fasthttp"

// securityHeaders are for responses to one client: a browser takes the body for data only,
// runs and embeds nothing of it, sends no referrer from it, and no cache stores it.
var securityHeaders = [...]struct{ name, value []byte }{
	{[]byte(fasthttp.HeaderXContentTypeOptions), []byte("nosniff")},
	{[]byte(fasthttp.HeaderContentSecurityPolicy), []byte("default-src 'none'; frame-ancestors 'none'")},
	{[]byte(fasthttp.HeaderCrossOriginResourcePolicy), []byte("same-origin")},
	{[]byte(fasthttp.HeaderReferrerPolicy), []byte("no-referrer")},
	{[]byte(fasthttp.HeaderCacheControl), []byte("no-store")},
}

// SetSecurityHeaders sets the headers of a response that is not for the public.
func SetSecurityHeaders(rc *fasthttp.RequestCtx) {
	for _, line := range securityHeaders {
		rc.Response.Header.SetCanonical(line.name, line.value)
	}
}
