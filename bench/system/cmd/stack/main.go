// Command stack is what the scripts of deploy/dev run:
//
//	stack run                                      Veneer on this machine, until a signal
//	stack services [-memory] [SETTING=VALUE]… -- COMMAND…
//	                                               a command with a PostgreSQL with these settings, and a MinIO
//	stack stop                                     stops run; it fails while tests run
//
// The working directory is the root of the repository. A signal to stop ends everything in order.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/veneer-skins/veneer/bench/system/stack"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(arguments []string) (status int) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // a closed terminal must not end it before the programs
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	interrupted := 0
	go func() {
		interrupted = 128 + int((<-signals).(syscall.Signal)) //nolint:errcheck,forcetypeassert // they are
		stop()
	}()

	root, err := os.Getwd()
	if err != nil {
		return fail("stack", err)
	}
	command := ""
	if len(arguments) > 0 {
		command, arguments = arguments[0], arguments[1:]
	}
	finished := false
	err = stack.RunWithTB(ctx, func(tb testing.TB) {
		tb.Helper()
		local := stack.NewLocal(tb, root, os.Stdout)
		switch command {
		case "run":
			local.Run()
		case "stop":
			local.Stop()
		case "services":
			end := slices.Index(arguments, "--")
			if end < 0 || end+1 == len(arguments) {
				tb.Fatal("there is no command after --")
			}
			settings := arguments[:end]
			inMemory := len(settings) > 0 && settings[0] == "-memory"
			if inMemory {
				settings = settings[1:]
			}
			status = local.RunWithServices(inMemory, settings, arguments[end+1:])
		default:
			tb.Fatal("the commands are run, services and stop")
		}
		finished = true
	})
	switch {
	case finished && command == "run":
		return 0 // a signal is the usual end
	case ctx.Err() != nil:
		return interrupted
	case err != nil:
		name := command
		if end := slices.Index(arguments, "--"); end >= 0 && end+1 < len(arguments) {
			name = filepath.Base(arguments[end+1]) // the script that needs the services
		}
		return fail(name, err)
	}
	return status
}

// fail prints an error after the end of a log, which may precede its last line.
func fail(name string, err error) int {
	text := err.Error()
	last := strings.LastIndexByte(text, '\n') + 1
	fmt.Fprintf(os.Stderr, "%smake %s: %s\n", text[:last], name, text[last:])
	return 1
}
