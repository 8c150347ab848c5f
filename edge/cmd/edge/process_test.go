package main

import (
	"bufio"
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// edgeProcess is a running edge.
type edgeProcess struct {
	*testing.T
	public, operators string // addresses

	command *exec.Cmd
	ended   chan struct{} // closed at the end of the log
	last    string        // message of the log, once it has ended
}

// start starts an edge with only these settings, and waits until it listens. It is stopped when the test ends.
func start(t *testing.T, settings ...string) *edgeProcess {
	t.Helper()
	e := &edgeProcess{T: t, command: edgeWith(context.WithoutCancel(t.Context()), "serve", settings...), ended: make(chan struct{})}
	stdout := testenv.Must(e.command.StdoutPipe())(t)
	testenv.Do(t, e.command.Start())
	addresses := make(chan string, 2)
	go func() {
		defer close(e.ended)
		defer close(addresses)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			var line struct{ Msg, Address string }
			if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
				t.Errorf("the log has the line %s", lines.Text())
			}
			if line.Msg == "listening" {
				addresses <- line.Address
			}
			e.last = line.Msg
		}
	}()
	t.Cleanup(func() {
		if e.command.ProcessState == nil {
			e.stop()
		}
	})
	e.public, e.operators = <-addresses, <-addresses
	if e.operators == "" {
		<-e.ended
		t.Fatalf("the edge ended before it listened; its last message is %q", e.last)
	}
	return e
}

// stop stops the edge, which drains.
func (e *edgeProcess) stop() {
	e.Helper()
	testenv.Do(e, e.command.Process.Signal(syscall.SIGTERM))
	<-e.ended
	err := e.command.Wait()
	testenv.Check(e, err == nil, "the edge ended with %v; want exit code 0", err)
}

// logUntil starts an edge, and kills it once its log has a line with a text. It returns that line and those before
// it, or all lines if the edge ends.
func logUntil(t *testing.T, text string, settings ...string) (lines []string) {
	t.Helper()
	command := edgeWith(t.Context(), "serve", settings...)
	stdout := testenv.Must(command.StdoutPipe())(t)
	testenv.Do(t, command.Start())
	defer func() {
		_ = command.Process.Kill()
		_ = command.Wait() // its error is the signal
	}()
	for log := bufio.NewScanner(stdout); log.Scan(); {
		if lines = append(lines, log.Text()); strings.Contains(log.Text(), text) {
			return lines
		}
	}
	if lines == nil {
		t.Fatal("the edge has no log")
	}
	return lines
}
