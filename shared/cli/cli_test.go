package cli_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/shared/cli"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/testenv"
)

type testConfig struct {
	Colour string `env:"COLOUR" envDefault:"red" help:"what it looks like"`
}

// run runs a program with commands that print their name and their argument.
func run(t *testing.T, environ []string, args ...string) (string, error) {
	t.Helper()
	var out strings.Builder
	say := func(name, argsUsage string) cli.Command {
		return cli.Command{Name: name, ArgsUsage: argsUsage, Help: "help of " + name, Settings: config.Help[testConfig], Run: func(_ context.Context, i cli.Invocation) error {
			flags := cli.Flags("x " + name)
			loud := flags.Bool("loud", false, "shout")
			got, err := i.ParseArg(flags, argsUsage)
			if err != nil {
				return err
			}
			_, err = i.Stdout.Write([]byte(name + " " + got + map[bool]string{true: "!"}[*loud]))
			return err
		}}
	}
	failing := cli.Command{Name: "fail", Run: func(context.Context, cli.Invocation) error { return errors.New("no luck") }}
	wrong := cli.Command{Name: "take none", Run: func(context.Context, cli.Invocation) error { return config.Errorf("X_COLOUR", "is none") }}
	err := cli.New[testConfig]("x", "is a test.", "X_", say("one", ""), say("take more", "FILE"), failing, wrong).
		Run(t.Context(), cli.Invocation{Args: args, Environ: environ, Stdout: &out})
	return out.String(), err
}

func TestRun(t *testing.T) {
	t.Parallel()
	f := func(want string, args ...string) {
		t.Helper()
		got, err := run(t, nil, args...)
		testenv.Check(t, err == nil && strings.Contains(got, want), "x %v: %q, %v; want %q", args, got, err, want)
	}
	for _, help := range []string{"help", "-h", "--help"} {
		f("help of take more", help)
	}
	f("X_COLOUR  red", "help")
	f("x take more FILE", "help")
	f("x is a test.")
	f("one ", "one")
	f("one !", "one", "-loud")
	f("take more it", "take", "more", "it")
	for _, version := range []string{"version", "--version"} {
		f("x devel, revision unknown, go1.", version)
	}
	for _, args := range [][]string{{"one", "-h"}, {"help", "one"}} {
		f("x one [flags]\n\nhelp of one\n\nFlags:\n  -loud\n    \tshout\n\nSettings:\n  X_COLOUR  red  what it looks like\n", args...)
	}
	f("x take more [flags] FILE\n", "help", "take", "more")
	f("  x take more FILE  help of take more\n  x take none", "help", "take")
	f("x help [COMMAND]", "help", "help")
}

func TestRunErrors(t *testing.T) {
	t.Parallel()
	f := func(want string, environ []string, args ...string) {
		t.Helper()
		got, err := run(t, environ, args...)
		testenv.Check(t, err != nil && strings.Contains(err.Error(), want) && got == "",
			"x %v: %q, %v; want an error with %q and nothing else", args, got, err, want)
	}
	const all = " x help lists them all"
	f(`no command "nonsense";`+all, nil, "nonsense")
	f(`no command "nonsense";`+all, nil, "help", "nonsense")
	f(`no command "oen"; did you mean "one"?`+all, nil, "oen")
	f(`no command "tak more"; did you mean "take more"?`+all, nil, "tak", "more", "secret")
	f(`no command "takke"; did you mean "take more" or "take none"?`+all, nil, "takke")
	f(`no command "takemore"; did you mean "take more"?`+all, nil, "takemore")
	f(`no command "take"; did you mean "take more" or "take none"?`+all, nil, "take")
	f(`no command "take"; did you mean "take more" or "take none"?`+all, nil, "take", "-loud")
	f(`no command "more"; did you mean "take more"?`+all, nil, "more")
	f(`no command "on it"; did you mean "one"?`+all, nil, "on", "it")
	f(`x help takes a command and nothing else, but was given "it"`, nil, "help", "one", "it")
	f("X_COLOUR is none; for example X_COLOUR=red", nil, "take", "none")
	f(`was given "more or less"`, nil, "one", "more or less")
	f("-quiet", nil, "one", "-quiet")
	f("X_COLOR is no setting; did you mean X_COLOUR?", []string{"X_COLOR=blue"}, "one")
	f("no luck", nil, "fail")
	f("exactly one FILE", nil, "take", "more")
	f(`no command "take"`, nil, "take")
}
