// Command edge is the program that shows: pictures of textures, drawn when
// somebody asks, for everybody.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/veneer-skins/veneer/shared/settings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, program{args: os.Args[1:], environ: os.Environ(), stdout: os.Stdout})
	if err != nil {
		fmt.Fprintln(os.Stderr, "edge:", strings.Join(strings.Fields(err.Error()), " ")) // one line, whatever a library says
		os.Exit(1)                                                                       //nolint:gocritic // stop only restores signals
	}
}

// program is what a run of the program is given.
type program struct {
	args, environ []string
	stdout        io.Writer
}

// command is a thing that the program does when told to.
type command struct {
	name, help string
	run        func(context.Context, program) error
}

// commands are the subcommands, in the order in which help lists them.
func commands() []command {
	return []command{
		{"serve", "serve pictures until told to stop", serveCommand},
		{"health", "ask the running edge whether it is ready", healthCommand},
	}
}

// run carries out one subcommand.
func run(ctx context.Context, p program) error {
	if len(p.args) == 0 || p.args[0] == "help" || p.args[0] == "-h" || p.args[0] == "--help" {
		return help(p.stdout)
	}
	if err := settings.Unknown[config](prefix, p.environ); err != nil {
		return err
	}
	for _, c := range commands() {
		if len(p.args) == 1 && p.args[0] == c.name {
			return c.run(ctx, p)
		}
	}
	return fmt.Errorf("there is no command %q; edge help lists them", strings.Join(p.args, " "))
}
