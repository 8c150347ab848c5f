package api_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/api"
	"github.com/veneer-skins/veneer/core/public"
	"github.com/veneer-skins/veneer/core/public/openapitest"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// endpoint is an operation of core, with a concrete path.
type endpoint struct {
	method, path string
	*openapi3.Operation
}

// endpoints returns core's operations in a stable order.
func (c contract) endpoints() []endpoint {
	var all []endpoint
	values := strings.NewReplacer("{pid}", "1", "{uid}", "1", "{rid}", "1", "{tid}", "1", "{id}", "1f7f3f0e-6d3c-4c64-9a52-6f0a3a1f2b7c", "{digest}/{file}", assetOf("docs/start.js"))
	for path, item := range c.Paths.Map() {
		for method, operation := range item.Operations() {
			if isCorePath(path) {
				all = append(all, endpoint{method, values.Replace(path), operation})
			}
		}
	}
	slices.SortFunc(all, func(a, b endpoint) int { return strings.Compare(a.OperationID, b.OperationID) })
	return all
}

// exampleFields returns the documented example of a JSON body.
func (e endpoint) exampleFields() any {
	media := e.RequestBody.Value.Content.Get("application/json")
	for _, example := range media.Examples {
		return example.Value.Value
	}
	return media.Example
}

// example returns the documented example of a body, or a form with a file.
func (e endpoint) example(t *testing.T) body {
	t.Helper()
	switch {
	case e.RequestBody == nil:
		return body{}
	case e.RequestBody.Value.Content.Get("application/json") == nil:
		return encodeMultipart(t, "name=A&type=skin", skinFile(t, 1))
	}
	text, err := json.Marshal(e.exampleFields())
	if err != nil {
		t.Fatal(err)
	}
	return encodeJSON(string(text))
}

// seenResponses has the messages of all responses seen, by operation and status.
type seenResponses map[string][]string

// responseKey returns the key of seenResponses.
func responseKey(operation *openapi3.Operation, status string) string {
	return operation.OperationID + " " + status
}

// record adds responses.
func (s seenResponses) record(t *testing.T, answers ...response) {
	t.Helper()
	for _, a := range answers {
		method, target, _ := strings.Cut(a.request, " ")
		path, _, _ := strings.Cut(target, "?")
		item, _ := mustLoadContract(t).Find(path)
		if item == nil || item.Operations()[method] == nil {
			t.Fatalf("%s is not documented", a.request)
		}
		var seen any
		_ = json.Unmarshal(a.body, &seen) // some responses are no JSON
		key := responseKey(item.Operations()[method], strconv.Itoa(a.status))
		s[key] = append(s[key], normalizedMessage(t, seen))
	}
}

var numbers = regexp.MustCompile(`\d+`)

// normalizedMessage returns the parts of a response that do not vary between users, with all
// numbers 0: the message, and of an error also the fields errors and data.
func normalizedMessage(t *testing.T, answer any) string {
	t.Helper()
	object, _ := answer.(map[string]any)
	if object["message"] == nil {
		return ""
	}
	seen := map[string]any{"message": object["message"]}
	code := fmt.Sprint(object["code"])
	if code != "0" {
		seen["errors"], seen["data"] = object["errors"], object["data"]
	}
	text, err := json.Marshal(seen)
	if err != nil {
		t.Fatal(err)
	}
	return code + " " + numbers.ReplaceAllString(string(text), "0")
}

// sendTooLarge sends the header block of a request with a Content-Length beyond every limit, and
// the first byte of the body. It half-closes the connection, so that the server does not wait for
// the rest.
func sendTooLarge(t *testing.T, address, token, method, path string) response {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: veneer.test\r\nAuthorization: Bearer %s\r\nContent-Length: 2000000\r\n\r\n{", method, path, token); err != nil {
		t.Fatal(err)
	}
	if half, ok := conn.(*net.TCPConn); !ok || half.CloseWrite() != nil {
		t.Fatal("the connection cannot be closed by half")
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := mustLoadContract(t).Check(openapitest.Exchange{Method: method, Target: path, Status: resp.StatusCode, Header: resp.Header, ResponseBody: content}); err != nil {
		t.Errorf("%s %s: %v", method, path, err)
	}
	return response{request: method + " " + path, status: resp.StatusCode, body: content}
}

// Every documented response occurs, and has the message of its example. Responses common to all
// operations are tried with each of them.
func TestDocumentedResponsesOccur(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)

	seen := seenResponses{}
	s := newSite(t, "LIMIT_REQUESTS=0")
	recordCommonErrors(t, s, seen)
	recordAccounts(t, s, seen)
	recordOthers(t, s, seen)
	recordAdminUsers(t, s, seen)
	recordAnnouncements(t, s, seen)
	recordReports(t, s, seen)
	recordAdminClosets(t, s, seen)
	recordAdminTextures(t, s, seen)
	recordMail(t, s, seen)

	document := mustLoadContract(t)
	for _, e := range document.endpoints() {
		for status, resp := range e.Responses.Map() {
			sentences, ok := seen[responseKey(e.Operation, status)]
			if !ok {
				t.Errorf("%s is documented to answer %s, but was never seen to", e.OperationID, status)
				continue
			}
			for kind, media := range resp.Value.Content {
				examples := map[string]any{"": media.Example}
				for name, example := range media.Examples {
					examples[name] = example.Value.Value
				}
				for name, example := range examples {
					if want := normalizedMessage(t, example); want != "" && !slices.Contains(sentences, want) {
						t.Errorf("%s %s, %s example %q: the document has it say %s; it says %q", e.OperationID, status, kind, name, want, sentences)
					}
				}
			}
		}
	}
}

// recordCommonErrors records the errors that do not depend on what an operation does.
func recordCommonErrors(t *testing.T, s *testSite, seen seenResponses) {
	t.Helper()
	document := mustLoadContract(t)
	configured := s.setup
	c := s.serve(t).signUp(t)
	c.permit(t, core.SuperAdministrator) // gets no 403 before the body is read
	banned := c.signUp(t)
	s.exec(t, "UPDATE users SET permission = -1 WHERE uid = $1", banned.uid)

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveListener(t, c.server, listener)

	s.setup.API.Limits = public.Limits{Requests: 1, RequestsBurst: 1}
	limited := s.serve(t).as(c.token)
	limited.get(t, "/api/user").hasRateLimit(t, 200, rateLimit{"1", "0", "1", ""})
	limited.as("").get(t, "/api/docs")
	s.setup = configured

	dbClosed := s.serve(t).as(c.token)
	dbClosed.db.Close()

	clock := func() time.Time { panic("BUG: the clock has stopped") }
	log := slog.New(slog.DiscardHandler)
	broken, err := api.New(httpserver.Options{Log: log, Limits: s.setup.Limits, Proxies: clientip.New(s.setup.Proxies, log)},
		api.Services{}, api.Config{Registration: "open", CORSOrigins: []string{"*"}, Limits: public.Limits{Requests: 1, RequestsBurst: 1}}, 0, clock)
	if err != nil {
		t.Fatal(err)
	}
	panicking := client{site: s, server: broken.HTTP()}.from(t, "0.0.0.0")

	for _, e := range document.endpoints() {
		lists := func(status int) bool { return e.Responses.Status(status) != nil }
		f := func(a response, statuses ...int) {
			t.Helper()
			seen.record(t, a)
			if !slices.Contains(statuses, a.status) {
				t.Errorf("%s is answered with %d %s; want %d", a.request, a.status, a.body, statuses)
			}
		}

		a := panicking.send(t, e.method, e.path, body{}, "Origin", "https://skins.example")
		f(a, 500)
		if got := a.headerValue("Access-Control-Allow-Origin"); got != "*" {
			t.Errorf("%s: Access-Control-Allow-Origin of a failure is %q; want *", a.request, got)
		}
		f(limited.send(t, e.method, e.path, body{}), 429)
		if lists(503) {
			f(dbClosed.send(t, e.method, e.path, e.example(t)), 503)
		}
		if lists(401) && e.OperationID != "login" {
			token := ""
			if e.Security != nil && isOptional(*e.Security) {
				token = "none that works"
			}
			f(c.as(token).send(t, e.method, e.path, body{}), 401)
		}
		if lists(403) && lists(401) && e.OperationID != "login" {
			f(banned.send(t, e.method, e.path, body{}), 403)
		}
		if e.RequestBody == nil {
			continue
		}
		malformed := encodeJSON(`{`)
		if e.RequestBody.Value.Content.Get(malformed.contentType) == nil {
			malformed = body{"multipart/form-data; boundary=x", []byte("{")}
		}
		f(c.send(t, e.method, e.path, malformed), 400)
		f(c.send(t, e.method, e.path, body{"text/plain", []byte("x")}), 415)
		f(sendTooLarge(t, listener.Addr().String(), c.token, e.method, e.path), 413)
	}
}

// recordAccounts records the responses to log-ins, registrations and changes of accounts.
func recordAccounts(t *testing.T, s *testSite, seen seenResponses) {
	t.Helper()
	configured := s.setup
	c := s.serve(t).signUp(t)
	email := fmt.Sprintf("user%d@example.com", s.users.Load())
	c.withPassword(t, rightPassword)
	register := func(c client, fields string) response {
		return c.post(t, "/api/auth/register", `{"email":"zoe@example.com","nickname":"Zoë",`+fields+`}`)
	}

	seen.record(t,
		c.logIn(t, email, rightPassword),
		c.logIn(t, email, wrongPassword),
		c.post(t, "/api/auth/login", `{"email":"a@example.com"}`),
		register(c, `"password":"correct horse"`),
		register(c, `"password":"correct horse"`),
		register(c, `"password":"1234567"`),
		c.get(t, "/api/user"),
		c.put(t, "/api/user", `{"nickname":"Demo"}`),
		c.put(t, "/api/user", `{}`),
		c.put(t, "/api/user/email", `{"email":"zoe@example.com","password":"`+rightPassword+`"}`),
		c.put(t, "/api/user/email", `{"email":"other@example.com","password":"`+wrongPassword+`"}`),
		c.put(t, "/api/user/email", `{"email":"`+email+`","password":"`+rightPassword+`"}`),
		c.put(t, "/api/user/password", `{"current_password":"`+wrongPassword+`","new_password":"another horse"}`),
		c.put(t, "/api/user/password", `{"current_password":"`+rightPassword+`","new_password":"`+rightPassword+`"}`),
		c.send(t, "DELETE", "/api/user", encodeJSON(`{"password":"`+wrongPassword+`"}`)),
	)
	s.exec(t, "UPDATE users SET permission = 2 WHERE uid = $1", c.uid)
	seen.record(t, c.delete(t, "/api/user"+"?password="+url.QueryEscape(rightPassword)))
	s.exec(t, "UPDATE users SET permission = -1 WHERE uid = $1", c.uid)
	seen.record(t, c.logIn(t, email, rightPassword))
	s.exec(t, "UPDATE users SET permission = 0 WHERE uid = $1", c.uid)

	s.setup.Logins.PerPair = 1 // the failures above have reached it
	blocked := s.serve(t).as(c.token)
	seen.record(t,
		blocked.logIn(t, email, rightPassword),
		blocked.put(t, "/api/user/email", `{"email":"other@example.com","password":"`+rightPassword+`"}`),
		blocked.put(t, "/api/user/password", `{"current_password":"`+rightPassword+`","new_password":"`+rightPassword+`"}`),
		blocked.send(t, "DELETE", "/api/user", encodeJSON(`{"password":"`+rightPassword+`"}`)),
	)
	s.setup = configured

	s.setup.API.Limits.Registrations = 1
	limited := s.serve(t).as(c.token)
	register(limited, `"password":"correct horse"`).isError(t, 409, 2, "email")
	seen.record(t,
		register(limited, `"password":"correct horse"`),
		limited.put(t, "/api/user/email", `{"email":"other@example.com","password":"`+rightPassword+`"}`),
	)
	s.setup = configured

	s.setup.API.Registration = "closed"
	seen.record(t, register(s.serve(t), `"password":"correct horse"`))
	s.setup = configured

	seen.record(t, c.get(t, "/api/user/sessions"), c.delete(t, "/api/user/sessions"))
	c.launcher(t, "launcher", 0)
	ended := "/api/user/sessions/" + c.signIns(t).Launchers[0].ID
	seen.record(t, c.delete(t, ended), c.delete(t, ended))
	again := c.as(c.logIn(t, email, rightPassword).field(t, "token"))
	seen.record(t,
		c.send(t, "POST", "/api/auth/refresh", body{}),
		c.send(t, "POST", "/api/auth/logout", body{}),
		again.send(t, "DELETE", "/api/user", encodeJSON(`{"password":"`+rightPassword+`"}`)),
	)
}

// recordOthers records the responses about notifications, textures, closets, players and the
// document.
func recordOthers(t *testing.T, s *testSite, seen seenResponses) {
	t.Helper()
	configured := s.setup
	c := s.serve(t).signUp(t)
	otherUser := c.signUp(t)

	c.notify(t, "Title", "Content")
	seen.record(t,
		c.get(t, "/api/user/notifications"),
		c.read(t, c.unread(t)[0]),
		c.read(t, "1f7f3f0e-6d3c-4c64-9a52-6f0a3a1f2b7c"),
	)

	seen.record(t, c.sign(t), c.sign(t), c.get(t, "/api/user/score"), c.get(t, "/api/user/score?perPage=101"))

	classic := otherUser.texture(t, "name=A&type=skin", skinFile(t, 1))
	private := otherUser.texture(t, "name=B&type=skin&public=false", skinFile(t, 2))
	const missing = "999999"
	uploaded := c.upload(t, "name=C&type=cape", capeFile(t))
	cape := uploaded.field(t, "data", "tid")
	seen.record(t, uploaded, c.upload(t, "name=C&type=cape", capeFile(t)))
	for _, send := range []func(*testing.T, string, []byte) response{c.upload, c.price} {
		seen.record(t, send(t, "name=C&type=cape", []byte("no PNG")), send(t, "name=C&type=cape", make([]byte, 1<<20+1)))
	}
	seen.record(t, c.price(t, "name=C&type=cape", capeFile(t)))

	addItem := func(c client, tid string) response { return c.post(t, "/api/closet", `{"tid":`+tid+`,"name":"D"}`) }
	seen.record(t,
		addItem(c, classic), addItem(c, classic), addItem(c, private), addItem(c, missing),
		c.post(t, "/api/closet", `{"tid":`+classic+`}`),
		c.get(t, "/api/closet"),
		c.get(t, "/api/closet?perPage=101"),
		c.put(t, "/api/closet/"+classic, `{"name":"E"}`),
		c.put(t, "/api/closet/"+classic, `{}`),
		c.put(t, "/api/closet/"+private, `{"name":"E"}`),
		c.delete(t, "/api/closet/"+private),
		c.delete(t, "/api/closet/"+classic),
	)

	library := "/api/textures/"
	flat := c.texture(t, "name=G&type=steve", capeFile(t))
	twin := c.texture(t, "name=G&type=alex", skinFile(t, 5))
	twins := c.texture(t, "name=G&type=steve", skinFile(t, 5))
	seen.record(t,
		c.get(t, "/api/textures"), c.get(t, "/api/textures?q=ab"),
		c.get(t, library+classic), c.get(t, library+private), c.get(t, library+missing),
		c.put(t, library+flat, `{"name":"H"}`), c.put(t, library+flat, `{}`), c.put(t, library+flat, `{"type":"alex"}`),
		c.put(t, library+cape, `{"type":"steve"}`), c.put(t, library+twin, `{"type":"steve"}`),
		c.put(t, library+classic, `{"name":"H"}`), c.put(t, library+missing, `{"name":"H"}`),
		c.delete(t, library+classic), c.delete(t, library+missing), c.delete(t, library+flat), c.delete(t, library+twin), c.delete(t, library+twins),
	)

	avatar := func(tid string) response { return c.put(t, "/api/user/avatar", `{"tid":`+tid+`}`) }
	seen.record(t, avatar(classic), avatar(private), avatar(missing), avatar(cape))

	add := func(c client, name string) response { return c.post(t, "/api/players", `{"name":"`+name+`"}`) }
	steve, theirs, absent := c.player(t, "Steve"), otherUser.player(t, "Theirs"), "/api/players/"+missing
	seen.record(t, c.get(t, "/api/players"), add(c, "Alex"), add(c, "Steve"), c.post(t, "/api/players", `{}`))
	for _, player := range []string{steve, theirs, absent} {
		seen.record(t,
			c.put(t, player+"/name", `{"name":"Zombie"}`),
			c.put(t, player+"/textures", `{"skin":`+classic+`}`),
			c.delete(t, player+"/textures?skin"),
		)
	}
	seen.record(t,
		c.put(t, steve+"/name", `{"name":"Alex"}`),
		c.put(t, steve+"/name", `{}`),
		c.put(t, steve+"/textures", `{"skin":`+private+`}`),
		c.put(t, steve+"/textures", `{"skin":`+missing+`}`),
		c.put(t, steve+"/textures", `{"skin":`+cape+`}`),
		c.delete(t, steve+"/textures"),
		c.delete(t, theirs), c.delete(t, absent), c.delete(t, steve),
	)

	s.setup.Quotas.Players, s.setup.Quotas.ClosetItems, s.setup.Quotas.Textures = 1, 1, 1
	s.setup.API.Limits.Uploads, s.setup.API.Limits.Prices = 1, 1
	full := s.serve(t).as(c.token)
	seen.record(t, add(full, "Ender"), addItem(full, classic))
	c.delete(t, "/api/closet/"+cape) // else the closet would be full first
	for range 2 {                    // the second time is beyond the limit of the rate
		seen.record(t, full.upload(t, "name=F&type=skin", skinFile(t, 3)), full.price(t, "name=F&type=skin", skinFile(t, 3)))
	}
	s.setup = configured

	s.setup.Scores.Player, s.setup.Scores.ClosetItem, s.setup.Scores.TextureKiB = 5, 5, 5
	poor := s.serve(t).as(c.token)
	seen.record(t, add(poor, "Ender"), addItem(poor, classic), poor.upload(t, "name=F&type=skin", skinFile(t, 3)), poor.price(t, "name=F&type=skin", skinFile(t, 3)))
	s.setup = configured

	for _, e := range mustLoadContract(t).endpoints() {
		if strings.HasPrefix(e.path, "/api/docs") || e.path == "/api/openapi.yaml" || e.path == "/api/site" {
			got := c.get(t, e.path)
			seen.record(t, got, c.send(t, "GET", e.path, body{}, "If-None-Match", got.headerValue("ETag")))
		}
	}
	seen.record(t, c.get(t, "/api"), c.get(t, "/api/docs/0000000000000000/start.js"))
}

// The errors of edge, and those that come before any operation, cannot be triggered here. Their
// messages must at least be in the source code.
func TestOtherDocumentedErrorsAreInSources(t *testing.T) {
	t.Parallel()

	var patterns []*regexp.Regexp
	literal, verb := regexp.MustCompile(`"([A-Z%][^"\\]*[.])"`), regexp.MustCompile(`%[a-z]`)
	for _, root := range []string{".", "../../shared/fault", "../../shared/httpserver", "../../edge"} {
		err := fs.WalkDir(os.DirFS(root), ".", func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(filepath.Join(root, path))
			for _, found := range literal.FindAllSubmatch(source, -1) {
				patterns = append(patterns, regexp.MustCompile("^"+verb.ReplaceAllString(regexp.QuoteMeta(string(found[1])), ".+")+"$"))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	f := func(what string, resp *openapi3.ResponseRef) {
		t.Helper()
		for _, media := range resp.Value.Content {
			examples := []any{media.Example}
			for _, example := range media.Examples {
				examples = append(examples, example.Value.Value)
			}
			for _, example := range examples {
				object, _ := example.(map[string]any)
				message, isProblem := object["message"].(string)
				if !isProblem {
					continue
				}
				if !slices.ContainsFunc(patterns, func(s *regexp.Regexp) bool { return s.MatchString(message) }) {
					t.Errorf("%s: nothing in the sources says %q", what, message)
				}
			}
		}
	}
	document := mustLoadContract(t)
	for _, status := range []int{405, 408, 431} { // the other statuses are documented at operations, too
		f(strconv.Itoa(status), document.Components.Responses[openapitest.CommonResponses[status]])
	}
	for path, item := range document.Paths.Map() {
		if isEdgePath(path) {
			for status, resp := range item.Get.Responses.Map() {
				f(path+" "+status, resp)
			}
		}
	}
}
