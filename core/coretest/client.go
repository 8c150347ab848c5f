package coretest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"mime/multipart"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/clientapi/openapitest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Client sends requests to a server, with a token if it is signed in.
type Client struct {
	Domain Domain
	Server *fasthttp.Server
	HTTP   *fasthttp.HostClient
	Root   string                         // before the path of each request
	Check  func(t *testing.T, r Response) // what holds for every response
	Token  string
	UID    core.UserID
}

// From returns a client that connects from an address. Its first request starts the server, as
// Listen sets limits of a server that does not serve yet.
func (c Client) From(t *testing.T, address string) Client {
	t.Helper()
	listener := fasthttputil.NewInmemoryListener()
	peer := net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(address), 1024))
	serve := sync.OnceFunc(func() { Serve(t, c.Server, addrListener{listener, peer}) })
	c.HTTP = &fasthttp.HostClient{
		Addr:                   "veneer.test",
		DisablePathNormalizing: true,
		Dial: func(string) (net.Conn, error) {
			serve()
			return listener.Dial()
		},
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

// HomeNetwork is the client network of test users' log-ins.
var HomeNetwork = netip.MustParsePrefix("192.0.2.1/32")

// AddUser adds a user. The hash of a password may be any text: making one takes time.
func (s *Site) AddUser(t *testing.T, d Domain, passwordHash string, isVerified bool) core.User {
	t.Helper()
	email := fmt.Sprintf("user%d@example.com", s.Users.Add(1))
	return testenv.Must(d.DB.CreateUser(t.Context(), core.Registrant, core.NewUser{
		Email: email, EmailKey: email, Nickname: "Somebody", PasswordHash: passwordHash, Verified: isVerified,
	}))(t)
}

// OpenSession opens a session of a user, and returns its token.
func (d Domain) OpenSession(t *testing.T, user core.User, passwordHash string) string {
	t.Helper()
	proof := core.VerifiedCredentials{Credentials: core.Credentials{User: user, PasswordHash: passwordHash}}
	return testenv.Must(d.Sessions.Open(t.Context(), proof, core.Origin{Network: HomeNetwork}))(t).Token
}

// Body is a request's body and its content type.
type Body = openapitest.Body

// Raw returns a body of a type.
func Raw(contentType, content string) Body {
	return Body{ContentType: contentType, Content: []byte(content)}
}

// JSON returns a JSON body: a text as it is, and any other value encoded.
func JSON(value any) Body {
	text, ok := value.(string)
	if !ok {
		encoded, err := json.Marshal(value)
		if err != nil {
			panic(err)
		}
		text = string(encoded)
	}
	return Raw("application/json", text)
}

// Form returns the body of a form.
func Form(text string) Body { return Raw("application/x-www-form-urlencoded", text) }

// Multipart returns a multipart form with the values of a query, and with a file unless that is nil.
func Multipart(t *testing.T, text string, file []byte) Body {
	t.Helper()
	values := testenv.Must(url.ParseQuery(text))(t)
	var content bytes.Buffer
	w := multipart.NewWriter(&content)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		for _, value := range values[name] {
			testenv.Do(t, w.WriteField(name, value))
		}
	}
	if file != nil {
		testenv.Must(testenv.Must(w.CreateFormFile("file", "texture.png"))(t).Write(file))(t)
	}
	testenv.Do(t, w.Close())
	return Body{ContentType: w.FormDataContentType(), Content: content.Bytes()}
}

// Send sends a request and checks what holds for every response. headers are pairs of name and
// value; all with one name are sent.
func (c Client) Send(t *testing.T, method, path string, body Body, headers ...string) Response {
	t.Helper()
	got := testenv.Must(c.Exchange(method, path, body, headers...))(t)
	c.Check(t, got)
	return got
}

// Exchange sends a request and returns the response unchecked.
func (c Client) Exchange(method, path string, body Body, headers ...string) (Response, error) {
	request, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(resp)
	request.Header.SetNoDefaultContentType(true)
	request.Header.SetMethod(method)
	request.SetRequestURI("http://veneer.test" + c.Root + path)
	if c.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.Token)
	}
	if body.Content != nil {
		request.SetBody(body.Content)
	}
	if body.ContentType != "" {
		request.Header.SetContentType(body.ContentType)
	}
	request.UseHostHeader = true // it may be among headers
	for i := 0; i < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	if err := c.HTTP.Do(request, resp); err != nil {
		return Response{}, err
	}
	return NewResponse(method, c.Root+path, body, resp), nil
}

// NewResponse returns the response to a request.
func NewResponse(method, target string, sent Body, resp *fasthttp.Response) Response {
	resp.Header.SetNoDefaultContentType(true)
	header := http.Header{}
	for name, value := range resp.Header.All() {
		header.Add(string(name), string(value))
	}
	return Response{openapitest.Exchange{
		Method: method, Target: target, Sent: sent, Status: resp.StatusCode(), Header: header, Body: bytes.Clone(resp.Body()),
	}}
}

// AtOnce posts n bodies at once, and returns how many responses have each status.
func (c Client) AtOnce(t *testing.T, n int, path string, bodyOf func(i int) Body) map[int]int {
	t.Helper()
	responses, errs := make([]Response, n), make([]error, n)
	var requests sync.WaitGroup
	for i := range n {
		sent := bodyOf(i)
		requests.Go(func() { responses[i], errs[i] = c.Exchange("POST", path, sent) })
	}
	requests.Wait()
	statuses := map[int]int{}
	for i, got := range responses {
		testenv.Do(t, errs[i])
		statuses[got.Status]++
	}
	return statuses
}

// Get sends GET.
func (c Client) Get(t *testing.T, path string) Response {
	t.Helper()
	return c.Send(t, "GET", path, Body{})
}

// Post sends POST with a JSON body.
func (c Client) Post(t *testing.T, path string, value any) Response {
	t.Helper()
	return c.Send(t, "POST", path, JSON(value))
}

// Put sends PUT with a JSON body.
func (c Client) Put(t *testing.T, path string, value any) Response {
	t.Helper()
	return c.Send(t, "PUT", path, JSON(value))
}

// Delete sends DELETE.
func (c Client) Delete(t *testing.T, path string) Response {
	t.Helper()
	return c.Send(t, "DELETE", path, Body{})
}

// HexID returns a UUID without hyphens.
func HexID(id uuid.UUID) string { return fmt.Sprintf("%x", id[:]) }
