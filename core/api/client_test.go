package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"mime/multipart"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/api"
	"github.com/veneer-skins/veneer/core/postgres"
)

// client sends requests to a server, with a token if it is signed in.
type client struct {
	site     *testSite
	db       *postgres.DB
	services api.Services
	server   *fasthttp.Server
	http     *fasthttp.HostClient
	token    string
	uid      core.UserID
}

// from returns a client that connects from an address.
func (c client) from(t *testing.T, address string) client {
	t.Helper()
	listener := fasthttputil.NewInmemoryListener()
	serveListener(t, c.server, addrListener{listener, net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(address), 1024))})
	c.http = &fasthttp.HostClient{
		Addr:                   "veneer.test",
		DisablePathNormalizing: true,
		Dial:                   func(string) (net.Conn, error) { return listener.Dial() },
	}
	return c
}

// addrListener reports a fixed remote address for its connections.
type addrListener struct {
	net.Listener
	address net.Addr
}

func (l addrListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return addrConn{conn, l.address}, err
}

type addrConn struct {
	net.Conn
	address net.Addr
}

func (c addrConn) RemoteAddr() net.Addr { return c.address }

// as returns a client that sends another token.
func (c client) as(token string) client {
	c.token = token
	return c
}

// signUp returns a client that is signed in as a new user. The user has no password, since hashing
// one takes time.
func (c client) signUp(t *testing.T) client {
	t.Helper()
	email := fmt.Sprintf("user%d@example.com", c.site.users.Add(1))
	user, err := c.db.CreateUser(t.Context(), core.NewUser{Email: email, EmailKey: email, Nickname: "Somebody", PasswordHash: "none"})
	if err != nil {
		t.Fatal(err)
	}
	c.uid = user.ID
	return c.signIn(t)
}

// homeNetwork is the client network of test users' log-ins.
var homeNetwork = netip.MustParsePrefix("192.0.2.1/32")

// signIn opens another session of a user without a password.
func (c client) signIn(t *testing.T) client {
	t.Helper()
	proof := core.VerifiedCredentials{Credentials: core.Credentials{User: core.User{ID: c.uid}, PasswordHash: "none"}}
	bearer, err := c.services.Sessions.Open(t.Context(), proof, homeNetwork)
	if err != nil {
		t.Fatal(err)
	}
	return c.as(bearer.Token)
}

// body is a request's body and its content type.
type body struct {
	contentType string
	content     []byte
}

func encodeJSON(text string) body { return body{"application/json", []byte(text)} }

func encodeForm(text string) body { return body{"application/x-www-form-urlencoded", []byte(text)} }

// encodeMultipart returns a multipart form with the values of a query, and with a file unless that
// is nil.
func encodeMultipart(t *testing.T, text string, file []byte) body {
	t.Helper()
	values, err := url.ParseQuery(text)
	if err != nil {
		t.Fatal(err)
	}
	var content bytes.Buffer
	w := multipart.NewWriter(&content)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		for _, value := range values[name] {
			if err := w.WriteField(name, value); err != nil {
				t.Fatal(err)
			}
		}
	}
	if file != nil {
		part, err := w.CreateFormFile("file", "texture.png")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := part.Write(file); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return body{w.FormDataContentType(), content.Bytes()}
}

// response is the server's response.
type response struct {
	request string // method and path, for messages
	status  int
	header  *fasthttp.ResponseHeader
	body    []byte
}

// send sends a request and checks what holds for every response. headers are pairs of name and
// value.
func (c client) send(t *testing.T, method, path string, body body, headers ...string) response {
	t.Helper()
	got, err := c.exchange(method, path, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	got.check(t)
	if err := mustLoadContract(t).Check(newExchange(method, path, body, got)); err != nil {
		t.Errorf("%s: %v", got.request, err)
	}
	return got
}

// exchange sends a request and returns the response unchecked.
func (c client) exchange(method, path string, body body, headers ...string) (response, error) {
	request, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(resp)
	request.Header.SetNoDefaultContentType(true)
	request.Header.SetMethod(method)
	request.SetRequestURI("http://veneer.test" + path)
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	if body.content != nil {
		request.SetBody(body.content)
	}
	if body.contentType != "" {
		request.Header.SetContentType(body.contentType)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	if err := c.http.Do(request, resp); err != nil {
		return response{}, err
	}
	got := response{method + " " + path, resp.StatusCode(), new(fasthttp.ResponseHeader), bytes.Clone(resp.Body())}
	resp.Header.CopyTo(got.header)
	got.header.SetNoDefaultContentType(true)
	return got, nil
}

func (c client) get(t *testing.T, path string) response {
	t.Helper()
	return c.send(t, "GET", path, body{})
}

func (c client) post(t *testing.T, path, object string) response {
	t.Helper()
	return c.send(t, "POST", path, encodeJSON(object))
}

func (c client) put(t *testing.T, path, object string) response {
	t.Helper()
	return c.send(t, "PUT", path, encodeJSON(object))
}

func (c client) delete(t *testing.T, path string) response {
	t.Helper()
	return c.send(t, "DELETE", path, body{})
}

// check checks what holds for every response.
func (a response) check(t *testing.T) {
	t.Helper()
	cacheControl := "no-store"
	if a.isAsset() {
		cacheControl = "public, max-age=31536000, immutable"
	}
	for name, want := range map[string]string{
		"Cache-Control": cacheControl, "X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin",
		"Referrer-Policy": "no-referrer", "Access-Control-Allow-Credentials": "",
	} {
		if got := a.headerValue(name); got != want {
			t.Errorf("%s: %s is %q; want %q", a.request, name, got, want)
		}
	}
	if got, want := a.headerValue("Content-Security-Policy"), "default-src 'none'; frame-ancestors 'none'"; !a.isDocumentation() && got != want {
		t.Errorf("%s: Content-Security-Policy is %q; want %q", a.request, got, want)
	}
	if a.headerValue("X-Request-ID") == "" {
		t.Errorf("%s: the answer has no X-Request-ID", a.request)
	}
	if got, want := a.headerValue("WWW-Authenticate"), a.status == 401; (got == "Bearer") != want {
		t.Errorf("%s: status %d comes with WWW-Authenticate %q", a.request, a.status, got)
	}
	if a.status == 204 || a.status == 304 && !a.isDocumentation() {
		if len(a.body) != 0 {
			t.Errorf("%s: the answer without content is %q", a.request, a.body)
		}
		return
	}
	if a.isDocumentation() || strings.HasPrefix(a.request, "HEAD ") {
		return
	}
	if got := a.headerValue("Content-Type"); got != "application/json; charset=utf-8" {
		t.Errorf("%s: the answer is %q", a.request, got)
	}
	if !json.Valid(a.body) {
		t.Errorf("%s: the answer is no JSON: %s", a.request, a.body)
	}
}

// isDocumentation reports whether the response is the OpenAPI document or a file of the
// documentation, which are no JSON.
func (a response) isDocumentation() bool {
	_, path, _ := strings.Cut(a.request, " ")
	path, _, _ = strings.Cut(path, "?")
	path = strings.TrimRight(path, "/")
	return (a.status == 200 || a.status == 304) && (path == "/api/openapi.yaml" || strings.HasPrefix(path, "/api/docs"))
}

// isAsset reports whether the response is a file that is addressed by its digest.
func (a response) isAsset() bool {
	_, path, _ := strings.Cut(a.request, " ")
	path, _, _ = strings.Cut(path, "?")
	return a.isDocumentation() && strings.HasPrefix(strings.TrimRight(path, "/"), "/api/docs/")
}

func (a response) headerValue(name string) string { return string(a.header.Peek(name)) }

// wildcards are placeholders in expected JSON, with the pattern of the values they match.
var wildcards = map[string]*regexp.Regexp{
	"<text>":    regexp.MustCompile(`^".+"$`),
	"<texts>":   regexp.MustCompile(`^\[".+"\]$`),
	"<integer>": regexp.MustCompile(`^[1-9][0-9]*$`),
	"<time>":    regexp.MustCompile(`^"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"$`),
	"<uuid>":    regexp.MustCompile(`^"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"$`),
	"<hash>":    regexp.MustCompile(`^"[0-9a-f]{64}"$`),
	"<jwt>":     regexp.MustCompile(`^"[\w-]+\.[\w-]+\.[\w-]+"$`),
}

// is checks the status and the whole body. body is JSON with wildcards.
func (a response) is(t *testing.T, status int, body string) {
	t.Helper()
	if a.status != status {
		t.Errorf("%s: the status is %d; want %d", a.request, a.status, status)
	}
	want := decode(t, []byte(body))
	if diff := cmp.Diff(want, applyWildcards(want, decode(t, a.body))); diff != "" {
		t.Errorf("%s: the body (-want +got):\n%s", a.request, diff)
	}
}

// decode decodes JSON; numbers keep their spelling.
func decode(t *testing.T, text []byte) any {
	t.Helper()
	var value any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return value
}

// applyWildcards returns got with wildcards in place of what they match.
func applyWildcards(want, got any) any {
	switch want := want.(type) {
	case string:
		raw, err := json.Marshal(got)
		if wildcard := wildcards[want]; wildcard != nil && err == nil && wildcard.Match(raw) {
			return want
		}
	case map[string]any:
		if got, ok := got.(map[string]any); ok {
			for key, value := range got {
				got[key] = applyWildcards(want[key], value)
			}
		}
	case []any:
		if got, ok := got.([]any); ok {
			for i := range min(len(want), len(got)) {
				got[i] = applyWildcards(want[i], got[i])
			}
		}
	}
	return got
}

// isError checks that the response is an error with messages for these fields and no others.
func (a response) isError(t *testing.T, status, code int, fields ...string) {
	t.Helper()
	want := `{"code":` + strconv.Itoa(code) + `,"message":"<text>"`
	for i, field := range fields {
		want += []string{`,"errors":{`, `,`}[min(i, 1)] + `"` + field + `":"<texts>"`
	}
	if len(fields) > 0 {
		want += "}"
	}
	a.is(t, status, want+"}")
}

// field returns the value at a path of keys in the body.
func (a response) field(t *testing.T, path ...string) string {
	t.Helper()
	value := decode(t, a.body)
	for _, key := range path {
		object, ok := value.(map[string]any)
		if !ok {
			t.Fatalf("%s: the answer has no %s: %s", a.request, strings.Join(path, "."), a.body)
		}
		value = object[key]
	}
	return fmt.Sprint(value)
}

// decode decodes the body into a value.
func (a response) decode(t *testing.T, value any) {
	t.Helper()
	if err := json.Unmarshal(a.body, value); err != nil {
		t.Fatal(err)
	}
}

// player adds a player and returns its path.
func (c client) player(t *testing.T, name string) string {
	t.Helper()
	a := c.post(t, "/api/players", `{"name":"`+name+`"}`)
	if a.status != 200 {
		t.Fatalf("add player %s: %d %s", name, a.status, a.body)
	}
	return "/api/players/" + a.field(t, "data", "pid")
}

// texture uploads a texture and returns its tid.
func (c client) texture(t *testing.T, form string, file []byte) string {
	t.Helper()
	a := c.send(t, "POST", "/api/textures", encodeMultipart(t, form, file))
	if a.status != 200 {
		t.Fatalf("upload: %d %s", a.status, a.body)
	}
	return a.field(t, "data", "tid")
}

// withPassword gives the client's user a password.
func (c client) withPassword(t *testing.T, password string) {
	t.Helper()
	hash, err := core.NewPasswords().Hash(context.WithoutCancel(t.Context()), password)
	if err != nil {
		t.Fatal(err)
	}
	c.site.exec(t, "UPDATE users SET password_hash = $2 WHERE uid = $1", c.uid, hash)
}
