package httpserver_test

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// silent returns a logger for tests that do not look at the log.
func silent() *slog.Logger { return slog.New(slog.DiscardHandler) }

// exchange returns a request of a peer, without a listener.
func exchange(peer net.Addr) *fasthttp.RequestCtx {
	var rc fasthttp.RequestCtx
	rc.Init(&fasthttp.Request{}, peer, nil)
	return &rc
}

func TestWriteErrorStatusAndCode(t *testing.T) {
	t.Parallel()
	type answer struct{ status, code int }
	want := map[fault.Kind]answer{
		fault.Internal:           {500, 10},
		fault.Refused:            {403, 1},
		fault.Duplicate:          {409, 2},
		fault.NotFound:           {404, 3},
		fault.MethodNotAllowed:   {405, 3},
		fault.Invalid:            {422, 4},
		fault.Malformed:          {400, 4},
		fault.TooLarge:           {413, 4},
		fault.HeaderTooLarge:     {431, 4},
		fault.UnsupportedMedia:   {415, 4},
		fault.PreconditionFailed: {412, 1},
		fault.Timeout:            {408, 4},
		fault.Unauthenticated:    {401, 5},
		fault.Forbidden:          {403, 6},
		fault.ScoreTooLow:        {403, 7},
		fault.TooMany:            {429, 8},
		fault.Unavailable:        {503, 9},
		fault.Banned:             {403, -1},
	}
	for kind := fault.Internal; kind <= fault.Banned; kind++ {
		rc := exchange(nil)
		httpserver.WriteError(rc, fault.New(kind, "A sentence."))

		var body struct{ Code int }
		testenv.Do(t, json.Unmarshal(rc.Response.Body(), &body))
		testenv.Equal(t, answer{rc.Response.StatusCode(), body.Code}, want[kind], "a %v fault is answered with", kind)
	}
}

func TestWriteErrorBody(t *testing.T) {
	t.Parallel()
	f := func(err error, want string) {
		t.Helper()
		rc := exchange(nil)
		httpserver.WriteError(rc, err)
		cmptest.Same(t, string(rc.Response.Body()), want, "the answer to %v", err)
		testenv.Equal(t, string(rc.Response.Header.ContentType()), "application/json; charset=utf-8",
			"the Content-Type of the answer to %v", err)
	}

	f(fault.New(fault.NotFound, "There is no texture 7."), `{"code":3,"message":"There is no texture 7."}`)
	f(fault.Field("name", "The name is too long."), `{"code":4,"message":"The name is too long.","errors":{"name":["The name is too long."]}}`)
	f(&fault.Error{Kind: fault.Duplicate, Message: "It exists.", Data: map[string]int{"tid": 7}}, `{"code":2,"message":"It exists.","data":{"tid":7}}`)
	f(&fault.Error{Kind: fault.Forbidden, Message: "No.", Cause: errors.New("secret")}, `{"code":6,"message":"No."}`)
	f(errors.New("secret"), `{"code":10,"message":"Something went wrong on our side."}`)
	// A fault that cannot be encoded is an internal error.
	f(&fault.Error{Kind: fault.Duplicate, Message: "It exists.", Data: func() {}}, `{"code":10,"message":"Something went wrong on our side."}`)
}

func TestWriteErrorHeaders(t *testing.T) {
	t.Parallel()
	f := func(err error, header, want string) {
		t.Helper()
		rc := exchange(nil)
		httpserver.WriteError(rc, err)
		testenv.Equal(t, string(rc.Response.Header.Peek(header)), want, "%s of the answer to %v", header, err)
	}

	f(fault.New(fault.Unauthenticated, "Sign in."), "WWW-Authenticate", "Bearer")
	f(fault.New(fault.Forbidden, "No."), "WWW-Authenticate", "")
	f(fault.New(fault.Forbidden, "No."), "Cache-Control", "no-store")

	// Seconds are rounded up, so that clients do not come back too early.
	wait := func(d time.Duration) error { return &fault.Error{Kind: fault.TooMany, Message: "Wait.", RetryAfter: d} }
	f(wait(0), "Retry-After", "")
	f(wait(time.Nanosecond), "Retry-After", "1")
	f(wait(time.Second), "Retry-After", "1")
	f(wait(1001*time.Millisecond), "Retry-After", "2")
	f(wait(15*time.Minute), "Retry-After", "900")
	f(fault.NewUnavailable("database", io.EOF), "Retry-After", "1")
}

func TestWriteErrorKeepsCacheControl(t *testing.T) {
	t.Parallel()
	rc := exchange(nil)
	rc.Response.Header.Set("Cache-Control", "public, max-age=15")
	httpserver.WriteError(rc, fault.New(fault.NotFound, "There is no such player."))
	testenv.Equal(t, string(rc.Response.Header.Peek("Cache-Control")), "public, max-age=15", "Cache-Control")
}
