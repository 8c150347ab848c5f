// Package tracingtest is a collector of traces for tests.
package tracingtest

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/proto"
)

// Span is a span as it was exported.
type Span struct {
	Program           string // its service.name
	Name              string
	Trace, ID, Parent string   // in hexadecimal; Parent is empty for the root of a trace
	Links             []string // their span IDs
	Error             string
	Attributes        map[string]string
	Began, Ended      time.Time
}

// Collector receives spans with OTLP over HTTP.
type Collector struct {
	URL string

	mu      sync.Mutex
	spans   []Span
	changed chan struct{} // closed and replaced at every request
}

// Start starts a collector that stops after the test.
func Start(tb testing.TB) *Collector {
	tb.Helper()
	c := &Collector{changed: make(chan struct{})}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var sent collector.ExportTraceServiceRequest
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = proto.Unmarshal(body, &sent)
		}
		if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || err != nil {
			tb.Errorf("%s %s is not an export of traces: %v", r.Method, r.URL, err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		c.add(&sent)
	}))
	tb.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

func (c *Collector) add(sent *collector.ExportTraceServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range sent.GetResourceSpans() {
		program := attributeTexts(of.GetResource().GetAttributes())["service.name"]
		for _, scope := range of.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				span := Span{
					Program: program, Name: s.GetName(), Error: s.GetStatus().GetMessage(), Attributes: attributeTexts(s.GetAttributes()),
					Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()),
					Began: time.Unix(0, int64(s.GetStartTimeUnixNano())), Ended: time.Unix(0, int64(s.GetEndTimeUnixNano())),
				}
				for _, link := range s.GetLinks() {
					span.Links = append(span.Links, hex.EncodeToString(link.GetSpanId()))
				}
				c.spans = append(c.spans, span)
			}
		}
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

// attributeTexts returns the values of attributes as strings.
func attributeTexts(attributes []*common.KeyValue) map[string]string {
	all := map[string]string{}
	for _, a := range attributes {
		switch v := a.GetValue().GetValue().(type) {
		case *common.AnyValue_StringValue:
			all[a.GetKey()] = v.StringValue
		case *common.AnyValue_IntValue:
			all[a.GetKey()] = fmt.Sprint(v.IntValue)
		case *common.AnyValue_BoolValue:
			all[a.GetKey()] = fmt.Sprint(v.BoolValue)
		default:
			all[a.GetKey()] = a.GetValue().String()
		}
	}
	return all
}

// Spans returns all spans received so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Await waits until the spans satisfy wanted, and returns all.
func (c *Collector) Await(tb testing.TB, wanted func([]Span) bool) []Span {
	tb.Helper()
	deadline := time.After(30 * time.Second)
	for {
		c.mu.Lock()
		spans, more := slices.Clone(c.spans), c.changed
		c.mu.Unlock()
		if wanted(spans) {
			return spans
		}
		select {
		case <-more:
		case <-deadline:
			tb.Fatalf("only these spans were exported: %+v", spans)
		}
	}
}
