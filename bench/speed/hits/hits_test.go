package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/bench/speed/baseline"
	"github.com/veneer-skins/veneer/bench/speed/fixture"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// The fasthttp baseline is this program, so the test binary must be it.
func TestMain(m *testing.M) {
	if isRole, err := baseline.ServeRole(os.Args[1:]); isRole {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// A complete run, though too short to say anything about speed.
func TestRun(t *testing.T) {
	t.Parallel()

	var out strings.Builder
	urls := fixture.Patterns() + 1 // of two players
	if err := run([]string{"-edge", stack.Binary(t, "edge"), "-urls", fmt.Sprint(urls), "-rounds", "6", "-seconds", "0.05"}, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		fmt.Sprintf("%d addresses of %d patterns and 2 players, all of them hits", urls, fixture.Patterns()),
		"\nFull answers:\n", "\nNot modified:\n", "\nFull answers, TLS:\n", "\nNot modified, TLS:\n", "\n| 6 | ", "\n| median | ", "\n| of bare's | ", "\n/helm/{name}/128:\n", "\n| of own's | ", "of 6 ratios in their order, number 1 from either end",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not print %q", want)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

// Caches in front of the edge answer as it did, even when it is gone.
func TestCachesInFront(t *testing.T) {
	t.Parallel()

	b := bench{env: baseline.Env{WorkDir: t.TempDir()}}
	t.Cleanup(b.close)
	var err error
	if b.fixture, err = fixture.Open(t.Context(), b.env, stack.Binary(t, "edge"), 1); err != nil {
		t.Fatal(err)
	}
	b.closers = append(b.closers, b.fixture.Close)
	edge := b.fixture.Edge
	if b.record, err = baseline.RecordHits(t.Context(), edge, b.fixture.Addresses(fixture.Patterns())); err != nil {
		t.Fatal(err)
	}
	for _, start := range []func(context.Context, baseline.Env, string, int64) (*baseline.Server, error){baseline.StartNginxCache, baseline.StartVarnish} {
		err := b.add(start(t.Context(), b.env, edge.Address, 64<<20))
		if missing, ok := errors.AsType[*baseline.MissingError](err); ok {
			testenv.Skip(t, missing)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	caches := b.servers
	for _, stopped := range []bool{false, true} {
		if stopped {
			edge.Stop()
		}
		for _, s := range caches {
			s.OwnTags = true // allows additional headers
			if _, err := s.Check(t.Context(), b.record); err != nil {
				t.Errorf("with the edge stopped %v: %v", stopped, err)
			}
		}
	}
}

func TestRunRejectsBadArguments(t *testing.T) {
	t.Parallel()

	for _, args := range []string{"-rounds 5", "-seconds 0", "-urls 0"} {
		if err := run(strings.Fields(args), new(strings.Builder)); err == nil {
			t.Errorf("run %s: no error", args)
		}
	}
}
