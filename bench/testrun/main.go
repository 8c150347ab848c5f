// Command testrun runs test commands, one after another, and sums them up. Each follows
// "--" and a title:
//
//	testrun -- "all of core" go test -json ./core/... -- "edge, with the race detector" go test -json -race ./edge/...
//
// While they run it prints go test's line of each package that ends and the output of
// each test that fails. At the end it prints the slowest tests, the skipped ones with
// their causes, the failed ones, and one line of counts. It exits with 1 if a command
// failed.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"gotest.tools/gotestsum/testjson"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		os.Exit(1)
	}
}

// run runs the commands, which print events of test2json. A command that fails does not keep the
// next ones from running.
func run(args []string, out io.Writer) error {
	commands, err := split(args)
	if err != nil {
		return err
	}
	p := &progress{out: out, packages: testjson.NewEventFormatter(out, "standard-quiet", testjson.FormatOptions{})}
	var execution *testjson.Execution // of all commands
	var failures []error
	for _, command := range commands {
		title := command[0]
		fmt.Fprintln(out, "==>", title)
		if execution, err = scan(command[1:], execution, p); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", title, err))
		}
	}
	if execution == nil { // no command could be started
		return errors.Join(failures...)
	}
	printSlowest(out, execution)
	printSkipped(out, execution)
	if failed := execution.Failed(); len(failed) > 0 {
		fmt.Fprintln(out, "\n=== Failed")
		for _, test := range failed {
			printFailed(out, execution, test)
		}
	}
	testjson.PrintSummary(out, execution, testjson.SummarizeErrors)
	if execution.Total() == 0 {
		failures = append(failures, errors.New("no test ran: is -run misspelt?"))
	}
	return errors.Join(failures...)
}

// split returns the commands, each with its title first.
func split(args []string) (commands [][]string, err error) {
	for _, arg := range args {
		switch {
		case arg == "--":
			commands = append(commands, nil)
		case len(commands) == 0:
			return nil, fmt.Errorf("%q does not follow a --", arg)
		default:
			commands[len(commands)-1] = append(commands[len(commands)-1], arg)
		}
	}
	if len(commands) == 0 || slices.ContainsFunc(commands, func(c []string) bool { return len(c) < 2 }) {
		return nil, errors.New("usage: testrun -- TITLE COMMAND [ARG ...] [-- TITLE COMMAND [ARG ...]]")
	}
	return commands, nil
}

// scan runs one command and adds its events to those of earlier commands.
func scan(args []string, earlier *testjson.Execution, handler testjson.EventHandler) (*testjson.Execution, error) {
	command := exec.Command(args[0], args[1:]...)
	stdout, err := command.StdoutPipe()
	if err != nil {
		return earlier, err
	}
	stderr, err := command.StderrPipe()
	if err != nil {
		return earlier, err
	}
	if err := command.Start(); err != nil {
		return earlier, err
	}
	execution, err := testjson.ScanTestOutput(testjson.ScanConfig{
		Stdout: stdout, Stderr: stderr, Handler: handler, Execution: earlier, IgnoreNonJSONOutputLines: true,
	})
	return execution, errors.Join(err, command.Wait())
}

// progress prints events as they come.
type progress struct {
	out      io.Writer
	packages testjson.EventFormatter
}

// Event prints what a package ends with, and the output of a test that failed.
func (p *progress) Event(event testjson.TestEvent, execution *testjson.Execution) error {
	if event.PackageEvent() {
		if strings.Contains(event.Output, "[no test files]") || strings.Contains(event.Output, "[no tests to run]") {
			return nil
		}
		return p.packages.Format(event, execution)
	}
	if event.Action == testjson.ActionFail {
		test := execution.Package(event.Package).LastFailedByName(event.Test)
		printFailed(p.out, execution, test)
	}
	return nil
}

// printFailed prints a test that failed, and what it printed.
func printFailed(out io.Writer, execution *testjson.Execution, test testjson.TestCase) {
	fmt.Fprintf(out, "--- FAIL: %s (%.2fs)\n", nameOf(test), test.Elapsed.Seconds())
	for _, line := range outputLines(execution, test) {
		fmt.Fprint(out, line)
	}
}

// nameOf returns a test's package, without our module prefix, and its name.
func nameOf(test testjson.TestCase) string {
	return strings.TrimPrefix(test.Package, "github.com/veneer-skins/veneer/") + " " + string(test.Test)
}

// outputLines returns the lines of a test without those that go test adds to them.
func outputLines(execution *testjson.Execution, test testjson.TestCase) []string {
	return slices.DeleteFunc(slices.Clone(execution.OutputLines(test)), func(line string) bool {
		return strings.HasPrefix(line, "=== ") || strings.HasPrefix(strings.TrimLeft(line, " "), "--- ")
	})
}

// Err prints a line that is no event.
func (p *progress) Err(text string) error {
	_, err := fmt.Fprintln(p.out, text)
	return err
}

// Bounds of the list of slow tests.
const (
	slowestCount = 10
	slowestFrom  = time.Second
)

// printSlowest lists the slowest tests without their subtests. The time in which a parallel test is
// paused does not count.
func printSlowest(out io.Writer, execution *testjson.Execution) {
	var slow []testjson.TestCase
	for _, name := range execution.Packages() {
		for _, test := range execution.Package(name).TestCases() {
			if !test.Test.IsSubTest() && test.Elapsed >= slowestFrom {
				slow = append(slow, test)
			}
		}
	}
	if len(slow) == 0 {
		return
	}
	slices.SortStableFunc(slow, func(a, b testjson.TestCase) int { return cmp.Compare(b.Elapsed, a.Elapsed) })
	fmt.Fprintln(out, "\n=== Slowest")
	for _, test := range slow[:min(len(slow), slowestCount)] {
		fmt.Fprintf(out, "%7.1fs  %s\n", test.Elapsed.Seconds(), nameOf(test))
	}
}

// printSkipped lists the skipped tests, each in a line with its cause.
func printSkipped(out io.Writer, execution *testjson.Execution) {
	skipped := execution.Skipped()
	if len(skipped) == 0 {
		return
	}
	fmt.Fprintln(out, "\n=== Skipped")
	listed := map[string]bool{} // a test may be skipped with and without the race detector
	for _, test := range skipped {
		cause := strings.Join(strings.Fields(strings.Join(outputLines(execution, test), " ")), " ")
		line := fmt.Sprintf("%s: %s\n", nameOf(test), cause)
		if !listed[line] {
			listed[line] = true
			fmt.Fprint(out, line)
		}
	}
}
