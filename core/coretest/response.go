package coretest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/core/clientapi/openapitest"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// Response is a server's response to a request.
type Response struct{ openapitest.Exchange }

// wildcards are placeholders in expected JSON, with the pattern of the values they match.
var wildcards = map[string]*regexp.Regexp{
	"<text>":    regexp.MustCompile(`^".+"$`),
	"<texts>":   regexp.MustCompile(`^\[".+"\]$`),
	"<integer>": regexp.MustCompile(`^[1-9][0-9]*$`),
	"<time>":    regexp.MustCompile(`^"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"$`),
	"<uuid>":    regexp.MustCompile(`^"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"$`),
	"<hash>":    regexp.MustCompile(`^"[0-9a-f]{64}"$`),
	"<jwt>":     regexp.MustCompile(`^"[\w-]+\.[\w-]+\.[\w-]+"$`),
}

// Is checks the status and the whole body. body is JSON with wildcards.
func (r Response) Is(t *testing.T, status int, body string) {
	t.Helper()
	testenv.Equal(t, r.Status, status, "%s: the status", r.Request())
	want := decodeAny(t, []byte(body))
	cmptest.Same(t, applyWildcards(want, decodeAny(t, r.Body)), want, "%s: the body", r.Request())
}

// HasStatus checks the status alone.
func (r Response) HasStatus(t *testing.T, want int) {
	t.Helper()
	testenv.Check(t, r.Status == want, "%s: %d %s; want %d", r.Request(), r.Status, r.Body, want)
}

// decodeAny decodes JSON; numbers keep their spelling.
func decodeAny(t *testing.T, text []byte) any {
	t.Helper()
	var value any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return value
}

// applyWildcards returns got with wildcards in place of what they match.
func applyWildcards(want, got any) any {
	switch want := want.(type) {
	case string:
		raw, err := json.Marshal(got)
		if wildcard := wildcards[want]; wildcard != nil && err == nil && wildcard.Match(raw) {
			return want
		}
	case map[string]any:
		if got, ok := got.(map[string]any); ok {
			for key, value := range got {
				got[key] = applyWildcards(want[key], value)
			}
		}
	case []any:
		if got, ok := got.([]any); ok {
			for i := range min(len(want), len(got)) {
				got[i] = applyWildcards(want[i], got[i])
			}
		}
	}
	return got
}

// IsError checks that the response is an error of the API with messages for these fields and no
// others.
func (r Response) IsError(t *testing.T, status, code int, fields ...string) {
	t.Helper()
	errs := ""
	if len(fields) > 0 {
		errs = `,"errors":{"` + strings.Join(fields, `":"<texts>","`) + `":"<texts>"}`
	}
	r.Is(t, status, `{"code":`+strconv.Itoa(code)+`,"message":"<text>"`+errs+"}")
}

// IsEmpty checks for status 204.
func (r Response) IsEmpty(t *testing.T) {
	t.Helper()
	testenv.Check(t, r.Status == 204 && len(r.Body) == 0 && r.Header.Get("Content-Type") == "",
		"%s: %d %q; want 204 and no body", r.Request(), r.Status, r.Body)
}

// IsSameAs checks that nothing but the time tells two responses from each other.
func (r Response) IsSameAs(t *testing.T, other Response) {
	t.Helper()
	r.Header.Del("Date")
	other.Header.Del("Date")
	if r.Status != other.Status || !bytes.Equal(r.Body, other.Body) || !maps.EqualFunc(r.Header, other.Header, slices.Equal[[]string]) {
		t.Errorf("%s: %d %v %s; want as %s: %d %v %s", r.Request(), r.Status, r.Header, r.Body, other.Request(), other.Status, other.Header, other.Body)
	}
}

// Field returns the value at a path of keys in the body.
func (r Response) Field(t *testing.T, path ...string) string {
	t.Helper()
	value := decodeAny(t, r.Body)
	for _, key := range path {
		object, ok := value.(map[string]any)
		if !ok {
			t.Fatalf("%s: the response has no %s: %s", r.Request(), strings.Join(path, "."), r.Body)
		}
		value = object[key]
	}
	return fmt.Sprint(value)
}

// HasField checks the value at a path of keys in the body.
func (r Response) HasField(t *testing.T, want string, path ...string) {
	t.Helper()
	testenv.Equal(t, r.Field(t, path...), want, "%s: %s", r.Request(), strings.Join(path, "."))
}

// Has checks for status 200 and the values at paths in the body: pairs of keys with dots between them, and a value.
func (r Response) Has(t *testing.T, pairs ...string) {
	t.Helper()
	r.HasStatus(t, 200)
	for pair := range slices.Chunk(pairs, 2) {
		r.HasField(t, pair[1], strings.Split(pair[0], ".")...)
	}
}

// Decode decodes the body into a value.
func (r Response) Decode(t *testing.T, value any) {
	t.Helper()
	if err := json.Unmarshal(r.Body, value); err != nil {
		t.Fatalf("%s: %v: %s", r.Request(), err, r.Body)
	}
}
