package httpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/sieve"
)

// responseByKind is the only place that maps a kind of fault to a status and a code.
var responseByKind = map[fault.Kind]struct{ status, code int }{
	fault.Internal:           {fasthttp.StatusInternalServerError, 10},
	fault.Refused:            {fasthttp.StatusForbidden, 1},
	fault.Duplicate:          {fasthttp.StatusConflict, 2},
	fault.NotFound:           {fasthttp.StatusNotFound, 3},
	fault.MethodNotAllowed:   {fasthttp.StatusMethodNotAllowed, 3},
	fault.Invalid:            {fasthttp.StatusUnprocessableEntity, 4},
	fault.Malformed:          {fasthttp.StatusBadRequest, 4},
	fault.TooLarge:           {fasthttp.StatusRequestEntityTooLarge, 4},
	fault.HeaderTooLarge:     {fasthttp.StatusRequestHeaderFieldsTooLarge, 4},
	fault.UnsupportedMedia:   {fasthttp.StatusUnsupportedMediaType, 4},
	fault.PreconditionFailed: {fasthttp.StatusPreconditionFailed, 1},
	fault.Timeout:            {fasthttp.StatusRequestTimeout, 4},
	fault.Unauthenticated:    {fasthttp.StatusUnauthorized, 5},
	fault.Forbidden:          {fasthttp.StatusForbidden, 6},
	fault.ScoreTooLow:        {fasthttp.StatusForbidden, 7},
	fault.TooMany:            {fasthttp.StatusTooManyRequests, 8},
	fault.Unavailable:        {fasthttp.StatusServiceUnavailable, 9},
	fault.Banned:             {fasthttp.StatusForbidden, -1},
}

// errorResponses counts error responses by kind, with one counter per kind.
var errorResponses = func() map[fault.Kind]prometheus.Counter {
	all := promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "veneer_error_responses_total", Help: "Error responses by kind, with its status and code.",
	}, []string{"status", "code", "kind"})
	counters := make(map[fault.Kind]prometheus.Counter, len(responseByKind))
	for kind, response := range responseByKind {
		counters[kind] = all.WithLabelValues(strconv.Itoa(response.status), strconv.Itoa(response.code), kind.String())
	}
	return counters
}()

// errorBody is the JSON body of error responses.
type errorBody struct {
	Code    int                 `json:"code"`
	Message string              `json:"message"`
	Errors  map[string][]string `json:"errors,omitempty"`
	Data    any                 `json:"data,omitempty"`
}

// WriteJSON answers with a status and a JSON body. It does not escape HTML, which has no
// meaning in JSON, and sets no caching headers.
func WriteJSON(rc *fasthttp.RequestCtx, status int, body any) error {
	encoded, err := encodeJSON(body)
	if err != nil {
		return err
	}
	rc.SetStatusCode(status)
	rc.Response.Header.SetContentTypeBytes(jsonContentType)
	rc.SetBody(encoded)
	return nil
}

var contentTypeName, jsonContentType = []byte(fasthttp.HeaderContentType), []byte("application/json; charset=utf-8")

func encodeJSON(body any) ([]byte, error) {
	var encoded bytes.Buffer
	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(encoded.Bytes(), []byte("\n")), nil
}

// WriteError answers a failed request, and has its cause logged if operators must know it.
// Headers that were set before stay; Cache-Control is set to no-store if it is not set.
func WriteError(rc *fasthttp.RequestCtx, err error) {
	noStore := len(rc.Response.Header.Peek(fasthttp.HeaderCacheControl)) == 0
	status, body, err := prepareError(ResponseTo(rc), noStore, err)
	r := stateOf(rc)
	if r != nil && r.instr.ErrorFormat != nil {
		if ownStatus, content := r.instr.ErrorFormat(rc.Path(), fault.Of(err)); content != nil {
			status = ownStatus
			// Without it the body is the standard one.
			if formatted, encodeErr := encodeJSON(content); encodeErr == nil {
				body = formatted
			}
			if status != fasthttp.StatusUnauthorized {
				rc.Response.Header.Del(fasthttp.HeaderWWWAuthenticate)
			}
		}
	}
	rc.SetStatusCode(status)
	rc.SetBody(body)
	if kind := fault.KindOf(err); r != nil && (kind == fault.Internal || kind == fault.Unavailable) {
		r.cause = err
	}
}

// ErrorFormat returns the status and the JSON body of the error response to a request for a path,
// for an API with error bodies of its own. A nil body stands for the standard response. The path is
// RequestCtx.Path, or "/" if the head of the request could not be read.
type ErrorFormat func(path []byte, f *fault.Error) (status int, body any)

// StatusOf returns the status of the response to a fault.
func StatusOf(f *fault.Error) int { return responseByKind[f.Kind].status }

// Response is the response of the server or of the fast path.
type Response interface {
	// SetCanonical sets a header; the name must be in its canonical form.
	SetCanonical(name, value []byte)
	SetStatusCode(status int)
	// SetBody sets a body that must not change until the request is answered.
	SetBody(body []byte)
	// SetBodyRaw sets a body that must never change.
	SetBodyRaw(body []byte)
	// SetRoute sets the route under which the request is counted.
	SetRoute(route *Route)
}

// ResponseTo returns the server's response to a request.
func ResponseTo(rc *fasthttp.RequestCtx) Response { return serverResponse{rc} }

type serverResponse struct{ *fasthttp.RequestCtx }

func (r serverResponse) SetCanonical(name, value []byte) { r.Response.Header.SetCanonical(name, value) }
func (r serverResponse) SetBodyRaw(body []byte)          { r.Response.SetBodyRaw(body) }
func (r serverResponse) SetRoute(route *Route)           { route.AssignTo(r.RequestCtx) }

// prepareError sets the headers of an error response and counts it. It returns the status,
// the body, and the error that is answered in the end.
func prepareError(res Response, noStore bool, err error) (status int, body []byte, failed error) {
	f := fault.Of(err)
	response := responseByKind[f.Kind]
	body, encodeErr := errorBodyOf(f)
	if encodeErr != nil {
		return prepareError(res, noStore, fmt.Errorf("encode the answer %q: %w", f.Message, encodeErr))
	}
	errorResponses[f.Kind].Inc()
	res.SetCanonical(contentTypeName, jsonContentType)
	if f.RetryAfter > 0 {
		res.SetCanonical([]byte(fasthttp.HeaderRetryAfter), strconv.AppendInt(nil, int64(math.Ceil(f.RetryAfter.Seconds())), 10))
	}
	if f.Kind == fault.Unauthenticated {
		res.SetCanonical([]byte("Www-Authenticate"), []byte("Bearer"))
	}
	if noStore {
		res.SetCanonical([]byte(fasthttp.HeaderCacheControl), []byte("no-store"))
	}
	return response.status, body, err
}

// errorBodyKey identifies a cached error body.
type errorBodyKey struct {
	kind    fault.Kind
	message string
}

// errorBodies caches the bodies of errors that may be very frequent: that something does not
// exist, or that a dependency is busy or down. There are few different ones.
var errorBodies = struct {
	sync.RWMutex
	*sieve.Cache[errorBodyKey, []byte]
}{Cache: sieve.New[errorBodyKey, []byte](64)}

// errorBodyOf returns the JSON body of a fault.
func errorBodyOf(f *fault.Error) ([]byte, error) {
	isCached := (f.Kind == fault.Unavailable || f.Kind == fault.NotFound) && f.Fields == nil && f.Data == nil
	key := errorBodyKey{f.Kind, f.Message}
	if isCached {
		errorBodies.RLock()
		body := errorBodies.Get(key)
		errorBodies.RUnlock()
		if body != nil {
			return *body, nil
		}
	}
	body, err := encodeJSON(errorBody{responseByKind[f.Kind].code, f.Message, f.Fields, f.Data})
	if isCached && err == nil {
		errorBodies.Lock()
		errorBodies.Put(key, body, 1)
		errorBodies.Unlock()
	}
	return body, err
}
