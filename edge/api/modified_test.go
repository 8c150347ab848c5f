package api_test

import (
	"context"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// changed is when the player of openDated last changed.
var changed = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

const sameAsChanged = "Wed, 04 Mar 2026 05:06:07 GMT"

// dated returns the paths of files and profiles of openDated.
func (s seededServer) dated() []string {
	hash := s.robot.Hash.String()
	return []string{
		"/skin/Dated.png", "/skin/dated.PNG", "/cape/Dated.png", "/csl/Dated.json", "/csl/dated.JSON",
		"/Dated.json", "/usm/Dated.json", "/legacy/Dated.png", "/skins?name=Dated", "/MinecraftCloaks/Dated.png",
		"/api/yggdrasil/skins/MinecraftSkins/Dated.png", "/api/yggdrasil/skins/MinecraftCloaks/Dated.png",
		"/textures/" + hash, "/textures/" + hash + ".png", "/csl/textures/" + hash,
		"/usm/textures/" + hash, "/textures/" + hash + "-legacy", "/raw/11",
	}
}

// openDated opens a server with a core that knows when the player Dated changed, and when the
// skin was uploaded.
func openDated(tb testing.TB, changed time.Time, changes ...func(*setup)) seededServer {
	tb.Helper()
	w := openSeeded(tb, changes...)
	w.date(tb, changed)
	return w
}

func (s seededServer) date(tb testing.TB, changed time.Time) {
	tb.Helper()
	s.set(tb, map[edgeproto.Key]edgeproto.Mapping{
		"name:dated":                    {Player: &edgeproto.Player{PID: 9, Name: "Dated", Skin: s.robot, Cape: s.cape}, Modified: changed.Unix()},
		edgeproto.HashKey(s.robot.Hash): {Texture: s.robot, Modified: changed.Unix()},
		"tid:11":                        {Texture: s.robot, Modified: changed.Unix()},
	})
}

// TestLastModified sends every condition to an edge with empty caches, to the fast path and to
// the server behind it.
func TestLastModified(t *testing.T) {
	t.Parallel()
	w := openDated(t, changed)
	long := &testServer{url: w.slowURL}
	type header = http.Header
	for _, path := range w.dated() {
		first := w.get(t, path)
		if got := first.header.Get("Last-Modified"); first.status != http.StatusOK || got != sameAsChanged {
			t.Fatalf("%s: %d, last modified %q; want %q", path, first.status, got, sameAsChanged)
		}
		etag := first.header.Get("Etag")
		cold := openDated(t, changed)
		f := func(fields header, want int) {
			t.Helper()
			for name, s := range map[string]*testServer{"cold": cold.testServer, "fast path": w.testServer, "server": long} {
				for _, method := range []string{http.MethodGet, http.MethodHead} {
					got := s.do(t, method, path, fields, "")
					if got.status != want {
						t.Errorf("%s %s, %s, %v: %d; want %d", method, path, name, fields, got.status, want)
						continue
					}
					switch want {
					case http.StatusOK:
						if got.header.Get("Last-Modified") != sameAsChanged || method == http.MethodGet && got.body != first.body {
							t.Errorf("%s %s, %s: %v", method, path, name, got.header)
						}
					case http.StatusNotModified:
						for _, field := range []string{"Etag", "Cache-Control", "Surrogate-Key", "Last-Modified"} {
							cmptest.Same(t, got.header[field], first.header[field],
								"%s %s, %s: the %s of a 304", method, path, name, field)
						}
						testenv.Check(t, got.body == "" && got.header.Get("Content-Type") == "",
							"%s %s, %s: 304 with a body, or %v", method, path, name, got.header)
					}
				}
			}
		}

		const before, after = "Wed, 04 Mar 2026 05:06:06 GMT", "Wed, 04 Mar 2026 05:06:08 GMT"
		f(header{"If-Modified-Since": {sameAsChanged}}, 304)
		f(header{"If-Modified-Since": {after}}, 304)
		f(header{"If-Modified-Since": {before}}, 200)
		f(header{"If-Modified-Since": {"Wednesday, 04-Mar-26 05:06:07 GMT"}}, 304) // RFC 850
		f(header{"If-Modified-Since": {"Wed Mar  4 05:06:07 2026"}}, 304)          // asctime
		f(header{"If-Modified-Since": {time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)}}, 200)
		f(header{"If-Modified-Since": {"yesterday"}}, 200)
		f(header{"If-Modified-Since": {""}}, 200)
		f(header{"If-Modified-Since": {sameAsChanged, sameAsChanged}}, 200)
		// A condition on the entity tag takes precedence.
		f(header{"If-None-Match": {`"other"`}, "If-Modified-Since": {sameAsChanged}}, 200)
		f(header{"If-None-Match": {etag}, "If-Modified-Since": {before}}, 304)
		f(header{"If-Unmodified-Since": {sameAsChanged}}, 200)
		f(header{"If-Unmodified-Since": {after}, "If-Modified-Since": {sameAsChanged}}, 304)
		f(header{"If-Unmodified-Since": {before}}, 412)
		f(header{"If-Unmodified-Since": {"yesterday"}}, 200)
		f(header{"If-Match": {etag}, "If-Unmodified-Since": {before}}, 200)
	}
}

// After a change of any kind, no response is 304.
func TestModifiedIsSeenAtOnce(t *testing.T) {
	t.Parallel()
	w := openDated(t, changed)
	for _, path := range w.dated()[:12] {
		w.date(t, changed)
		last := w.get(t, path).header.Get("Last-Modified")
		w.set(t, map[edgeproto.Key]edgeproto.Mapping{
			"name:dated": {Player: &edgeproto.Player{PID: 9, Name: "Renamed", Skin: w.slim, Cape: w.cape}, Modified: changed.Unix() + 1},
		})
		got := w.do(t, http.MethodGet, path, http.Header{"If-Modified-Since": {last}}, "")
		if got.status != http.StatusOK || got.header.Get("Last-Modified") == last {
			t.Errorf("%s after a change: %d, last modified %q; want 200 and a later date", path, got.status, got.header.Get("Last-Modified"))
		}
	}
}

// There is no Last-Modified in the second of a change, with a core that sends no dates, while
// core is unreachable, and of pictures.
func TestNoLastModified(t *testing.T) {
	t.Parallel()
	undated := func(w seededServer, path, why string) {
		t.Helper()
		since := time.Now().UTC().Format(http.TimeFormat)
		for _, s := range []*testServer{w.testServer, {url: w.slowURL}} {
			for _, fields := range []http.Header{{}, {"If-Modified-Since": {since}}, {"If-Unmodified-Since": {"Thu, 01 Jan 1970 00:00:00 GMT"}}} {
				s.do(t, http.MethodGet, path, fields, "").expect(t, path+", "+why, http.StatusOK, "Last-Modified", "")
			}
		}
	}
	w := openDated(t, changed, aging)
	for _, path := range []string{"/avatar/player/Dated", "/avatar/hash/" + w.robot.Hash.String() + "?3d", "/preview/hash/" + w.robot.Hash.String()} {
		undated(w, path, "a picture")
	}
	w.date(t, time.Now().Add(time.Hour)) // the second never ends
	for _, path := range w.dated() {
		undated(w, path, "just changed")
	}
	w.date(t, time.Unix(0, 0))
	for _, path := range w.dated() {
		undated(w, path, "a core without dates")
	}
	w.date(t, changed)
	for _, path := range w.dated() {
		w.get(t, path)
	}
	w.core.SetUnavailable(true)
	for _, path := range w.dated() {
		testenv.Eventually(t, "core is found to be unreachable", func() bool {
			return strings.Contains(w.get(t, path).header.Get("Cache-Status"), "stale")
		})
		undated(w, path, "core is unreachable")
	}
}

// Clients that use dates fetch a file, get 304 for it, and fetch it again after a change. The
// mods of CustomSkinAPI send what Java's HttpURLConnection sends after setIfModifiedSince.
func TestLastModifiedClients(t *testing.T) {
	t.Parallel()
	program := func(t *testing.T, folder string, arguments ...string) int {
		t.Helper()
		if _, err := exec.LookPath(arguments[0]); err != nil {
			testenv.Skip(t, arguments[0]+" is not installed: deploy/dev/install "+arguments[0]+" installs it")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		command := exec.CommandContext(ctx, arguments[0], arguments[1:]...)
		command.Dir = folder
		output, err := command.CombinedOutput()
		statuses := regexp.MustCompile(`HTTP/1\.1 (\d+)`).FindAllSubmatch(output, -1)
		if len(statuses) == 0 {
			t.Fatalf("%q: %v: %s", arguments, err, output)
		}
		return testenv.Must(strconv.Atoi(string(statuses[len(statuses)-1][1])))(t)
	}
	last := "" // of the Java client
	for name, fetch := range map[string]func(t *testing.T, w seededServer, folder string) int{
		"wget": func(t *testing.T, w seededServer, folder string) int {
			t.Helper()
			return program(t, folder, "wget", "-N", "--no-verbose", "--server-response", "--no-proxy", w.url+"/skin/Dated.png")
		},
		"curl": func(t *testing.T, w seededServer, folder string) int {
			t.Helper()
			return program(t, folder, "curl", "--silent", "--noproxy", "*", "--remote-time", "-z", "skin.png", "-o", "skin.png", "-w", "HTTP/1.1 %{http_code}\n", w.url+"/skin/Dated.png")
		},
		"Java": func(t *testing.T, w seededServer, _ string) int {
			t.Helper()
			fields := http.Header{
				"User-Agent": {"Java/17.0.15"}, "Accept": {"text/html, image/gif, image/jpeg, */*; q=0.2"}, "Connection": {"keep-alive"},
			}
			if last != "" {
				fields.Set("If-Modified-Since", last)
			}
			got := w.do(t, http.MethodGet, "/skin/Dated.png", fields, "")
			last = got.header.Get("Last-Modified")
			return got.status
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, folder := openDated(t, changed), t.TempDir()
			for i, want := range []int{http.StatusOK, http.StatusNotModified, http.StatusNotModified} {
				testenv.Equal(t, fetch(t, w, folder), want, "fetched %d times", i+1)
			}
			w.date(t, changed.Add(time.Second))
			for i, want := range []int{http.StatusOK, http.StatusNotModified} {
				testenv.Equal(t, fetch(t, w, folder), want, "fetched %d times since a change", i+1)
			}
		})
	}
}
