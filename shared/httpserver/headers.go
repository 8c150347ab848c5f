package httpserver

import "github.com/valyala/fasthttp"

// securityHeaders is what Reserve sets: no browser takes the answer for anything but data, draws
// a page or runs a script of it, shows it within another site's page, or lets that have it
// as a picture or a script; no link in it tells where it was; and nobody keeps it.
var securityHeaders = [...]struct{ name, value []byte }{
	{[]byte(fasthttp.HeaderXContentTypeOptions), []byte("nosniff")},
	{[]byte(fasthttp.HeaderContentSecurityPolicy), []byte("default-src 'none'; frame-ancestors 'none'")},
	{[]byte(fasthttp.HeaderCrossOriginResourcePolicy), []byte("same-origin")},
	{[]byte(fasthttp.HeaderReferrerPolicy), []byte("no-referrer")},
	{[]byte(fasthttp.HeaderCacheControl), []byte("no-store")},
}

// SetSecurityHeaders sets the headers of an answer that is for whoever asked and nobody else.
func SetSecurityHeaders(rc *fasthttp.RequestCtx) {
	for _, line := range securityHeaders {
		rc.Response.Header.SetCanonical(line.name, line.value)
	}
}
