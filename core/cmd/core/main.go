// Command core is the program that remembers: the API of accounts, players and
// textures, and what edges ask.
package main

import (
	"context"
	"errors"
	"flag"
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
	err := run(ctx, program{args: os.Args[1:], environ: os.Environ(), stdin: os.Stdin, stdout: os.Stdout})
	if err != nil {
		fmt.Fprintln(os.Stderr, "core:", strings.Join(strings.Fields(err.Error()), " ")) // one line, whatever a library says
		os.Exit(1)                                                                       //nolint:gocritic // stop only restores signals
	}
}

// program is what a run of the program is given.
type program struct {
	args, environ []string
	stdin         io.Reader
	stdout        io.Writer
}

// commands are the subcommands, in the order in which help lists them.
func commands() []command {
	return []command{
		{"serve", "", "answer the API and the edges until told to stop", serveCommand},
		{"migrate", "", "make the database's schema and the texture store ready", migrateCommand},
		{"user add", "EMAIL", "add a user; the password is read from standard input", userAddCommand},
		{"texture add", "FILE", "add a texture to a user's closet", textureAddCommand},
		{"health", "", "ask the running core whether it is ready", healthCommand},
	}
}

type command struct {
	name, operand, help string
	run                 func(context.Context, program) error
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
		if rest, ok := match(c.name, p.args); ok {
			p.args = rest
			if err := c.run(ctx, p); !errors.Is(err, flag.ErrHelp) {
				return err
			}
			return nil
		}
	}
	return fmt.Errorf("there is no command %q; core help lists them", strings.Join(p.args, " "))
}
