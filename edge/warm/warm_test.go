package warm

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

func TestParseViews(t *testing.T) {
	t.Parallel()
	f := func(text string, want ...string) {
		t.Helper()
		got, err := ParseViews(text)
		testenv.Check(t, (err == nil) == (len(want) > 0), "ParseViews(%q): %v; want %q", text, err, want)
		diff := cmp.Diff(want, got, cmpopts.EquateEmpty())
		testenv.Check(t, diff == "", "ParseViews(%q) (-want +got):\n%s", text, diff)
	}

	f("/textures/{hash}", "/textures/{hash}")
	f(" /textures/{hash} , /avatar/hash/{hash}?size=64&png", "/textures/{hash}", "/avatar/hash/{hash}?size=64&png")
	f("")
	f("/textures/{hash},")
	f("textures/{hash}")
	f("/textures/")
	f("/avatar/{hash}/{hash}")
}

func TestBase(t *testing.T) {
	t.Parallel()
	f := func(text, want string) {
		t.Helper()
		if got, err := Base(text); got != want || (err == nil) != (want != "") {
			t.Errorf("Base(%q) = %q, %v; want %q", text, got, err, want)
		}
	}

	f("http://127.0.0.1:8081", "http://127.0.0.1:8081")
	f("http://:8081", "http://:8081")
	f("https://images.example.org/", "https://images.example.org")
	f("https://example.org/images/", "https://example.org/images")
	f("127.0.0.1:8081", "")
	f("ftp://example.org", "")
	f("http://", "")
	f("http://example.org?a=b", "")
	f("http://example.org#a", "")
	f("http://%", "")
}

// fakeEdge is a transport to an edge, for use in a synctest bubble. It records the times of
// requests by path.
type fakeEdge struct {
	respond func(path string, nth int) *http.Response // nil: a connection error

	mu                    sync.Mutex
	requests              map[string][]time.Time
	inFlight, maxInFlight int
}

func (e *fakeEdge) RoundTrip(request *http.Request) (*http.Response, error) {
	path := request.URL.RequestURI()
	e.mu.Lock()
	if e.requests == nil {
		e.requests = map[string][]time.Time{}
	}
	nth := len(e.requests[path])
	e.requests[path] = append(e.requests[path], time.Now())
	e.inFlight++
	e.maxInFlight = max(e.maxInFlight, e.inFlight)
	e.mu.Unlock()
	defer func() { e.mu.Lock(); e.inFlight--; e.mu.Unlock() }()

	<-time.After(time.Millisecond)
	if response := e.respond(path, nth); response != nil {
		return response, nil
	}
	return nil, errors.New("connection refused")
}

func response(status int, headers ...string) *http.Response {
	r := &http.Response{StatusCode: status, Status: http.StatusText(status), Header: http.Header{}, Body: io.NopCloser(strings.NewReader("body"))}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func miss() *http.Response { return response(200, "Cache-Status", "veneer; fwd=miss; stored") }
func hit() *http.Response  { return response(200, "Cache-Status", "veneer; hit") }
func shed() *http.Response { return response(503, "Retry-After", "2") }

func newJob(textures, parallel int, views ...string) Job {
	job := Job{Views: views, Parallel: parallel, RetryFor: 30 * time.Second}
	for i := range textures {
		job.Hashes = append(job.Hashes, skin.Hash{byte(i), byte(i >> 8)})
	}
	return job
}

// checkRun runs a job in a synctest bubble and checks its report, in which the first error
// must contain a text.
func checkRun(t *testing.T, e *fakeEdge, job Job, want Report, failure string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		got := run(t.Context(), "http://edge", job, e)
		switch {
		case failure == "" && got.FirstError != nil:
			t.Errorf("the first error: %v; want none", got.FirstError)
		case failure != "" && (got.FirstError == nil || !strings.Contains(got.FirstError.Error(), failure)):
			t.Errorf("the first error: %v; want one with %q", got.FirstError, failure)
		}
		got.FirstError = nil
		testenv.Equal(t, got, want, "the report")
	})
}

func TestReport(t *testing.T) {
	t.Parallel()
	f := func(status int, want Report, failure string, cacheStatus ...string) {
		t.Helper()
		checkRun(t, &fakeEdge{respond: func(path string, _ int) *http.Response {
			if strings.HasPrefix(path, "/known/") {
				return miss()
			}
			r := response(status)
			r.Header["Cache-Status"] = cacheStatus
			return r
		}}, newJob(1, 1, "/known/{hash}", "/{hash}"), want, failure)
	}

	f(200, Report{Loaded: 1, Cached: 1}, "", "veneer; hit")
	f(200, Report{Loaded: 1, Cached: 1}, "", "veneer;hit", "cdn; fwd=miss")
	f(200, Report{Loaded: 2}, "", "other; hit, veneer; fwd=miss; collapsed; detail=stale")
	f(200, Report{Loaded: 2}, "", "veneer; fwd=miss; stored, cdn; hit")
	f(200, Report{Loaded: 1, Failed: 1}, "no edge")
	f(200, Report{Loaded: 1, Failed: 1}, "no edge", "other; hit")
	f(422, Report{Loaded: 1, NotFound: 1}, "", "veneer; fwd=miss")
	f(404, Report{Loaded: 1, Failed: 1}, "/"+(skin.Hash{}).String()+": Not Found")
	f(500, Report{Loaded: 1, Failed: 1}, "Internal Server Error")
}

// The most liked textures include capes, which have no face.
func TestViewNotFoundForOneTexture(t *testing.T) {
	t.Parallel()
	asked := 0
	checkRun(t, &fakeEdge{respond: func(string, int) *http.Response {
		if asked++; asked == 1 {
			return response(422)
		}
		return miss()
	}}, newJob(2, 1, "/a/{hash}"), Report{Loaded: 1, NotFound: 1}, "")
}

// Views that exist for no texture are an error.
func TestNoViewFound(t *testing.T) {
	t.Parallel()
	checkRun(t, &fakeEdge{respond: func(string, int) *http.Response { return response(422) }},
		newJob(1, 1, "/a/{hash}", "/b/{hash}"), Report{Failed: 2}, "no such pictures of "+(skin.Hash{}).String())
}

func TestParallelism(t *testing.T) {
	t.Parallel()
	e := &fakeEdge{respond: func(string, int) *http.Response { return miss() }}
	checkRun(t, e, newJob(50, 3, "/a/{hash}", "/b/{hash}"), Report{Loaded: 100}, "")
	testenv.Check(t, e.maxInFlight == 3 && len(e.requests) == 100,
		"%d pictures were requested, at most %d at once; want 100 and 3", len(e.requests), e.maxInFlight)
}

// A rejected request is retried with a growing backoff, and not before Retry-After.
func TestRetries(t *testing.T) {
	t.Parallel()
	for name, busy := range map[string]func() *http.Response{
		"shed":           shed,
		"too many":       func() *http.Response { return response(429, "Retry-After", "2") },
		"a bad gateway":  func() *http.Response { return response(502, "Retry-After", "2") },
		"a slow gateway": func() *http.Response { return response(504, "Retry-After", "2") },
		"away":           func() *http.Response { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const times = 4
			e := &fakeEdge{respond: func(_ string, nth int) *http.Response {
				if nth < times {
					return busy()
				}
				return hit()
			}}
			checkRun(t, e, newJob(1, 1, "/{hash}"), Report{Cached: 1}, "")
			asked := e.requests["/"+(skin.Hash{}).String()]
			if len(asked) != times+1 {
				t.Fatalf("%d requests; want %d", len(asked), times+1)
			}
			least := time.Duration(0)
			if name != "away" {
				least = 2 * time.Second
			}
			for i, pause := 0, minBackoff; i < times; i, pause = i+1, 2*pause {
				if waited := asked[i+1].Sub(asked[i]); waited < least+pause/2 || waited > least+pause+2*time.Millisecond {
					t.Errorf("retry %d came after %s; want %s plus %s to %s", i+1, waited, least, pause/2, pause)
				}
			}
		})
	}
}

// Retries of one picture end, and the others are still requested.
func TestRetriesEnd(t *testing.T) {
	t.Parallel()
	lost := "/" + (skin.Hash{3}).String()
	e := &fakeEdge{respond: func(path string, _ int) *http.Response {
		if path == lost {
			return shed()
		}
		return miss()
	}}
	checkRun(t, e, newJob(20, 2, "/{hash}"), Report{Loaded: 19, Failed: 1}, lost+": Service Unavailable")
	asked := e.requests[lost]
	tried := asked[len(asked)-1].Sub(asked[0])
	testenv.Check(t, tried <= 30*time.Second && tried >= 15*time.Second, "it was retried for %s; want up to 30s", tried)
}

// A job is abandoned when an edge rejects everything.
func TestGivesUp(t *testing.T) {
	t.Parallel()
	e := &fakeEdge{respond: func(string, int) *http.Response { return shed() }}
	checkRun(t, e, newJob(1000, 2, "/a/{hash}", "/b/{hash}"), Report{Failed: 2000}, "Service Unavailable")
	testenv.Check(t, len(e.requests) >= maxFailedTextures && len(e.requests) <= maxFailedTextures+2,
		"%d pictures were requested; want %d", len(e.requests), maxFailedTextures)
}

func TestCancel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		e := &fakeEdge{respond: func(_ string, _ int) *http.Response { stop(); return shed() }}
		began := time.Now()
		got := run(ctx, "http://edge", newJob(10, 2, "/{hash}"), e)
		if got.Failed != 10 || !errors.Is(got.FirstError, context.Canceled) || time.Since(began) > time.Second {
			t.Errorf("the report is %+v after %s; want everything to be cancelled at once", got, time.Since(began))
		}
	})
}
