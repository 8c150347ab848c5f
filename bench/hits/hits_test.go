package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/mapping"
)

// The bare server is this program, so the test binary must be it.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == bareRole {
		main()
		return
	}
	os.Exit(m.Run())
}

// The whole, though too short to say anything about speed.
func TestRun(t *testing.T) {
	t.Parallel()

	edge := os.Getenv("TEST_EDGE_BIN")
	if edge == "" {
		edge = filepath.Join(t.TempDir(), "edge")
		build := exec.CommandContext(t.Context(), "go", "build", "-o", edge, "github.com/veneer-skins/veneer/edge/cmd/edge")
		if output, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build the edge: %v\n%s", err, output)
		}
	}
	var out strings.Builder
	urls := patterns() + 1 // of two residents
	if err := run([]string{"-edge", edge, "-urls", fmt.Sprint(urls), "-rounds", "6", "-seconds", "0.01"}, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		fmt.Sprintf("%d addresses of %d patterns and 2 residents, all of them hits", urls, patterns()),
		"\nFull answers:\n", "\nNot modified:\n", "\n| 6 | ", "\n| median | ", "\n| of bare's | ", "of 6 ratios in their order, number 1 from either end",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not print %q", want)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()

	for _, args := range []string{"-rounds 5", "-seconds 0", "-urls 0"} {
		if err := run(strings.Fields(args), new(strings.Builder)); err == nil {
			t.Errorf("run %s: no error", args)
		}
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()

	residents, leads, err := settle(t.Context(), t.TempDir(), 80)
	if err != nil {
		t.Fatal(err)
	}
	count := 79*patterns() + 1
	list := addresses(count, residents)
	known := map[string]bool{}
	for _, address := range list {
		known[address] = true
		if strings.ContainsAny(address, "{}") {
			t.Fatalf("%s leads nowhere", address)
		}
	}
	if len(known) != count {
		t.Errorf("%d of %d addresses differ", len(known), count)
	}
	for _, want := range []string{
		"/avatar/player/Player_80", "/avatar/player/Player_1?png&size=64", "/avatar/user/79.png?size=64&3d", "/avatar/1",
		"/preview/hash/" + residents[5].worn.Hash.String(),
	} {
		if !known[want] {
			t.Errorf("%s is not among them", want)
		}
	}

	files := map[string]bool{}
	for i := range residents {
		r := &residents[i]
		files[r.worn.Hash.String()] = true
		for _, key := range []mapping.Key{
			mapping.Name(r.name), mapping.UUID(r.uuid), mapping.UID(r.id()), mapping.TID(r.id()), mapping.Hash(r.worn.Hash),
		} {
			if cmp.Equal(leads[key], mapping.Mapping{}) {
				t.Errorf("%s leads nowhere", key)
			}
		}
	}
	if len(files) != len(residents) {
		t.Errorf("%d residents have %d different textures", len(residents), len(files))
	}
}

func TestTypical(t *testing.T) {
	t.Parallel()

	answers := make([]answer, 4)
	for i, length := range []int{1, 100, 30, 2} { // 33 on average
		answers[i] = answer{Target: fmt.Sprint(length), Headers: []header{{"", strings.Repeat("x", length)}}}
	}
	if got := typical(answers).Target; got != "30" {
		t.Errorf("the one with %s bytes is typical; want 30", got)
	}
}

func TestNginxConfig(t *testing.T) {
	t.Parallel()

	text := nginxConfig("127.0.0.1:1", "127.0.0.1:2", "/srv", byBody, 7, []header{
		{"Content-Type", "image/webp"}, {"Cache-Status", "veneer; hit"}, {"Etag", `"abc"`},
	})
	for want, count := range map[string]int{
		"listen 127.0.0.1:1;": 1, "listen 127.0.0.1:2;": 1, "max=7 ": 1, `root "/srv/by body";`: 1, "default_type image/webp;": 1,
		`add_header Cache-Status "veneer; hit";`: 2, `add_header Etag "\"abc\"";`: 1, "{": 5, "}": 5,
	} {
		if got := strings.Count(text, want); got != count {
			t.Errorf("%q is there %d times; want %d", want, got, count)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

// A server that says something else than the edge is told from it.
func TestCheck(t *testing.T) {
	t.Parallel()

	said := record{
		Bodies:     [][]byte{[]byte("picture")},
		Full:       []answer{{Target: "/a?b", Status: 200, Headers: []header{{"Content-Type", "image/png"}, {"Etag", `"1"`}}}},
		Unmodified: []answer{{Target: "/a?b", Status: 304, Headers: []header{{"Etag", `"1"`}}}},
	}
	f := func(ownTags bool, change func(*record), want string) {
		t.Helper()
		served := record{Bodies: said.Bodies, Full: copied(said.Full), Unmodified: copied(said.Unmodified)}
		change(&served)
		s := &rival{
			name: "it", full: serveAnswers(t, served.bare(served.Full)), unmodified: serveAnswers(t, served.bare(served.Unmodified)),
			target: func(a *answer) string { return a.Target }, ownTags: ownTags,
		}
		tags, err := s.check(t.Context(), &said)
		switch {
		case want == "" && (err != nil || !cmp.Equal(tags, []string{`"1"`})):
			t.Errorf("check: %q, %v", tags, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("check: %v; want an error with %q", err, want)
		}
	}

	f(false, func(*record) {}, "")
	f(false, func(r *record) { r.Bodies = [][]byte{[]byte("pixture")} }, "7 bytes to /a?b, and not the 7")
	f(false, func(r *record) { r.Full[0].Status = 201 }, "it answers 201 to /a?b; the edge 200")
	f(false, func(r *record) { r.Unmodified[0].Status = 200 }, "it answers 200 to /a?b; the edge 304")
	f(false, func(r *record) { r.Full[0].Headers[0].Value = "image/webp" }, "image/webp")
	f(false, func(r *record) { r.Full[0].Headers = append(r.Full[0].Headers, header{"X-More", "1"}) }, "X-More")
	f(false, func(r *record) { r.Full[0].Target = "/b" }, "404")
	f(true, func(r *record) { r.Full[0].Headers[0].Value = "image/webp" }, "")
	f(true, func(r *record) { r.Full[0].Headers = r.Full[0].Headers[:1] }, "it answers no Etag to /a?b")
}

// copied returns answers that can be changed.
func copied(answers []answer) []answer {
	own := append([]answer(nil), answers...)
	for i := range own {
		own[i].Headers = append([]header(nil), own[i].Headers...)
	}
	return own
}

// serveAnswers serves a handler on loopback and returns its address.
func serveAnswers(t *testing.T, handler fasthttp.RequestHandler) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &fasthttp.Server{Handler: handler, NoDefaultServerHeader: true, NoDefaultContentType: true}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		if err := server.Shutdown(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}
