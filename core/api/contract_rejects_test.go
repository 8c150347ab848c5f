package api_test

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/veneer-skins/veneer/core/clientapi/openapitest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// validExchanges returns exchanges that the document allows, by name.
func validExchanges() map[string]openapitest.Exchange {
	respond := func(status int, answer string) openapitest.Exchange {
		return openapitest.Exchange{Status: status, Body: []byte(answer), Header: http.Header{
			"Content-Type": {"application/json; charset=utf-8"}, "X-Request-Id": {"abc-123"},
		}}
	}
	toRequest := func(x openapitest.Exchange, method, target string, body body) openapitest.Exchange {
		x.Method, x.Target, x.Sent = method, target, body
		return x
	}
	const player = `{"pid":3,"uid":7,"uuid":"6a0c1d2e-93b4-4f5a-8c7d-1e2f3a4b5c6d","name":"Demo","tid_skin":1,"tid_cape":0,"last_modified":"2031-02-03 04:05:06"}`
	const user = `{"uid":7,"email":"demo@example.com","nickname":"Demo","avatar":0,"score":12345678901,"permission":0,` +
		`"last_sign_at":"2031-02-03 04:05:06","next_sign_at":"2031-02-04 00:00:00","register_at":"2031-02-03 04:05:06","verified":true}`
	dressed := respond(200, `{"code":0,"message":"Done.","data":`+player+`}`)

	signedOut := respond(401, `{"code":5,"message":"No."}`)
	signedOut.Header.Set("WWW-Authenticate", "Bearer")
	limited := respond(429, `{"code":8,"message":"No."}`)
	limited.Header.Set("Retry-After", "30")
	wrongMethod := respond(405, `{"code":3,"message":"No."}`)
	wrongMethod.Header.Set("Allow", "GET, OPTIONS")
	ended := respond(204, "")
	ended.Header.Del("Content-Type")

	return map[string]openapitest.Exchange{
		"user":                toRequest(respond(200, user), "GET", "/api/user", body{}),
		"players":             toRequest(respond(200, `[`+player+`]`), "GET", "/api/players", body{}),
		"dress":               toRequest(dressed, "PUT", "/api/players/3/textures", encodeJSON(`{"skin":1,"cape":null,"unknown":[]}`)),
		"dress form":          toRequest(dressed, "PUT", "/api/players/3/textures", encodeForm("skin=+1+")),
		"rename":              toRequest(dressed, "PUT", "/api/players/3/name", encodeJSON(`{"name":" Demo\n"}`)),
		"undress":             toRequest(dressed, "DELETE", "/api/players/3/textures?type=skin&type=cape", body{}),
		"undress array":       toRequest(dressed, "DELETE", "/api/players/3/textures", encodeJSON(`{"type":[" skin "],"cape":null}`)),
		"undress by presence": toRequest(dressed, "DELETE", "/api/players/3/textures", encodeJSON(`{"type":null,"cape":null}`)),
		"undress form": toRequest(dressed, "DELETE", "/api/players/3/textures",
			raw("multipart/form-data; boundary=x", "--x\r\nContent-Disposition: form-data; name=\"type[]\"\r\n\r\nskin\r\n--x--\r\n")),
		"closet page": toRequest(respond(200, `{"per_page":6,"from":0,"to":0,"total":0,"current_page":1,"last_page":1,"data":[]}`),
			"GET", "/api/closet?category=cape&page=1", body{}),
		"invalid":     toRequest(respond(422, `{"code":4,"message":"No.","errors":{"name":["No."]}}`), "POST", "/api/players", encodeJSON(`{}`)),
		"duplicate":   toRequest(respond(409, `{"code":2,"message":"No.","errors":{"file":["No."]},"data":{"tid":7}}`), "POST", "/api/textures", body{}),
		"signed out":  toRequest(signedOut, "GET", "/api/user", body{}),
		"too many":    toRequest(limited, "GET", "/api/user", body{}),
		"sign out":    toRequest(ended, "POST", "/api/auth/logout", body{}),
		"preflight":   toRequest(ended, "OPTIONS", "/api/nothing", body{}),
		"not found":   toRequest(respond(404, `{"code":3,"message":"No."}`), "GET", "/api/nothing", body{}),
		"not allowed": toRequest(wrongMethod, "DELETE", "/api/players", body{}),
	}
}

func TestContractAcceptsDocumented(t *testing.T) {
	t.Parallel()
	for name, x := range validExchanges() {
		testenv.Is(t, mustLoadContract(t).Check(x), nil, "%s", name)
	}
}

// A check that accepts everything proves nothing: here each kind of violation is shown to be
// detected.
func TestContractRejectsUndocumented(t *testing.T) {
	t.Parallel()
	document := mustLoadContract(t)
	rejects := func(name, what string, change func(*openapitest.Exchange), want string) {
		t.Helper()
		x := validExchanges()[name]
		change(&x)
		testenv.ErrorHas(t, document.Check(x), want, "%s with %s", name, what)
	}
	f := func(name, old, replacement, want string) {
		t.Helper()
		rejects(name, replacement, func(x *openapitest.Exchange) {
			testenv.Equal(t, bytes.Contains(x.Body, []byte(old)), true, "the answer to %s has %s", name, old)
			x.Body = bytes.Replace(x.Body, []byte(old), []byte(replacement), 1)
		}, want)
	}

	// Undocumented fields, at the top level, in an object and in an array.
	f("user", `{`, `{"password":"x",`, "additional properties 'password'")
	f("dress", `{"code"`, `{"hint":1,"code"`, "additional properties 'hint'")
	f("dress", `"pid"`, `"pidd":1,"pid"`, "additional properties 'pidd'")
	f("players", `"pid"`, `"pidd":1,"pid"`, "additional properties 'pidd'")
	f("invalid", `"errors"`, `"data":{},"errors"`, "additional properties 'data'")
	f("signed out", `}`, `,"errors":{"token":["No."]}}`, "additional properties 'errors'")
	f("duplicate", `"tid":7`, `"tid":7,"hash":""`, "additional properties 'hash'")
	f("closet page", `"total"`, `"path":"/","total"`, "additional properties 'path'")

	// Missing fields.
	f("user", `"verified"`, `"verifie"`, "missing property 'verified'")
	f("players", `"uuid"`, `"uid"`, "missing property 'uuid'")
	f("dress", `"data"`, `"dat"`, "missing property 'data'")
	f("dress", `"code":0,`, ``, "missing property 'code'")
	f("invalid", `,"errors":{"name":["No."]}`, ``, "missing property 'errors'")
	f("duplicate", `{"tid":7}`, `{}`, "missing property 'tid'")

	// Values of the wrong type, format or range.
	f("user", `"uid":7`, `"uid":"7"`, "got string, want integer")
	f("user", `"uid":7`, `"uid":7.5`, "got number, want integer")
	f("user", `"uid":7`, `"uid":0`, "minimum")
	f("user", `"uid":7`, `"uid":null`, "got null, want integer")
	f("user", `"permission":0`, `"permission":3`, "must be one of")
	f("user", `"verified":true`, `"verified":1`, "want boolean")
	f("user", `demo@example.com`, `demo`, "email")
	f("user", `2031-02-03 04:05:06`, `2031-02-03T04:05:06Z`, "does not match pattern")
	f("user", `"nickname":"Demo"`, `"nickname":""`, "minLength")
	f("players", `-4f5a-`, `-`, "uuid")
	f("players", `[`, `{"data":[`, "")
	f("players", `[{`, `[null,{`, "got null, want object")
	f("dress", `"code":0`, `"code":1`, "must be 0")
	f("dress", `"message":"Done."`, `"message":["Done."]`, "want string")
	f("invalid", `["No."]`, `"No."`, "want array")
	f("invalid", `["No."]`, `[]`, "minItems")
	f("invalid", `"code":4`, `"code":0`, "must be one of")
	f("closet page", `"per_page":6`, `"per_page":"6"`, "got string, want integer")
	f("closet page", `"data":[]`, `"data":{}`, "got object, want array")
	f("not found", `"code":3`, `"code":"3"`, "got string, want integer")
	f("user", `}`, ``, "unexpected EOF")

	// Undocumented operations, statuses, types and headers.
	rejects("user", "another path", func(x *openapitest.Exchange) { x.Target = "/api/users" }, "path is not documented")
	rejects("user", "another method", func(x *openapitest.Exchange) { x.Method = "PATCH" }, "method is not documented")
	rejects("user", "another status", func(x *openapitest.Exchange) { x.Status = 201 }, "is not documented")
	rejects("user", "an error of others", func(x *openapitest.Exchange) { x.Status = 409 }, "is not documented")
	rejects("user", "another type", func(x *openapitest.Exchange) { x.Header.Set("Content-Type", "text/html") }, "body of type")
	rejects("user", "no type", func(x *openapitest.Exchange) { x.Header.Del("Content-Type") }, "body of type")
	rejects("user", "no request id", func(x *openapitest.Exchange) { x.Header.Del("X-Request-Id") }, "X-Request-ID is missing")
	rejects("user", "an odd limit", func(x *openapitest.Exchange) { x.Header.Set("RateLimit-Remaining", "-1") }, "RateLimit-Remaining")
	rejects("signed out", "no way to sign in", func(x *openapitest.Exchange) { x.Header.Del("WWW-Authenticate") }, "WWW-Authenticate is missing")
	rejects("user", "a hint that others have", func(x *openapitest.Exchange) { x.Header.Set("Retry-After", "1") }, "header Retry-After is not documented")
	rejects("too many", "no hint", func(x *openapitest.Exchange) { x.Header.Del("Retry-After") }, "Retry-After is missing")
	rejects("too many", "an odd hint", func(x *openapitest.Exchange) { x.Header.Set("Retry-After", "soon") }, "Retry-After")
	rejects("not allowed", "no methods", func(x *openapitest.Exchange) { x.Header.Del("Allow") }, "Allow is missing")
	rejects("sign out", "a type", func(x *openapitest.Exchange) { x.Header.Set("Content-Type", "text/plain") }, "no body")
	rejects("sign out", "a body", func(x *openapitest.Exchange) { x.Body = []byte("{}") }, "no body")
	rejects("preflight", "a body", func(x *openapitest.Exchange) { x.Body = []byte("{}") }, "preflight")
	rejects("preflight", "another status", func(x *openapitest.Exchange) { x.Status = 200 }, "preflight")

	// Requests that succeed although the document does not allow them.
	rejects("dress", "an unfit body", func(x *openapitest.Exchange) { x.Sent = encodeJSON(`{"skin":"one"}`) }, "got string, want")
	rejects("dress", "a body without fields", func(x *openapitest.Exchange) { x.Sent = encodeJSON(`{"hat":1}`) }, "missing property 'skin'")
	rejects("dress", "no body", func(x *openapitest.Exchange) { x.Sent = body{} }, "required")
	rejects("dress", "a body of another type", func(x *openapitest.Exchange) { x.Sent.ContentType = "text/plain" }, "not documented")
	rejects("dress", "another path", func(x *openapitest.Exchange) { x.Target = "/api/players/Demo/textures" }, "the parameter pid")
	rejects("dress form", "an unfit field", func(x *openapitest.Exchange) { x.Sent = encodeForm("skin=one") }, "got string, want")
	rejects("rename", "an odd name", func(x *openapitest.Exchange) { x.Sent = encodeJSON(`{"name":"De mo"}`) }, "does not match pattern")
	rejects("undress", "an odd query", func(x *openapitest.Exchange) { x.Target = "/api/players/3/textures?type=hat" }, "the parameter type")
	rejects("undress form", "three slots", func(x *openapitest.Exchange) { x.Sent = encodeForm("type=skin&type=cape&type=skin") }, "maxItems")
	rejects("closet page", "an odd page", func(x *openapitest.Exchange) { x.Target = "/api/closet?page=0" }, "the parameter page")
	rejects("closet page", "an odd category", func(x *openapitest.Exchange) { x.Target = "/api/closet?category=hat" }, "the parameter category")
}
