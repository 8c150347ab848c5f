package serve

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
var refused = func() map[fault.Kind]prometheus.Counter {
	all := promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "veneer_refused_total", Help: "Failed requests by kind, with the status and the code that answer it.",
	}, []string{"status", "code", "kind"})
	counters := make(map[fault.Kind]prometheus.Counter, len(answers))
	for kind, answer := range answers {
		counters[kind] = all.WithLabelValues(strconv.Itoa(answer.status), strconv.Itoa(answer.code), kind.String())
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
	encoded, err := encode(body)
	if err != nil {
		return err
	}
	rc.SetStatusCode(status)
	rc.Response.Header.SetContentTypeBytes(typeJSON)
	rc.SetBody(encoded)
	return nil
}

var contentType, typeJSON = []byte(fasthttp.HeaderContentType), []byte("application/json; charset=utf-8")

func encode(body any) ([]byte, error) {
	var encoded bytes.Buffer
	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(encoded.Bytes(), []byte("\n")), nil
}

// Refuse answers a request that failed, and has its cause logged if an operator
// must look into it. Headers that were set before stay, but what is not
// cacheable by an earlier word is no-store.
func Refuse(rc *fasthttp.RequestCtx, err error) {
	noStore := len(rc.Response.Header.Peek(fasthttp.HeaderCacheControl)) == 0
	status, body, err := refuse(ResponseTo(rc), noStore, err)
	rc.SetStatusCode(status)
	rc.SetBody(body)
	if kind := fault.KindOf(err); kind == fault.Internal || kind == fault.Unavailable {
		if r := recordOf(rc); r != nil {
			r.cause = err
		}
	}
}

// Response is what a response is written to, the server's or one of the fast path.
type Response interface {
	// SetCanonical sets a field, whose name is in its canonical form.
	SetCanonical(name, value []byte)
	SetStatusCode(status int)
	// SetBody sets a body that stays as it is until the request is answered.
	SetBody(body []byte)
	// SetBodyRaw sets a body that never changes.
	SetBodyRaw(body []byte)
	// Claim says which route the request is counted under.
	Claim(route *Route)
}

// ResponseTo returns the server's response to a request.
func ResponseTo(rc *fasthttp.RequestCtx) Response { return serverResponse{rc} }

type serverResponse struct{ *fasthttp.RequestCtx }

func (r serverResponse) SetCanonical(name, value []byte) { r.Response.Header.SetCanonical(name, value) }
func (r serverResponse) SetBodyRaw(body []byte)          { r.Response.SetBodyRaw(body) }
func (r serverResponse) Claim(route *Route)              { route.Claim(r.RequestCtx) }

// refuse sets what is said of a failure, counts it, and returns how to answer it, and
// what has failed in the end.
func refuse(to Response, noStore bool, err error) (status int, body []byte, failed error) {
	f := fault.Of(err)
	answer := answers[f.Kind]
	body, unfit := bodyOf(f)
	if unfit != nil {
		return refuse(to, noStore, fmt.Errorf("encode the answer %q: %w", f.Message, unfit))
	}
	refused[f.Kind].Inc()
	to.SetCanonical(contentType, typeJSON)
	if f.RetryAfter > 0 {
		to.SetCanonical([]byte(fasthttp.HeaderRetryAfter), strconv.AppendInt(nil, int64(math.Ceil(f.RetryAfter.Seconds())), 10))
	}
	if f.Kind == fault.Unauthenticated {
		to.SetCanonical([]byte("Www-Authenticate"), []byte("Bearer"))
	}
	if noStore {
		to.SetCanonical([]byte(fasthttp.HeaderCacheControl), []byte("no-store"))
	}
	return answer.status, body, err
}

// sentence is what a body says.
type sentence struct {
	kind    fault.Kind
	message string
}

// bodies are those of answers of which there may be very many: that something does not
// exist, or that a dependency is busy or away. There are few different ones.
var bodies = struct {
	sync.RWMutex
	*sieve.Cache[sentence, []byte]
}{Cache: sieve.New[sentence, []byte](64)}

// bodyOf returns the body that says what a fault does.
func bodyOf(f *fault.Error) ([]byte, error) {
	isOften := (f.Kind == fault.Unavailable || f.Kind == fault.NotFound) && f.Fields == nil && f.Data == nil
	said := sentence{f.Kind, f.Message}
	if isOften {
		bodies.RLock()
		body := bodies.Get(said)
		bodies.RUnlock()
		if body != nil {
			return *body, nil
		}
	}
	body, err := encode(problem{answers[f.Kind].code, f.Message, f.Fields, f.Data})
	if isOften && err == nil {
		bodies.Lock()
		bodies.Put(said, body, 1)
		bodies.Unlock()
	}
	return body, err
}
