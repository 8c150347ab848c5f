package api_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
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
	"github.com/veneer-skins/veneer/core/clientapi"
	"github.com/veneer-skins/veneer/core/clientapi/openapitest"
	"github.com/veneer-skins/veneer/core/coretest"
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
	text := testenv.Must(json.Marshal(e.exampleFields()))(t)
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
		method, target, _ := strings.Cut(a.Request(), " ")
		path, _, _ := strings.Cut(target, "?")
		item, _ := mustLoadContract(t).Find(path)
		if item == nil || item.Operations()[method] == nil {
			t.Fatalf("%s is not documented", a.Request())
		}
		var seen any
		_ = json.Unmarshal(a.Body, &seen) // some responses are no JSON
		key := responseKey(item.Operations()[method], strconv.Itoa(a.Status))
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
	text := testenv.Must(json.Marshal(seen))(t)
	return code + " " + numbers.ReplaceAllString(string(text), "0")
}

// sendTooLarge sends the header block of a request with a Content-Length beyond every limit, and
// the first byte of the body. It half-closes the connection, so that the server does not wait for
// the rest.
func sendTooLarge(t *testing.T, address, token, method, path string) response {
	t.Helper()
	conn := testenv.Must(net.Dial("tcp", address))(t)
	defer func() { _ = conn.Close() }()
	testenv.Must(fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: veneer.test\r\nAuthorization: Bearer %s\r\n"+
		"Content-Length: 2000000\r\n\r\n{", method, path, token))(t)
	if half, ok := conn.(*net.TCPConn); !ok || half.CloseWrite() != nil {
		t.Fatal("the connection cannot be closed by half")
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	testenv.Do(t, err)
	defer func() { _ = resp.Body.Close() }()
	content := testenv.Must(io.ReadAll(resp.Body))(t)
	r := response{Exchange: openapitest.Exchange{Method: method, Target: path, Status: resp.StatusCode, Header: resp.Header, Body: content}}
	testenv.Is(t, mustLoadContract(t).Check(r.Exchange), nil, "%s", r.Request())
	return r
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
func recordCommonErrors(t *testing.T, s testSite, seen seenResponses) {
	t.Helper()
	document := mustLoadContract(t)
	configured := s.Setup
	c := s.serve(t).signUp(t)
	c.permit(t, core.SuperAdministrator) // gets no 403 before the body is read
	banned := c.signUp(t)
	s.Exec(t, "UPDATE users SET permission = -1 WHERE uid = $1", banned.UID)

	address := coretest.Listen(t, c.Server)

	s.Setup.API.Limits = clientapi.Limits{Requests: 1, RequestsBurst: 1}
	limited := s.serve(t).as(c.Token)
	hasRateLimit(t, limited.Get(t, "/api/user"), 200, rateLimit{"1", "0", "1", ""})
	limited.as("").Get(t, "/api/docs")
	s.Setup = configured

	dbClosed := s.serve(t).as(c.Token)
	dbClosed.Domain.DB.Close()

	clock := func() time.Time { panic("BUG: the clock has stopped") }
	broken := testenv.Must(api.New(s.Options(), api.Services{}, api.Config{
		Registration: "open", CORSOrigins: []string{"*"}, Limits: clientapi.Limits{Requests: 1, RequestsBurst: 1},
	}, 0, clock))(t)
	panicking := client{coretest.Client{Server: broken.HTTP(), Check: checkResponse}, s}.from(t, "0.0.0.0")

	for _, e := range document.endpoints() {
		lists := func(status int) bool { return e.Responses.Status(status) != nil }
		f := func(a response, status int) {
			t.Helper()
			seen.record(t, a)
			a.HasStatus(t, status)
		}

		a := panicking.Send(t, e.method, e.path, body{}, "Origin", "https://skins.example")
		f(a, 500)
		testenv.Equal(t, a.Header.Get("Access-Control-Allow-Origin"), "*", "%s: who may read a failure", a.Request())
		f(limited.Send(t, e.method, e.path, body{}), 429)
		if lists(503) {
			f(dbClosed.Send(t, e.method, e.path, e.example(t)), 503)
		}
		if lists(401) && e.OperationID != "login" {
			token := ""
			if e.Security != nil && isOptional(*e.Security) {
				token = "none that works"
			}
			f(c.as(token).Send(t, e.method, e.path, body{}), 401)
		}
		if lists(403) && lists(401) && e.OperationID != "login" {
			f(banned.Send(t, e.method, e.path, body{}), 403)
		}
		if e.RequestBody == nil {
			continue
		}
		malformed := encodeJSON(`{`)
		if e.RequestBody.Value.Content.Get(malformed.ContentType) == nil {
			malformed = raw("multipart/form-data; boundary=x", "{")
		}
		f(c.Send(t, e.method, e.path, malformed), 400)
		f(c.Send(t, e.method, e.path, raw("text/plain", "x")), 415)
		f(sendTooLarge(t, address, c.Token, e.method, e.path), 413)
	}
}

// recordAccounts records the responses to log-ins, registrations and changes of accounts.
func recordAccounts(t *testing.T, s testSite, seen seenResponses) {
	t.Helper()
	configured := s.Setup
	c := s.serve(t).signUp(t)
	email := fmt.Sprintf("user%d@example.com", s.Users.Load())
	c.withPassword(t, rightPassword)
	register := func(c client, fields string) response {
		return c.Post(t, "/api/auth/register", `{"email":"zoe@example.com","nickname":"Zoë",`+fields+`}`)
	}

	seen.record(t,
		c.logIn(t, email, rightPassword),
		c.logIn(t, email, wrongPassword),
		c.Post(t, "/api/auth/login", `{"email":"a@example.com"}`),
		register(c, `"password":"correct horse"`),
		register(c, `"password":"correct horse"`),
		register(c, `"password":"1234567"`),
		c.Get(t, "/api/user"),
		c.Put(t, "/api/user", `{"nickname":"Demo"}`),
		c.Put(t, "/api/user", `{}`),
		c.Put(t, "/api/user/email", `{"email":"zoe@example.com","password":"`+rightPassword+`"}`),
		c.Put(t, "/api/user/email", `{"email":"other@example.com","password":"`+wrongPassword+`"}`),
		c.Put(t, "/api/user/email", `{"email":"`+email+`","password":"`+rightPassword+`"}`),
		c.Put(t, "/api/user/password", `{"current_password":"`+wrongPassword+`","new_password":"another horse"}`),
		c.Put(t, "/api/user/password", `{"current_password":"`+rightPassword+`","new_password":"`+rightPassword+`"}`),
		c.Send(t, "DELETE", "/api/user", encodeJSON(`{"password":"`+wrongPassword+`"}`)),
	)
	s.Exec(t, "UPDATE users SET permission = 2 WHERE uid = $1", c.UID)
	seen.record(t, c.Delete(t, "/api/user"+"?password="+url.QueryEscape(rightPassword)))
	s.Exec(t, "UPDATE users SET permission = -1 WHERE uid = $1", c.UID)
	seen.record(t, c.logIn(t, email, rightPassword))
	s.Exec(t, "UPDATE users SET permission = 0 WHERE uid = $1", c.UID)

	s.Setup.Logins.PerPair = 1 // the failures above have reached it
	blocked := s.serve(t).as(c.Token)
	seen.record(t,
		blocked.logIn(t, email, rightPassword),
		blocked.Put(t, "/api/user/email", `{"email":"other@example.com","password":"`+rightPassword+`"}`),
		blocked.Put(t, "/api/user/password", `{"current_password":"`+rightPassword+`","new_password":"`+rightPassword+`"}`),
		blocked.Send(t, "DELETE", "/api/user", encodeJSON(`{"password":"`+rightPassword+`"}`)),
	)
	s.Setup = configured

	s.Setup.API.Limits.Registrations = 1
	limited := s.serve(t).as(c.Token)
	register(limited, `"password":"correct horse"`).IsError(t, 409, 2, "email")
	seen.record(t,
		register(limited, `"password":"correct horse"`),
		limited.Put(t, "/api/user/email", `{"email":"other@example.com","password":"`+rightPassword+`"}`),
	)
	s.Setup = configured

	s.Setup.API.Registration = "closed"
	seen.record(t, register(s.serve(t), `"password":"correct horse"`))
	s.Setup = configured

	seen.record(t, c.Get(t, "/api/user/sessions"), c.Delete(t, "/api/user/sessions"))
	c.launcher(t, "launcher", 0)
	ended := "/api/user/sessions/" + c.signIns(t).Launchers[0].ID
	seen.record(t, c.Delete(t, ended), c.Delete(t, ended))
	again := c.as(c.logIn(t, email, rightPassword).Field(t, "token"))
	seen.record(t,
		c.Send(t, "POST", "/api/auth/refresh", body{}),
		c.Send(t, "POST", "/api/auth/logout", body{}),
		again.Send(t, "DELETE", "/api/user", encodeJSON(`{"password":"`+rightPassword+`"}`)),
	)
}

// recordOthers records the responses about notifications, textures, closets, players and the
// document.
func recordOthers(t *testing.T, s testSite, seen seenResponses) {
	t.Helper()
	configured := s.Setup
	c := s.serve(t).signUp(t)
	otherUser := c.signUp(t)

	c.notify(t, "Title", "Content")
	seen.record(t,
		c.Get(t, "/api/user/notifications"),
		c.Get(t, "/api/notifications"), c.Get(t, "/api/notifications?page=0"),
		c.read(t, c.unread(t)[0]),
		c.read(t, "1f7f3f0e-6d3c-4c64-9a52-6f0a3a1f2b7c"),
	)

	seen.record(t, c.sign(t), c.sign(t), c.Get(t, "/api/user/score"), c.Get(t, "/api/user/score?perPage=101"))

	classic := otherUser.texture(t, "name=A&type=skin", skinFile(t, 1))
	private := otherUser.texture(t, "name=B&type=skin&public=false", skinFile(t, 2))
	const missing = "999999"
	uploaded := c.upload(t, "name=C&type=cape", capeFile(t))
	cape := uploaded.Field(t, "data", "tid")
	seen.record(t, uploaded, c.upload(t, "name=C&type=cape", capeFile(t)))
	for _, send := range []func(*testing.T, string, []byte) response{c.upload, c.price} {
		seen.record(t, send(t, "name=C&type=cape", []byte("no PNG")), send(t, "name=C&type=cape", make([]byte, 1<<20+1)))
	}
	seen.record(t, c.price(t, "name=C&type=cape", capeFile(t)))

	addItem := func(c client, tid string) response { return c.Post(t, "/api/closet", `{"tid":`+tid+`,"name":"D"}`) }
	seen.record(t,
		addItem(c, classic), addItem(c, classic), addItem(c, private), addItem(c, missing),
		c.Post(t, "/api/closet", `{"tid":`+classic+`}`),
		c.Get(t, "/api/closet"),
		c.Get(t, "/api/closet?perPage=101"),
		c.Put(t, "/api/closet/"+classic, `{"name":"E"}`),
		c.Put(t, "/api/closet/"+classic, `{}`),
		c.Put(t, "/api/closet/"+private, `{"name":"E"}`),
		c.Delete(t, "/api/closet/"+private),
		c.Delete(t, "/api/closet/"+classic),
	)

	library := "/api/textures/"
	flat := c.texture(t, "name=G&type=steve", capeFile(t))
	twin := c.texture(t, "name=G&type=alex", skinFile(t, 5))
	twins := c.texture(t, "name=G&type=steve", skinFile(t, 5))
	seen.record(t,
		c.Get(t, "/api/textures"), c.Get(t, "/api/textures?q=ab"),
		c.Get(t, library+classic), c.Get(t, library+private), c.Get(t, library+missing),
		c.Put(t, library+flat, `{"name":"H"}`), c.Put(t, library+flat, `{}`), c.Put(t, library+flat, `{"type":"alex"}`),
		c.Put(t, library+cape, `{"type":"steve"}`), c.Put(t, library+twin, `{"type":"steve"}`),
		c.Put(t, library+classic, `{"name":"H"}`), c.Put(t, library+missing, `{"name":"H"}`),
		c.Delete(t, library+classic), c.Delete(t, library+missing), c.Delete(t, library+flat), c.Delete(t, library+twin), c.Delete(t, library+twins),
	)

	avatar := func(tid string) response { return c.Put(t, "/api/user/avatar", `{"tid":`+tid+`}`) }
	seen.record(t, avatar(classic), avatar(private), avatar(missing), avatar(cape))

	add := func(c client, name string) response { return c.Post(t, "/api/players", `{"name":"`+name+`"}`) }
	steve, theirs, absent := c.player(t, "Steve"), otherUser.player(t, "Theirs"), "/api/players/"+missing
	seen.record(t, c.Get(t, "/api/players"), add(c, "Alex"), add(c, "Steve"), c.Post(t, "/api/players", `{}`))
	for _, player := range []string{steve, theirs, absent} {
		seen.record(t,
			c.Put(t, player+"/name", `{"name":"Zombie"}`),
			c.Put(t, player+"/textures", `{"skin":`+classic+`}`),
			c.Delete(t, player+"/textures?skin"),
		)
	}
	seen.record(t,
		c.Put(t, steve+"/name", `{"name":"Alex"}`),
		c.Put(t, steve+"/name", `{}`),
		c.Put(t, steve+"/textures", `{"skin":`+private+`}`),
		c.Put(t, steve+"/textures", `{"skin":`+missing+`}`),
		c.Put(t, steve+"/textures", `{"skin":`+cape+`}`),
		c.Delete(t, steve+"/textures"),
		c.Delete(t, theirs), c.Delete(t, absent), c.Delete(t, steve),
		c.Get(t, "/api/deleted-players"), c.restore(t, absent),
	)

	s.Setup.Quotas.Players, s.Setup.Quotas.ClosetItems, s.Setup.Quotas.Textures = 1, 1, 1
	s.Setup.API.Limits.Uploads, s.Setup.API.Limits.Prices = 1, 1
	full := s.serve(t).as(c.Token)
	seen.record(t, add(full, "Ender"), addItem(full, classic), full.restore(t, steve))
	c.Delete(t, "/api/closet/"+cape) // else the closet would be full first
	for range 2 {                    // the second time is beyond the limit of the rate
		seen.record(t, full.upload(t, "name=F&type=skin", skinFile(t, 3)), full.price(t, "name=F&type=skin", skinFile(t, 3)))
	}
	s.Setup = configured

	s.Setup.Scores.Player, s.Setup.Scores.ClosetItem, s.Setup.Scores.TextureKiB = 5, 5, 5
	poor := s.serve(t).as(c.Token)
	seen.record(t, add(poor, "Ender"), addItem(poor, classic), poor.upload(t, "name=F&type=skin", skinFile(t, 3)), poor.price(t, "name=F&type=skin", skinFile(t, 3)))
	s.Setup = configured

	s.Exec(t, "UPDATE deleted_players SET refund = 5")
	seen.record(t, c.restore(t, steve))
	s.Exec(t, "UPDATE deleted_players SET refund = NULL, name_key = 'alex'")
	seen.record(t, c.restore(t, steve))
	s.Exec(t, "UPDATE deleted_players SET name_key = 'steve'")
	seen.record(t, c.restore(t, steve))

	for _, e := range mustLoadContract(t).endpoints() {
		if strings.HasPrefix(e.path, "/api/docs") || e.path == "/api/openapi.yaml" || e.path == "/api/site" {
			got := c.Get(t, e.path)
			seen.record(t, got, c.Send(t, "GET", e.path, body{}, "If-None-Match", got.Header.Get("ETag")))
		}
	}
	seen.record(t, c.Get(t, "/api"), c.Get(t, "/api/docs/0000000000000000/start.js"))
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
		testenv.Do(t, err)
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
				says := func(s *regexp.Regexp) bool { return s.MatchString(message) }
				testenv.Equal(t, slices.ContainsFunc(patterns, says), true, "%s: the sources say %q", what, message)
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
