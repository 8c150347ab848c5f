package site

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Client is a client of a site's API, for one user or none.
type Client struct {
	Base  string       // base URL of a core or an edge
	Token string       // of the user; empty for none
	HTTP  *http.Client // nil for the default one
}

// Answer is a response of the API, as far as tests need it.
type Answer struct {
	Code  int
	Token string
	Data  struct {
		Texture
		PID   int
		Skin  int `json:"tid_skin"`
		Token string
	}
}

// Texture is a texture that was uploaded.
type Texture struct {
	TID  int
	Hash string
}

// Try sends a request and returns the response. The error is one of the connection.
func (c *Client) Try(ctx context.Context, method, path, contentType string, body []byte) (status int, content []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, method, c.Base+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.GetBody = nil // a write that may have been committed is not repeated
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	if c.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.Token)
	}
	response, err := cmp.Or(c.HTTP, http.DefaultClient).Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	content, err = io.ReadAll(response.Body)
	return response.StatusCode, content, err
}

// Do sends a JSON body, nil for none, and returns the status and the body of the response.
func (c *Client) Do(tb testing.TB, method, path string, body any) (status int, content string) {
	tb.Helper()
	contentType, encoded := "", []byte(nil)
	if body != nil {
		contentType = "application/json"
		encoded = testenv.Must(json.Marshal(body))(tb)
	}
	status, read, err := c.Try(tb.Context(), method, path, contentType, encoded)
	if err != nil {
		tb.Error(err)
	}
	return status, string(read)
}

// Call sends a JSON body, nil for none. The test fails unless that succeeds.
func (c *Client) Call(tb testing.TB, method, path string, body any) (answer Answer) {
	tb.Helper()
	status, content := c.Do(tb, method, path, body)
	decode(tb, method+" "+path, status, []byte(content), &answer)
	return answer
}

// Get decodes a response, which must be a success.
func (c *Client) Get(tb testing.TB, path string, into any) {
	tb.Helper()
	status, content := c.Do(tb, http.MethodGet, path, nil)
	decode(tb, path, status, []byte(content), into)
}

// decode decodes the body of a response, which must be a success.
func decode(tb testing.TB, request string, status int, content []byte, into any) {
	tb.Helper()
	var err error
	if len(content) > 0 {
		err = json.Unmarshal(content, into)
	}
	if answer, ok := into.(*Answer); err != nil || status/100 != 2 || ok && answer.Code != 0 {
		tb.Fatalf("%s: %d %s %v", request, status, content, err)
	}
}

// Upload uploads a texture.
func (c *Client) Upload(tb testing.TB, name string, as skin.Type, sheet skin.Sheet) Texture {
	tb.Helper()
	status, content, err := c.Try(tb.Context(), http.MethodPost, "/api/textures", UploadType, SheetForm(name, as, sheet))
	testenv.Do(tb, err)
	var answer Answer
	decode(tb, "upload "+name, status, content, &answer)
	return answer.Data.Texture
}

// AddPlayer adds a player and returns its number.
func (c *Client) AddPlayer(tb testing.TB, name string) (pid int) {
	tb.Helper()
	return c.Call(tb, http.MethodPost, "/api/players", map[string]any{"name": name}).Data.PID
}

// SetSkin sets the skin of a player, and returns the one that it has then.
func (c *Client) SetSkin(tb testing.TB, pid, tid int) (skin int) {
	tb.Helper()
	return c.Call(tb, http.MethodPut, fmt.Sprintf("/api/players/%d/textures", pid), map[string]any{"skin": tid}).Data.Skin
}

// LogIn replaces the token.
func (c *Client) LogIn(tb testing.TB, email, password string) {
	tb.Helper()
	c.Token = c.Call(tb, http.MethodPost, "/api/auth/login", map[string]any{"email": email, "password": password}).Token
}
