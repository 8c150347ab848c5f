//go:build !race

package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/edge/origin/origintest"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/httpserver/httpservertest"
	"github.com/veneer-skins/veneer/shared/metrics/metricstest"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// warmFixture is a core with textures, for which edges can be started.
type warmFixture struct {
	core      *origintest.Core
	directory string
	skins     []skin.Hash
	cape      skin.Hash
}

// newWarmFixture returns a core with some skins and a cape. Steve wears the first skin.
func newWarmFixture(t *testing.T, skins int) warmFixture {
	t.Helper()
	e := warmFixture{core: origintest.Start(t)}
	var store *blobstore.Store
	e.directory, store = preparedStore(t)
	mappings := map[edgeproto.Key]edgeproto.Mapping{}
	put := func(sheet skin.Sheet, kind skin.Type) *edgeproto.Texture {
		t.Helper()
		file := origintest.File(t, sheet, kind)
		testenv.Do(t, store.Put(t.Context(), skin.HashOf(file), file))
		texture := &edgeproto.Texture{TID: int64(len(mappings) + 1), Hash: skin.HashOf(file), Type: kind}
		mappings[edgeproto.HashKey(texture.Hash)] = edgeproto.Mapping{Texture: texture}
		return texture
	}
	for n := range skins {
		texture := put(skintest.Noise(uint64(n), 64, 64), skin.Classic)
		e.skins = append(e.skins, texture.Hash)
		if n == 0 {
			mappings[edgeproto.NameKey("Steve")] = edgeproto.Mapping{Player: &edgeproto.Player{PID: 1, Name: "Steve", Skin: texture}}
		}
	}
	e.cape = put(artwork.Sunrise(), skin.Cape).Hash
	e.core.Set(mappings)
	return e
}

// startEdge starts an edge, which is stopped when the test ends, and returns its addresses.
func (w warmFixture) startEdge(t *testing.T) (public, operators string) {
	t.Helper()
	e := start(t,
		"EDGE_CORE_URL="+w.core.URL, "EDGE_CORE_SECRETS="+origintest.Secret, "EDGE_OBJECTS_URL=file://"+w.directory,
		"EDGE_LISTEN=127.0.0.1:0", "EDGE_OPS_LISTEN=127.0.0.1:0")
	return e.public, e.operators
}

// warmResult is the output and the success of the command.
type warmResult struct {
	out, err string
	ok       bool
}

// runWarm runs edge warm with only these settings.
func runWarm(t *testing.T, stdin string, settings []string, args ...string) warmResult {
	t.Helper()
	var out, errs bytes.Buffer
	command := edgeWith(t.Context(), "warm", settings...)
	command.Args = append(command.Args, args...)
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(stdin), &out, &errs
	err := command.Run()
	if _, exited := err.(*exec.ExitError); err != nil && !exited { //nolint:errorlint // Run does not wrap it
		t.Fatal(err)
	}
	return warmResult{out: regexp.MustCompile(`, in [0-9.]+m?s\n`).ReplaceAllString(out.String(), "\n"), err: errs.String(), ok: err == nil}
}

// reportLine is a line of the command's output.
func reportLine(base string, textures, loaded, cached, notFound, failed int) string {
	return fmt.Sprintf("%s: of %d pictures of %d textures, %d were loaded, %d were cached, %d do not exist for their type and %d failed\n",
		base, loaded+cached+notFound+failed, textures, loaded, cached, notFound, failed)
}

func TestWarm(t *testing.T) {
	t.Parallel()
	e := newWarmFixture(t, 3)
	public, operators := e.startEdge(t)
	at := []string{"EDGE_LISTEN=" + public}
	base := "http://" + public

	want := func(got warmResult, out string) {
		t.Helper()
		testenv.Check(t, got.out == out && got.err == "" && got.ok,
			"stdout %q, stderr %q; want %q", got.out, got.err, out)
	}
	first, others := e.skins[0].String(), e.skins[1].String()+"\n\n "+e.skins[2].String()+"\r\n"
	want(runWarm(t, "", at, first, first), reportLine(base, 1, 5, 0, 0, 0))
	// The name is looked up, but nothing is fetched or rendered.
	before := httpservertest.Get(t, "http://"+operators+"/metrics").Body
	for _, path := range []string{"/avatar/player/steve", "/avatar/player/steve?png", "/avatar/player/steve?3d", "/skin/steve.png"} {
		testenv.Equal(t, httpservertest.Get(t, base+path).Status, http.StatusOK, "%s", path)
	}
	after := httpservertest.Get(t, "http://"+operators+"/metrics").Body
	for _, metric := range []string{`veneer_edge_render_seconds_count{stage="draw",view="flat"}`, "veneer_edge_objects_fetched_total"} {
		if was, is := metricstest.Value(t, before, metric), metricstest.Value(t, after, metric); was != 2 || is != 2 {
			t.Errorf("%s went from %v to %v; want 2 before and after", metric, was, is)
		}
	}

	want(runWarm(t, "", at, first), reportLine(base, 1, 0, 5, 0, 0))
	want(runWarm(t, others, at, "-"), reportLine(base, 2, 10, 0, 0, 0))
	want(runWarm(t, "", at, e.cape.String()), reportLine(base, 1, 2, 0, 3, 0))
	want(runWarm(t, "", at, "-views", "/avatar/hash/{hash}?size=64,/avatar/hash/{hash}", first), reportLine(base, 1, 1, 1, 0, 0))
	want(runWarm(t, "", at, "-"), reportLine(base, 0, 0, 0, 0, 0))
}

func TestWarmSeveralEdges(t *testing.T) {
	t.Parallel()
	e := newWarmFixture(t, 20)
	one, _ := e.startEdge(t)
	other, _ := e.startEdge(t)
	e.core.SetLiked(append(e.skins, e.skins[7]))
	core := []string{"EDGE_CORE_URL=" + e.core.URL, "EDGE_CORE_SECRETS=" + origintest.Secret}
	for _, test := range []struct{ liked, textures int }{{5, 5}, {21, 20}} {
		got := runWarm(t, "", core, "-to", "http://"+one, "-to", "http://"+other+"/", "-parallel", "3", "-liked", fmt.Sprint(test.liked), "-views", "/avatar/hash/{hash}")
		there := 0
		if test.textures == 20 {
			there = 5
		}
		out := reportLine("http://"+one, test.textures, test.textures-there, there, 0, 0) + reportLine("http://"+other, test.textures, test.textures-there, there, 0, 0)
		testenv.Check(t, got.out == out && got.err == "" && got.ok,
			"stdout %q, stderr %q; want %q", got.out, got.err, out)
	}
}

// Failures are reported in one line; the other pictures are cached all the same.
func TestWarmPartly(t *testing.T) {
	t.Parallel()
	e := newWarmFixture(t, 2)
	public, _ := e.startEdge(t)
	gone := skin.Hash{1}.String()
	got := runWarm(t, "", nil, "-to", "http://"+public, "-to", "http://127.0.0.1:1", "-retry-for", "0s", "-parallel", "1", e.skins[0].String(), gone, e.skins[1].String())
	want := reportLine("http://"+public, 3, 10, 0, 0, 5) + reportLine("http://127.0.0.1:1", 3, 0, 0, 0, 15)
	testenv.Check(t, got.out == want && !got.ok, "stdout %q; want %q, and failure", got.out, want)
	for _, want := range []string{
		"edge: 5 of 15 pictures could not be loaded at http://" + public + ": /avatar/hash/" + gone + ": 404 Not Found; 15 of 15 pictures could not be loaded at http://127.0.0.1:1: ",
		"connection refused\n",
	} {
		testenv.Check(t, strings.Contains(got.err, want) && strings.Count(got.err, "\n") == 1,
			"stderr %q; want one line with %q", got.err, want)
	}
}

func TestWarmRefuses(t *testing.T) {
	t.Parallel()
	old := origintest.Start(t) // has no list of liked textures
	website := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(website.Close)
	core := func(url string) []string {
		return []string{"EDGE_CORE_URL=" + url, "EDGE_CORE_SECRETS=" + origintest.Secret}
	}
	hash := skin.Hash{}.String()
	for _, test := range []struct {
		want     string // prefix of the line on stderr
		stdin    string
		settings []string
		args     []string
	}{
		{"give the hashes of textures, ", "", nil, nil},
		{"give either hashes or -liked", "", nil, []string{"-liked", "5", hash}},
		{`"abc" is not the hash of a texture`, "", nil, []string{hash, "abc"}},
		{`"-parallel" is not the hash`, "", nil, []string{hash, "-parallel", "2"}},
		{"line 3 of standard input is not the hash", hash + "\n\nabc\n", nil, []string{"-"}},
		{"-liked is -1, ", "", nil, []string{"-liked", "-1"}},
		{"-liked is 100001, ", "", nil, []string{"-liked", "100001"}},
		{"-parallel is 0, ", "", nil, []string{"-parallel", "0", hash}},
		{"-retry-for is -1s, ", "", nil, []string{"-retry-for", "-1s", hash}},
		{`-views: "/avatar" is not a path`, "", nil, []string{"-views", "/avatar", hash}},
		{`invalid value "edge" for flag -to: "edge" does not look like http`, "", nil, []string{"-to", "edge", hash}},
		{"EDGE_TLS_CERT is set, so -to must have ", "", []string{"EDGE_TLS_CERT=cert.pem", "EDGE_TLS_KEY=key.pem"}, []string{hash}},
		{"EDGE_CORE_URL must be set", "", nil, []string{"-liked", "5"}},
		{`EDGE_CORE_URL is "core", but must look like`, "", core("core"), []string{"-liked", "5"}},
		{"core is older than this edge, ", "", core(old.URL), []string{"-liked", "5"}},
		{"The core cannot be reached ", "", core("http://127.0.0.1:1"), []string{"-liked", "5"}},
		{"5 of 5 pictures could not be loaded at " + website.URL + ": /avatar/hash/" + hash + ": 404 Not Found", "", nil, []string{"-to", website.URL, hash}},
	} {
		t.Run(test.want, func(t *testing.T) {
			t.Parallel()
			got := runWarm(t, test.stdin, test.settings, test.args...)
			if got.ok || !strings.HasPrefix(got.err, "edge: "+test.want) || strings.Count(got.err, "\n") != 1 {
				t.Errorf("stderr %q; want one line that begins with %q", got.err, test.want)
			}
		})
	}
}

func TestWarmHelp(t *testing.T) {
	t.Parallel()
	got := runWarm(t, "", nil, "-h")
	for _, want := range []string{"edge warm [flags] [HASH ... | -]\n", "-liked", "-parallel", "-retry-for", "-to URL", "-views paths", "/avatar/hash/{hash}?3d,/preview/hash/{hash},/textures/{hash}"} {
		testenv.Check(t, strings.Contains(got.out, want) && got.ok, "the help lacks %q: %s", want, got.out)
	}
}
