package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tests is a package with a test of each outcome, as go test runs them in a module of
// its own.
const tests = `package sample

import (
	"testing"
	"time"
)

func TestPasses(t *testing.T) {}

func TestTakesLong(t *testing.T) { <-time.After(1100 * time.Millisecond) }

func TestLacksAProgram(t *testing.T) { t.Skip("no such program; apt-get install it") }
`

const failing = `
func TestFails(t *testing.T) { t.Run("part", func(t *testing.T) { t.Error("the reason") }) }

func TestFailsAfterParts(t *testing.T) {
	t.Run("part", func(t *testing.T) {})
	t.Error("another reason")
}
`

// runSample runs the tests of a source, twice, and returns what is printed.
func runSample(t *testing.T, source string) (string, error) {
	t.Helper()
	directory := t.TempDir()
	for name, content := range map[string]string{"go.mod": "module example.com/sample\n\ngo 1.26\n", "sample_test.go": source} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	command := []string{"env", "GOWORK=off", "go", "-C", directory, "test", "-json", "./..."}
	args := append([]string{"--", "first"}, command...)
	args = append(append(args, "--", "second"), command...)
	err := run(args, &out)
	return out.String(), err
}

func TestRun(t *testing.T) {
	t.Parallel()

	out, err := runSample(t, tests)
	if err != nil {
		t.Errorf("tests that pass: %v", err)
	}
	wantInOrder(t, out, "==> first", "ok  \texample.com/sample\t", "==> second", "ok  \texample.com/sample\t",
		"=== Slowest", "s  example.com/sample TestTakesLong",
		"=== Skipped", "example.com/sample TestLacksAProgram: sample_test.go:12: no such program; apt-get install it\n",
		"DONE 6 tests, 2 skipped in ")
	if n := strings.Count(out, "no such program"); n != 1 {
		t.Errorf("the skipped test is listed %d times:\n%s", n, out)
	}
	for _, unwanted := range []string{"=== Failed", "TestPasses"} {
		if strings.Contains(out, unwanted) {
			t.Errorf("%q is printed:\n%s", unwanted, out)
		}
	}
}

func TestRunReportsFailures(t *testing.T) {
	t.Parallel()

	out, err := runSample(t, tests+failing)
	if err == nil || !strings.Contains(err.Error(), "first: exit status 1") || !strings.Contains(err.Error(), "second: exit status 1") {
		t.Errorf("tests that fail: %v", err)
	}
	wantInOrder(t, out, "==> first", "the reason", "FAIL\texample.com/sample\t", "==> second", "the reason",
		"=== Skipped", "=== Failed", "TestFails/part", "the reason", "TestFailsAfterParts", "another reason", "DONE 14 tests, 2 skipped, 6 failures in ")
	for _, unwanted := range []string{"=== RUN", "--- PASS", "TestFailsAfterParts/part"} {
		if strings.Contains(out, unwanted) {
			t.Errorf("%q is printed:\n%s", unwanted, out)
		}
	}
}

func TestRunReportsBuildErrors(t *testing.T) {
	t.Parallel()

	out, err := runSample(t, tests+"\nvar unused int = text\n")
	if err == nil {
		t.Error("a package that does not compile passes")
	}
	wantInOrder(t, out, "FAIL\texample.com/sample [build failed]", "undefined: text")
}

func TestRunWithoutTests(t *testing.T) {
	t.Parallel()

	if out, err := runSample(t, "package sample\n"); err == nil || !strings.Contains(err.Error(), "no test ran") {
		t.Errorf("no test: %v\n%s", err, out)
	}
}

func TestRunRejectsBadArguments(t *testing.T) {
	t.Parallel()

	for _, args := range [][]string{nil, {"go", "test"}, {"--"}, {"--", "title"}, {"--", "title", "true", "--"}, {"--", "title", "/no/such/program"}} {
		if err := run(args, new(strings.Builder)); err == nil {
			t.Errorf("run(%q) has no error", args)
		}
	}
}

// wantInOrder fails the test unless the text contains the parts, one after another.
func wantInOrder(t *testing.T, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, part := range parts {
		_, after, found := strings.Cut(rest, part)
		if !found {
			t.Fatalf("no %q in its place in:\n%s", part, text)
		}
		rest = after
	}
}
