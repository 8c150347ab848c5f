package cdnpurge_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/core/cdnpurge"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

const secret = "a secret that cannot be guessed!"

// post is a request to the receiver.
type post struct {
	method, path string
	header       http.Header
	body         string
}

// startReceiver starts a receiver with a handler. It returns the webhook and the requests.
func startReceiver(t *testing.T, answer http.HandlerFunc) (*cdnpurge.Webhook, <-chan post) {
	t.Helper()
	posts := make(chan post, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		testenv.Is(t, err, nil, "the body")
		posts <- post{r.Method, r.URL.RequestURI(), r.Header, string(body)}
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	config := cdnpurge.Config{URL: server.URL + "/purge?token=hunter2", Secret: secret, Timeout: time.Second}
	return testenv.Must(cdnpurge.New(config))(t), posts
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

var position = edgeproto.Cursor{Epoch: "e", Revision: 7}

func TestPost(t *testing.T) {
	t.Parallel()
	h, posts := startReceiver(t, status(http.StatusAccepted))

	f := func(purge cdnpurge.Purge, want string) {
		t.Helper()
		testenv.Do(t, h.Purge(t.Context(), purge))
		got := <-posts
		cmptest.Same(t, got.body, want, "body")
		if got.method != http.MethodPost || got.path != "/purge?token=hunter2" || got.header.Get("Content-Type") != "application/json" || got.header.Get("User-Agent") != "veneer-core" {
			t.Errorf("the post is %+v", got)
		}
		timestamp := got.header.Get(cdnpurge.HeaderTimestamp)
		seconds := testenv.Must(strconv.ParseInt(timestamp, 10, 64))(t)
		testenv.Check(t, time.Since(time.Unix(seconds, 0)) <= time.Minute, "the timestamp is %q", timestamp)
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(timestamp + "." + got.body))
		signature := "sha256=" + hex.EncodeToString(mac.Sum(nil))
		testenv.Equal(t, got.header.Get(cdnpurge.HeaderSignature), signature, "the signature")
	}

	f(cdnpurge.Purge{Cursor: position, Tags: []string{"player-5", "name-steve"}}, `{"epoch":"e","revision":7,"tags":["player-5","name-steve"]}`)
	f(cdnpurge.Purge{Cursor: position, All: true}, `{"epoch":"e","revision":7,"all":true}`)
}

// Every status but 2xx is an error, without the URL, which may contain a token.
func TestFailures(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		answer http.HandlerFunc
		want   string
	}{
		{"a rejection", status(http.StatusForbidden), "the webhook returned 403"},
		{"too many posts", status(http.StatusTooManyRequests), "the webhook returned 429"},
		{"a broken receiver", status(http.StatusInternalServerError), "the webhook returned 500"},
		{"a redirect, which is not followed", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, "the webhook returned 307"},
		{"a closed connection", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
		{"a receiver that hangs", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "deadline exceeded"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h, posts := startReceiver(t, test.answer)
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			err := h.Purge(ctx, cdnpurge.Purge{Cursor: position, All: true})
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%v; want an error with %q and without the token", err, test.want)
			}
			testenv.Equal(t, len(posts), 1, "posts were sent")
		})
	}
}

func TestNewRejectsWrongSettings(t *testing.T) {
	t.Parallel()
	good := cdnpurge.Config{URL: "https://hooks.example.org/purge", Secret: secret, Timeout: time.Second}
	testenv.Must(cdnpurge.New(good))(t)

	f := func(change func(*cdnpurge.Config), want string) {
		t.Helper()
		cfg := good
		change(&cfg)
		_, err := cdnpurge.New(cfg)
		testenv.Check(t, err != nil && strings.HasPrefix(err.Error(), want), "%+v: %v; want %q first", cfg, err, want)
	}

	f(func(c *cdnpurge.Config) { c.URL = "hooks.example.org/purge" }, "URL ")
	f(func(c *cdnpurge.Config) { c.URL = "ftp://hooks.example.org" }, "URL ")
	f(func(c *cdnpurge.Config) { c.URL = "https:///purge" }, "URL ")
	f(func(c *cdnpurge.Config) { c.URL = "https://a b" }, "URL ")
	f(func(c *cdnpurge.Config) { c.Secret = secret[1:] }, "SECRET ")
	f(func(c *cdnpurge.Config) { c.Secret = "" }, "SECRET ")
}
