package httpservertest

import (
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// Response is a response that was read completely.
type Response struct {
	Status int
	Header http.Header
	Body   string
}

// client follows no redirects and does not decompress.
var client = &http.Client{
	Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Get sends a GET request.
func Get(tb testing.TB, url string) Response {
	tb.Helper()
	return Call(tb, client, http.MethodGet, url, nil, "")
}

// Call sends a request with a client; nil stands for one that follows no redirects.
func Call(tb testing.TB, by *http.Client, method, url string, header http.Header, body string) Response {
	tb.Helper()
	if by == nil {
		by = client
	}
	request := testenv.Must(http.NewRequestWithContext(tb.Context(), method, url, strings.NewReader(body)))(tb)
	maps.Copy(request.Header, header)
	response, err := by.Do(request)
	testenv.Do(tb, err)
	defer func() { _ = response.Body.Close() }()
	content := testenv.Must(io.ReadAll(response.Body))(tb)
	return Response{Status: response.StatusCode, Header: response.Header, Body: string(content)}
}
