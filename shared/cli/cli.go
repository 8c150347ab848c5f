// Package cli is the command line of both programs: subcommands, help that lists every
// setting, and one line for each error.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"

	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/version"
)

// Program is a program with its subcommands.
type Program struct {
	Name        string
	Description string // a sentence
	// Prefix is the common prefix of its settings.
	Prefix   string
	Commands []Command

	checkUnknown func(program, prefix string, environ []string) error
	explain      func(prefix string, err error) error
	help         func(w io.Writer, prefix string) error
}

// Command is a subcommand.
type Command struct {
	Name      string // one word or two
	ArgsUsage string // its arguments for the help; empty for none
	Help      string
	// Settings writes the settings that the command reads, as config.Help does; nil for none.
	Settings func(w io.Writer, prefix string) error
	Run      func(context.Context, Invocation) error
}

// Invocation is the input of a run. Args are the arguments after the command's name.
type Invocation struct {
	Args, Environ []string
	Stdin         io.Reader
	Stdout        io.Writer

	help string // of the command
}

// New returns a program with the settings of a Config.
func New[Config any](name, description, prefix string, commands ...Command) Program {
	return Program{
		Name: name, Description: description, Prefix: prefix, Commands: commands,
		checkUnknown: checkUnknown[Config], explain: config.Explain[Config], help: config.Help[Config],
	}
}

// Main runs the program with the arguments of the process until it ends or is signalled to
// stop, and returns the exit status.
func (p Program) Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := p.Run(ctx, Invocation{Args: os.Args[1:], Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout}); err != nil {
		// Errors of libraries may have several lines.
		fmt.Fprintln(os.Stderr, p.Name+":", strings.Join(strings.Fields(err.Error()), " "))
		return 1
	}
	return 0
}

// Run runs the command that the arguments name.
func (p Program) Run(ctx context.Context, i Invocation) error {
	name := ""
	if len(i.Args) > 0 {
		name = i.Args[0]
	}
	switch name {
	case "", "-h", "-help", "--help":
		return p.writeHelp(i.Stdout)
	case "version", "--version", "-version":
		_, err := fmt.Fprintln(i.Stdout, p.Name, version.Current())
		return err
	case "help":
		if len(i.Args) == 1 || len(i.Args) == 2 && (i.Args[1] == "help" || i.Args[1] == "version") {
			return p.writeHelp(i.Stdout)
		}
		if group := p.group(i.Args[1]); len(i.Args) == 2 && len(group) > 0 {
			return p.writeCommands(i.Stdout, group)
		}
		c, rest, err := p.find(i.Args[1:])
		if err != nil {
			return err
		}
		if len(rest) > 0 {
			return fmt.Errorf("%s help takes a command and nothing else, but was given %q", p.Name, rest[0])
		}
		i.Args = []string{"-h"}
		return p.run(ctx, c, i)
	}
	c, rest, err := p.find(i.Args)
	if err != nil {
		return err
	}
	if err := p.checkUnknown(p.Name, p.Prefix, i.Environ); err != nil {
		return err
	}
	i.Args = rest
	return p.explain(p.Prefix, p.run(ctx, c, i))
}

// run runs a command. If that was asked for help, and has written it, its settings follow.
func (p Program) run(ctx context.Context, c Command, i Invocation) error {
	i.help = c.Help
	err := c.Run(ctx, i)
	if !errors.Is(err, flag.ErrHelp) {
		return err
	}
	if c.Settings == nil {
		return nil
	}
	fmt.Fprintln(i.Stdout, "\nSettings:")
	return c.Settings(i.Stdout, p.Prefix)
}

// find returns the command that the arguments begin with, and the arguments after its name.
// The error lists similar commands.
func (p Program) find(args []string) (c Command, rest []string, err error) {
	for _, c := range p.Commands {
		words := strings.Fields(c.Name)
		if len(args) >= len(words) && slices.Equal(args[:len(words)], words) {
			return c, args[len(words):], nil
		}
	}
	given := args[:min(len(args), maxWords)]
	if len(given) > 1 && strings.HasPrefix(given[1], "-") {
		given = given[:1]
	}
	hint := ""
	if suggestions := p.suggest(given); len(suggestions) > 0 {
		hint = strconv.Quote(suggestions[0])
		if last := len(suggestions) - 1; last > 0 {
			hint = fmt.Sprintf(`"%s" or %q`, strings.Join(suggestions[:last], `", "`), suggestions[last])
		}
		hint = " did you mean " + hint + "?"
	}
	return Command{}, nil, fmt.Errorf("there is no command %q;%s %s help lists them all", strings.Join(given, " "), hint, p.Name)
}

// group returns the commands of two words that begin with a word, none if the word is a command itself.
func (p Program) group(word string) (group []Command) {
	for _, c := range p.Commands {
		if c.Name == word {
			return nil
		}
		if strings.HasPrefix(c.Name, word+" ") {
			group = append(group, c)
		}
	}
	return group
}

// maxWords is the most words in a command's name.
const maxWords = 2

// suggest returns the commands that a wrong name may stand for: those that contain a single
// given word, those that are spelt similarly, or those that contain one of several words.
func (p Program) suggest(given []string) []string {
	var names, matches []string
	for _, c := range p.Commands {
		names = append(names, c.Name)
		if slices.ContainsFunc(strings.Fields(c.Name), func(word string) bool { return slices.Contains(given, word) }) {
			matches = append(matches, c.Name)
		}
	}
	if len(given) == 1 && len(matches) > 0 {
		return matches
	}
	if len(given) == 1 { // the first word of a command with two
		for _, name := range names {
			if first, _, two := strings.Cut(name, " "); two && len(nearest(given[0], []string{first})) > 0 {
				matches = append(matches, name)
			}
		}
		if len(matches) > 0 {
			return matches
		}
	}
	for words := len(given); words > 0; words-- { // the last words may be arguments
		if suggestions := nearest(strings.Join(given[:words], " "), names); len(suggestions) > 0 {
			return suggestions
		}
	}
	return matches
}

// writeHelp writes the help of the program.
func (p Program) writeHelp(w io.Writer) error {
	fmt.Fprintf(w, "%s %s\n\nCommands:\n", p.Name, p.Description)
	if err := p.writeCommands(w, slices.Concat(p.Commands, []Command{
		{Name: "help", ArgsUsage: "[COMMAND]", Help: "list all commands and settings, or show a command's flags and settings"},
		{Name: "version", Help: "show the version of the build"},
	})); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nSettings come from the environment. Each may be given as NAME_FILE instead, the path of a file that holds the value.")
	return p.help(w, p.Prefix)
}

// writeCommands writes a line for each command.
func (p Program) writeCommands(w io.Writer, commands []Command) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range commands {
		fmt.Fprintf(table, "  %s\t%s\n", strings.TrimSpace(p.Name+" "+c.Name+" "+c.ArgsUsage), c.Help)
	}
	return table.Flush()
}

// Background runs functions until stop is called, which waits for their end. They do not end with
// ctx: requests in flight need them after that.
func Background(ctx context.Context, functions ...func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	for _, function := range functions {
		running.Go(func() { function(ctx) })
	}
	return func() {
		cancel()
		running.Wait()
	}
}

// Flags returns the flags of a command; name is the program and the command. They
// print nothing by themselves.
func Flags(name string) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	return flags
}

// ParseArg parses flags and returns the one argument after them. name is its name in the
// help; if it is empty, no argument is allowed. It returns flag.ErrHelp after writing the
// help for -h.
func (i Invocation) ParseArg(flags *flag.FlagSet, name string) (string, error) {
	rest, err := i.ParseArgs(flags, name)
	switch {
	case err != nil:
		return "", err
	case name == "" && len(rest) > 0:
		return "", fmt.Errorf("%s takes no argument, but was given %q", flags.Name(), rest[0])
	case name != "" && len(rest) != 1:
		return "", fmt.Errorf("give exactly one %s, after the flags: %s [flags] %s", name, flags.Name(), name)
	case name == "":
		return "", nil
	default:
		return rest[0], nil
	}
}

// ParseArgs is ParseArg for commands with any number of arguments.
func (i Invocation) ParseArgs(flags *flag.FlagSet, name string) ([]string, error) {
	err := flags.Parse(i.Args)
	if errors.Is(err, flag.ErrHelp) {
		usage, hasFlags := flags.Name(), false
		flags.VisitAll(func(*flag.Flag) { hasFlags = true })
		if hasFlags {
			usage += " [flags]"
		}
		fmt.Fprintf(i.Stdout, "%s\n\n%s\n", strings.TrimSpace(usage+" "+name), i.help)
		if hasFlags {
			fmt.Fprintln(i.Stdout, "\nFlags:")
			flags.SetOutput(i.Stdout)
			flags.PrintDefaults()
		}
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%s; %s -h lists the flags", strings.TrimSuffix(err.Error(), ": parse error"), flags.Name())
	}
	return flags.Args(), nil
}
