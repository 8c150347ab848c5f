package api_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// checkResponse checks a response against the document, and what holds for every response.
func checkResponse(t *testing.T, r response) {
	t.Helper()
	testenv.Is(t, mustLoadContract(t).Check(r.Exchange), nil, "%s", r.Request())
	checkHeaders(t, r)
}

// checkHeaders checks what the document does not say of every response.
func checkHeaders(t *testing.T, r response) {
	t.Helper()
	cacheControl := "no-store"
	if isAsset(r) {
		cacheControl = "public, max-age=31536000, immutable"
	}
	for name, want := range map[string]string{
		"Cache-Control": cacheControl, "X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin",
		"Referrer-Policy": "no-referrer", "Access-Control-Allow-Credentials": "",
	} {
		testenv.Equal(t, r.Header.Get(name), want, "%s: %s", r.Request(), name)
	}
	policy, want := r.Header.Get("Content-Security-Policy"), "default-src 'none'; frame-ancestors 'none'"
	testenv.Check(t, isDocumentation(r) || policy == want, "%s: Content-Security-Policy is %q", r.Request(), policy)
	testenv.Equal(t, r.Header.Get("X-Request-ID") != "", true, "%s: the answer has an X-Request-ID", r.Request())
	challenge := r.Header.Get("WWW-Authenticate")
	testenv.Equal(t, challenge == "Bearer", r.Status == 401, "%s: WWW-Authenticate %q as of 401", r.Request(), challenge)
	if r.Status == 204 || r.Status == 304 && !isDocumentation(r) {
		testenv.Check(t, len(r.Body) == 0, "%s: the answer without content is %q", r.Request(), r.Body)
		return
	}
	if isDocumentation(r) || r.Method == "HEAD" {
		return
	}
	testenv.Equal(t, r.Header.Get("Content-Type"), "application/json; charset=utf-8", "%s: the answer", r.Request())
	testenv.Equal(t, json.Valid(r.Body), true, "%s: the answer is JSON: %s", r.Request(), r.Body)
}

// isDocumentation reports whether the response is the OpenAPI document or a file of the
// documentation, which are no JSON.
func isDocumentation(r response) bool {
	path, _, _ := strings.Cut(r.Target, "?")
	path = strings.TrimRight(path, "/")
	return (r.Status == 200 || r.Status == 304) && (path == "/api/openapi.yaml" || strings.HasPrefix(path, "/api/docs"))
}

// isAsset reports whether the response is a file that is addressed by its digest.
func isAsset(r response) bool {
	path, _, _ := strings.Cut(r.Target, "?")
	return isDocumentation(r) && strings.HasPrefix(strings.TrimRight(path, "/"), "/api/docs/")
}

// player adds a player and returns its path.
func (c client) player(t *testing.T, name string) string {
	t.Helper()
	a := c.Post(t, "/api/players", `{"name":"`+name+`"}`)
	a.HasStatus(t, 200)
	return "/api/players/" + a.Field(t, "data", "pid")
}

// texture uploads a texture and returns its tid.
func (c client) texture(t *testing.T, form string, file []byte) string {
	t.Helper()
	a := c.Send(t, "POST", "/api/textures", encodeMultipart(t, form, file))
	a.HasStatus(t, 200)
	return a.Field(t, "data", "tid")
}

// withPassword gives the client's user a password.
func (c client) withPassword(t *testing.T, password string) {
	t.Helper()
	hash := testenv.Must(c.Domain.Passwords.Hash(context.WithoutCancel(t.Context()), password))(t)
	c.site.Exec(t, "UPDATE users SET password_hash = $2 WHERE uid = $1", c.UID, hash)
}
