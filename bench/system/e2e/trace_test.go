package e2e

import (
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/httpserver/httpservertest"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
	"github.com/veneer-skins/veneer/shared/tracing/tracingtest"
)

// startLogging starts a system with further settings. Its programs log every request and trust this
// process as a proxy.
func startLogging(t *testing.T, settings ...string) *site.System {
	t.Helper()
	settings = append(settings, "CORE_LOG_SAMPLE_RATE=1", "EDGE_LOG_SAMPLE_RATE=1",
		"CORE_TRUSTED_PROXIES=127.0.0.0/8", "EDGE_TRUSTED_PROXIES=127.0.0.0/8")
	return site.Start(t, blobstoretest.Directory(t).Config, settings...)
}

// getOK sends a GET request with headers and requires 200.
func getOK(t *testing.T, address string, header http.Header) {
	t.Helper()
	if response := httpservertest.Call(t, nil, http.MethodGet, address, header, ""); response.Status != http.StatusOK {
		t.Fatalf("%s: %d %.100q", address, response.Status, response.Body)
	}
}

// One request ID is in the log of the edge, and in the log of core for the lookups of that
// request.
func TestOneIDInAllLogs(t *testing.T) {
	t.Parallel()
	s := startLogging(t)
	hash := upload(t, signUp(t, s.CoreURL), "first", drawSheet(11)).Hash
	for _, request := range []struct{ id, path, edge, core string }{
		{"a-picture", "/avatar/hash/" + hash, "/avatar/hash/{hash}", "POST /edges/v1/mappings"},
		{"of-the-api", "/api/textures", "/api", "GET /api/textures"},
	} {
		getOK(t, s.EdgeURL+request.path, http.Header{"X-Request-Id": {request.id}})
		for program, route := range map[*stack.Process]string{s.Edge: request.edge, s.Core: request.core} {
			program.AwaitLog(t, "msg:request ", "request_id:"+request.id, "route:"+route)
		}
	}
}

// A cache miss is one trace, from the edge's listener to core's database.
func TestOneTraceThroughBothPrograms(t *testing.T) {
	t.Parallel()
	collector := tracingtest.Start(t)
	s := startLogging(t, "CORE_TRACES_URL="+collector.URL, "EDGE_TRACES_URL="+collector.URL,
		"CORE_TRACES_SAMPLE=0", "EDGE_TRACES_SAMPLE=0", "OTEL_BSP_SCHEDULE_DELAY=50")
	c := signUp(t, s.CoreURL)
	hash := upload(t, c, "first", drawSheet(12)).Hash

	const picture, again, api = "0af7651916cd43dd8448eb211c80319c", "1af7651916cd43dd8448eb211c80319c", "2af7651916cd43dd8448eb211c80319c"
	traced := func(id string) http.Header {
		return http.Header{"Traceparent": {"00-" + id + "-b7ad6b7169203331-01"}}
	}
	getOK(t, s.EdgeURL+"/avatar/hash/"+hash+"?3d", traced(picture))
	getOK(t, s.EdgeURL+"/avatar/hash/"+hash+"?3d", nil)
	getOK(t, s.EdgeURL+"/avatar/hash/"+hash+"?3d", traced(again))
	apiHeader := traced(api)
	apiHeader.Set("Authorization", "Bearer "+c.Token)
	getOK(t, s.EdgeURL+"/api/user", apiHeader)

	// Programs flush their spans when they exit.
	for _, program := range []*stack.Process{s.Edge, s.Core} {
		testenv.Do(t, program.Stop(t))
	}
	traces := map[string][]tracingtest.Span{}
	for _, span := range collector.Spans() {
		traces[span.Trace] = append(traces[span.Trace], span)
	}
	if got := slices.Sorted(maps.Keys(traces)); !slices.Equal(got, []string{picture, again, api}) {
		t.Fatalf("there are the traces %q", got)
	}

	// Each span of the picture, with its parent.
	names := map[string]string{"b7ad6b7169203331": "us"}
	for _, span := range traces[picture] {
		names[span.ID] = span.Program + " " + span.Name
		if span.Error != "" || span.Ended.Before(span.Began) {
			t.Errorf("%s failed with %q, or ended before it began", span.Name, span.Error)
		}
	}
	var got []string
	const query = "veneer-core WITH"
	for _, span := range traces[picture] {
		// Spans of new connections, and of statements to prepare on them, are not always
		// there.
		if span.Name != "connect" && names[span.Parent] != query {
			got = append(got, names[span.ID]+" < "+names[span.Parent])
		}
	}
	// The edge repeats a lookup if a change arrives meanwhile, such as the upload's.
	slices.Sort(got)
	got = slices.Compact(got)
	const root, lookupSpan = "veneer-edge /avatar/hash/{hash}", "veneer-edge POST /edges/v1/mappings"
	want := []string{
		root + " < us",
		"veneer-edge lookup < " + root,
		lookupSpan + " < veneer-edge lookup",
		"veneer-core POST /edges/v1/mappings < " + lookupSpan,
		"veneer-core pool.acquire < veneer-core POST /edges/v1/mappings",
		query + " < veneer-core POST /edges/v1/mappings",
		"veneer-edge picture < " + root,
		"veneer-edge fetch < veneer-edge picture",
		"veneer-edge texture store: get < veneer-edge fetch",
		"veneer-edge queue < veneer-edge picture",
		"veneer-edge decode < veneer-edge picture",
		"veneer-edge draw < veneer-edge picture",
		"veneer-edge encode < veneer-edge picture",
	}
	slices.Sort(want)
	cmptest.Same(t, got, want, "the trace of a picture")
	if len(traces[again]) != 1 || traces[again][0].Attributes["outcome"] != "hit" {
		t.Errorf("the trace of a hit is %+v", traces[again])
	}
	inCore := slices.ContainsFunc(traces[api], func(s tracingtest.Span) bool { return s.Program == "veneer-core" && s.Name == "GET /api/user" })
	testenv.Check(t, inCore, "the trace of a request that is passed on is %+v", traces[api])
}
