package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/fault"
)

// answers is the one place where a kind of fault meets a status and a code.
var answers = map[fault.Kind]struct{ status, code int }{
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

// refused counts failed requests by kind, one counter made for each at start.
var refused = func() map[fault.Kind]*metrics.Counter {
	counters := make(map[fault.Kind]*metrics.Counter, len(answers))
	for kind, answer := range answers {
		counters[kind] = metrics.NewCounter(fmt.Sprintf("veneer_refused_total{status=%q,code=%q,kind=%q}",
			strconv.Itoa(answer.status), strconv.Itoa(answer.code), kind))
	}
	return counters
}()

// problem is the body of every answer that says no.
type problem struct {
	Code    int                 `json:"code"`
	Message string              `json:"message"`
	Errors  map[string][]string `json:"errors,omitempty"`
	Data    any                 `json:"data,omitempty"`
}

// JSON answers with a status and a body. Texts are written as they are: HTML in
// them is no HTML in JSON. It sets no caching headers.
func JSON(rc *fasthttp.RequestCtx, status int, body any) error {
	var encoded bytes.Buffer
	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		return err
	}
	rc.SetStatusCode(status)
	rc.SetContentType("application/json; charset=utf-8")
	rc.SetBody(bytes.TrimSuffix(encoded.Bytes(), []byte("\n")))
	return nil
}

// Refuse answers a request that failed, and has its cause logged if an operator
// must look into it. Headers that were set before stay, but what is not
// cacheable by an earlier word is no-store.
func Refuse(rc *fasthttp.RequestCtx, err error) {
	f := fault.Of(err)
	answer := answers[f.Kind]
	if err := JSON(rc, answer.status, problem{answer.code, f.Message, f.Fields, f.Data}); err != nil {
		Refuse(rc, fmt.Errorf("encode the answer %q: %w", f.Message, err))
		return
	}
	refused[f.Kind].Inc()
	if r := recordOf(rc); r != nil && (f.Kind == fault.Internal || f.Kind == fault.Unavailable) {
		r.cause = err
	}

	header := &rc.Response.Header
	if f.RetryAfter > 0 {
		header.Set(fasthttp.HeaderRetryAfter, strconv.Itoa(int(math.Ceil(f.RetryAfter.Seconds()))))
	}
	if f.Kind == fault.Unauthenticated {
		header.Set(fasthttp.HeaderWWWAuthenticate, "Bearer")
	}
	if len(header.Peek(fasthttp.HeaderCacheControl)) == 0 {
		header.Set(fasthttp.HeaderCacheControl, "no-store")
	}
}
