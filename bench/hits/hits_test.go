package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/bench/rivals"
	"github.com/veneer-skins/veneer/shared/mapping"
)

// The bare server is this program, so the test binary must be it.
func TestMain(m *testing.M) {
	if asked, err := rivals.Serve(os.Args[1:]); asked {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// The whole, though too short to say anything about speed.
func TestRun(t *testing.T) {
	t.Parallel()

	var out strings.Builder
	urls := patterns() + 1 // of two residents
	if err := run([]string{"-edge", edge(t), "-urls", fmt.Sprint(urls), "-rounds", "6", "-seconds", "0.01"}, &out); err != nil {
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

// edge returns the path of the edge's program.
func edge(t *testing.T) string {
	t.Helper()
	path := os.Getenv("TEST_EDGE_BIN")
	if path == "" {
		path = filepath.Join(t.TempDir(), "edge")
		build := exec.CommandContext(t.Context(), "go", "build", "-o", path, "github.com/veneer-skins/veneer/edge/cmd/edge")
		if output, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build the edge: %v\n%s", err, output)
		}
	}
	return path
}

// What caches in front of the edge have once had from it they answer as it does, even
// when it is gone.
func TestCachesInFront(t *testing.T) {
	t.Parallel()

	b := bench{place: rivals.Place{Work: t.TempDir()}}
	t.Cleanup(b.close)
	textures := filepath.Join(b.place.Work, "textures")
	residents, leads, err := settle(t.Context(), textures, 1)
	if err != nil {
		t.Fatal(err)
	}
	b.core.leads = leads
	url, server, err := b.core.serve()
	if err != nil {
		t.Fatal(err)
	}
	b.closers = append(b.closers, func() { _ = server.Close() })
	if err := b.add(startEdge(t.Context(), b.place, edge(t), textures, url)); err != nil {
		t.Fatal(err)
	}
	behind := b.servers[0]
	if b.record, err = rivals.RecordHits(t.Context(), behind, addresses(patterns(), residents)); err != nil {
		t.Fatal(err)
	}
	for _, start := range []func(context.Context, rivals.Place, string, int64) (*rivals.Server, error){rivals.StartNginxCache, rivals.StartVarnish} {
		err := b.add(start(t.Context(), b.place, behind.Address, 64<<20))
		if missing, ok := errors.AsType[*rivals.MissingError](err); ok {
			t.Log(missing)
		} else if err != nil {
			t.Fatal(err)
		}
	}
	caches := b.servers[1:]
	if len(caches) == 0 {
		t.Skip("no cache is installed")
	}
	for _, gone := range []bool{false, true} {
		if gone {
			behind.Stop()
		}
		for _, s := range caches {
			s.OwnTags = true // which lets it have headers of its own
			if _, err := s.Check(t.Context(), b.record); err != nil {
				t.Errorf("with the edge gone %v: %v", gone, err)
			}
		}
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
