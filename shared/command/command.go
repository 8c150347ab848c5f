// Package command is the command line that both programs have: subcommands, a
// help that lists every setting, and one line for whatever goes wrong.
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/veneer-skins/veneer/shared/settings"
)

// Program is a program and what it can do.
type Program struct {
	Name  string
	About string // a sentence
	// Prefix begins the names of its settings.
	Prefix   string
	Commands []Command

	unknown func(prefix string, environ []string) error
	help    func(w io.Writer, prefix string) error
}

// Command is a thing that a program does when told to.
type Command struct {
	Name    string // one word or two
	Operand string // what follows it; empty for nothing
	Help    string
	Run     func(context.Context, Invocation) error
}

// Invocation is what a run of a program is given. Args are the arguments after
// the command's name.
type Invocation struct {
	Args, Environ []string
	Stdin         io.Reader
	Stdout        io.Writer
}

// New returns a program whose settings are the fields of a Config.
func New[Config any](name, about, prefix string, commands ...Command) Program {
	return Program{
		Name: name, About: about, Prefix: prefix, Commands: commands,
		unknown: settings.Unknown[Config], help: settings.Help[Config],
	}
}

// Main runs the program as the operating system invoked it, until it is done or
// told to stop, and returns its exit status.
func (p Program) Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := p.Run(ctx, Invocation{Args: os.Args[1:], Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout}); err != nil {
		// One line, whatever a library says.
		fmt.Fprintln(os.Stderr, p.Name+":", strings.Join(strings.Fields(err.Error()), " "))
		return 1
	}
	return 0
}

// Run carries out the command that the arguments begin with.
func (p Program) Run(ctx context.Context, i Invocation) error {
	if len(i.Args) == 0 || i.Args[0] == "help" || i.Args[0] == "-h" || i.Args[0] == "--help" {
		return p.writeHelp(i.Stdout)
	}
	if err := p.unknown(p.Prefix, i.Environ); err != nil {
		return err
	}
	for _, c := range p.Commands {
		words := strings.Fields(c.Name)
		if len(i.Args) < len(words) || !slices.Equal(i.Args[:len(words)], words) {
			continue
		}
		i.Args = i.Args[len(words):]
		if err := c.Run(ctx, i); !errors.Is(err, flag.ErrHelp) {
			return err
		}
		return nil
	}
	return fmt.Errorf("there is no command %q; %s help lists them", strings.Join(i.Args, " "), p.Name)
}

// writeHelp writes how to use the program.
func (p Program) writeHelp(w io.Writer) error {
	fmt.Fprintf(w, "%s %s\n\nCommands:\n", p.Name, p.About)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range p.Commands {
		fmt.Fprintf(table, "  %s\t%s\n", strings.TrimSpace(p.Name+" "+c.Name+" "+c.Operand), c.Help)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nSettings come from the environment. Each may be given as NAME_FILE instead, the path of a file that holds the value.")
	return p.help(w, p.Prefix)
}

// Flags returns flags for a command of a program, both named, which say nothing
// by themselves.
func Flags(name string) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	return flags
}

// Operand parses flags and returns the one argument that follows them, which
// name is for people; with an empty name none may follow. It returns flag.ErrHelp
// when it was asked for help and has given it.
func (i Invocation) Operand(flags *flag.FlagSet, name string) (string, error) {
	operands, err := i.Operands(flags, name)
	switch {
	case err != nil:
		return "", err
	case name == "" && len(operands) > 0:
		return "", fmt.Errorf("%s takes no argument, but was given %q", flags.Name(), operands[0])
	case name != "" && len(operands) != 1:
		return "", fmt.Errorf("give exactly one %s, after the flags: %s [flags] %s", name, flags.Name(), name)
	case name == "":
		return "", nil
	default:
		return operands[0], nil
	}
}

// Operands is Operand for commands that take several arguments, or none.
func (i Invocation) Operands(flags *flag.FlagSet, name string) ([]string, error) {
	err := flags.Parse(i.Args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(i.Stdout, strings.TrimSpace(flags.Name()+" [flags] "+name))
		flags.SetOutput(i.Stdout)
		flags.PrintDefaults()
	}
	return flags.Args(), err
}
